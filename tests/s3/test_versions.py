"""Versions of objects and delete markers, as S3 documents them and as its clients use them."""

import datetime
import json
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from harness.clients import refused, s3_client
from harness.content import PART_MIN_BYTES, content
from harness.raw import send
from harness.server import coffer


@pytest.fixture
def versioned(s3, bucket):
    enable(s3, bucket)
    return bucket


def enable(s3, bucket, status="Enabled"):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def put(s3, bucket, key, body):
    return s3.put_object(Bucket=bucket, Key=key, Body=body).get("VersionId")


def body(s3, bucket, key, **options):
    return s3.get_object(Bucket=bucket, Key=key, **options)["Body"].read()


def rows(s3, bucket, **options):
    page = s3.list_object_versions(Bucket=bucket, **options)
    kinds = [("Versions", "object"), ("DeleteMarkers", "marker")]
    return {
        (row["Key"], row["VersionId"]): (kind, row["IsLatest"])
        for name, kind in kinds
        for row in page.get(name, [])
    }


def test_a_bucket_says_whether_it_keeps_versions(s3, bucket):
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    told = s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    assert "VersionId" not in told and "VersionId" not in s3.head_object(Bucket=bucket, Key="a")
    for status in ("Enabled", "Suspended", "Enabled", "Enabled"):
        enable(s3, bucket, status)
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == status
    assert s3.head_object(Bucket=bucket, Key="a")["VersionId"] == "null"
    with refused("IllegalVersioningConfigurationException", 400):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={})
    for wrong in ("enabled", "Disabled"):
        with refused("MalformedXML", 400):
            enable(s3, bucket, wrong)
    with refused("NotImplemented", 501):
        both = {"Status": "Enabled", "MFADelete": "Enabled"}
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=both, MFA="a 1")


@pytest.mark.parametrize("size", [5, 40_000])
def test_every_put_makes_a_version(s3, versioned, size):
    bodies = {}
    for number in range(3):
        data = content(size, number)
        bodies[put(s3, versioned, "a", data)] = data
    assert len(bodies) == 3 and "null" not in bodies and None not in bodies
    *_, newest = bodies
    assert body(s3, versioned, "a") == bodies[newest]
    for version, data in bodies.items():
        told = s3.get_object(Bucket=versioned, Key="a", VersionId=version)
        assert told["Body"].read() == data and told["VersionId"] == version
        head = s3.head_object(Bucket=versioned, Key="a", VersionId=version)
        assert (head["ContentLength"], head["VersionId"]) == (size, version)
        part = s3.get_object(Bucket=versioned, Key="a", VersionId=version, Range="bytes=1-3")
        assert part["Body"].read() == data[1:4]
    listed = rows(s3, versioned)
    assert listed == {("a", version): ("object", version == newest) for version in bodies}


def test_a_deletion_makes_a_marker_and_hides_what_is_behind(s3, versioned):
    version = put(s3, versioned, "a", b"kept")
    first = s3.delete_object(Bucket=versioned, Key="a")
    second = s3.delete_object(Bucket=versioned, Key="a")
    assert first["DeleteMarker"] and second["DeleteMarker"]
    assert first["VersionId"] != second["VersionId"], "each deletion makes a marker"
    with refused("NoSuchKey", 404) as error:
        s3.get_object(Bucket=versioned, Key="a")
    headers = error.headers
    assert headers["x-amz-delete-marker"] == "true"
    assert headers["x-amz-version-id"] == second["VersionId"]
    assert "Contents" not in s3.list_objects_v2(Bucket=versioned)
    assert body(s3, versioned, "a", VersionId=version) == b"kept"
    for name in ("get_object", "head_object", "get_object_tagging"):
        with refused(None, 405) as error:
            getattr(s3, name)(Bucket=versioned, Key="a", VersionId=first["VersionId"])
        headers = error.headers
        assert headers["x-amz-delete-marker"] == "true" and headers["allow"] == "DELETE", name
        assert "last-modified" in headers, name
    for marker in (second, first):
        gone = s3.delete_object(Bucket=versioned, Key="a", VersionId=marker["VersionId"])
        assert gone["DeleteMarker"] and gone["VersionId"] == marker["VersionId"]
    assert body(s3, versioned, "a") == b"kept", "without the markers it is there again"


