"""Objects that are sealed under keys that clients bring along (SSE-C)."""

import base64
import hashlib
import json
import os
import re
import subprocess

import pytest
import requests

from harness.administration import ask, run
from harness.clients import client_environment, refused, s3_client
from harness.content import PART_MIN_BYTES, content
from harness.server import coffer


def brought(key):
    """A key as boto3 takes it, which adds the MD5."""
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}


def written_out(key):
    """A key where boto3 adds nothing of itself."""
    text = base64.b64encode(key).decode()
    return brought(text) | {"SSECustomerKeyMD5": md5_of(key)}


def as_source(key):
    return {f"CopySource{name}": value for name, value in brought(key).items()}


def md5_of(key):
    return base64.b64encode(hashlib.md5(key).digest()).decode()


MINE, OTHER = os.urandom(32), os.urandom(32)
BODY = content(50_000)


def allow(s3, bucket, blocked="NONE"):
    rule = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"},
        "BlockedEncryptionTypes": {"EncryptionType": [blocked]},
    }
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})


@pytest.fixture
def allowing(s3, bucket):
    """A bucket that takes keys of clients."""
    allow(s3, bucket)
    return bucket


def told(answer):
    names = ("SSECustomerAlgorithm", "SSECustomerKeyMD5", "ServerSideEncryption", "SSEKMSKeyId")
    return tuple(answer.get(name) for name in names)


TOLD = ("AES256", md5_of(MINE), None, None)


def test_buckets_take_none_unless_told(server, s3, bucket):
    def blocked():
        answer = s3.get_bucket_encryption(Bucket=bucket)
        [rule] = answer["ServerSideEncryptionConfiguration"]["Rules"]
        return rule["BlockedEncryptionTypes"]["EncryptionType"]

    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    source = {"Bucket": bucket, "Key": "a"}
    assert blocked() == ["SSE-C"]
    for call in (
        lambda: s3.put_object(Bucket=bucket, Key="b", Body=b"a", **brought(MINE)),
        lambda: s3.copy_object(Bucket=bucket, Key="b", CopySource=source, **brought(MINE)),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key="b", **brought(MINE)),
    ):
        with refused("AccessDenied", 403) as error:
            call()
        assert "SSE-C" in error.message
    allow(s3, bucket)
    assert blocked() == ["NONE"]
    s3.put_object(Bucket=bucket, Key="b", Body=BODY, **brought(MINE))
    server.restart()
    assert blocked() == ["NONE"]
    allow(s3, bucket, "SSE-C")
    with refused("AccessDenied", 403):
        s3.put_object(Bucket=bucket, Key="c", Body=b"a", **brought(MINE))
    read = s3.get_object(Bucket=bucket, Key="b", **brought(MINE))
    assert read["Body"].read() == BODY, "what is there is still read"


@pytest.mark.parametrize("size_bytes", [0, 1, 16_384, 50_000])
def test_an_object_comes_back_with_its_key_alone(s3, allowing, size_bytes):
    where = {"Bucket": allowing, "Key": "a"}
    body = content(size_bytes)
    stored = s3.put_object(**where, Body=body, **brought(MINE))
    assert told(stored) == TOLD
    assert re.fullmatch('"[0-9a-f]{32}-1"', stored["ETag"])
    read = s3.get_object(**where, **brought(MINE))
    assert read["Body"].read() == body and told(read) == TOLD
    assert told(s3.head_object(**where, **brought(MINE))) == TOLD
    if size_bytes > 2:
        part = s3.get_object(**where, Range="bytes=1-2", **brought(MINE))
        assert part["Body"].read() == body[1:3]
    attributes = {"ObjectAttributes": ["ETag", "ObjectSize"]}
    answer = s3.get_object_attributes(**where, **attributes, **written_out(MINE))
    assert answer["ObjectSize"] == size_bytes
    for key, code, status in ((None, "InvalidRequest", 400), (OTHER, "AccessDenied", 403)):
        more = brought(key) if key else {}
        with refused(code, status):
            s3.get_object(**where, **more)
        with refused(code, status):
            s3.get_object_attributes(**where, **attributes, **(written_out(key) if key else {}))
        with refused(status=status):
            s3.head_object(**where, **more)
    assert s3.get_object_tagging(**where)["TagSet"] == []
    assert s3.list_objects_v2(Bucket=allowing)["Contents"][0]["Size"] == size_bytes
    s3.delete_object(**where)


