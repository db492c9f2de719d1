"""Policies of buckets: who may what, within what labels allow."""

import json
import time
import urllib.error
import urllib.request
from email.utils import formatdate

import pytest

from harness import raw
from harness.administration import ask, client_of, make_subject, run
from harness.clients import refused, s3_client
from harness.content import MIB, content
from harness.lists import id_of
from harness.policies import ALL, arn, put, read, statement, user


@pytest.fixture(scope="module", autouse=True)
def level_above(server):
    ask(server, "level", "create", "secret", "--rank", "2")


def test_an_allow_lets_in_whom_grants_leave_out(ann, guest, shared, account):
    with refused("NoSuchBucket", 404):
        read(guest, shared)
    put(
        ann,
        shared,
        statement("Allow", user(account, "guest"), ["s3:GetObject"], arn(shared, "open/*")),
    )
    assert read(guest, shared) == b"content"
    for call in (
        lambda: read(guest, shared, "closed/b"),
        lambda: guest.put_object(Bucket=shared, Key="open/a", Body=b"x"),
        lambda: guest.list_objects_v2(Bucket=shared),
        lambda: guest.delete_object(Bucket=shared, Key="open/a"),
        lambda: guest.head_bucket(Bucket=shared),
        lambda: guest.get_bucket_policy(Bucket=shared),
        lambda: guest.put_bucket_policy(Bucket=shared, Policy="{}"),
        lambda: guest.delete_bucket_policy(Bucket=shared),
    ):
        with refused(None, 403):
            call()
    assert shared not in [found["Name"] for found in guest.list_buckets()["Buckets"]]
    ann.delete_bucket_policy(Bucket=shared)
    with refused("NoSuchBucket", 404):
        read(guest, shared)


def test_a_deny_wins_over_grants_and_an_allow(ann, bob, guest, shared, account):
    assert read(bob, shared) == b"content"
    names = [user(account, name) for name in ("bob", "guest")]
    put(
        ann,
        shared,
        statement("Allow", names, ["s3:GetObject"], arn(shared, "*")),
        statement("Deny", names, ["s3:GetObject"], arn(shared, "closed/*")),
    )
    for client in (bob, guest):
        assert read(client, shared) == b"content"
        with refused("AccessDenied", 403):
            read(client, shared, "closed/b")
    # What the policy says nothing of, grants allow as before.
    bob.put_object(Bucket=shared, Key="closed/c", Body=b"x")
    bob.delete_object(Bucket=shared, Key="closed/c")


def test_denials_are_counted_and_recorded(server, ann, bob, shared, account):
    put(ann, shared, statement("Deny", user(account, "bob"), ["s3:*"], arn(shared, "*")))
    with refused("AccessDenied", 403):
        read(bob, shared)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        shown = run(server, "audit", "show", "--json").splitlines()
        records = [json.loads(line) for line in shown]
        if any(
            record["outcome"] == "denied" and record["details"].get("bucket") == shared
            for record in records
        ):
            break
        time.sleep(0.2)
    else:
        pytest.fail("no record of the denial")
    set_by = [
        record
        for record in records
        if record["act"] == "configuration.write" and record["details"]["bucket"] == shared
    ]
    assert set_by and set_by[-1]["details"]["configuration"] == "policy"


def test_no_allow_reaches_past_a_label(server, ann):
    """Neither upwards to read, nor down to write; and what was read high is not carried low."""
    low = client_of(server, "low", "default")
    high = make_subject(server, "high", "secret")
    range_ = client_of(server, "range", "default..secret")
    high_client = s3_client(server, credentials=high)
    high_client.create_bucket(
        Bucket="high-up", CreateBucketConfiguration={"LocationConstraint": "secret"}
    )
    high_client.put_object(Bucket="high-up", Key="a", Body=b"secret")
    # By ids: by their names not all of them are known to who shares a bucket.
    everyone = [id_of(client) for client in (low, high_client, range_)]
    put(
        high_client,
        "high-up",
        statement("Allow", everyone, ALL, arn("high-up"), arn("high-up", "*")),
    )
    ann.create_bucket(Bucket="low-down")
    put(ann, "low-down", statement("Allow", everyone, ALL, arn("low-down"), arn("low-down", "*")))
    for call in (
        lambda: read(low, "high-up", "a"),
        lambda: low.list_objects_v2(Bucket="high-up"),
        lambda: low.put_object(Bucket="high-up", Key="b", Body=b"x"),
        lambda: low.get_bucket_policy(Bucket="high-up"),
    ):
        with refused("NoSuchBucket", 404):
            call()
    with refused("AccessDenied", 403):
        high_client.put_object(Bucket="low-down", Key="b", Body=b"x")
    range_.put_object(Bucket="low-down", Key="before", Body=b"x")
    assert read(range_, "high-up", "a") == b"secret"
    with refused("AccessDenied", 403):
        range_.put_object(Bucket="low-down", Key="after", Body=b"x")


