"""Checksums: all of S3's algorithms, in headers, in trailers, and of parts."""

import io

import pytest

from harness.checksums import ALGORITHMS, COMPOSITE, FULL_OBJECT, checksum, composite
from harness.clients import refused
from harness.content import PART_MIN_BYTES, content

SIZES = [0, 10, 100_000]


def field(algorithm):
    return f"Checksum{algorithm}"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size_bytes", SIZES)
def test_in_a_header(s3, bucket, algorithm, size_bytes):
    body = content(size_bytes)
    value = checksum(algorithm, body)
    put = s3.put_object(Bucket=bucket, Key="a", Body=body, **{field(algorithm): value})
    assert put[field(algorithm)] == value
    assert put["ChecksumType"] == "FULL_OBJECT"
    for call in (s3.head_object, s3.get_object):
        answer = call(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
        assert answer[field(algorithm)] == value
        assert answer["ChecksumType"] == "FULL_OBJECT"
        assert field(algorithm) not in s3.head_object(Bucket=bucket, Key="a")
    listed = s3.list_objects_v2(Bucket=bucket)["Contents"][0]
    assert listed["ChecksumAlgorithm"] == [algorithm]


# boto3 sends MD5s only where it is given them.
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "MD5"])
@pytest.mark.parametrize("size_bytes", SIZES)
def test_in_a_trailer(s3, bucket, algorithm, size_bytes):
    body = content(size_bytes)
    sent = {}
    s3.meta.events.register(
        "before-send.s3.PutObject",
        lambda request, **_: sent.update(request.headers.items()),
        unique_id="trailer",
    )
    put = s3.put_object(Bucket=bucket, Key="a", Body=io.BytesIO(body), ChecksumAlgorithm=algorithm)
    s3.meta.events.unregister("before-send.s3.PutObject", unique_id="trailer")
    trailer = sent["X-Amz-Trailer"]
    trailer = trailer.decode() if isinstance(trailer, bytes) else trailer
    assert trailer == f"x-amz-checksum-{algorithm.lower()}"
    assert put[field(algorithm)] == checksum(algorithm, body)
    got = s3.get_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert got["Body"].read() == body
    assert got[field(algorithm)] == checksum(algorithm, body)
    assert "ContentEncoding" not in got


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size_bytes", SIZES)
def test_wrong_ones_store_nothing(s3, bucket, server, algorithm, size_bytes):
    assert server.blob_bytes_at_most(0), "left by an earlier test"
    wrong = {field(algorithm): checksum(algorithm, b"something else")}
    with refused("BadDigest", 400):
        s3.put_object(Bucket=bucket, Key="a", Body=content(size_bytes), **wrong)
    with refused("InvalidRequest", 400):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", **{field(algorithm): "nonsense"})
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")
    assert server.blob_bytes_at_most(0)


def upload_parts(s3, bucket, bodies, algorithm, kind):
    """Uploads parts, each with its checksum, and returns (where, parts)."""
    options = {"ChecksumAlgorithm": algorithm}
    if kind:
        options["ChecksumType"] = kind
    created = s3.create_multipart_upload(Bucket=bucket, Key="a", **options)
    assert created["ChecksumAlgorithm"] == algorithm
    where = {"Bucket": bucket, "Key": "a", "UploadId": created["UploadId"]}
    parts = []
    for number, body in enumerate(bodies, 1):
        value = checksum(algorithm, body)
        answer = s3.upload_part(**where, PartNumber=number, Body=body, **{field(algorithm): value})
        assert answer[field(algorithm)] == value
        parts.append({"PartNumber": number, "ETag": answer["ETag"], field(algorithm): value})
    return where, parts


BODIES = [content(PART_MIN_BYTES, 1), content(PART_MIN_BYTES, 2), content(77, 3)]


@pytest.mark.parametrize("algorithm", COMPOSITE)
def test_composite_of_parts(s3, bucket, algorithm):
    where, parts = upload_parts(s3, bucket, BODIES, algorithm, "COMPOSITE")
    listed = s3.list_parts(**where)
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"]) == (algorithm, "COMPOSITE")
    assert [part[field(algorithm)] for part in listed["Parts"]] == [
        part[field(algorithm)] for part in parts
    ]
    expected = composite(algorithm, BODIES)
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert (done[field(algorithm)], done["ChecksumType"]) == (expected, "COMPOSITE")
    head = s3.head_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert (head[field(algorithm)], head["ChecksumType"]) == (expected, "COMPOSITE")
    for number, body in enumerate(BODIES, 1):
        where = {"Bucket": bucket, "Key": "a", "PartNumber": number, "ChecksumMode": "ENABLED"}
        got = s3.get_object(**where)
        assert got["Body"].read() == body
        for told in (got, s3.head_object(**where)):
            assert told[field(algorithm)] == checksum(algorithm, body)
            assert told["ChecksumType"] == "COMPOSITE"