def test_a_key_for_what_needs_none_is_refused(s3, allowing):
    s3.put_object(Bucket=allowing, Key="a", Body=b"a")
    with refused("InvalidRequest", 400) as error:
        s3.get_object(Bucket=allowing, Key="a", **brought(MINE))
    assert "not applicable" in error.message


def test_all_three_headers_or_none(server, s3, allowing):
    wrong = [
        {"SSECustomerAlgorithm": "AES128"},
        written_out(b"short"),
        {"SSECustomerKeyMD5": md5_of(OTHER)},
        {"ServerSideEncryption": "AES256"},
    ]
    for change in wrong:
        with refused(status=400):
            s3.put_object(Bucket=allowing, Key="a", Body=b"a", **(written_out(MINE) | change))
    for left_out in ("algorithm", "key", "key-MD5"):
        client = s3_client(server)

        def leave_out(request, left_out=left_out, **_):
            del request.headers[f"x-amz-server-side-encryption-customer-{left_out}"]

        client.meta.events.register("before-sign.s3", leave_out)
        with refused("InvalidArgument", 400):
            client.put_object(Bucket=allowing, Key="a", Body=b"a", **brought(MINE))
    assert "Contents" not in s3.list_objects_v2(Bucket=allowing)


def test_entity_tags_are_never_md5s(s3, allowing):
    more = {"ContentMD5": base64.b64encode(hashlib.md5(BODY).digest()).decode()}
    stored = s3.put_object(Bucket=allowing, Key="a", Body=BODY, **more, **brought(MINE))
    assert hashlib.md5(BODY).hexdigest() not in stored["ETag"]
    with refused("BadDigest", 400):
        s3.put_object(Bucket=allowing, Key="a", Body=b"other", **more, **brought(MINE))


def test_copies_have_keys_of_their_own(s3, allowing):
    source = {"Bucket": allowing, "Key": "a"}
    s3.put_object(**source, Body=BODY, **brought(MINE))
    for more in ({}, as_source(OTHER)):
        with refused(status=403 if more else 400):
            s3.copy_object(Bucket=allowing, Key="b", CopySource=source, **more)
    copied = s3.copy_object(Bucket=allowing, Key="b", CopySource=source, **as_source(MINE))
    assert told(copied)[2:] == ("aws:kms", "default")
    assert s3.get_object(Bucket=allowing, Key="b")["Body"].read() == BODY
    both = as_source(MINE) | brought(OTHER)
    copied = s3.copy_object(Bucket=allowing, Key="a", CopySource=source, **both)
    assert copied["SSECustomerKeyMD5"] == md5_of(OTHER)
    assert s3.get_object(**source, **brought(OTHER))["Body"].read() == BODY
    with refused("AccessDenied", 403):
        s3.get_object(**source, **brought(MINE))
    # Without its key from then on: a change, so that it may be copied to itself.
    copied = s3.copy_object(Bucket=allowing, Key="a", CopySource=source, **as_source(OTHER))
    assert told(copied)[2:] == ("aws:kms", "default")
    assert s3.get_object(**source)["Body"].read() == BODY


