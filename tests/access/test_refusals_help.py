"""Refusals say what it takes, and what to do instead."""

import base64

import pytest

from harness.administration import ask, client_of, run
from harness.clients import refused
from harness.lists import own

CORS = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"]}]}


@pytest.fixture(scope="module")
def tenant(server):
    ask(server, "level", "create", "east", "--rank", "1", "--categories", "c7")
    return client_of(server, "east-one", "east")


@pytest.fixture(scope="module")
def tenants(tenant):
    tenant.create_bucket(Bucket="easts", CreateBucketConfiguration={"LocationConstraint": "east"})
    return "easts"


def test_a_tenants_first_bucket_names_its_level(tenant):
    for given in ({}, {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}):
        with refused("InvalidLocationConstraint", 400) as error:
            tenant.create_bucket(Bucket="first-try", **given)
        assert "level default" in error.message and "LocationConstraint" in error.message
    with refused("InvalidLocationConstraint", 400) as error:
        named = {"LocationConstraint": "no-such-level"}
        tenant.create_bucket(Bucket="first-try", CreateBucketConfiguration=named)
    assert "no level of this name" in error.message


def test_what_is_told_to_all_takes_an_administrator_who_uses_data(server, tenant, tenants):
    setter = client_of(server, "east-setter", "east", "--roles", "system-administrator,data-user")
    allows = {"Rules": [{"BlockedEncryptionTypes": {"EncryptionType": ["NONE"]}}]}
    for call, given in (
        ("put_bucket_cors", {"CORSConfiguration": CORS}),
        ("put_bucket_encryption", {"ServerSideEncryptionConfiguration": allows}),
    ):
        with refused("AccessDenied", 403) as error:
            getattr(tenant, call)(Bucket=tenants, **given)
        assert "system administrator" in error.message
        getattr(setter, call)(Bucket=tenants, **given)
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": b"k" * 32}
    tenant.put_object(Bucket=tenants, Key="by-own-key", Body=b"x", **key)
    setter.delete_bucket_encryption(Bucket=tenants)
    with refused("AccessDenied", 403) as error:
        tenant.put_object(Bucket=tenants, Key="another", Body=b"x", **key)
    assert "system administrator" in error.message
    assert base64.b64encode(b"k" * 32).decode() not in error.message


def test_a_full_bucket_says_how_room_is_made(server, s3):
    s3.create_bucket(Bucket="full-one")
    on = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket="full-one", VersioningConfiguration=on)
    version = s3.put_object(Bucket="full-one", Key="a", Body=b"a")["VersionId"]
    run(server, "quota", "set", "bucket", "full-one", "--objects", "1")
    with refused("QuotaExceeded", 403) as error:
        s3.delete_object(Bucket="full-one", Key="a")
    assert "delete versions by their ids" in error.message
    s3.delete_object(Bucket="full-one", Key="a", VersionId=version)
    s3.put_object(Bucket="full-one", Key="b", Body=b"b")
    with refused("BucketNotEmpty", 409) as error:
        s3.delete_bucket(Bucket="full-one")
    assert "uploads" not in error.message


def test_a_public_list_is_refused_in_one_sentence(s3):
    s3.create_bucket(Bucket="listed-one")
    own(s3, "listed-one", "ObjectWriter")
    with refused("AccessDenied", 403) as error:
        s3.put_bucket_acl(Bucket="listed-one", ACL="public-read")
    assert error.message.count("Access Denied") == 1 and "BlockPublicAcls" in error.message


def test_a_rename_says_that_its_source_is_the_key(s3, bucket):
    s3.put_object(Bucket=bucket, Key="team/a", Body=b"a")
    with refused("NoSuchKey", 404) as error:
        s3.rename_object(Bucket=bucket, Key="team/b", RenameSource=f"{bucket}/team/a")
    assert "without the bucket" in error.message
    s3.rename_object(Bucket=bucket, Key="team/b", RenameSource="team/a")


def test_what_is_not_there_is_told_in_sentences(s3, bucket):
    queue = {"QueueArn": "arn:aws:sqs:us-east-1:1:q", "Events": ["s3:ObjectCreated:*"]}
    logged = {"LoggingEnabled": {"TargetBucket": bucket, "TargetPrefix": "x"}}
    for call, given, words in (
        (
            "put_bucket_notification_configuration",
            {"NotificationConfiguration": {"QueueConfigurations": [queue]}},
            "coffer audit follow",
        ),
        ("put_bucket_logging", {"BucketLoggingStatus": logged}, "--audit-data"),
        (
            "put_bucket_request_payment",
            {"RequestPaymentConfiguration": {"Payer": "Requester"}},
            "requesters pay is not",
        ),
        (
            "put_bucket_accelerate_configuration",
            {"AccelerateConfiguration": {"Status": "Enabled"}},
            "AWS's, is not",
        ),
    ):
        with refused("NotImplemented", 501) as error:
            getattr(s3, call)(Bucket=bucket, **given)
        assert words in error.message and ". is not" not in error.message, error.message


def test_the_least_size_that_moves_is_answered(s3, bucket):
    rule = {"ID": "a", "Status": "Enabled", "Filter": {}, "Expiration": {"Days": 9}}
    answers = [
        s3.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [rule]}
        ),
        s3.get_bucket_lifecycle_configuration(Bucket=bucket),
    ]
    for answer in answers:
        assert answer["TransitionDefaultMinimumObjectSize"] == "all_storage_classes_128K"
