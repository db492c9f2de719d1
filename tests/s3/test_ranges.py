"""Ranges, compared with slices of what was stored."""

import random

import pytest

from harness.checksums import checksum
from harness.clients import refused
from harness.content import CHUNK_BYTES, PART_MIN_BYTES, content

SIZES = [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES, 300_000]


@pytest.fixture(scope="module")
def objects(s3):
    """Bucket, and content by name: in one piece, and in parts."""
    s3.create_bucket(Bucket="ranges")
    stored = {}
    for size_bytes in SIZES:
        stored[f"{size_bytes}"] = content(size_bytes)
        s3.put_object(Bucket="ranges", Key=f"{size_bytes}", Body=content(size_bytes))
    upload = s3.create_multipart_upload(Bucket="ranges", Key="parts")["UploadId"]
    where = {"Bucket": "ranges", "Key": "parts", "UploadId": upload}
    bodies = [content(PART_MIN_BYTES, 1), content(PART_MIN_BYTES + 7, 2), content(99, 3)]
    parts = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(**where, PartNumber=number, Body=body)["ETag"],
        }
        for number, body in enumerate(bodies, 1)
    ]
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    stored["parts"] = b"".join(bodies)
    return "ranges", stored


def borders(size_bytes):
    """Places where something begins or ends."""
    places = {0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES, PART_MIN_BYTES, 2 * PART_MIN_BYTES + 7}
    near = {place + step for place in places | {size_bytes} for step in (-1, 0, 1)}
    return sorted(place for place in near if 0 <= place < size_bytes)


@pytest.mark.parametrize("name", [*map(str, SIZES[1:]), "parts"])
def test_ranges_are_slices(s3, objects, name):
    bucket, stored = objects
    body = stored[name]
    size = len(body)
    dice = random.Random(name)
    places = borders(size)
    pairs = [(first, last) for first in places for last in places if first <= last]
    pairs = dice.sample(pairs, min(len(pairs), 40))
    pairs += [tuple(sorted((dice.randrange(size), dice.randrange(size)))) for _ in range(10)]
    for first, last in pairs:
        got = s3.get_object(Bucket=bucket, Key=name, Range=f"bytes={first}-{last}")
        assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert got["ContentRange"] == f"bytes {first}-{last}/{size}"
        assert got["ContentLength"] == last - first + 1
        assert got["Body"].read() == body[first : last + 1], (first, last)
    for length in (1, size - 1, size, size + 1, 10 * size):
        if length > 0:
            got = s3.get_object(Bucket=bucket, Key=name, Range=f"bytes=-{length}")
            assert got["Body"].read() == body[-length:], length
    for first in places[-3:]:
        got = s3.get_object(Bucket=bucket, Key=name, Range=f"bytes={first}-")
        assert got["Body"].read() == body[first:], first
        got = s3.get_object(Bucket=bucket, Key=name, Range=f"bytes={first}-{size * 10}")
        assert got["Body"].read() == body[first:], first


def test_what_names_no_byte_is_no_range(s3, objects):
    bucket, stored = objects
    for call in (s3.get_object, s3.head_object):
        got = call(Bucket=bucket, Key="300000", Range="bytes=-")
        assert got["ResponseMetadata"]["HTTPStatusCode"] == 200
        assert got["ContentLength"] == len(stored["300000"])


def test_a_range_of_all_tells_the_checksum(s3, objects):
    bucket, _ = objects
    s3.put_object(Bucket=bucket, Key="summed", Body=b"0123456789", ChecksumAlgorithm="CRC32")
    for call in (s3.get_object, s3.head_object):
        for asked in ("bytes=0-", "bytes=0-100", "bytes=-15", "bytes=0-9"):
            got = call(Bucket=bucket, Key="summed", Range=asked, ChecksumMode="ENABLED")
            assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
            assert got["ChecksumCRC32"] == checksum("CRC32", b"0123456789"), asked
        got = call(Bucket=bucket, Key="summed", Range="bytes=0-8", ChecksumMode="ENABLED")
        assert "ChecksumCRC32" not in got


def test_head_takes_ranges(s3, objects):
    bucket, _ = objects
    head = s3.head_object(Bucket=bucket, Key="300000", Range="bytes=10-19")
    assert head["ContentLength"] == 10
    assert head["ResponseMetadata"]["HTTPHeaders"]["content-range"] == "bytes 10-19/300000"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("0", "bytes=0-"),
        ("0", "bytes=-1"),
        ("1", "bytes=1-"),
        ("1", "bytes=5-9"),
        ("1", "bytes=-0"),
    ],
)
def test_ranges_outside(s3, objects, name, asked):
    bucket, _ = objects
    with refused("InvalidRange", 416) as error:
        s3.get_object(Bucket=bucket, Key=name, Range=asked)
    assert error.headers["content-range"] == f"bytes */{name}"


@pytest.mark.parametrize("asked", ["bytes=0-1,3-4", "bytes=5-2", "lines=1-2", "bytes=a-b", "0-1"])
def test_what_is_no_range_to_s3(s3, objects, asked):
    """S3 answers these with the whole object, or refuses them; never with other bytes."""
    bucket, stored = objects
    try:
        got = s3.get_object(Bucket=bucket, Key="300000", Range=asked)
    except s3.exceptions.ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 416, 501)
        return
    assert got["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert got["Body"].read() == stored["300000"]


def test_parts_by_number(s3, objects):
    bucket, stored = objects
    bounds = [0, PART_MIN_BYTES, 2 * PART_MIN_BYTES + 7, 2 * PART_MIN_BYTES + 106]
    for number in (1, 2, 3):
        expected = stored["parts"][bounds[number - 1] : bounds[number]]
        got = s3.get_object(Bucket=bucket, Key="parts", PartNumber=number)
        assert got["Body"].read() == expected
        assert got["PartsCount"] == 3
        head = s3.head_object(Bucket=bucket, Key="parts", PartNumber=number)
        assert (head["ContentLength"], head["PartsCount"]) == (len(expected), 3)
    with refused(status=416):
        s3.get_object(Bucket=bucket, Key="parts", PartNumber=4)
    whole = s3.get_object(Bucket=bucket, Key="300000", PartNumber=1)
    assert whole["Body"].read() == stored["300000"]


def test_a_range_and_a_part_together_are_refused(s3, objects):
    bucket, _ = objects
    with refused(status=400):
        s3.get_object(Bucket=bucket, Key="parts", PartNumber=1, Range="bytes=0-1")