@pytest.mark.parametrize("algorithm", FULL_OBJECT)
def test_full_object_from_parts(s3, bucket, algorithm):
    where, parts = upload_parts(s3, bucket, BODIES, algorithm, "FULL_OBJECT")
    expected = checksum(algorithm, b"".join(BODIES))
    wrong = {field(algorithm): checksum(algorithm, b"other"), "ChecksumType": "FULL_OBJECT"}
    with refused("BadDigest", 400):
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts}, **wrong)
    right = {field(algorithm): expected, "ChecksumType": "FULL_OBJECT"}
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts}, **right)
    assert (done[field(algorithm)], done["ChecksumType"]) == (expected, "FULL_OBJECT")
    head = s3.head_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert (head[field(algorithm)], head["ChecksumType"]) == (expected, "FULL_OBJECT")
    # Of parts nothing is told, but of one that is the whole.
    part = s3.head_object(Bucket=bucket, Key="a", PartNumber=1, ChecksumMode="ENABLED")
    assert field(algorithm) not in part and "ChecksumType" not in part
    s3.put_object(Bucket=bucket, Key="whole", Body=b"x", ChecksumAlgorithm=algorithm)
    whole = s3.get_object(Bucket=bucket, Key="whole", PartNumber=1, ChecksumMode="ENABLED")
    assert whole[field(algorithm)] == checksum(algorithm, b"x")


def test_kinds_by_default(s3, bucket):
    for algorithm in ALGORITHMS:
        created = s3.create_multipart_upload(Bucket=bucket, Key="a", ChecksumAlgorithm=algorithm)
        kind = "FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE"
        assert created["ChecksumType"] == kind, algorithm


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [("CRC64NVME", "COMPOSITE")]
    + [(name, "FULL_OBJECT") for name in ALGORITHMS if name not in FULL_OBJECT],
)
def test_kinds_that_can_not_be(s3, bucket, algorithm, kind):
    with refused("InvalidRequest", 400) as error:
        s3.create_multipart_upload(
            Bucket=bucket, Key="a", ChecksumAlgorithm=algorithm, ChecksumType=kind
        )
    named = f"{kind} checksum type cannot be used with the {algorithm.lower()} checksum algorithm"
    assert named in error.message


@pytest.mark.parametrize("algorithm", COMPOSITE)
def test_wrong_checksums_of_parts(s3, bucket, algorithm):
    where, parts = upload_parts(s3, bucket, [b"one"], algorithm, "COMPOSITE")
    wrong = {field(algorithm): checksum(algorithm, b"other")}
    with refused("BadDigest", 400):
        s3.upload_part(**where, PartNumber=1, Body=b"two", **wrong)
    with refused("InvalidPart", 400):
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [parts[0] | wrong]})
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"one"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_copies(s3, bucket, algorithm):
    body = content(50_000)
    s3.put_object(Bucket=bucket, Key="source", Body=body, ChecksumAlgorithm="CRC32")
    source = {"Bucket": bucket, "Key": "source"}
    copied = s3.copy_object(Bucket=bucket, Key="same", CopySource=source)
    assert copied["CopyObjectResult"]["ChecksumCRC32"] == checksum("CRC32", body)
    copied = s3.copy_object(
        Bucket=bucket, Key="other", CopySource=source, ChecksumAlgorithm=algorithm
    )
    assert copied["CopyObjectResult"][field(algorithm)] == checksum(algorithm, body)
    head = s3.head_object(Bucket=bucket, Key="other", ChecksumMode="ENABLED")
    assert head[field(algorithm)] == checksum(algorithm, body)


def test_two_checksums_at_once_are_refused(s3, bucket):
    both = {field(a): checksum(a, b"a") for a in ("CRC32", "SHA1")}
    with refused("InvalidRequest", 400):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", **both)
