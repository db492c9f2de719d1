"""What other servers got wrong of checksums and of uploads in parts, where no other test is."""

import base64
import hashlib
import time

import pytest

from harness import raw
from harness.checksums import checksum, composite
from harness.clients import refused
from harness.content import PART_MIN_BYTES, content

BODIES = [content(PART_MIN_BYTES, 1), content(9, 2)]
UNSIGNED_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
ALL = ["ETag", "Checksum", "ObjectParts"]


def code_of(answer):
    return answer.partition(b"<Code>")[2].partition(b"<")[0].decode()


def begin(s3, bucket, key="a", **options):
    made = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)
    return {"Bucket": bucket, "Key": key, "UploadId": made["UploadId"]}


def put_parts(s3, where, bodies, algorithm=None):
    parts = []
    for number, body in enumerate(bodies, 1):
        more = {"ChecksumAlgorithm": algorithm} if algorithm else {}
        answer = s3.upload_part(**where, PartNumber=number, Body=body, **more)
        part = {"PartNumber": number, "ETag": answer["ETag"]}
        if algorithm:
            part[f"Checksum{algorithm}"] = answer[f"Checksum{algorithm}"]
        parts.append(part)
    return parts


def complete(s3, where, parts, **options):
    return s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts}, **options)


@pytest.mark.parametrize("algorithm", ["SHA1", "SHA256", "CRC32", "CRC32C"])
def test_composite_values_carry_their_count_but_in_attributes(s3, bucket, algorithm):
    expected = composite(algorithm, BODIES)
    assert expected.endswith("-2")
    field = f"Checksum{algorithm}"
    for value in (expected, expected.removesuffix("-2"), None):
        where = begin(s3, bucket, ChecksumAlgorithm=algorithm)
        parts = put_parts(s3, where, BODIES, algorithm)
        said = {field: value} if value else {}
        assert complete(s3, where, parts, **said)[field] == expected
        told = s3.head_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
        assert (told[field], told["ChecksumType"]) == (expected, "COMPOSITE")
        told = s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=ALL)
        assert told["Checksum"][field] == expected.removesuffix("-2")


def test_without_any_a_crc64nvme_is_computed(server, s3, bucket):
    body = content(70_000)
    assert raw.send(server, "PUT", f"/{bucket}/a", body=body)[0] == 200
    told = s3.head_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert told["ChecksumCRC64NVME"] == checksum("CRC64NVME", body)
    assert told["ChecksumType"] == "FULL_OBJECT"


@pytest.mark.parametrize("algorithm", ["SHA256", "CRC32C"])
def test_a_composite_upload_needs_each_parts_checksum(s3, bucket, algorithm):
    where = begin(s3, bucket, ChecksumAlgorithm=algorithm)
    parts = put_parts(s3, where, BODIES, algorithm)
    field = f"Checksum{algorithm}"
    bare = [{name: part[name] for name in part if name != field} for part in parts]
    for some in (bare, [parts[0], bare[1]]):
        with refused("InvalidRequest", 400) as error:
            complete(s3, where, some)
        assert "checksum for each part" in error.message
    complete(s3, where, parts)


def test_others_don_t(s3, bucket):
    for options in (
        {},
        {"ChecksumAlgorithm": "CRC64NVME"},
        {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"},
    ):
        where = begin(s3, bucket, **options)
        parts = put_parts(s3, where, BODIES, options.get("ChecksumAlgorithm"))
        bare = [{name: part[name] for name in ("PartNumber", "ETag")} for part in parts]
        complete(s3, where, bare)
        assert s3.head_object(Bucket=bucket, Key="a")["ContentLength"] == PART_MIN_BYTES + 9


def test_a_copied_part_tells_its_checksum(s3, bucket):
    s3.put_object(Bucket=bucket, Key="source", Body=BODIES[0])
    where = begin(s3, bucket, ChecksumAlgorithm="SHA256")
    source = {"Bucket": bucket, "Key": "source"}
    copied = s3.upload_part_copy(**where, PartNumber=1, CopySource=source)["CopyPartResult"]
    assert copied["ChecksumSHA256"] == checksum("SHA256", BODIES[0])
    part = {"PartNumber": 1, "ETag": copied["ETag"], "ChecksumSHA256": copied["ChecksumSHA256"]}
    complete(s3, where, [part])


def put_chunks(server, bucket, sent, length, **headers):
    headers = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(length)} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    path = f"/{bucket}/chunked"
    told = raw.send(server, "PUT", path, headers=headers, body=sent, payload_hash=UNSIGNED_CHUNKS)
    return told[0], code_of(told[2])


CRC = checksum("CRC32", b"hello")
OTHER = "x-amz-checksum-crc32c"
CRC_NAME = "x-amz-checksum-crc32"