def test_versions_are_deleted_for_good_one_by_one(s3, versioned):
    versions = [put(s3, versioned, "a", data) for data in (b"one", b"two", b"three")]
    gone = s3.delete_object(Bucket=versioned, Key="a", VersionId=versions[2])
    assert gone["VersionId"] == versions[2] and "DeleteMarker" not in gone
    assert body(s3, versioned, "a") == b"two", "the one behind is the newest now"
    with refused("NoSuchVersion", 404):
        s3.get_object(Bucket=versioned, Key="a", VersionId=versions[2])
    again = s3.delete_object(Bucket=versioned, Key="a", VersionId=versions[2])
    assert again["VersionId"] == versions[2], "deleting what is gone succeeds"
    for bad in ("x", "0" * 31, "null0"):
        with refused("InvalidArgument", 400):
            s3.get_object(Bucket=versioned, Key="a", VersionId=bad)
    with refused("BucketNotEmpty", 409):
        s3.delete_bucket(Bucket=versioned)
    for version in versions[:2]:
        s3.delete_object(Bucket=versioned, Key="a", VersionId=version)
    assert rows(s3, versioned) == {}


def test_a_marker_of_what_never_was(s3, versioned):
    told = s3.delete_objects(Bucket=versioned, Delete={"Objects": [{"Key": "never"}]})
    [row] = told["Deleted"]
    assert row["DeleteMarker"] and row["DeleteMarkerVersionId"] and "VersionId" not in row
    identifier = {"Key": "never", "VersionId": row["DeleteMarkerVersionId"]}
    [gone] = s3.delete_objects(Bucket=versioned, Delete={"Objects": [identifier]})["Deleted"]
    assert gone["VersionId"] == gone["DeleteMarkerVersionId"] == identifier["VersionId"]
    assert rows(s3, versioned) == {}


def test_the_null_version(s3, bucket):
    put(s3, bucket, "a", b"before")
    enable(s3, bucket)
    version = put(s3, bucket, "a", b"enabled")
    assert body(s3, bucket, "a", VersionId="null") == b"before"
    s3.delete_object(Bucket=bucket, Key="a")
    assert body(s3, bucket, "a", VersionId="null") == b"before", "a marker replaces none"
    enable(s3, bucket, "Suspended")
    assert put(s3, bucket, "a", b"suspended") is None, "the null version has no id in answers"
    assert body(s3, bucket, "a", VersionId="null") == b"suspended"
    listed = rows(s3, bucket)
    assert listed[("a", "null")] == ("object", True)
    assert sum(key == ("a", "null") for key in listed) == 1
    gone = s3.delete_object(Bucket=bucket, Key="a")
    assert gone["VersionId"] == "null" and gone["DeleteMarker"]
    assert rows(s3, bucket)[("a", "null")] == ("marker", True)
    assert body(s3, bucket, "a", VersionId=version) == b"enabled"
    put(s3, bucket, "a", b"again")
    assert rows(s3, bucket)[("a", "null")] == ("object", True), "it replaces the marker"


def test_listings_go_on_in_the_middle_of_a_name(s3, versioned):
    versions = [put(s3, versioned, key, b"x") for key in ("a", "a", "a", "b", "c/1", "c/2")]
    s3.delete_object(Bucket=versioned, Key="a")
    pages = s3.get_paginator("list_object_versions")
    for size in (1, 2, 1000):
        listed = []
        for page in pages.paginate(Bucket=versioned, PaginationConfig={"PageSize": size}):
            listed += page.get("Versions", []) + page.get("DeleteMarkers", [])
        seen = [(row["Key"], row["VersionId"]) for row in listed]
        assert len(seen) == len(set(seen)) == 7, size
        assert {key: version for key, version in seen if key == "b"} == {"b": versions[3]}
    after = {"KeyMarker": "a", "VersionIdMarker": versions[1]}
    assert list(rows(s3, versioned, **after))[0] == ("a", versions[0])
    assert ("a", versions[0]) not in rows(s3, versioned, KeyMarker="a")
    s3.delete_object(Bucket=versioned, Key="a", VersionId=versions[1])
    assert list(rows(s3, versioned, **after))[0] == ("a", versions[0]), "also where it is gone"
    page = s3.list_object_versions(Bucket=versioned, Delimiter="/", Prefix="c")
    assert [row["Prefix"] for row in page["CommonPrefixes"]] == ["c/"] and "Versions" not in page
    with refused("InvalidArgument", 400):
        s3.list_object_versions(Bucket=versioned, VersionIdMarker=versions[0])


