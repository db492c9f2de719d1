"""What comes later says so: NotImplemented, never silence."""

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
    with refused("NotImplemented", 501):
        getattr(s3, call)(Bucket=bucket, Key="a", **OBJECT_CALLS[call])


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