def test_trailers_are_those_that_were_announced(server, s3, bucket):
    chunks = b"5\r\nhello\r\n0\r\n"

    def put(trailers, announced=None):
        sent = chunks + b"".join(f"{name}:{value}\r\n".encode() for name, value in trailers)
        more = {"x_amz_trailer": announced} if announced else {}
        return put_chunks(server, bucket, sent + b"\r\n", 5, **more)

    good = (CRC_NAME, CRC)
    assert put([good], CRC_NAME) == (200, "")
    # That none is declared and none comes is no fault.
    assert put([]) == (200, "")
    # Only checksums come in trailers.
    for name in ("x-foo", f"{CRC_NAME}, x-foo"):
        assert put([good, ("x-foo", "a")], name) == (400, "InvalidRequest")
    malformed = (400, "MalformedTrailerError")
    assert put([], CRC_NAME) == malformed
    assert put([good], OTHER) == malformed
    assert put([good]) == malformed
    assert put([good, (OTHER, "AAAAAA==")], CRC_NAME) == malformed
    assert put_chunks(server, bucket, chunks + b"what\r\n\r\n", 5) == malformed
    assert put([(CRC_NAME, "AAAAAA==")], CRC_NAME) == (400, "BadDigest")


@pytest.mark.parametrize(
    "sent",
    [b"5\r\nhello", b"5\r\nhelloo\r\n0\r\n\r\n", b"x\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n"],
)
def test_wrong_framing_is_an_incomplete_body(server, s3, bucket, sent):
    assert put_chunks(server, bucket, sent, 5) == (400, "IncompleteBody")
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="chunked")


def test_digests_that_are_none_and_digests_of_others(server, s3, bucket):
    def put(**headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        told = raw.send(server, "PUT", f"/{bucket}/a", headers=headers, body=b"hello")
        return told[0], code_of(told[2])

    def md5(data):
        return base64.b64encode(hashlib.md5(data).digest()).decode()

    assert put(content_md5=md5(b"hello")) == (200, "")
    assert put(content_md5=md5(b"other")) == (400, "BadDigest")
    for undecodable in ("nonsense", "", "////"):
        assert put(content_md5=undecodable) == (400, "InvalidDigest"), undecodable
    two = {"x_amz_checksum_crc32": CRC, "x_amz_checksum_sha1": checksum("SHA1", b"hello")}
    assert put(**two) == (400, "InvalidRequest")


def test_a_missing_part_is_told_before_a_small_one(s3, bucket):
    where = begin(s3, bucket)
    parts = put_parts(s3, where, [b"small", b"small", b"last"])
    with refused("EntityTooSmall", 400):
        complete(s3, where, parts)
    missing = {"PartNumber": 4, "ETag": parts[0]["ETag"]}
    with refused("InvalidPart", 400):
        complete(s3, where, [*parts, missing])
    with refused("InvalidPartOrder", 400):
        complete(s3, where, [parts[1], parts[0], missing])


def test_parts_are_listed_a_thousand_at_once(server, s3, bucket):
    where = begin(s3, bucket)
    put_parts(s3, where, [b"1", b"2"])
    told = s3.list_parts(**where, MaxParts=5000)
    assert told["MaxParts"] == 1000 and len(told["Parts"]) == 2


def test_uploads_are_listed_by_name_and_by_when_they_began(s3, bucket):
    begun = {"b": [], "a": []}
    for _ in range(6):
        for key, ids in begun.items():
            ids.append(begin(s3, bucket, key)["UploadId"])
            time.sleep(0.002)
    listed = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    rows = [(row["Key"], row["UploadId"]) for row in listed]
    assert rows == [("a", it) for it in begun["a"]] + [("b", it) for it in begun["b"]]
    assert [row["Initiated"] for row in listed[:6]] == sorted(r["Initiated"] for r in listed[:6])
    # From the middle of a name; and an id without its name is passed over.
    third = {"KeyMarker": "a", "UploadIdMarker": begun["a"][2]}
    page = s3.list_multipart_uploads(Bucket=bucket, **third, MaxUploads=4)
    assert [(row["Key"], row["UploadId"]) for row in page["Uploads"]] == rows[3:7]
    # One that was aborted meanwhile is still a place to go on from.
    s3.abort_multipart_upload(Bucket=bucket, Key="a", UploadId=begun["a"][2])
    page = s3.list_multipart_uploads(Bucket=bucket, **third, MaxUploads=4)
    assert [(row["Key"], row["UploadId"]) for row in page["Uploads"]] == rows[3:7]
    alone = s3.list_multipart_uploads(Bucket=bucket, UploadIdMarker=begun["b"][2])
    assert len(alone["Uploads"]) == 11 and alone["UploadIdMarker"] == ""
    # One of another name is none.
    with refused("InvalidArgument", 400) as error:
        s3.list_multipart_uploads(Bucket=bucket, KeyMarker="a", UploadIdMarker=begun["b"][2])
    assert error.message == "Invalid uploadId marker"


def test_the_last_page_tells_where_it_ends(server, s3, bucket):
    none = s3.list_multipart_uploads(Bucket=bucket)
    assert (none["NextKeyMarker"], none["NextUploadIdMarker"]) == ("", "")
    where = begin(s3, bucket, "a")
    begun = begin(s3, bucket, "dir/b")
    page = s3.list_multipart_uploads(Bucket=bucket)
    assert page["IsTruncated"] is False
    assert page["NextKeyMarker"] == "dir/b"
    assert page["NextUploadIdMarker"] == begun["UploadId"]
    folded = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert (folded["NextKeyMarker"], folded["NextUploadIdMarker"]) == ("dir/", "")
    assert s3.list_parts(**where)["NextPartNumberMarker"] == 0
    s3.upload_part(**where, PartNumber=2, Body=b"x")
    parts = s3.list_parts(**where)
    assert (parts["NextPartNumberMarker"], parts["IsTruncated"]) == (2, False)
    for empty in ("max-parts=", "part-number-marker="):
        query = f"{empty}&uploadId={where['UploadId']}"
        status, _, body = raw.send(server, "GET", f"/{bucket}/a", query=query)
        assert status == 200 and b"<MaxParts>1000</MaxParts>" in body, body


def test_parts_by_number_end_where_the_parts_do(s3, bucket):
    where = begin(s3, bucket)
    complete(s3, where, put_parts(s3, where, BODIES))
    s3.put_object(Bucket=bucket, Key="whole", Body=b"x")
    for call in (s3.get_object, s3.head_object):
        for key, number in (("a", 3), ("whole", 2)):
            with refused(status=416):
                call(Bucket=bucket, Key=key, PartNumber=number)
        with refused(status=400):
            call(Bucket=bucket, Key="a", PartNumber=1, Range="bytes=0-1")


def test_attributes_of_an_object_of_one_piece_have_no_parts(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"abc")
    told = s3.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=ALL)
    assert "ObjectParts" not in told and not told["ETag"].startswith('"')
    headers = {"x-amz-object-attributes": "ETag,Colour"}
    told = raw.send(server, "GET", f"/{bucket}/a", query="attributes=", headers=headers)
    assert (told[0], code_of(told[2])) == (400, "InvalidArgument")


