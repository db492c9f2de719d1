"""RenameObject: an object gets another name, at once, and no byte of it moves."""

import json
import threading
import urllib.parse
from datetime import timedelta

import pytest

from harness import raw
from harness.auditing import ask, eventually, export
from harness.clients import refused, s3_client
from harness.content import MIB, content

SIZES = [0, 100, 3 * MIB]


def rename(s3, bucket, source, target, **options):
    return s3.rename_object(Bucket=bucket, Key=target, RenameSource=source, **options)


def names(s3, bucket):
    return [row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def body(s3, bucket, key):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def blobs(server):
    return sorted(path.name for path in server.data.rglob("blobs/*/*"))


@pytest.mark.parametrize("size_bytes", SIZES)
def test_all_but_the_name_stays(server, s3, bucket, size_bytes):
    data = content(size_bytes)
    described = {"ContentType": "text/x", "Metadata": {"a": "b"}, "Tagging": "t=1"}
    s3.put_object(Bucket=bucket, Key="old", Body=data, ChecksumAlgorithm="SHA256", **described)
    whole = {"Bucket": bucket, "ChecksumMode": "ENABLED"}
    before, stored = s3.head_object(Key="old", **whole), blobs(server)
    assert rename(s3, bucket, "old", "new/ä b")["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert names(s3, bucket) == ["new/ä b"]
    after = s3.head_object(Key="new/ä b", **whole)
    for told in (before, after):
        del told["ResponseMetadata"]
    assert after == before
    assert body(s3, bucket, "new/ä b") == data
    assert s3.get_object_tagging(Bucket=bucket, Key="new/ä b")["TagSet"]
    assert blobs(server) == stored, "its bytes did not move"
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="old")


def test_an_object_of_parts_keeps_them(s3, bucket):
    made = s3.create_multipart_upload(Bucket=bucket, Key="old")
    where = {"Bucket": bucket, "Key": "old", "UploadId": made["UploadId"]}
    parts, bodies = [], [content(5 * MIB, 1), content(99, 2)]
    for number, data in enumerate(bodies, 1):
        etag = s3.upload_part(**where, PartNumber=number, Body=data)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    rename(s3, bucket, "old", "new")
    second = s3.get_object(Bucket=bucket, Key="new", PartNumber=2)
    assert (second["Body"].read(), second["PartsCount"]) == (bodies[1], 2)


def test_what_has_the_new_name_is_replaced(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=content(MIB, 1))
    s3.put_object(Bucket=bucket, Key="b", Body=content(MIB, 2))
    rename(s3, bucket, "a", "b")
    assert names(s3, bucket) == ["b"] and body(s3, bucket, "b") == content(MIB, 1)
    assert server.blob_bytes_at_most(2 * MIB - 1), "what was replaced is gone"
    with refused("NoSuchKey", 404):
        rename(s3, bucket, "a", "b")
    assert body(s3, bucket, "b") == content(MIB, 1)


def test_names_are_percent_encoded(server, s3, bucket):
    for source, sent in [("a b+c", "a%20b+c"), ("ä/%", "%C3%A4/%25"), ("/x", "/x")]:
        s3.put_object(Bucket=bucket, Key=source, Body=b"x")
        headers = {"x-amz-rename-source": sent}
        path = f"/{bucket}/moved"
        told = raw.send(server, "PUT", path, query="renameObject=", headers=headers)
        assert told[0] == 200 and told[2] == b"", told
        assert names(s3, bucket) == ["moved"]


def test_conditions_on_both(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"a")["ETag"]
    other = s3.put_object(Bucket=bucket, Key="b", Body=b"b")["ETag"]
    modified = s3.head_object(Bucket=bucket, Key="a")["LastModified"]
    before, after = modified - timedelta(minutes=1), modified + timedelta(minutes=1)
    for options in (
        {"SourceIfMatch": other},
        {"SourceIfNoneMatch": etag},
        {"SourceIfNoneMatch": "*"},
        {"SourceIfModifiedSince": after},
        {"SourceIfUnmodifiedSince": before},
        {"DestinationIfMatch": etag},
        {"DestinationIfNoneMatch": "*"},
        {"DestinationIfNoneMatch": other},
        {"DestinationIfModifiedSince": after},
        {"DestinationIfUnmodifiedSince": before},
    ):
        with refused("PreconditionFailed", 412):
            rename(s3, bucket, "a", "b", **options)
    for options in ({"DestinationIfMatch": etag}, {"DestinationIfModifiedSince": before}):
        with refused("PreconditionFailed", 412):
            rename(s3, bucket, "a", "nothing", **options)
    assert names(s3, bucket) == ["a", "b"] and body(s3, bucket, "b") == b"b"
    rename(s3, bucket, "a", "c", SourceIfMatch=etag, DestinationIfNoneMatch="*")
    rename(s3, bucket, "c", "b", DestinationIfMatch=other, SourceIfUnmodifiedSince=after)
    assert names(s3, bucket) == ["b"] and body(s3, bucket, "b") == b"a"


def test_a_token_stands_for_one_rename(own_server):
    """Who never heard the answer asks again, and is told the same, over a kill too."""
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="one")
    s3.put_object(Bucket="one", Key="a", Body=b"a")
    rename(s3, "one", "a", "b", ClientToken="first")
    s3.put_object(Bucket="one", Key="a", Body=b"another")
    server.kill()
    server.start()
    rename(s3, "one", "a", "b", ClientToken="first")
    assert (body(s3, "one", "a"), body(s3, "one", "b")) == (b"another", b"a")
    for source, target, more in [
        ("a", "c", {}),
        ("b", "a", {}),
        ("a", "b", {"DestinationIfNoneMatch": "*"}),
    ]:
        with refused("IdempotencyParameterMismatch", 400):
            rename(s3, "one", source, target, ClientToken="first", **more)
    rename(s3, "one", "a", "b", ClientToken="second")
    assert names(s3, "one") == ["b"]
    # One that was refused is not used up.
    with refused("NoSuchKey", 404):
        rename(s3, "one", "z", "y", ClientToken="third")
    s3.put_object(Bucket="one", Key="z", Body=b"z")
    rename(s3, "one", "z", "y", ClientToken="third")
    assert names(s3, "one") == ["b", "y"]


