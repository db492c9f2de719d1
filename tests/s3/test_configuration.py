"""Configuration of buckets that was never set: S3's default, or its code for there being none."""

import pytest

from harness.clients import refused
from harness.raw import send

ABSENT = {
    "get_bucket_lifecycle_configuration": "NoSuchLifecycleConfiguration",
    "get_bucket_cors": "NoSuchCORSConfiguration",
    "get_bucket_policy": "NoSuchBucketPolicy",
    "get_bucket_policy_status": "NoSuchBucketPolicy",
    "get_bucket_tagging": "NoSuchTagSet",
    "get_bucket_website": "NoSuchWebsiteConfiguration",
    "get_bucket_replication": "ReplicationConfigurationNotFoundError",
    "get_object_lock_configuration": "ObjectLockConfigurationNotFoundError",
}

BY_ID = [
    "get_bucket_analytics_configuration",
    "get_bucket_intelligent_tiering_configuration",
    "get_bucket_inventory_configuration",
    "get_bucket_metrics_configuration",
]

ALL_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")

DEFAULTS = {
    "get_bucket_versioning": {},
    "get_bucket_logging": {},
    "get_bucket_notification_configuration": {},
    "get_bucket_accelerate_configuration": {},
    "get_bucket_request_payment": {"Payer": "BucketOwner"},
    "get_bucket_ownership_controls": {
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    },
    "get_public_access_block": {
        "PublicAccessBlockConfiguration": dict.fromkeys(ALL_BLOCKS, True),
    },
    "list_bucket_analytics_configurations": {"IsTruncated": False},
    "list_bucket_intelligent_tiering_configurations": {"IsTruncated": False},
    "list_bucket_inventory_configurations": {"IsTruncated": False},
    "list_bucket_metrics_configurations": {"IsTruncated": False},
}


@pytest.mark.parametrize("call", ABSENT)
def test_what_is_absent_says_so(s3, bucket, call):
    with refused(ABSENT[call], 404) as error:
        getattr(s3, call)(Bucket=bucket)
    assert error.message


@pytest.mark.parametrize("call", BY_ID)
def test_no_configuration_bears_any_id(s3, bucket, call):
    with refused("NoSuchConfiguration", 404):
        getattr(s3, call)(Bucket=bucket, Id="a")


@pytest.mark.parametrize("call", DEFAULTS)
def test_what_has_a_default_tells_it(s3, bucket, call):
    answer = getattr(s3, call)(Bucket=bucket)
    del answer["ResponseMetadata"]
    assert answer == DEFAULTS[call]


@pytest.mark.parametrize("call", [*ABSENT, *DEFAULTS])
def test_of_a_bucket_that_is_not_there(s3, call):
    with refused("NoSuchBucket", 404):
        getattr(s3, call)(Bucket="not-there")


def test_of_objects(s3, bucket):
    with refused("NoSuchKey", 404):
        s3.get_object_acl(Bucket=bucket, Key="a")
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    s3.get_object_acl(Bucket=bucket, Key="a")
    for call in ("get_object_retention", "get_object_legal_hold"):
        with refused("InvalidRequest", 400):
            getattr(s3, call)(Bucket=bucket, Key="a")


def test_listings_pass_over_attributes_that_nothing_has(s3, bucket):
    """What is not archived has no RestoreStatus."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    optional = {"Bucket": bucket, "OptionalObjectAttributes": ["RestoreStatus"]}
    for call, rows in (
        ("list_objects", "Contents"),
        ("list_objects_v2", "Contents"),
        ("list_object_versions", "Versions"),
    ):
        (row,) = getattr(s3, call)(**optional)[rows]
        assert row["Key"] == "a" and "RestoreStatus" not in row


def test_buckets_are_listed_in_pages(server, s3):
    names = [f"paged-{number}" for number in range(5)]
    for name in names:
        s3.create_bucket(Bucket=name)
    found, token, pages = [], None, 0
    while token or not pages:
        more = {"ContinuationToken": token} if token else {}
        page = s3.list_buckets(MaxBuckets=2, Prefix="paged-", **more)
        assert len(page["Buckets"]) <= 2 and page["Prefix"] == "paged-"
        assert all(row["BucketRegion"] == "us-east-1" for row in page["Buckets"])
        found += [row["Name"] for row in page["Buckets"]]
        token, pages = page.get("ContinuationToken"), pages + 1
    assert (found, pages) == (names, 3)
    paginator = s3.get_paginator("list_buckets")
    walked = paginator.paginate(Prefix="paged-", PaginationConfig={"PageSize": 2})
    assert [row["Name"] for page in walked for row in page["Buckets"]] == names
    assert s3.list_buckets(BucketRegion="eu-west-1")["Buckets"] == []
    here = s3.list_buckets(BucketRegion="us-east-1", Prefix="paged-")["Buckets"]
    assert [row["Name"] for row in here] == names
    assert "ContinuationToken" not in s3.list_buckets()
    status, _, body = send(server, "GET", "/", query="continuation-token=&prefix=paged-")
    assert status == 200 and b"<Name>paged-0</Name>" in body, body
    for wrong in (
        "max-buckets=0",
        "max-buckets=10001",
        "continuation-token=no%20token",
        "bucket-region=nowhere",
    ):
        status, _, body = send(server, "GET", "/", query=wrong)
        assert status == 400 and b"<Code>InvalidArgument</Code>" in body, wrong
        name, value = wrong.replace("%20", " ").split("=")
        told = f"<ArgumentName>{name}</ArgumentName><ArgumentValue>{value}</ArgumentValue>"
        assert told.encode() in body, body
    for name in names:
        s3.delete_bucket(Bucket=name)
