"""What docs/S3.md says in half a sentence, and no other test asks for."""

import pytest

from harness import raw
from harness.administration import client_of, run
from harness.clients import refused

SERVICE = "SERVICE"
RULE = {"Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}


def element(body, name):
    return body.partition(f"<{name}>".encode())[2].partition(b"<")[0].decode()


@pytest.mark.parametrize("owner", ["coffer", "1" * 11, "1" * 13])
def test_an_expected_owner_that_is_no_account(server, s3, bucket, owner):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    expected = {"x-amz-expected-bucket-owner": owner}
    source = {"x-amz-copy-source": f"{bucket}/a", "x-amz-source-expected-bucket-owner": owner}
    for method, path, headers in (
        ("GET", f"/{bucket}", expected),
        ("DELETE", f"/{bucket}/a", expected),
        ("DELETE", f"/{bucket}", expected),
        ("PUT", f"/{bucket}/b", source),
    ):
        status, _, told = raw.send(server, method, path, headers=headers)
        assert (status, element(told, "Code")) == (400, "InvalidBucketOwnerAWSAccountID"), told
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["a"]


def test_encryption_contexts(s3, bucket):
    s3.put_object(Bucket=bucket, Key="source", Body=b"a")
    where = {"Bucket": bucket, "Key": "a"}
    asked = {"ServerSideEncryption": "aws:kms", "SSEKMSEncryptionContext": "e30="}
    for call, options in (
        (s3.put_object, {"Body": b"a"}),
        (s3.copy_object, {"CopySource": {"Bucket": bucket, "Key": "source"}}),
        (s3.create_multipart_upload, {}),
    ):
        with refused("NotImplemented", 501) as error:
            call(**where, **options, **asked)
        assert error.message == "An encryption context is not implemented"
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_lifecycle_rules_get_the_first_ids_that_no_other_has(s3, bucket):
    rules = [RULE, RULE | {"ID": "rule-1"}, RULE]
    told = s3.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={"Rules": rules},
        TransitionDefaultMinimumObjectSize="varies_by_storage_class",
    )
    least = "all_storage_classes_128K"
    assert told["TransitionDefaultMinimumObjectSize"] == least
    kept = s3.get_bucket_lifecycle_configuration(Bucket=bucket)
    assert kept["TransitionDefaultMinimumObjectSize"] == least
    assert [rule["ID"] for rule in kept["Rules"]] == ["rule-2", "rule-1", "rule-3"]


def test_a_parameter_that_might_name_what_is_missing(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    for method, path in (
        ("GET", f"/{bucket}"),
        ("GET", f"/{bucket}/a"),
        ("PUT", f"/{bucket}/a"),
        ("DELETE", f"/{bucket}/a"),
        ("DELETE", f"/{bucket}"),
    ):
        for query in ("neverHeardOf", "neverHeardOf="):
            status, _, told = raw.send(server, method, path, query=query)
            assert (status, element(told, "Code")) == (501, "NotImplemented"), (method, path)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"
    # With a value it is passed over, as on S3.
    status, _, told = raw.send(server, "GET", f"/{bucket}/a", query="neverHeardOf=1")
    assert (status, told) == (200, b"kept")


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("PUT", "/", SERVICE),
        ("DELETE", "/", SERVICE),
        ("POST", "/", SERVICE),
        ("POST", "/{bucket}/a", "OBJECT"),
    ],
)
def test_methods_that_a_place_does_not_have(server, bucket, method, path, kind):
    status, _, told = raw.send(server, method, path.format(bucket=bucket))
    assert (status, element(told, "Code")) == (405, "MethodNotAllowed"), told
    assert (element(told, "Method"), element(told, "ResourceType")) == (method, kind)


def test_a_page_behind_a_null_version_that_is_gone(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"null")
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    newer = [s3.put_object(Bucket=bucket, Key="a", Body=b"x")["VersionId"] for _ in range(2)]
    s3.put_object(Bucket=bucket, Key="b", Body=b"x")
    after = {"Bucket": bucket, "KeyMarker": "a", "VersionIdMarker": "null"}

    def told():
        rows = s3.list_object_versions(**after)["Versions"]
        return [row["VersionId"] for row in rows if row["Key"] == "a"], rows[-1]["Key"]

    assert told() == ([], "b")
    s3.delete_object(Bucket=bucket, Key="a", VersionId="null")
    assert told() == (newer[::-1], "b")


def test_a_deletion_names_a_thousand_at_most(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k0", Body=b"a")
    names = [{"Key": f"k{number}"} for number in range(1001)]
    with refused("MalformedXML", 400):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": names})
    with refused("MalformedXML", 400):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": []})
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    told = s3.delete_objects(Bucket=bucket, Delete={"Objects": names[:1000]})
    assert len(told["Deleted"]) == 1000 and "Errors" not in told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_name_as_in_the_namespace_of_an_account(s3):
    name = "logs-111122223333-us-east-1-an"
    s3.create_bucket(Bucket=name)
    assert s3.head_bucket(Bucket=name)["BucketRegion"] == "us-east-1"
    s3.delete_bucket(Bucket=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-md5", "ä"),
        ("x-amz-acl", "ä"),
        ("x-amz-checksum-crc32", "ä"),
        ("x-amz-expected-bucket-owner", "ä"),
        ("x-amz-grant-read", "id=ä"),
        ("x-amz-object-lock-legal-hold", "ä"),
        ("x-amz-object-lock-mode", "ä"),
        ("x-amz-sdk-checksum-algorithm", "ä"),
        ("x-amz-server-side-encryption", "ä"),
        ("x-amz-storage-class", "ä"),
        ("x-amz-tagging", "ä=b"),
        ("x-amz-website-redirect-location", "/ä"),
    ],
)
def test_headers_that_are_no_ascii(server, s3, bucket, name, value):
    status, _, told = raw.send(server, "PUT", f"/{bucket}/a", headers={name: value}, body=b"a")
    assert status == 400 and element(told, "Code"), told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_range_that_is_no_ascii_is_none(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"whole")
    status, _, told = raw.send(server, "GET", f"/{bucket}/a", headers={"range": "bytes=0-ä"})
    assert (status, told) == (200, b"whole")


def test_a_location_is_a_level_and_the_region_is_one_for_all(server, s3, bucket):
    run(server, "level", "create", "north", "--rank", "1", "--categories", "c1")
    nora = client_of(server, "nora", "north")
    there = {"LocationConstraint": "north"}
    nora.create_bucket(Bucket="northern", CreateBucketConfiguration=there)
    for client, name, level in ((s3, bucket, None), (nora, "northern", "north")):
        assert client.get_bucket_location(Bucket=name)["LocationConstraint"] == level
        assert client.head_bucket(Bucket=name)["BucketRegion"] == "us-east-1"
        rows = client.list_buckets()["Buckets"]
        assert {row["BucketRegion"] for row in rows if row["Name"] == name} == {"us-east-1"}