def test_what_is_no_rename(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    with refused("InvalidRequest", 400):
        rename(s3, bucket, "a", "a")
    with refused("InvalidArgument", 400):
        rename(s3, bucket, "a", "b", ClientToken="t" * 65)
    with refused("NoSuchBucket", 404):
        rename(s3, "none-of-these", "a", "b")

    def status(path, query="renameObject=", **more):
        told = raw.send(server, "PUT", path, query=query, **more)
        return told[0], told[2].split(b"</Code>")[0].rpartition(b">")[2].decode()

    source = {"headers": {"x-amz-rename-source": "a"}}
    assert status(f"/{bucket}/b") == (400, "InvalidArgument")
    assert status(f"/{bucket}", **source) == (405, "MethodNotAllowed")
    assert status(f"/{bucket}/b", body=b"x", **source) == (400, "InvalidRequest")
    assert status(f"/{bucket}/b", query="", **source) == (501, "NotImplemented")
    assert names(s3, bucket) == ["a"]


@pytest.mark.parametrize("state", ["Enabled", "Suspended"])
def test_versions_belong_to_their_names(s3, bucket, state):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for status in dict.fromkeys(("Enabled", state)):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
    with refused("InvalidRequest", 400) as error:
        rename(s3, bucket, "a", "b")
    assert "versions" in error.message
    assert names(s3, bucket) == ["a"]


def test_it_takes_the_rights_to_read_write_and_delete(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    all_rights = ["read", "write", "delete"]
    for left_out in [*all_rights, None]:
        rights = ",".join(right for right in all_rights if right != left_out)
        name = f"without-{left_out or 'none'}"
        words = ("--clearance", "default", "--grant", f"{bucket}={rights}", "--json")
        made = ask(server, "subject", "create", name, *words)
        client = s3_client(server, credentials=credentials(made))
        if left_out:
            with refused("AccessDenied", 403):
                rename(client, bucket, "a", "b")
        else:
            rename(client, bucket, "a", "b")
    assert names(s3, bucket) == ["b"]


def credentials(made):

    told = json.loads(made)
    return told["access_key_id"], told["secret_access_key"]


def test_a_quota_lets_a_name_change(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"12345")
    s3.put_object(Bucket=bucket, Key="b", Body=b"12345")
    ask(server, "quota", "set", "bucket", bucket, "--bytes", 10, "--objects", 2)
    rename(s3, bucket, "a", "c")
    with refused("QuotaExceeded", 403):
        s3.put_object(Bucket=bucket, Key="d", Body=b"1")
    rename(s3, bucket, "c", "b")
    s3.put_object(Bucket=bucket, Key="d", Body=b"12345")
    with refused("QuotaExceeded", 403):
        s3.put_object(Bucket=bucket, Key="e", Body=b"1")
    ask(server, "quota", "remove", "bucket", bucket)


def test_one_of_many_who_rename_the_same_does(server, s3, bucket):
    """And a reader sees it under one of the names, never under none of them for long, or both."""
    s3.put_object(Bucket=bucket, Key="a", Body=content(MIB))
    outcomes = []

    def run(number):
        client = s3_client(server)
        try:
            rename(client, bucket, "a", f"to-{number}")
            outcomes.append(number)
        except client.exceptions.NoSuchKey:
            pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = outcomes
    assert names(s3, bucket) == [f"to-{winner}"]
    assert body(s3, bucket, f"to-{winner}") == content(MIB)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"x-amz-acl": "private"}, None),
        ({"x-amz-acl": "bucket-owner-full-control"}, None),
        ({"x-amz-acl": "public-read"}, "AccessControlListNotSupported"),
        ({"x-amz-grant-read": "id=someone"}, "AccessControlListNotSupported"),
        ({"x-amz-acl": "nonsense"}, "InvalidArgument"),
    ],
)
def test_a_list_that_gives_to_others_is_refused(server, bucket, given, code):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="lists-on", ObjectOwnership="ObjectWriter")

    def add(request, **_):
        for name, value in given.items():
            request.headers.add_header(name, value)

    s3.meta.events.register("before-sign.s3.RenameObject", add)
    for where in (bucket, "lists-on"):
        s3.put_object(Bucket=where, Key="a", Body=b"a")
        if code is None:
            rename(s3, where, "a", "b")
            assert names(s3, where) == ["b"]
        else:
            with refused(code, 400):
                rename(s3, where, "a", "b")
            assert names(s3, where) == ["a"]
        for key in names(s3, where):
            s3.delete_object(Bucket=where, Key=key)
    s3.delete_bucket(Bucket="lists-on")