def test_all_parts_need_the_key(s3, allowing):
    s3.put_object(Bucket=allowing, Key="source", Body=BODY, **brought(OTHER))
    created = s3.create_multipart_upload(Bucket=allowing, Key="a", **brought(MINE))
    assert told(created) == TOLD
    where = {"Bucket": allowing, "Key": "a", "UploadId": created["UploadId"]}
    first = content(PART_MIN_BYTES)
    for more in ({}, brought(OTHER)):
        with refused("InvalidRequest", 400):
            s3.upload_part(**where, PartNumber=1, Body=b"a", **more)
    part = s3.upload_part(**where, PartNumber=1, Body=first, **brought(MINE))
    assert told(part) == TOLD
    source = {"Bucket": allowing, "Key": "source"}
    keys = as_source(OTHER) | brought(MINE)
    copied = s3.upload_part_copy(**where, PartNumber=2, CopySource=source, **keys)
    assert told(copied) == TOLD
    etags = [part["ETag"], copied["CopyPartResult"]["ETag"]]
    parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, 1)]
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert re.fullmatch('"[0-9a-f]{32}-2"', done["ETag"])
    read = s3.get_object(Bucket=allowing, Key="a", **brought(MINE))
    assert read["Body"].read() == first + BODY
    second = s3.get_object(Bucket=allowing, Key="a", PartNumber=2, **brought(MINE))
    assert second["Body"].read() == BODY
    plain = s3.create_multipart_upload(Bucket=allowing, Key="b")["UploadId"]
    with refused("InvalidRequest", 400):
        s3.upload_part(
            Bucket=allowing, Key="b", UploadId=plain, PartNumber=1, Body=b"a", **brought(MINE)
        )


def test_locks_are_told_without_the_key(s3, allowing):
    """Their requests have no headers for one."""
    bucket, enabled = allowing, {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    lock = {"ObjectLockEnabled": "Enabled"}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=lock)
    s3.put_object(
        Bucket=bucket, Key="a", Body=BODY, ObjectLockLegalHoldStatus="ON", **brought(MINE)
    )
    held = s3.get_object_legal_hold(Bucket=bucket, Key="a")
    assert held["LegalHold"]["Status"] == "ON"
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_retention(Bucket=bucket, Key="a")
    s3.put_object_legal_hold(Bucket=bucket, Key="a", LegalHold={"Status": "OFF"})


def test_a_form_brings_a_key(server, s3, allowing):
    start = "x-amz-server-side-encryption-customer-"
    fields = {
        f"{start}algorithm": "AES256",
        f"{start}key": base64.b64encode(MINE).decode(),
        f"{start}key-MD5": md5_of(MINE),
    }
    conditions = [{name: value} for name, value in fields.items()]
    form = s3.generate_presigned_post(allowing, "a", Fields=fields, Conditions=conditions)
    answer = requests.post(
        form["url"],
        data=form["fields"],
        files={"file": ("a", b"of a form")},
        verify=str(server.ca),
        timeout=60,
    )
    assert answer.headers[f"{start}key-md5"] == md5_of(MINE), answer.text
    read = s3.get_object(Bucket=allowing, Key="a", **brought(MINE))
    assert read["Body"].read() == b"of a form"


def test_a_refused_form_does_not_tell_the_key(server, s3, allowing):
    start = "x-amz-server-side-encryption-customer-"
    fields = {
        f"{start}algorithm": "AES256",
        f"{start}key": base64.b64encode(MINE).decode(),
        f"{start}key-MD5": md5_of(MINE),
    }
    conditions = [{name: value} for name, value in fields.items()]
    form = s3.generate_presigned_post(allowing, "a", Fields=dict(fields), Conditions=conditions)
    answer = requests.post(
        form["url"],
        data=form["fields"] | {f"{start}key": base64.b64encode(bytes(32)).decode()},
        files={"file": ("a", b"of a form")},
        verify=str(server.ca),
        timeout=60,
    )
    assert answer.status_code == 403 and "Policy Condition failed" in answer.text
    assert f"${start}key" in answer.text and fields[f"{start}key"] not in answer.text


def test_a_presigned_address_takes_the_headers(server, s3, allowing):
    s3.put_object(Bucket=allowing, Key="a", Body=b"a", **brought(MINE))
    url = s3.generate_presigned_url("get_object", {"Bucket": allowing, "Key": "a", **brought(MINE)})
    start = "x-amz-server-side-encryption-customer-"
    headers = {
        f"{start}algorithm": "AES256",
        f"{start}key": base64.b64encode(MINE).decode(),
        f"{start}key-MD5": md5_of(MINE),
    }
    answer = requests.get(url, headers=headers, verify=str(server.ca), timeout=60)
    assert (answer.status_code, answer.content) == (200, b"a"), answer.text


