"""GetObjectAttributes: what is known of an object, part by part."""

import pytest

from harness.checksums import checksum
from harness.clients import refused
from harness.content import PART_MIN_BYTES, content
from harness.raw import send

ALL = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]


def upload(s3, bucket, key, bodies, **options):
    started = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)
    where = {"Bucket": bucket, "Key": key, "UploadId": started["UploadId"]}
    parts = []
    for number, body in bodies.items():
        stored = s3.upload_part(**where, PartNumber=number, Body=body, **algorithm_of(options))
        announced = [f"Checksum{name}" for name in algorithm_of(options).values()]
        sums = {name: stored[name] for name in announced}
        parts.append({"PartNumber": number, "ETag": stored["ETag"]} | sums)
    return s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


def algorithm_of(options):
    return {name: options[name] for name in ("ChecksumAlgorithm",) if name in options}


BODIES = {
    1: content(PART_MIN_BYTES, 1),
    2: content(PART_MIN_BYTES + 7, 3),
    3: content(100, 20),
}


def test_the_entity_tag_has_no_quotation_marks(server, s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"abc")["ETag"].strip('"')
    headers = {"x-amz-object-attributes": "ETag,ObjectSize"}
    status, _, body = send(server, "GET", f"/{bucket}/a", query="attributes=", headers=headers)
    assert status == 200
    assert f"<ETag>{etag}</ETag>".encode() in body, body
    told = s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=ALL)
    assert told["ETag"] == etag and told["ObjectSize"] == 3
    assert "ObjectParts" not in told


@pytest.mark.parametrize(
    ("options", "algorithm", "kind"),
    [
        ({"ChecksumAlgorithm": "SHA256"}, "SHA256", "COMPOSITE"),
        ({"ChecksumAlgorithm": "CRC32"}, "CRC32", "COMPOSITE"),
        ({"ChecksumAlgorithm": "XXHASH3"}, "XXHASH3", "COMPOSITE"),
        ({"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}, "CRC32", "FULL_OBJECT"),
        ({"ChecksumAlgorithm": "CRC64NVME"}, "CRC64NVME", "FULL_OBJECT"),
        ({}, "CRC64NVME", "FULL_OBJECT"),
    ],
)
def test_parts_are_told_whole_where_the_checksum_is_of_theirs(s3, bucket, options, algorithm, kind):
    done = upload(s3, bucket, "a", BODIES, **options)
    told = s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=ALL)
    assert told["ETag"] == done["ETag"].strip('"')
    whole = done[f"Checksum{algorithm}"].split("-")[0]
    assert told["Checksum"] == {f"Checksum{algorithm}": whole, "ChecksumType": kind}
    parts = told["ObjectParts"]
    if kind == "FULL_OBJECT":
        assert parts == {"TotalPartsCount": 3}
        return
    assert parts["TotalPartsCount"] == 3 and parts["IsTruncated"] is False
    assert parts["PartNumberMarker"] == 0 and parts["MaxParts"] == 1000
    assert parts["Parts"] == [
        {
            "PartNumber": number,
            "Size": len(body),
            f"Checksum{algorithm}": checksum(algorithm, body),
        }
        for number, body in BODIES.items()
    ]


def test_parts_come_in_pages(server, s3, bucket):
    upload(s3, bucket, "a", BODIES, ChecksumAlgorithm="SHA1")
    found, marker = [], 0
    for expected_more in (True, False):
        told = s3.get_object_attributes(
            Bucket=bucket,
            Key="a",
            ObjectAttributes=["ObjectParts"],
            MaxParts=2,
            PartNumberMarker=marker,
        )["ObjectParts"]
        assert told["IsTruncated"] is expected_more
        assert (told["PartNumberMarker"], told["MaxParts"]) == (marker, 2)
        assert told["TotalPartsCount"] == 3
        found += [part["PartNumber"] for part in told["Parts"]]
        marker = told["NextPartNumberMarker"]
    assert found == [1, 2, 3] and marker == 3
    told = s3.get_object_attributes(
        Bucket=bucket, Key="a", ObjectAttributes=["ObjectParts"], PartNumberMarker=3
    )["ObjectParts"]
    assert (told["PartNumberMarker"], told["NextPartNumberMarker"]) == (3, 0)
    for wrong in ("-1", "many"):
        headers = {"x-amz-object-attributes": "ObjectParts", "x-amz-max-parts": wrong}
        status, _, body = send(server, "GET", f"/{bucket}/a", query="attributes=", headers=headers)
        assert status == 200 and body.count(b"<PartNumber>") == 3, body


def test_what_is_unknown(s3, bucket):
    with refused("NoSuchKey", 404):
        s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=["ETag"])
    s3.put_object(Bucket=bucket, Key="a", Body=b"abc")
    with refused("InvalidArgument", 400):
        s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=["Colour"])