def test_a_presigned_address_renames(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    wanted = {"Bucket": bucket, "Key": "b", "RenameSource": "a", "ClientToken": "t"}
    url = s3.generate_presigned_url("rename_object", wanted)
    target = url.split(str(server.port), 1)[1]
    headers = {"host": f"127.0.0.1:{server.port}", "content-length": "0"}
    signed = urllib.parse.parse_qs(target)["X-Amz-SignedHeaders"][0].split(";")
    told = {"x-amz-rename-source": "a", "x-amz-client-token": "t"}
    headers |= {name: told[name] for name in signed if name in told}
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", target, headers))
        status, _, said = raw.receive(connection, "PUT")
    assert status == 200, said
    assert names(s3, bucket) == ["b"]


def test_the_audit_log_tells_both_names(own_server):
    server = own_server().start()
    ask(server, "level", "create", "w", "--rank", 0, "--same-label", "--audit-data")
    ask(server, "bucket", "create", "watched", "--level", "w")
    s3 = s3_client(server)
    s3.put_object(Bucket="watched", Key="a", Body=b"a")
    rename(s3, "watched", "a", "b")
    with refused("NoSuchKey", 404):
        rename(s3, "watched", "a", "c")
    rows = export(server, "--act", "object.rename", "--outcome", "begun")
    told = [(row["details"]["end"], row["details"]["object"]) for row in rows]
    assert told == [("source", "a"), ("target", "b"), ("source", "a"), ("target", "c")]
    ended = ("--act", "object.rename", "--outcome", "failed")
    failed = eventually(lambda: export(server, *ended))
    assert [row["details"]["object"] for row in failed] == ["a", "c"]


def test_what_asks_for_a_lock_is_refused_as_a_put_is(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    until = {"x-amz-object-lock-retain-until-date": "2099-01-01T00:00:00Z"}
    for lock, code in (
        ({"x-amz-object-lock-legal-hold": "ON"}, b"InvalidRequest"),
        ({"x-amz-object-lock-mode": "GOVERNANCE"} | until, b"InvalidRequest"),
        (until, b"InvalidArgument"),
        ({"x-amz-object-lock-legal-hold": "maybe"}, b"InvalidArgument"),
    ):
        put = raw.send(server, "PUT", f"/{bucket}/b", headers=lock)
        headers = lock | {"x-amz-rename-source": "a"}
        renamed = raw.send(server, "PUT", f"/{bucket}/b", query="renameObject=", headers=headers)
        for status, _, told in (put, renamed):
            assert status == 400 and b"<Code>" + code in told, (lock, told)
    assert names(s3, bucket) == ["a"]


def test_it_is_durable_when_it_is_answered(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="one")
    for number in range(20):
        s3.put_object(Bucket="one", Key=f"a{number}", Body=content(100_000, number))
    for number in range(20):
        rename(s3, "one", f"a{number}", f"b{number}")
        if number % 5 == 4:
            server.kill()
            server.start()
    assert names(s3, "one") == sorted(f"b{number}" for number in range(20))
    for number in range(20):
        assert body(s3, "one", f"b{number}") == content(100_000, number)