def test_tags_and_attributes_of_versions(s3, versioned):
    old, new = [put(s3, versioned, "a", data) for data in (b"old", b"newer")]
    tags = {"TagSet": [{"Key": "k", "Value": "old"}]}
    told = s3.put_object_tagging(Bucket=versioned, Key="a", VersionId=old, Tagging=tags)
    assert told["VersionId"] == old
    told = s3.get_object_tagging(Bucket=versioned, Key="a", VersionId=old)
    assert told["TagSet"] == tags["TagSet"] and told["VersionId"] == old
    assert s3.get_object_tagging(Bucket=versioned, Key="a")["TagSet"] == []
    told = s3.get_object_attributes(
        Bucket=versioned, Key="a", VersionId=old, ObjectAttributes=["ObjectSize"]
    )
    assert (told["ObjectSize"], told["VersionId"]) == (3, old)
    assert s3.delete_object_tagging(Bucket=versioned, Key="a", VersionId=old)["VersionId"] == old
    assert s3.get_object_tagging(Bucket=versioned, Key="a", VersionId=old)["TagSet"] == []
    assert new != old


def test_copies_name_their_source_and_their_own_version(s3, versioned):
    old, new = [put(s3, versioned, "a", data) for data in (b"old", b"new")]
    source = {"Bucket": versioned, "Key": "a", "VersionId": old}
    told = s3.copy_object(Bucket=versioned, Key="b", CopySource=source)
    assert told["CopySourceVersionId"] == old and told["VersionId"]
    assert body(s3, versioned, "b") == b"old"
    told = s3.copy_object(Bucket=versioned, Key="a", CopySource=source)
    assert told["VersionId"] not in (old, new), "an older version is put in front again"
    assert body(s3, versioned, "a") == b"old"
    with refused("NoSuchVersion", 404):
        missing = source | {"VersionId": "0" * 15 + "1" + "0" * 16}
        s3.copy_object(Bucket=versioned, Key="b", CopySource=missing)
    marker = s3.delete_object(Bucket=versioned, Key="a")["VersionId"]
    with refused("NoSuchKey", 404):
        s3.copy_object(Bucket=versioned, Key="b", CopySource={"Bucket": versioned, "Key": "a"})
    upload = s3.create_multipart_upload(Bucket=versioned, Key="parts")["UploadId"]
    part = {"Bucket": versioned, "Key": "parts", "UploadId": upload, "PartNumber": 1}
    with refused("InvalidRequest", 400) as error:
        s3.copy_object(Bucket=versioned, Key="b", CopySource=source | {"VersionId": marker})
    assert "delete marker" in error.message
    with refused("InvalidRequest", 400):
        s3.upload_part_copy(CopySource=source | {"VersionId": marker}, **part)


def test_an_upload_in_parts_makes_a_version(s3, versioned):
    put(s3, versioned, "a", b"before")
    where = {"Bucket": versioned, "Key": "a"}
    upload = s3.create_multipart_upload(**where)["UploadId"]
    bodies = [content(PART_MIN_BYTES, 1), content(9, 2)]
    parts = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=data)["ETag"],
        }
        for number, data in enumerate(bodies, 1)
    ]
    complete = {**where, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
    version = s3.complete_multipart_upload(**complete)["VersionId"]
    assert s3.complete_multipart_upload(**complete)["VersionId"] == version, "asked again"
    put(s3, versioned, "a", b"after")
    assert body(s3, versioned, "a", VersionId=version) == b"".join(bodies)
    part = s3.get_object(**where, VersionId=version, PartNumber=2)
    assert part["Body"].read() == bodies[1]
    assert len(rows(s3, versioned)) == 3


def test_conditions_judge_the_newest_version(s3, versioned):
    etag = s3.put_object(Bucket=versioned, Key="a", Body=b"a")["ETag"]
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=versioned, Key="a", Body=b"b", IfNoneMatch="*")
    with refused("PreconditionFailed", 412):
        s3.delete_object(Bucket=versioned, Key="a", IfMatch='"other"')
    s3.delete_object(Bucket=versioned, Key="a", IfMatch=etag)
    with refused("NoSuchKey", 404):
        s3.delete_object(Bucket=versioned, Key="a", IfMatch=etag)
    assert put(s3, versioned, "a", b"c")
    s3.delete_object(Bucket=versioned, Key="a")
    s3.put_object(Bucket=versioned, Key="a", Body=b"d", IfNoneMatch="*")


