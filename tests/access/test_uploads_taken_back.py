"""What was taken back of a policy while an upload or a copy was under way is not used by it."""

import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.administration import make_subject
from harness.clients import refused, s3_client
from harness.content import MIB, content
from harness.lists import AUTHENTICATED, block, id_of
from harness.policies import arn, put, statement, user

_count = iter(range(1, 1000))


@pytest.fixture
def shelf(ann):
    name = f"taken-{next(_count)}"
    ann.create_bucket(
        Bucket=name, ObjectLockEnabledForBucket=True, ObjectOwnership="BucketOwnerPreferred"
    )
    block(ann, name)
    return name


@pytest.fixture
def allow(account):
    def allow(bucket, *actions, who="guest"):
        by = user(account, who)
        return statement("Allow", by, actions or ["s3:*"], arn(bucket), arn(bucket, "*"))

    return allow


@pytest.fixture
def deny(account):
    def deny(bucket, action, **condition):
        more = {"Condition": condition} if condition else {}
        return statement("Deny", user(account, "guest"), [action], arn(bucket, "*"), **more)

    return deny


def begin(client, bucket, **given):
    """An upload with one part; what completes it."""
    upload = {"Bucket": bucket, "Key": "parts"}
    upload["UploadId"] = client.create_multipart_upload(**upload, **given)["UploadId"]
    etag = client.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]
    return upload | {"MultipartUpload": {"Parts": [{"ETag": etag, "PartNumber": 1}]}}


def until():
    return raw.now().replace(year=raw.now().year + 2, microsecond=0)


CARRIED = {
    "PutObjectTagging": (
        {"Tagging": "colour=red"},
        {"StringEquals": {"s3:RequestObjectTag/colour": "red"}},
        {"StringNotEquals": {"s3:RequestObjectTag/colour": "red"}},
    ),
    "PutObjectRetention": (
        {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until()},
        {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "700"}},
        {"Null": {"s3:object-lock-mode": "true"}},
    ),
    "PutObjectLegalHold": (
        {"ObjectLockLegalHoldStatus": "ON"},
        {"StringEquals": {"s3:object-lock-legal-hold": "ON"}},
        {"Null": {"s3:object-lock-legal-hold": "true"}},
    ),
    "PutObjectAcl": (
        {"ACL": "public-read"},
        {"StringEquals": {"s3:x-amz-acl": "public-read"}},
        {"Null": {"s3:x-amz-acl": "true"}},
    ),
}


@pytest.mark.parametrize("action", CARRIED)
def test_a_completion_asks_again_for_what_its_upload_carries(
    ann, guest, shelf, allow, deny, action
):
    given, denied, allowed = CARRIED[action]
    put(ann, shelf, allow(shelf))
    completion = begin(guest, shelf, **given)
    for condition in ({}, denied):
        put(ann, shelf, allow(shelf), deny(shelf, f"s3:{action}", **condition))
        with refused("AccessDenied", 403):
            guest.complete_multipart_upload(**completion)
        with refused("404", 404):
            ann.head_object(Bucket=shelf, Key="parts")
        # What carries nothing asks for nothing.
        guest.complete_multipart_upload(**begin(guest, shelf))
        version = ann.head_object(Bucket=shelf, Key="parts")["VersionId"]
        ann.delete_object(Bucket=shelf, Key="parts", VersionId=version)
    put(ann, shelf, allow(shelf), deny(shelf, f"s3:{action}", **allowed))
    guest.complete_multipart_upload(**completion)


def full_to_me(client):
    return {"GrantFullControl": f"id={id_of(client)}"}


@pytest.mark.parametrize(
    "grants",
    [
        # What a canned list grants as well, in grants: authenticated-read, and private.
        {"GrantRead": f"uri={AUTHENTICATED}"},
        {},
        # Quotation marks mean nothing, and are sent.
        {"GrantRead": f'uri="{AUTHENTICATED}"', "GrantReadACP": f'uri="{AUTHENTICATED}"'},
    ],
)
def test_a_completion_is_asked_for_a_list_in_the_words_of_its_beginning(
    ann, guest, shelf, allow, deny, grants
):
    given = full_to_me(guest) | grants
    put(ann, shelf, allow(shelf))
    completion = begin(guest, shelf, **given)
    denied = [{"Null": {"s3:x-amz-grant-full-control": "false"}}]
    if sent := grants.get("GrantRead"):
        texts = [sent, sent.replace('"', "")]
        denied += [{"StringEquals": {"s3:x-amz-grant-read": text}} for text in texts]
    for condition in denied:
        put(ann, shelf, allow(shelf), deny(shelf, "s3:PutObjectAcl", **condition))
        with refused("AccessDenied", 403):
            guest.create_multipart_upload(Bucket=shelf, Key="parts", **given)
        with refused("AccessDenied", 403):
            guest.complete_multipart_upload(**completion)
    canned = {"Null": {"s3:x-amz-acl": "false"}}
    put(ann, shelf, allow(shelf), deny(shelf, "s3:PutObjectAcl", **canned))
    guest.complete_multipart_upload(**completion)


def test_a_private_list_that_was_asked_for_is_asked_for_again(ann, guest, shelf, allow, deny):
    put(ann, shelf, allow(shelf))
    completion = begin(guest, shelf, ACL="private")
    put(ann, shelf, allow(shelf), deny(shelf, "s3:PutObjectAcl"))
    with refused("AccessDenied", 403):
        guest.complete_multipart_upload(**completion)
    put(ann, shelf, allow(shelf))
    guest.complete_multipart_upload(**completion)


