"""Conditional reads and writes."""

import base64
import datetime
import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.clients import refused
from harness.content import content

OTHER = '"another"'
HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def stored(s3, bucket):
    """An object's bucket, entity tag and time."""
    etag = s3.put_object(Bucket=bucket, Key="a", Body=content(50_000))["ETag"]
    return bucket, etag, s3.head_object(Bucket=bucket, Key="a")["LastModified"]


def test_conditional_reads(s3, stored):
    bucket, etag, time = stored
    for call in (s3.get_object, s3.head_object):
        for condition in (
            {"IfMatch": etag},
            {"IfMatch": etag.strip('"')},
            {"IfMatch": f"{OTHER}, {etag}"},
            {"IfMatch": "*"},
            {"IfNoneMatch": OTHER},
            {"IfModifiedSince": time - HOUR},
            {"IfUnmodifiedSince": time},
            {"IfUnmodifiedSince": time + HOUR},
            # If-Match decides before If-Unmodified-Since, If-None-Match before If-Modified-Since.
            {"IfMatch": etag, "IfUnmodifiedSince": time - HOUR},
            {"IfNoneMatch": OTHER, "IfModifiedSince": time},
        ):
            assert call(Bucket=bucket, Key="a", **condition)["ETag"] == etag, condition
        for condition in (
            {"IfMatch": OTHER},
            {"IfUnmodifiedSince": time - HOUR},
            {"IfMatch": OTHER, "IfUnmodifiedSince": time + HOUR},
        ):
            with refused(status=412):
                call(Bucket=bucket, Key="a", **condition)
        for condition in (
            {"IfNoneMatch": etag},
            {"IfNoneMatch": f"{OTHER}, {etag}"},
            {"IfNoneMatch": "*"},
            {"IfModifiedSince": time},
            {"IfNoneMatch": etag, "IfModifiedSince": time - HOUR},
        ):
            with refused(status=304) as unchanged:
                call(Bucket=bucket, Key="a", **condition)
            assert unchanged.headers["etag"] == etag


def test_if_range_is_not_needed_but_ranges_meet_conditions(s3, stored):
    bucket, etag, _ = stored
    got = s3.get_object(Bucket=bucket, Key="a", Range="bytes=0-9", IfMatch=etag)
    assert len(got["Body"].read()) == 10
    with refused("PreconditionFailed", 412):
        s3.get_object(Bucket=bucket, Key="a", Range="bytes=0-9", IfMatch=OTHER)


def test_conditional_writes(s3, stored):
    bucket, etag, _ = stored
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=bucket, Key="a", Body=b"b", IfNoneMatch="*")
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=bucket, Key="a", Body=b"b", IfMatch=OTHER)
    assert s3.head_object(Bucket=bucket, Key="a")["ETag"] == etag
    newer = s3.put_object(Bucket=bucket, Key="a", Body=b"b", IfMatch=etag)["ETag"]
    assert s3.get_object(Bucket=bucket, Key="a", IfMatch=newer)["Body"].read() == b"b"
    s3.put_object(Bucket=bucket, Key="new", Body=b"b", IfNoneMatch="*")
    with refused("NoSuchKey", 404):
        s3.put_object(Bucket=bucket, Key="missing", Body=b"b", IfMatch=newer)


def test_conditional_deletes(s3, stored):
    bucket, etag, _ = stored
    with refused("PreconditionFailed", 412):
        s3.delete_object(Bucket=bucket, Key="a", IfMatch=OTHER)
    names = [{"Key": "a", "ETag": OTHER}]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": names})
    assert answer["Errors"][0]["Code"] == "PreconditionFailed"
    s3.delete_object(Bucket=bucket, Key="a", IfMatch=etag)
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")


