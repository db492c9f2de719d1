"""Checksums that S3 has since 2026, on the wire and beside others; and which ones parts have."""

import hashlib

import pytest

from harness.checksums import NEWER, checksum, composite
from harness.clients import refused
from harness.content import PART_MIN_BYTES, content
from harness.raw import send

BODIES = [content(PART_MIN_BYTES, 1), content(9, 2)]
HEADERS = {name: f"x-amz-checksum-{name.lower()}" for name in NEWER}


def put_in_trailer(server, path, name, value):
    headers = {
        "x-amz-trailer": HEADERS[name],
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": "1",
    }
    body = f"1\r\nx\r\n0\r\n{HEADERS[name]}:{value}\r\n\r\n".encode()
    hashed = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    return send(server, "PUT", path, headers=headers, body=body, payload_hash=hashed)


@pytest.mark.parametrize("name", NEWER)
def test_headers_and_trailers_on_the_wire(server, s3, bucket, name):
    right, wrong = checksum(name, b"x"), checksum(name, b"y")
    path = f"/{bucket}/a"
    status, _, answer = put_in_trailer(server, path, name, wrong)
    assert (status, b"<Code>BadDigest</Code>" in answer) == (400, True), answer
    status, headers, answer = put_in_trailer(server, path, name, right)
    assert (status, headers[HEADERS[name]]) == (200, right), answer
    assert "x-amz-checksum-crc32" not in headers
    mode = {"x-amz-checksum-mode": "ENABLED"}
    for method in ("HEAD", "GET"):
        _, headers, _ = send(server, method, path, headers=mode)
        assert headers[HEADERS[name]] == right
        assert headers["x-amz-checksum-type"] == "FULL_OBJECT"
        assert "x-amz-checksum-crc32" not in headers
        assert HEADERS[name] not in send(server, method, path)[1]


def test_what_is_none_of_them_is_refused(server, s3, bucket):
    path = f"/{bucket}/a"
    status, _, answer = send(
        server, "PUT", path, headers={"x-amz-checksum-xxhash32": "AAAAAA=="}, body=b"x"
    )
    assert (status, b"<Code>InvalidRequest</Code>" in answer) == (400, True), answer
    assert b"The algorithm type you specified in x-amz-checksum- header is invalid." in answer
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_an_md5_that_is_the_checksum_is_the_entity_tag(s3, bucket):
    body = content(100_000)
    put = s3.put_object(Bucket=bucket, Key="a", Body=body, ChecksumMD5=checksum("MD5", body))
    assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    begun = s3.create_multipart_upload(Bucket=bucket, Key="b", ChecksumAlgorithm="MD5")
    where = {"Bucket": bucket, "Key": "b", "UploadId": begun["UploadId"]}
    parts = []
    for number, body in enumerate(BODIES, 1):
        value = checksum("MD5", body)
        part = s3.upload_part(**where, PartNumber=number, Body=body, ChecksumMD5=value)
        assert part["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
        parts.append({"PartNumber": number, "ETag": part["ETag"], "ChecksumMD5": value})
    whole = composite("MD5", BODIES)
    done = s3.complete_multipart_upload(
        **where, MultipartUpload={"Parts": parts}, ChecksumMD5=whole
    )
    assert (done["ChecksumMD5"], done["ChecksumType"]) == (whole, "COMPOSITE")
    of_parts = hashlib.md5(b"".join(hashlib.md5(body).digest() for body in BODIES))
    assert done["ETag"] == f'"{of_parts.hexdigest()}-2"'


@pytest.mark.parametrize("name", NEWER)
def test_copies_keep_them(s3, bucket, name):
    field, body = f"Checksum{name}", content(30_000)
    value = checksum(name, body)
    s3.put_object(Bucket=bucket, Key="a", Body=body, **{field: value})
    source = {"Bucket": bucket, "Key": "a"}
    copied = s3.copy_object(Bucket=bucket, Key="b", CopySource=source)["CopyObjectResult"]
    assert (copied[field], copied["ChecksumType"]) == (value, "FULL_OBJECT")
    assert "ChecksumCRC32" not in copied
    begun = s3.create_multipart_upload(Bucket=bucket, Key="c", ChecksumAlgorithm=name)
    where = {"Bucket": bucket, "Key": "c", "UploadId": begun["UploadId"]}
    part = s3.upload_part_copy(**where, PartNumber=1, CopySource=source)["CopyPartResult"]
    assert part[field] == value
    [listed] = s3.list_parts(**where)["Parts"]
    assert listed[field] == value and "ChecksumCRC32" not in listed
    [upload] = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert (upload["ChecksumAlgorithm"], upload["ChecksumType"]) == (name, "COMPOSITE")
    named = {"PartNumber": 1, "ETag": part["ETag"], field: value}
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [named]})
    assert done[field] == composite(name, [body])
    told = s3.get_object_attributes(
        Bucket=bucket, Key="c", ObjectAttributes=["Checksum", "ObjectParts"]
    )
    bare = composite(name, [body]).removesuffix("-1")
    assert told["Checksum"] == {field: bare, "ChecksumType": "COMPOSITE"}
    assert told["ObjectParts"]["Parts"] == [{"PartNumber": 1, "Size": 30_000, field: value}]