def test_a_page_holds_versions_and_delete_markers_in_one_order(server, s3, versioned):
    """As XML tells it, which most clients take apart: newest first within a name."""
    name = "a&<b> '\"\r\n\t\x7f/+%é🎬"
    first = put(s3, versioned, name, b"1")
    marker = s3.delete_object(Bucket=versioned, Key=name)["VersionId"]
    second = put(s3, versioned, name, b"2")
    other = s3.delete_object(Bucket=versioned, Key="b")["VersionId"]
    expected = [
        (name, "Version", second, "true"),
        (name, "DeleteMarker", marker, "false"),
        (name, "Version", first, "false"),
        ("b", "DeleteMarker", other, "true"),
    ]
    space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
    owner = s3.list_buckets()["Owner"]
    for encoding in ("", "&encoding-type=url"):
        query = f"max-keys=1000{encoding}&versions="
        status, _, page = send(server, "GET", f"/{versioned}", query=query)
        assert status == 200
        root = ElementTree.fromstring(page)
        assert root.tag == f"{space}ListVersionsResult"
        rows = [row for row in root if row.tag[len(space) :] in ("Version", "DeleteMarker")]
        listed = []
        for row in rows:
            fields = {field.tag[len(space) :]: field.text for field in row}
            key = unquote(fields["Key"]) if encoding else fields["Key"]
            kind = row.tag[len(space) :]
            listed.append((key, kind, fields["VersionId"], fields["IsLatest"]))
            assert row.find(f"{space}Owner/{space}ID").text == owner["ID"]
            modified = datetime.datetime.fromisoformat(fields["LastModified"])
            assert abs(datetime.datetime.now(datetime.UTC) - modified).total_seconds() < 60
            if kind == "Version":
                assert (fields["Size"], fields["StorageClass"]) == ("1", "STANDARD")
                assert fields["ETag"].startswith('"') and fields["ETag"].endswith('"')
        assert listed == expected
        assert (root.find(f"{space}EncodingType") is not None) == bool(encoding)
    page = s3.list_object_versions(Bucket=versioned, MaxKeys=2, Prefix="a&<", Delimiter="%")
    assert page["CommonPrefixes"] == [{"Prefix": name[: name.index("%") + 1]}]
    assert (page["Prefix"], page["Delimiter"], page["IsTruncated"]) == ("a&<", "%", False)


def test_what_is_deleted_for_good_leaves_no_blob(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="bucket")
    enable(s3, "bucket")
    versions = [put(s3, "bucket", "a", content(100_000, number)) for number in range(3)]
    for version in versions:
        s3.delete_object(Bucket="bucket", Key="a", VersionId=version)
    s3.delete_bucket(Bucket="bucket")
    server.stop()
    left = [path for path in (server.data / "buckets").rglob("*") if path.is_file()]
    assert left == []


def test_a_stopped_servers_versions_can_be_read(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="bucket")
    enable(s3, "bucket")
    old = put(s3, "bucket", "a", content(30_000, 1))
    put(s3, "bucket", "a", b"new")
    s3.delete_object(Bucket="bucket", Key="a")
    server.stop()

    def offline(*arguments):
        done = coffer("offline", *arguments, "--data", server.data)
        assert done.returncode == 0, done.stderr
        return done.stdout

    lines = offline("ls", "bucket", "--versions", "--json").splitlines()
    listed = [json.loads(line) for line in lines]
    assert [row["is_delete_marker"] for row in listed] == [True, False, False]
    assert listed[2]["version_id"] == old and listed[2]["size_bytes"] == 30_000
    assert offline("ls", "bucket") == b""
    assert offline("cat", "bucket", "a", "--version-id", old) == content(30_000, 1)
    [key] = json.loads(offline("keys", "bucket", "a", "--version-id", old))
    assert key["plaintext_bytes"] == 30_000