def test_conditional_completion(s3, stored):
    bucket, etag, _ = stored
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    where = {"Bucket": bucket, "Key": "a", "UploadId": upload}
    part = s3.upload_part(**where, PartNumber=1, Body=b"parts")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    with refused("PreconditionFailed", 412):
        s3.complete_multipart_upload(**where, MultipartUpload=parts, IfNoneMatch="*")
    with refused("PreconditionFailed", 412):
        s3.complete_multipart_upload(**where, MultipartUpload=parts, IfMatch=OTHER)
    s3.complete_multipart_upload(**where, MultipartUpload=parts, IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"parts"


def test_completion_where_nothing_is(s3, stored):
    bucket, etag, _ = stored
    upload = s3.create_multipart_upload(Bucket=bucket, Key="missing")["UploadId"]
    where = {"Bucket": bucket, "Key": "missing", "UploadId": upload}
    part = s3.upload_part(**where, PartNumber=1, Body=b"parts")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    for wanted in (etag, "*"):
        with refused("NoSuchKey", 404):
            s3.complete_multipart_upload(**where, MultipartUpload=parts, IfMatch=wanted)
    s3.complete_multipart_upload(**where, MultipartUpload=parts, IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="missing")["Body"].read() == b"parts"


def test_copies_onto_what_is_there(s3, stored):
    bucket, _, _ = stored
    copy = {"Bucket": bucket, "Key": "b", "CopySource": {"Bucket": bucket, "Key": "a"}}
    for wanted in (OTHER, "*"):
        with refused("NoSuchKey", 404):
            s3.copy_object(**copy, IfMatch=wanted)
    s3.copy_object(**copy, IfNoneMatch="*")
    etag = s3.put_object(Bucket=bucket, Key="b", Body=b"b")["ETag"]
    with refused("PreconditionFailed", 412):
        s3.copy_object(**copy, IfNoneMatch="*")
    with refused("PreconditionFailed", 412):
        s3.copy_object(**copy, IfMatch=OTHER)
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"b"
    s3.copy_object(**copy, IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == content(50_000)


def test_conditional_copies(s3, stored):
    bucket, etag, time = stored
    source = {"Bucket": bucket, "Key": "a"}
    for condition in (
        {"CopySourceIfMatch": OTHER},
        {"CopySourceIfNoneMatch": etag},
        {"CopySourceIfModifiedSince": time},
        {"CopySourceIfUnmodifiedSince": time - HOUR},
    ):
        with refused("PreconditionFailed", 412):
            s3.copy_object(Bucket=bucket, Key="b", CopySource=source, **condition)
    s3.copy_object(
        Bucket=bucket,
        Key="b",
        CopySource=source,
        CopySourceIfMatch=etag,
        CopySourceIfUnmodifiedSince=time + HOUR,
    )
    assert s3.head_object(Bucket=bucket, Key="b")["ContentLength"] == 50_000


def test_copies_pass_over_a_time_to_come(s3, stored):
    """A source modified since then would be one that S3 can't have: its clock is not there yet."""
    bucket, _, time = stored
    since = {
        "CopySource": {"Bucket": bucket, "Key": "a"},
        "CopySourceIfModifiedSince": time + 24 * HOUR,
    }
    s3.copy_object(Bucket=bucket, Key="c", **since)
    assert s3.head_object(Bucket=bucket, Key="c")["ContentLength"] == 50_000
    where = {"Bucket": bucket, "Key": "d"}
    where["UploadId"] = s3.create_multipart_upload(**where)["UploadId"]
    s3.upload_part_copy(**where, PartNumber=1, **since)
    s3.abort_multipart_upload(**where)


@pytest.mark.parametrize("size_bytes", [100, 100_000])
def test_only_one_of_many_creates(s3, bucket, size_bytes):
    def create(index):
        try:
            s3.put_object(
                Bucket=bucket, Key="one", Body=content(size_bytes, index), IfNoneMatch="*"
            )
        except ClientError as error:
            return error.response["Error"]["Code"]
        return index

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(create, range(16)))
    winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
    lost = [outcome for outcome in outcomes if not isinstance(outcome, int)]
    assert len(winners) == 1, outcomes
    assert set(lost) <= {"PreconditionFailed", "ConditionalRequestConflict"}, outcomes
    assert s3.get_object(Bucket=bucket, Key="one")["Body"].read() == content(size_bytes, winners[0])


def test_counting_with_if_match_loses_nothing(s3, bucket):
    s3.put_object(Bucket=bucket, Key="count", Body=b"0")

    def add(_):
        while True:
            got = s3.get_object(Bucket=bucket, Key="count")
            number = int(got["Body"].read()) + 1
            try:
                s3.put_object(
                    Bucket=bucket, Key="count", Body=f"{number}".encode(), IfMatch=got["ETag"]
                )
                return
            except ClientError as error:
                assert error.response["Error"]["Code"] in (
                    "PreconditionFailed",
                    "ConditionalRequestConflict",
                )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    assert s3.get_object(Bucket=bucket, Key="count")["Body"].read() == b"40"


def test_deletes_by_time_and_size(s3, bucket):
    """As AWS has them in directory buckets: a condition on an object that is not there holds."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"12345")
    head = s3.head_object(Bucket=bucket, Key="a")
    right = {"IfMatchLastModifiedTime": head["LastModified"], "IfMatchSize": 5}
    for wrong in (
        {"IfMatchSize": 4},
        {"IfMatchSize": -1},
        {"IfMatchLastModifiedTime": head["LastModified"] - datetime.timedelta(seconds=1)},
        right | {"IfMatchSize": 6},
        right | {"IfMatch": '"other"'},
    ):
        with refused("PreconditionFailed", 412):
            s3.delete_object(Bucket=bucket, Key="a", **wrong)
    s3.delete_object(Bucket=bucket, Key="a", IfMatch=head["ETag"], **right)
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="a")
    s3.delete_object(Bucket=bucket, Key="a", **right)


def test_other_writes_pass_over_conditions(server, s3, bucket):
    """As docs/S3.md says."""

    def send(method, path, query="", body=b"", **more):
        headers = {"if-match": OTHER, "if-none-match": OTHER} | more
        asked = {"query": query, "headers": headers, "body": body}
        return raw.send(server, method, path, **asked)[0]

    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    assert send("PUT", f"/{bucket}/a", f"partNumber=1&uploadId={upload}", b"1") == 200
    assert send("POST", f"/{bucket}/b", "uploads=") == 200
    assert send("DELETE", f"/{bucket}/a", f"uploadId={upload}") == 204
    tags = b"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"
    md5 = base64.b64encode(hashlib.md5(tags).digest()).decode()
    assert send("PUT", f"/{bucket}/a", "tagging=", tags, **{"content-md5": md5}) == 200
    assert send("DELETE", f"/{bucket}/a", "tagging=") == 204
    s3.create_bucket(Bucket=f"{bucket}-empty")
    assert send("DELETE", f"/{bucket}-empty") == 204


@pytest.mark.parametrize("size", ["5.9", "5abc", "5e3", "5 000", "5,5", "0x5", ""])
def test_a_size_that_is_no_number_deletes_nothing(server, s3, bucket, size):
    s3.put_object(Bucket=bucket, Key="a", Body=b"12345")
    headers = {"x-amz-if-match-size": size}
    status, _, told = raw.send(server, "DELETE", f"/{bucket}/a", headers=headers)
    assert status == 400 and b"InvalidArgument" in told
    document = f"<Delete><Object><Key>a</Key><Size>{size}</Size></Object></Delete>".encode()
    headers = {"content-md5": base64.b64encode(hashlib.md5(document).digest()).decode()}
    asked = {"query": "delete=", "headers": headers, "body": document}
    status, _, told = raw.send(server, "POST", f"/{bucket}", **asked)
    assert status == 400 and b"MalformedXML" in told
    s3.head_object(Bucket=bucket, Key="a")


def test_conditions_of_time_and_size_judge_the_newest_version(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    first = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["VersionId"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"12")
    with refused("PreconditionFailed", 412):
        s3.delete_object(Bucket=bucket, Key="a", VersionId=first, IfMatchSize=1)
    s3.delete_object(Bucket=bucket, Key="a", VersionId=first, IfMatchSize=2)
    s3.delete_object(Bucket=bucket, Key="a", IfMatchSize=2)
    # Behind a marker nothing is there to be compared.
    s3.delete_object(Bucket=bucket, Key="a", IfMatchSize=99)
    with refused("NoSuchKey", 404):
        s3.delete_object(Bucket=bucket, Key="a", IfMatch="*")


@pytest.mark.parametrize(
    ("value", "expected"),
    [('"ä"', (412, b"PreconditionFailed")), ("", (400, b"InvalidArgument")), (",", (400, b""))],
)
def test_a_tag_that_no_object_has_is_a_condition_all_the_same(server, s3, bucket, value, expected):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    copy = {"x-amz-copy-source": f"{bucket}/a", "x-amz-copy-source-if-match": value}
    rename = {"x-amz-rename-source": "a", "x-amz-rename-source-if-match": value}
    for method, key, query, headers in (
        ("PUT", "a", "", {"if-match": value}),
        ("DELETE", "a", "", {"if-match": value}),
        ("PUT", "b", "", copy),
        ("PUT", "b", "renameObject=", rename),
    ):
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, method, f"/{bucket}/{key}", **asked)
        assert status == expected[0] and expected[1] in told, (method, headers, told)
    # If-None-Match is for * alone.
    for value_of_none in (value, '"b"'):
        headers = {"if-none-match": value_of_none}
        assert raw.send(server, "PUT", f"/{bucket}/a", headers=headers)[0] in (400, 501)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


@pytest.mark.parametrize("date", ["2020-01-01T00:00:00Z", "soon", ""])
def test_a_change_on_a_date_that_is_none_is_refused(server, s3, bucket, date):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    copy = {"x-amz-copy-source": f"{bucket}/a", "x-amz-copy-source-if-unmodified-since": date}
    rename = {"x-amz-rename-source": "a", "x-amz-rename-source-if-unmodified-since": date}
    target = {"x-amz-rename-source": "a", "if-unmodified-since": date}
    for query, headers in (("", copy), ("renameObject=", rename), ("renameObject=", target)):
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, "PUT", f"/{bucket}/b", **asked)
        assert status == 400 and b"InvalidArgument" in told, (headers, told)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    # Reads pass over it (RFC 9110, section 13.1.4).
    headers = {"if-unmodified-since": date}
    assert raw.send(server, "GET", f"/{bucket}/a", headers=headers)[0] == 200


@pytest.mark.parametrize("fraction", ["", ".5", ".123", ".000000001"])
def test_dates_may_have_a_fraction_of_a_second(server, s3, stored, fraction):
    """The SDK for Rust writes them so."""
    bucket, _, time = stored
    path = f"/{bucket}/a"

    def status(method, path, name, when, **more):
        date = when.strftime(f"%a, %d %b %Y %H:%M:%S{fraction} GMT")
        return raw.send(server, method, path, headers={name: date} | more)[0]

    source = {"x-amz-copy-source": f"{bucket}/a"}
    for when, since, until in ((time, 304, 200), (time - HOUR, 200, 412)):
        assert status("GET", path, "if-modified-since", when) == since
        assert status("HEAD", path, "if-unmodified-since", when) == until
        name = "x-amz-copy-source-if-unmodified-since"
        assert status("PUT", f"/{bucket}/b", name, when, **source) == until
    name = "x-amz-if-match-last-modified-time"
    assert status("DELETE", path, name, time - HOUR) == 412
    assert status("DELETE", path, name, time) == 204


def test_an_empty_time_is_no_condition_kept(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    headers = {"x-amz-if-match-last-modified-time": ""}
    status, _, told = raw.send(server, "DELETE", f"/{bucket}/a", headers=headers)
    assert status == 400 and b"InvalidArgument" in told
    s3.head_object(Bucket=bucket, Key="a")