@pytest.mark.parametrize(
    "policy",
    [
        "",
        "{",
        "{}",
        '{"Version": "2012-10-17", "Statement": []}',
        '{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
        ' "Resource": "*"}]}',
        '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::1:user/x"},'
        ' "Action": "s3:GetObject", "Resource": "arn:aws:s3:::BUCKET/*"}]}',
        '{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:Invent",'
        ' "Resource": "arn:aws:s3:::BUCKET/*"}]}',
        '{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject",'
        ' "Resource": "arn:aws:s3:::another/*"}]}',
        '{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject",'
        ' "Resource": "arn:aws:s3:::BUCKET/*", "Sid": "' + "x" * 21_000 + '"}]}',
    ],
    ids=lambda policy: policy[:12] or "empty",
)
def test_what_is_no_policy_is_refused(ann, shared, policy):
    with refused(None, 400) as error:
        ann.put_bucket_policy(Bucket=shared, Policy=policy.replace("BUCKET", shared))
    assert error.code in ("MalformedPolicy", "MissingRequestBodyError", "InvalidRequest")
    with refused("NoSuchBucketPolicy", 404):
        ann.get_bucket_policy(Bucket=shared)


def test_a_missing_object_is_told_to_those_who_may_list(ann, bob, guest, shared, account):
    with refused("NoSuchKey", 404):
        read(bob, shared, "missing")
    get = statement("Allow", user(account, "guest"), ["s3:GetObject"], arn(shared, "*"))
    put(ann, shared, get)
    with refused("AccessDenied", 403):
        read(guest, shared, "missing")
    with refused("403", 403):
        guest.head_object(Bucket=shared, Key="missing")
    with refused("NoSuchKey", 404):
        read(bob, shared, "missing")
    listing = statement("Allow", user(account, "guest"), ["s3:ListBucket"], arn(shared))
    put(ann, shared, get, listing)
    with refused("NoSuchKey", 404):
        read(guest, shared, "missing")


def test_a_write_that_compares_needs_to_read_as_well(ann, guest, shared, account):
    """Whether it is done tells what is there."""
    etag = ann.head_object(Bucket=shared, Key="open/a")["ETag"]
    where = {"Bucket": shared, "Key": "open/a"}

    def writes():
        made = guest.create_multipart_upload(**where)["UploadId"]
        part = guest.upload_part(**where, UploadId=made, PartNumber=1, Body=b"x")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        done = where | {"UploadId": made, "MultipartUpload": parts}
        return [
            lambda: guest.complete_multipart_upload(**done, IfMatch=etag),
            lambda: guest.put_object(**where, Body=b"x", IfMatch="*"),
        ]

    writer = user(account, "guest")
    put(ann, shared, statement("Allow", writer, ["s3:PutObject"], arn(shared, "*")))
    for write in writes():
        with refused("AccessDenied", 403):
            write()
    guest.put_object(Bucket=shared, Key="new", Body=b"x", IfNoneMatch="*")
    both = ["s3:PutObject", "s3:GetObject"]
    put(ann, shared, statement("Allow", writer, both, arn(shared, "*")))
    for write in writes():
        write()