def begun(s3, bucket, **options):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a", **options)["UploadId"]
    return {"Bucket": bucket, "Key": "a", "UploadId": upload}


def sums(*names):
    return {f"Checksum{name}": checksum(name, b"x") for name in names}


@pytest.mark.parametrize(
    ("announced", "sent"),
    [("SHA256", None), ("SHA256", "CRC32"), ("XXHASH64", None), ("CRC32", "SHA512")],
)
def test_a_part_comes_with_the_checksum_of_its_upload(server, s3, bucket, announced, sent):
    where = begun(s3, bucket, ChecksumAlgorithm=announced)
    headers = {f"x-amz-checksum-{sent.lower()}": checksum(sent, b"x")} if sent else {}
    query = f"partNumber=1&uploadId={where['UploadId']}"
    status, _, answer = send(server, "PUT", f"/{bucket}/a", query=query, headers=headers, body=b"x")
    assert (status, b"<Code>InvalidRequest</Code>" in answer) == (400, True), answer
    expected = (
        f"Checksum Type mismatch occurred, expected checksum Type: {announced.lower()}, "
        f"actual checksum Type: {sent.lower() if sent else 'null'}"
    )
    assert expected.encode() in answer
    assert "Parts" not in s3.list_parts(**where)


@pytest.mark.parametrize(
    "options",
    [{}, {"ChecksumAlgorithm": "CRC64NVME"}]
    + [{"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}],
)
def test_others_need_none_with_their_parts(server, s3, bucket, options):
    where = begun(s3, bucket, **options)
    query = f"partNumber=1&uploadId={where['UploadId']}"
    status, headers, answer = send(server, "PUT", f"/{bucket}/a", query=query, body=b"x")
    assert status == 200, answer
    name = options.get("ChecksumAlgorithm", "CRC64NVME")
    assert headers[f"x-amz-checksum-{name.lower()}"] == checksum(name, b"x")


@pytest.mark.parametrize("name", ["CRC32", *NEWER])
def test_without_an_announcement_any_is_compared_and_none_names_a_part(s3, bucket, name):
    where = begun(s3, bucket)
    with refused("BadDigest", 400):
        s3.upload_part(**where, PartNumber=1, Body=b"y", **sums(name))
    part = s3.upload_part(**where, PartNumber=1, Body=b"x", **sums(name))
    named = {"PartNumber": 1, "ETag": part["ETag"]}
    with refused("InvalidPart", 400):
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [named | sums(name)]})
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [named]})


@pytest.mark.parametrize(
    ("options", "named", "code", "says"),
    [
        ("SHA256", ["CRC32"], "BadDigest", "crc32 you specified for part 1 did not match"),
        ("SHA256", ["SHA512"], "BadDigest", "sha512 you specified for part 1 did not match"),
        ("XXHASH3", [], "InvalidRequest", "created using a xxhash3 checksum"),
        ("SHA256", ["SHA256", "SHA512"], "InvalidArgument", "multiple checksums"),
        ("SHA512", ["SHA512", "MD5"], "InvalidArgument", "multiple checksums"),
    ],
)
def test_a_completion_names_parts_by_the_checksum_of_the_upload(
    s3, bucket, options, named, code, says
):
    where = begun(s3, bucket, ChecksumAlgorithm=options)
    part = s3.upload_part(**where, PartNumber=1, Body=b"x", **sums(options))
    bare = {"PartNumber": 1, "ETag": part["ETag"]}
    with refused(code, 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [bare | sums(*named)]})
    assert says in error.message
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [bare | sums(options)]})
    assert done[f"Checksum{options}"] == composite(options, [b"x"])


@pytest.mark.parametrize("name", ["CRC32", "SHA512"])
def test_the_whole_is_told_by_the_checksum_of_the_upload(s3, bucket, name):
    where = begun(s3, bucket)
    part = s3.upload_part(**where, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    with refused("InvalidRequest", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload=parts, **sums(name))
    expected = f"expected checksum Type: null, actual checksum Type: {name.lower()}"
    assert expected in error.message
