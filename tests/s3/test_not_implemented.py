"""What is left out says so: NotImplemented, never silence."""

import pytest

from harness import raw
from harness.clients import refused

OBJECT_CALLS = {
    "get_object_torrent": {},
    "restore_object": {"RestoreRequest": {"Days": 1}},
    "select_object_content": {
        "Expression": "SELECT * FROM S3Object",
        "ExpressionType": "SQL",
        "InputSerialization": {"CSV": {}},
        "OutputSerialization": {"CSV": {}},
    },
}


@pytest.mark.parametrize("call", OBJECT_CALLS)
def test_of_objects(s3, bucket, call):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    with refused("NotImplemented", 501) as error:
        getattr(s3, call)(Bucket=bucket, Key="a", **OBJECT_CALLS[call])
    assert " yet" not in error.message, "it is refused for good"


@pytest.mark.parametrize(
    "options",
    [
        {"StorageClass": "GLACIER"},
    ],
)
def test_headers_of_a_put(s3, bucket, options):
    with refused() as error:
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", **options)
    expected = ("InvalidStorageClass", 400) if "StorageClass" in options else None
    assert (error.code, error.status) in (("NotImplemented", 501), expected)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_namespace_of_an_account(s3):
    name = "in-a-namespace"
    with refused("NotImplemented", 501):
        s3.create_bucket(Bucket=name, BucketNamespace="account-regional")
    with refused("404", 404):
        s3.head_bucket(Bucket=name)
    s3.create_bucket(Bucket=name, BucketNamespace="global")
    s3.delete_bucket(Bucket=name)


def test_a_copy_without_annotations_is_one(s3, bucket):
    """There are none, so that whether they come along makes no difference."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for directive in ("COPY", "EXCLUDE"):
        source = {"Bucket": bucket, "Key": "a"}
        s3.copy_object(
            Bucket=bucket, Key=directive, CopySource=source, AnnotationDirective=directive
        )
        assert s3.get_object(Bucket=bucket, Key=directive)["Body"].read() == b"a"


EVENT_HOLDS = [
    {"ObjectLockEventHold": "ON"},
    {"ObjectLockEventHold": "OFF"},
    {"ObjectLockEventHoldDurationDays": 1},
    {"ObjectLockEventHoldDurationYears": 1},
]


@pytest.mark.parametrize("hold", EVENT_HOLDS)
def test_holds_until_an_event_in_headers(s3, bucket, hold):
    """Dropped in silence, they would leave unlocked what its writer takes for locked."""
    s3.put_object(Bucket=bucket, Key="source", Body=b"a")
    where = {"Bucket": bucket, "Key": "held"}
    for call, options in (
        (s3.put_object, {"Body": b"a"}),
        (s3.copy_object, {"CopySource": {"Bucket": bucket, "Key": "source"}}),
        (s3.create_multipart_upload, {}),
    ):
        with refused("NotImplemented", 501) as error:
            call(**where, **options, **hold)
        assert "A hold until an event" in error.response["Error"]["Message"]
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["source"]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_holds_until_an_event_in_documents(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    lockable = {"ObjectLockEnabled": "Enabled"}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=lockable)
    where = {"Bucket": bucket, "Key": "a"}
    s3.put_object(**where, Body=b"a")
    for retention in ({"EventHold": "ON"}, {"EventHoldDuration": {"Days": 1}}):
        with refused("NotImplemented", 501) as error:
            s3.put_object_retention(**where, Retention=retention)
        assert "A hold until an event" in error.response["Error"]["Message"]
    by_default = {"DefaultRetention": {"DefaultEventHold": {"Days": 1}}}
    with refused("NotImplemented", 501):
        s3.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration=lockable | {"Rule": by_default}
        )
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_retention(**where)
    told = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
    assert told == lockable


@pytest.mark.parametrize("query", ["annotation=1", "annotation=&annotationName=a"])
def test_annotations_are_not_the_object(server, s3, bucket, query):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    for method in ("PUT", "DELETE"):
        status, _, told = raw.send(server, method, f"/{bucket}/a", query=query, body=b"")
        assert status == 501 and b"NotImplemented" in told, told
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"


def test_a_table_of_annotations_is_not_the_bucket(server, s3, bucket):
    asked = {"query": "metadataAnnotationTable=1"}
    assert raw.send(server, "DELETE", f"/{bucket}", **asked)[0] == 501
    s3.head_bucket(Bucket=bucket)


def test_an_unversioned_bucket_says_so(s3, bucket):
    """Clients ask this of any bucket; the answers are S3's for one that was never versioned."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    (version,) = s3.list_object_versions(Bucket=bucket)["Versions"]
    assert (version["Key"], version["VersionId"], version["IsLatest"]) == ("a", "null", True)


def test_versions_of_objects(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for call in (s3.get_object, s3.head_object, s3.delete_object):
        with refused() as error:
            call(Bucket=bucket, Key="a", VersionId="some-version")
        assert error.status in (400, 404, 501)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"a"