def test_a_deletion_that_compares_needs_to_read_as_well(ann, guest, shared, account):
    """Whether it is done tells what is there (User Guide, "conditional deletes")."""
    head = ann.head_object(Bucket=shared, Key="open/a")
    conditions = [
        {"IfMatch": head["ETag"]},
        {"IfMatch": '"other"'},
        {"IfMatchSize": 7},
        {"IfMatchSize": 8},
        {"IfMatchLastModifiedTime": head["LastModified"]},
    ]
    put(
        ann,
        shared,
        statement("Allow", user(account, "guest"), ["s3:DeleteObject"], arn(shared, "*")),
    )
    for condition in conditions:
        with refused("AccessDenied", 403):
            guest.delete_object(Bucket=shared, Key="open/a", **condition)
    entries = [{"Key": "open/a", "ETag": head["ETag"]}, {"Key": "closed/b"}]
    done = guest.delete_objects(Bucket=shared, Delete={"Objects": entries})
    assert [(one["Key"], one["Code"]) for one in done["Errors"]] == [("open/a", "AccessDenied")]
    assert [one["Key"] for one in done["Deleted"]] == ["closed/b"]
    assert read(ann, shared) == b"content"
    # That there is an object is no more than a deletion tells.
    guest.delete_object(Bucket=shared, Key="open/a", IfMatch="*")
    ann.put_object(Bucket=shared, Key="open/a", Body=b"content")
    both = ["s3:DeleteObject", "s3:GetObject"]
    put(ann, shared, statement("Allow", user(account, "guest"), both, arn(shared, "*")))
    with refused("PreconditionFailed", 412):
        guest.delete_object(Bucket=shared, Key="open/a", IfMatchSize=8)
    guest.delete_object(Bucket=shared, Key="open/a", IfMatchSize=7)


def test_comparing_needs_a_grant_to_read_where_there_is_no_policy(server, ann, shared):
    etag = ann.head_object(Bucket=shared, Key="open/a")["ETag"]
    blind = client_of(server, f"blind-{shared}", "default", "--grant", f"{shared}=write,delete")
    where = {"Bucket": shared, "Key": "open/a"}
    made = blind.create_multipart_upload(**where)["UploadId"]
    part = blind.upload_part(**where, UploadId=made, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    done = where | {"UploadId": made, "MultipartUpload": parts}
    for call in (
        lambda: blind.put_object(**where, Body=b"x", IfMatch=etag),
        lambda: blind.put_object(**where, Body=b"x", IfMatch="*"),
        lambda: blind.complete_multipart_upload(**done, IfMatch=etag),
        lambda: blind.delete_object(**where, IfMatch=etag),
        lambda: blind.delete_object(**where, IfMatchSize=7),
    ):
        with refused("AccessDenied", 403):
            call()
    assert read(ann, shared) == b"content"
    blind.complete_multipart_upload(**done)
    blind.put_object(Bucket=shared, Key="new", Body=b"x", IfNoneMatch="*")
    blind.delete_object(**where)


def test_a_deletion_of_many_is_decided_one_by_one(ann, bob, shared):
    put(ann, shared, statement("Deny", "*", ["s3:DeleteObject"], arn(shared, "closed/*")))
    keys = ["closed/b", "open/a", "closed/none", "open/none"]
    done = bob.delete_objects(Bucket=shared, Delete={"Objects": [{"Key": key} for key in keys]})
    assert {found["Key"] for found in done["Deleted"]} == {"open/a", "open/none"}
    assert {found["Key"]: found["Code"] for found in done["Errors"]} == {
        "closed/b": "AccessDenied",
        "closed/none": "AccessDenied",
    }
    left = [found["Key"] for found in ann.list_objects_v2(Bucket=shared)["Contents"]]
    assert left == ["closed/b"]
    with refused("AccessDenied", 403):
        bob.delete_object(Bucket=shared, Key="closed/b")


def test_copies_ask_both_buckets(ann, guest, shared, account):
    ann.create_bucket(Bucket=f"{shared}-target")
    target = f"{shared}-target"
    who = user(account, "guest")
    put(ann, target, statement("Allow", who, ["s3:PutObject"], arn(target, "*")))
    copy = {"Bucket": target, "Key": "copy", "CopySource": f"{shared}/open/a"}
    with refused("NoSuchBucket", 404):
        guest.copy_object(**copy)
    put(ann, shared, statement("Allow", who, ["s3:GetObject"], arn(shared, "*")))
    guest.copy_object(**copy, TaggingDirective="REPLACE")
    assert read(ann, target, "copy") == b"content"
    # The source's tags are read, and put, as well.
    with refused("AccessDenied", 403):
        guest.copy_object(**copy)
    put(
        ann,
        shared,
        statement("Allow", who, ["s3:GetObject", "s3:GetObjectTagging"], arn(shared, "*")),
    )
    with refused("AccessDenied", 403):
        guest.copy_object(**copy)
    put(
        ann,
        target,
        statement("Allow", who, ["s3:PutObject", "s3:PutObjectTagging"], arn(target, "*")),
    )
    guest.copy_object(**copy)
    assert ann.get_object_tagging(Bucket=target, Key="copy")["TagSet"]
    upload = {"Bucket": target, "Key": "parts"}
    upload["UploadId"] = guest.create_multipart_upload(**upload)["UploadId"]
    part = guest.upload_part_copy(**upload, PartNumber=1, CopySource=copy["CopySource"])
    guest.complete_multipart_upload(
        **upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]},
    )
    assert read(ann, target, "parts") == b"content"
    put(ann, shared, statement("Deny", who, ["s3:GetObject"], arn(shared, "*")))
    with refused("NoSuchBucket", 404):
        guest.copy_object(**copy)
    with refused("NoSuchBucket", 404):
        guest.upload_part_copy(**upload, PartNumber=1, CopySource=copy["CopySource"])


