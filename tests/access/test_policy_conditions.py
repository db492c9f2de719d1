"""Each condition key of policies, asked of a real request."""

import contextlib
import datetime
import json

import pytest

from harness.administration import client_of
from harness.clients import refused, s3_client

NOW = datetime.datetime.now(datetime.UTC)
YEAR = datetime.timedelta(days=365)


@pytest.fixture(scope="module")
def ann(server):
    return client_of(server, "ann", "default", user_agent="coffer-tests/1")


@pytest.fixture(scope="module")
def bucket(ann):
    name = "conditions"
    ann.create_bucket(Bucket=name)
    ann.put_object(Bucket=name, Key="a", Body=b"content", Tagging="colour=blue")
    return name


def stamp(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def with_headers(client, event, **headers):
    """The client while it sends these headers, too."""

    def add(params, **_):
        params["headers"].update({name.replace("_", "-"): text for name, text in headers.items()})

    @contextlib.contextmanager
    def adding():
        client.meta.events.register(f"before-call.s3.{event}", add)
        yield client
        client.meta.events.unregister(f"before-call.s3.{event}", add)

    return adding()


def get(client, bucket, **more):
    return client.get_object(Bucket=bucket, Key="a", **more)["Body"].read()


def put(client, bucket, **more):
    return client.put_object(Bucket=bucket, Key="new", Body=b"x", **more)


def listing(client, bucket, **more):
    return client.list_objects_v2(Bucket=bucket, **more)


def tag(client, bucket, **tags):
    found = [{"Key": key, "Value": value} for key, value in tags.items()]
    return client.put_object_tagging(Bucket=bucket, Key="new", Tagging={"TagSet": found})


def copy(client, bucket, **more):
    return client.copy_object(Bucket=bucket, Key="new", CopySource=f"{bucket}/a", **more)


# A condition that denies, what it denies, and what it doesn't: action, condition, one, other.
CASES = {
    "address": (
        "GetObject",
        {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}},
        get,
        None,
    ),
    "another address": (
        "GetObject",
        {"NotIpAddress": {"aws:SourceIp": ["127.0.0.1", "10.0.0.0/8"]}},
        None,
        get,
    ),
    "secure transport": ("GetObject", {"Bool": {"aws:SecureTransport": "true"}}, get, None),
    "plain transport": ("GetObject", {"Bool": {"aws:SecureTransport": "false"}}, None, get),
    "time": (
        "GetObject",
        {"DateGreaterThan": {"aws:CurrentTime": stamp(NOW - YEAR)}},
        get,
        None,
    ),
    "time that comes": (
        "GetObject",
        {"DateGreaterThan": {"aws:CurrentTime": stamp(NOW + YEAR)}},
        None,
        get,
    ),
    "epoch": (
        "GetObject",
        {"NumericGreaterThan": {"aws:EpochTime": str(int(NOW.timestamp()) - 1000)}},
        get,
        None,
    ),
    "user agent": ("GetObject", {"StringLike": {"aws:UserAgent": "coffer-tests*"}}, get, None),
    "another user agent": (
        "GetObject",
        {"StringNotLike": {"aws:UserAgent": "coffer-tests*"}},
        None,
        get,
    ),
    "prefix": (
        "ListBucket",
        {"StringEquals": {"s3:prefix": "secret/"}},
        lambda client, bucket: listing(client, bucket, Prefix="secret/"),
        lambda client, bucket: listing(client, bucket, Prefix="open/"),
    ),
    "no prefix": (
        "ListBucket",
        {"Null": {"s3:prefix": "true"}},
        listing,
        lambda client, bucket: listing(client, bucket, Prefix="open/"),
    ),
    "delimiter": (
        "ListBucket",
        {"StringNotEquals": {"s3:delimiter": "/"}},
        lambda client, bucket: listing(client, bucket, Delimiter="-"),
        lambda client, bucket: listing(client, bucket, Delimiter="/"),
    ),
    "max-keys": (
        "ListBucket",
        {"NumericGreaterThan": {"s3:max-keys": "10"}},
        lambda client, bucket: listing(client, bucket, MaxKeys=11),
        lambda client, bucket: listing(client, bucket, MaxKeys=10),
    ),
    "tags of a request": (
        "PutObject",
        {"StringNotEquals": {"s3:RequestObjectTag/colour": "red"}},
        lambda client, bucket: put(client, bucket, Tagging="colour=blue"),
        lambda client, bucket: put(client, bucket, Tagging="colour=red"),
    ),
    "tags of a body": (
        "PutObjectTagging",
        {"StringEquals": {"s3:RequestObjectTag/colour": "red"}},
        lambda client, bucket: tag(client, bucket, colour="red"),
        lambda client, bucket: tag(client, bucket, colour="blue"),
    ),
    "keys of tags": (
        "PutObjectTagging",
        {"ForAnyValue:StringNotEquals": {"s3:RequestObjectTagKeys": ["colour", "size"]}},
        lambda client, bucket: tag(client, bucket, colour="red", owner="x"),
        lambda client, bucket: tag(client, bucket, colour="red", size="x"),
    ),
    "tags of the object": (
        "GetObject",
        {"StringEquals": {"s3:ExistingObjectTag/colour": "blue"}},
        get,
        lambda client, bucket: client.get_object(Bucket=bucket, Key="new"),
    ),
    "tags that are not there": (
        "GetObject",
        {"StringNotEquals": {"s3:ExistingObjectTag/colour": "blue"}},
        lambda client, bucket: client.get_object(Bucket=bucket, Key="new"),
        get,
    ),
    "version": (
        "GetObjectVersion",
        {"StringEquals": {"s3:VersionId": "null"}},
        lambda client, bucket: get(client, bucket, VersionId="null"),
        get,
    ),
    "metadata directive": (
        "PutObject",
        {"StringEquals": {"s3:x-amz-metadata-directive": "REPLACE"}},
        lambda client, bucket: copy(client, bucket, MetadataDirective="REPLACE"),
        lambda client, bucket: copy(client, bucket, MetadataDirective="COPY"),
    ),
    "copy source": (
        "PutObject",
        {"StringLike": {"s3:x-amz-copy-source": "conditions/*"}},
        copy,
        put,
    ),
    "encryption": (
        "PutObject",
        {"StringNotEqualsIfExists": {"s3:x-amz-server-side-encryption": "aws:kms"}},
        lambda client, bucket: put(client, bucket, ServerSideEncryption="AES256"),
        lambda client, bucket: put(client, bucket, ServerSideEncryption="aws:kms"),
    ),
    "no encryption": (
        "PutObject",
        {"Null": {"s3:x-amz-server-side-encryption": "true"}},
        put,
        lambda client, bucket: put(client, bucket, ServerSideEncryption="aws:kms"),
    ),
    "checksum": (
        "PutObject",
        {"Null": {"s3:x-amz-checksum-sha256": "true"}},
        lambda client, bucket: put(client, bucket, ChecksumAlgorithm="CRC32"),
        lambda client, bucket: put(
            client,
            bucket,
            ChecksumSHA256="LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=",
        ),
    ),
    "storage class": (
        "PutObject",
        {"StringEquals": {"s3:x-amz-storage-class": "STANDARD"}},
        lambda client, bucket: put(client, bucket, StorageClass="STANDARD"),
        put,
    ),
    "acl": (
        "PutObject",
        {"StringEquals": {"s3:x-amz-acl": "bucket-owner-full-control"}},
        lambda client, bucket: put(client, bucket, ACL="bucket-owner-full-control"),
        put,
    ),
    "if-none-match": (
        "PutObject",
        {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
        put,
        lambda client, bucket: client.create_multipart_upload(Bucket=bucket, Key="parts"),
    ),
    "signature": (
        "GetObject",
        {"StringEquals": {"s3:signatureversion": "AWS4-HMAC-SHA256"}},
        get,
        None,
    ),
    "authentication": ("GetObject", {"StringEquals": {"s3:authType": "REST-HEADER"}}, get, None),
    "TLS": ("GetObject", {"NumericGreaterThan": {"s3:TlsVersion": "1.1"}}, get, None),
    "old TLS": ("GetObject", {"NumericLessThan": {"s3:TlsVersion": "1.2"}}, None, get),
    "payload": (
        "GetObject",
        {"StringEquals": {"s3:x-amz-content-sha256": "UNSIGNED-PAYLOAD"}},
        None,
        get,
    ),
    "name": ("GetObject", {"StringEquals": {"aws:username": "ann"}}, get, None),
    "another name": ("GetObject", {"StringNotEquals": {"aws:username": "ann"}}, None, get),
    "principal": (
        "GetObject",
        {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/ann"}},
        get,
        None,
    ),
    "type": ("GetObject", {"StringEquals": {"aws:PrincipalType": "User"}}, get, None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_condition_decides(ann, bucket, case):
    action, condition, denied, allowed = CASES[case]
    ann.put_object(Bucket=bucket, Key="new", Body=b"x")
    kind = "" if action == "ListBucket" else "/*"
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": f"s3:{action}",
        "Resource": f"arn:aws:s3:::{bucket}{kind}",
        "Condition": condition,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    ann.put_bucket_policy(Bucket=bucket, Policy=policy)
    try:
        if denied is not None:
            with refused("AccessDenied", 403):
                denied(ann, bucket)
        if allowed is not None:
            allowed(ann, bucket)
    finally:
        ann.delete_bucket_policy(Bucket=bucket)


def test_referers_are_asked_for(ann, bucket):
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
        "Condition": {"StringNotLike": {"aws:Referer": "https://example.org/*"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    ann.put_bucket_policy(Bucket=bucket, Policy=policy)
    with with_headers(ann, "GetObject", referer="https://example.org/page") as client:
        assert get(client, bucket) == b"content"
    with (
        with_headers(ann, "GetObject", referer="https://example.com/") as client,
        refused("AccessDenied", 403),
    ):
        get(client, bucket)
    with refused("AccessDenied", 403):
        get(ann, bucket)
    ann.delete_bucket_policy(Bucket=bucket)


def test_variables_stand_for_who_asks(server, ann, bucket):
    """A home for everyone, in one statement."""
    account = ann.list_buckets()["Owner"]["DisplayName"]
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "NotResource": f"arn:aws:s3:::{bucket}/home/${{aws:username}}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    ann.put_bucket_policy(Bucket=bucket, Policy=policy)
    ann.put_object(Bucket=bucket, Key="home/ann/a", Body=b"x")
    with refused("AccessDenied", 403):
        ann.put_object(Bucket=bucket, Key="home/bob/a", Body=b"x")
    first = s3_client(server)
    with refused("AccessDenied", 403):
        first.put_object(Bucket=bucket, Key="home/ann/b", Body=b"x")
    assert account
    ann.delete_bucket_policy(Bucket=bucket)


@pytest.mark.parametrize("version", [{}, {"VersionId": "null"}])
def test_deletions_know_of_no_tags(ann, bucket, version):
    """As on AWS, where deletions have no such key: no tag spares an object, nor condemns it."""
    action = "s3:DeleteObjectVersion" if version else "s3:DeleteObject"
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    colour = {"s3:ExistingObjectTag/colour": "blue"}
    try:
        for operator, is_denied in (("StringNotEquals", True), ("StringEquals", False)):
            ann.put_object(Bucket=bucket, Key="doomed", Body=b"x", Tagging="colour=blue")
            denied = [statement | {"Condition": {operator: colour}}]
            policy = json.dumps({"Version": "2012-10-17", "Statement": denied})
            ann.put_bucket_policy(Bucket=bucket, Policy=policy)
            with refused("AccessDenied", 403) if is_denied else contextlib.nullcontext():
                ann.delete_object(Bucket=bucket, Key="doomed", **version)
        left = ann.list_objects_v2(Bucket=bucket, Prefix="doomed")
        assert left["KeyCount"] == 0
    finally:
        ann.delete_bucket_policy(Bucket=bucket)
