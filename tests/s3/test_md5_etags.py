"""`etag = "md5"`: entity tags as S3 makes them without KMS."""

import hashlib

import pytest

from harness.content import PART_MIN_BYTES, content
from harness.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("md5")
    with Server(folder, config='etag = "md5"\n') as running:
        yield running


@pytest.mark.parametrize("size_bytes", [0, 10, 100_000])
def test_of_a_put(s3, bucket, size_bytes):
    body = content(size_bytes)
    expected = f'"{hashlib.md5(body).hexdigest()}"'
    assert s3.put_object(Bucket=bucket, Key="a", Body=body)["ETag"] == expected
    assert s3.head_object(Bucket=bucket, Key="a")["ETag"] == expected
    source = {"Bucket": bucket, "Key": "a"}
    copied = s3.copy_object(Bucket=bucket, Key="b", CopySource=source)
    assert copied["CopyObjectResult"]["ETag"] == expected


def test_of_parts(s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    where = {"Bucket": bucket, "Key": "a", "UploadId": upload}
    bodies = [content(PART_MIN_BYTES, 1), content(100, 2)]
    parts = []
    for number, body in enumerate(bodies, 1):
        etag = s3.upload_part(**where, PartNumber=number, Body=body)["ETag"]
        assert etag == f'"{hashlib.md5(body).hexdigest()}"'
        parts.append({"PartNumber": number, "ETag": etag})
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    joined = b"".join(hashlib.md5(body).digest() for body in bodies)
    assert done["ETag"] == f'"{hashlib.md5(joined).hexdigest()}-2"'