def test_reads_are_decided_when_they_begin_and_writes_also_when_they_end(
    server, ann, bob, shared, account
):
    big = content(32 * MIB)
    ann.put_object(Bucket=shared, Key="big", Body=big)
    body = bob.get_object(Bucket=shared, Key="big")["Body"]
    begun = body.read(1024)
    bob_keys = bob._request_signer._credentials
    upload = raw.connect(server)
    path = f"/{shared}/slow"
    headers = raw.signed_headers(
        server,
        "PUT",
        path,
        headers={"content-length": "20"},
        credentials=(bob_keys.access_key, bob_keys.secret_key),
    )
    upload.sendall(raw.request_head("PUT", path, headers) + b"x" * 10)
    time.sleep(0.5)
    put(ann, shared, statement("Deny", user(account, "bob"), ALL, arn(shared, "*")))
    upload.sendall(b"x" * 10)
    status, _, answer = raw.receive(upload, "PUT")
    # It had begun when there was nothing to be asked.
    assert status == 403 and b"AccessDenied" in answer
    assert begun + body.read() == big
    with refused("NoSuchKey", 404):
        read(ann, shared, "slow")
    with refused("AccessDenied", 403):
        read(bob, shared, "big")


def test_presigned_urls_ask_the_policy_of_who_signed(server, ann, bob, shared, account):
    def fetch(client):
        url = client.generate_presigned_url(
            "get_object", Params={"Bucket": shared, "Key": "open/a"}, ExpiresIn=600
        )
        try:
            with urllib.request.urlopen(url, context=raw.tls_context(server)) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert (fetch(ann), fetch(bob)) == (200, 200)
    put(
        ann,
        shared,
        statement("Deny", user(account, "bob"), ["s3:GetObject"], arn(shared, "*")),
    )
    assert (fetch(ann), fetch(bob)) == (200, 403)
    put(
        ann,
        shared,
        statement(
            "Deny",
            "*",
            ["s3:GetObject"],
            arn(shared, "*"),
            Condition={"StringEquals": {"s3:authType": "REST-QUERY-STRING"}},
        ),
    )
    assert (fetch(ann), fetch(bob)) == (403, 403)
    assert read(bob, shared) == b"content"
    young = {"NumericLessThan": {"s3:signatureAge": "600000"}}
    old = {"NumericGreaterThanEquals": {"s3:signatureAge": "600000"}}
    for condition, status in [(young, 403), (old, 200)]:
        put(
            ann,
            shared,
            statement("Deny", "*", ["s3:GetObject"], arn(shared, "*"), Condition=condition),
        )
        assert fetch(bob) == status


def test_a_date_that_no_signature_covers_is_no_age(server, ann, bob, shared):
    """Of a URL that is presigned by version 2, who has it may send any."""
    young = {"NumericLessThan": {"s3:signatureAge": "600000"}}
    put(ann, shared, statement("Deny", "*", ["s3:GetObject"], arn(shared, "*"), Condition=young))
    bob_keys = bob._request_signer._credentials
    keys = (bob_keys.access_key, bob_keys.secret_key)
    old = s3_client(server, credentials=keys, signature_version="s3")
    url = old.generate_presigned_url("get_object", Params={"Bucket": shared, "Key": "open/a"})
    dated = urllib.request.Request(url, headers={"Date": formatdate(usegmt=True)})
    with urllib.request.urlopen(dated, context=raw.tls_context(server)) as answer:
        assert answer.status == 200