def test_a_new_bucket_key_leaves_them_readable(server, s3, allowing):
    where = {"Bucket": allowing, "Key": "a"}
    s3.put_object(**where, Body=BODY, **brought(MINE))
    before = ask(server, "bucket", "show", allowing)["generation"]
    run(server, "bucket", "rotate", allowing)
    after = ask(server, "bucket", "show", allowing)
    assert after["generation"] > before and "older_generation" not in after
    assert s3.get_object(**where, **brought(MINE))["Body"].read() == BODY
    with refused("AccessDenied", 403):
        s3.get_object(**where, **brought(OTHER))
    server.restart()
    assert s3.get_object(**where, **brought(MINE))["Body"].read() == BODY


def test_verify_looks_at_what_it_can_open(server, s3, allowing):
    s3.put_object(Bucket=allowing, Key="a", Body=BODY, **brought(MINE))
    told = run(server, "verify")
    assert "all sound" in told and "1 blobs are sealed under clients' keys too" in told
    [blob] = [path for path in server.data.glob("buckets/*/blobs/*/*") if path.is_file()]
    held = blob.read_bytes()
    blob.write_bytes(held[:-1])
    damaged = coffer("verify", "--data", server.data)
    assert damaged.returncode == 1 and b"another length" in damaged.stdout, damaged
    blob.write_bytes(held)
    assert "all sound" in run(server, "verify")
    server.stop()
    stopped = coffer("verify", "--data", server.data)
    assert stopped.returncode == 0 and b"1 blobs are sealed" in stopped.stdout, stopped
    server.start()


def test_no_key_is_stored_or_logged(server, s3, allowing):
    s3.put_object(Bucket=allowing, Key="a", Body=BODY, **brought(MINE))
    s3.get_object(Bucket=allowing, Key="a", **brought(MINE))["Body"].read()
    server.stop()
    texts = [base64.b64encode(MINE).decode(), md5_of(MINE), MINE.hex()]
    traces = [MINE, *(text.encode() for text in texts)]
    for path in server.data.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert not any(trace in held for trace in traces), path
    assert not any(text in server.log() for text in texts)
    for words in (["cat"], ["keys"]):
        opened = coffer("offline", *words, "--data", server.data, allowing, "a")
        assert opened.returncode == 1 and b"client's key" in opened.stderr, opened
    server.start()


def test_the_aws_cli(server, s3, allowing, tmp_path):
    environment = client_environment(server, tmp_path)
    (tmp_path / "key").write_bytes(MINE)
    (tmp_path / "sent").write_bytes(content(9 * 1024 * 1024))

    def aws(*words, key="key"):
        key = ["--sse-c", "AES256", "--sse-c-key", f"fileb://{tmp_path}/{key}"]
        command = ["aws", "--endpoint-url", server.endpoint, "s3", "cp", *words, *key]
        return subprocess.run(
            list(map(str, command)), env=environment, capture_output=True, text=True
        )

    sent = aws(tmp_path / "sent", f"s3://{allowing}/a")
    assert sent.returncode == 0, sent.stderr
    got = aws(f"s3://{allowing}/a", tmp_path / "got")
    assert got.returncode == 0, got.stderr
    assert (tmp_path / "got").read_bytes() == (tmp_path / "sent").read_bytes()
    (tmp_path / "other").write_bytes(OTHER)
    assert aws(f"s3://{allowing}/a", tmp_path / "no", key="other").returncode != 0
    shown = json.loads(
        subprocess.run(
            ["aws", "--endpoint-url", server.endpoint, "s3api", "get-bucket-encryption"]
            + ["--bucket", allowing],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    [rule] = shown["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["BlockedEncryptionTypes"]["EncryptionType"] == ["NONE"]


def test_without_the_key_an_empty_object_is_not_read_offline_either(server, s3, allowing):
    s3.put_object(Bucket=allowing, Key="empty", Body=b"", **brought(MINE))
    s3.put_object(Bucket=allowing, Key="plain", Body=b"")
    server.stop()
    for words in (["cat"], ["keys"]):
        opened = coffer("offline", *words, "--data", server.data, allowing, "empty")
        assert opened.returncode == 1 and b"client's key" in opened.stderr, opened
    opened = coffer("offline", "cat", "--data", server.data, allowing, "plain")
    assert opened.returncode == 0 and opened.stdout == b"", opened
    server.start()