def test_a_completion_is_answered_again_only_to_who_completed(ann, bob, guest):
    name = f"taken-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    grantee = f"id={id_of(guest)}"
    ann.put_bucket_acl(Bucket=name, GrantWrite=grantee, GrantFullControl=f"id={id_of(ann)}")
    completion = begin(ann, name, Tagging="colour=red")
    with refused("AccessDenied", 403):
        guest.complete_multipart_upload(**completion)
    first = ann.complete_multipart_upload(**completion)
    assert ann.complete_multipart_upload(**completion)["ETag"] == first["ETag"]
    # Whatever they may do there, they completed nothing.
    with refused("AccessDenied", 403):
        guest.complete_multipart_upload(**completion)
    ann.delete_object(Bucket=name, Key="parts")
    for other in (guest, bob):
        with refused("NoSuchUpload", 404):
            other.complete_multipart_upload(**completion)
    assert ann.complete_multipart_upload(**completion)["ETag"] == first["ETag"]


@pytest.mark.parametrize("matches", [True, False])
def test_a_write_that_compares_does_not_outlive_the_leave_to_read(
    server, ann, account, allow, matches
):
    name = f"taken-{next(_count)}"
    ann.create_bucket(Bucket=name)
    subject = f"writer-{name}"
    keys = make_subject(server, subject, "default", "--grant", f"{name}=write")
    etag = ann.put_object(Bucket=name, Key="k", Body=b"old")["ETag"]
    put(ann, name, allow(name, "s3:GetObject", "s3:PutObject", who=subject))
    headers = {"content-length": "100000", "if-match": etag if matches else '"other"'}
    signed = raw.signed_headers(server, "PUT", f"/{name}/k", headers=headers, credentials=keys)
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", f"/{name}/k", signed) + bytes(50_000))
        time.sleep(0.5)
        ann.delete_bucket_policy(Bucket=name)
        connection.sendall(bytes(50_000))
        status, _, body = raw.receive(connection)
    assert status == 403 and b"AccessDenied" in body, body
    assert ann.get_object(Bucket=name, Key="k")["Body"].read() == b"old"
    # By its grant it still writes without comparing.
    s3_client(server, credentials=keys).put_object(Bucket=name, Key="k", Body=b"new")


@pytest.mark.parametrize("left", ["nothing", "to read"])
def test_a_part_is_not_put_to_another_s_upload_after_the_leave_was_taken_back(
    server, ann, bob, own, allow, left
):
    """What a list alone still lets write puts no part to what another has begun."""
    name = f"taken-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    block(ann, name)
    subject = f"part-{name}"
    keys = make_subject(server, subject, "default", "--grant", f"{own}=read")
    other = s3_client(server, credentials=keys)
    grantee = f"id={id_of(other)}"
    ann.put_bucket_acl(Bucket=name, GrantWrite=grantee, GrantFullControl=f"id={id_of(ann)}")
    completion = begin(bob, name)
    part = completion | {"PartNumber": 1, "Body": b"other"}
    del part["MultipartUpload"]
    put(ann, name, allow(name, "s3:PutObject", who=subject))
    path = f"/{name}/{part['Key']}"
    query = {"partNumber": "1", "uploadId": part["UploadId"]}
    query = urlencode(query)
    headers = {"content-length": "100000"}
    signed = raw.signed_headers(server, "PUT", path, query=query, headers=headers, credentials=keys)
    with raw.connect(server) as connection:
        head = raw.request_head("PUT", f"{path}?{query}", signed)
        connection.sendall(head + bytes(50_000))
        time.sleep(0.5)
        if left == "nothing":
            ann.delete_bucket_policy(Bucket=name)
        else:
            put(ann, name, allow(name, "s3:GetObject", who=subject))
        with refused("AccessDenied", 403):
            other.upload_part(**part)
        connection.sendall(bytes(50_000))
        status, _, body = raw.receive(connection)
    assert status == 403 and b"AccessDenied" in body, body
    bob.complete_multipart_upload(**completion)
    assert bob.get_object(Bucket=name, Key="parts")["Body"].read() == b"x"


def test_a_copy_is_not_committed_after_its_source_s_policy_was_taken_back(ann, guest, allow):
    names = [f"taken-{next(_count)}" for _ in range(2)]
    source, target = names
    for name in names:
        ann.create_bucket(Bucket=name)
        put(ann, name, allow(name))
    ann.put_object(Bucket=source, Key="k", Body=content(128 * MIB))
    from_it = {"Bucket": source, "Key": "k"}
    upload = {"Bucket": target, "Key": "parts"}
    upload["UploadId"] = guest.create_multipart_upload(**upload)["UploadId"]

    def copy():
        guest.copy_object(Bucket=target, Key="copy", CopySource=from_it)

    def part():
        guest.upload_part_copy(**upload, PartNumber=1, CopySource=from_it)

    def is_there(copying):
        if copying is part:
            return "Parts" in ann.list_parts(**upload)
        return "Contents" in ann.list_objects_v2(Bucket=target)

    with ThreadPoolExecutor(1) as pool:
        for copying in (copy, part):
            put(ann, source, allow(source))
            under_way = pool.submit(copying)
            time.sleep(0.05)
            ann.delete_bucket_policy(Bucket=source)
            was_there = is_there(copying)
            try:
                under_way.result()
            except ClientError as error:
                assert error.response["Error"]["Code"] in ("AccessDenied", "NoSuchBucket")
                assert not is_there(copying)
            else:
                assert was_there, "committed after its source was no more to be read"