@pytest.mark.parametrize("size", ["3x", "3.0", "+3", ""])
def test_a_length_that_is_no_number_completes_nothing(server, s3, bucket, size):
    where = begin(s3, bucket)
    parts = put_parts(s3, where, [b"abc"])
    part = f"<Part><ETag>{parts[0]['ETag']}</ETag><PartNumber>1</PartNumber></Part>"
    body = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    told = {"query": f"uploadId={where['UploadId']}", "headers": {"x-amz-mp-object-size": size}}
    status, _, answer = raw.send(server, "POST", f"/{bucket}/a", **told, body=body)
    assert (status, code_of(answer)[:7]) == (400, "Invalid"), answer
    complete(s3, where, parts, MpuObjectSize=3)


def test_a_range_that_the_source_has_not_is_not_copied(s3, bucket):
    s3.put_object(Bucket=bucket, Key="small", Body=b"small")
    copy = begin(s3, bucket) | {"PartNumber": 1, "CopySource": {"Bucket": bucket, "Key": "small"}}
    with refused("InvalidArgument", 400) as error:
        s3.upload_part_copy(**copy, CopySourceRange="bytes=0-5")
    assert error.message == "Range specified is not valid for source object of size: 5"
    with refused("InvalidRequest", 400) as error:
        s3.upload_part_copy(**copy, CopySourceRange="bytes=5-9")
    wanted = "The specified copy range is invalid for the source object size"
    assert error.message == wanted


def test_a_completion_has_the_checksum_type_of_its_upload(s3, bucket):
    where = begin(s3, bucket, ChecksumAlgorithm="SHA256")
    parts = put_parts(s3, where, [b"x"], "SHA256")
    for wrong, words in (
        ("FULL_OBJECT", "The upload was created using the COMPOSITE checksum mode."),
        ("OTHER", "Value for x-amz-checksum-type header is invalid."),
    ):
        with refused("InvalidRequest", 400) as error:
            complete(s3, where, parts, ChecksumType=wrong)
        assert error.message.startswith(words)
    complete(s3, where, parts, ChecksumType="COMPOSITE")
