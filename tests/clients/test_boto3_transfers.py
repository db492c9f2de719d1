"""boto3's transfers: large files in parts and ranges, several at once."""

import io
import shutil

import pytest
from boto3.s3.transfer import TransferConfig

from harness.content import GIB, MIB, digest, write_file

PARALLEL = TransferConfig(multipart_threshold=8 * MIB, max_concurrency=8)


@pytest.mark.parametrize("size_bytes", [1000, 8 * MIB, 100 * MIB + 17])
def test_files_both_ways(s3, bucket, tmp_path, size_bytes):
    source = write_file(tmp_path / "source", size_bytes)
    s3.upload_file(str(source), bucket, "a", Config=PARALLEL)
    s3.download_file(bucket, "a", str(tmp_path / "back"), Config=PARALLEL)
    assert digest(tmp_path / "back") == digest(source)
    s3.copy({"Bucket": bucket, "Key": "a"}, bucket, "b", Config=PARALLEL)
    target = io.BytesIO()
    s3.download_fileobj(bucket, "b", target, Config=PARALLEL)
    assert target.getbuffer() == source.read_bytes()


def test_one_piece(s3, bucket, tmp_path):
    source = write_file(tmp_path / "source", 64 * MIB + 5)
    with source.open("rb") as body:
        s3.put_object(Bucket=bucket, Key="a", Body=body)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == source.read_bytes()


@pytest.mark.large
@pytest.mark.timeout(1800)
def test_five_gibibytes(s3, bucket, tmp_path):
    source = write_file(tmp_path / "source", 5 * GIB + 12345)
    config = TransferConfig(multipart_chunksize=64 * MIB, max_concurrency=8)
    s3.upload_file(str(source), bucket, "a", Config=config)
    s3.download_file(bucket, "a", str(tmp_path / "back"), Config=config)
    assert digest(tmp_path / "back") == digest(source)
    source.unlink()
    (tmp_path / "back").unlink()


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_ten_thousand_whole_parts(s3, bucket, server):
    """The largest number of parts, each of the smallest size: 48.8 GiB, copied in the server."""
    if shutil.disk_usage(server.data).free < 55 * GIB:
        pytest.skip("needs 55 GiB of free disk: no part but the last may be under 5 MiB")
    body = bytes(range(256)) * (5 * MIB // 256)
    s3.put_object(Bucket=bucket, Key="part", Body=body)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    where = {"Bucket": bucket, "Key": "a", "UploadId": upload}
    source = {"Bucket": bucket, "Key": "part"}
    parts = []
    for number in range(1, 10_001):
        answer = s3.upload_part_copy(**where, PartNumber=number, CopySource=source)
        parts.append({"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]})
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    size_bytes = s3.head_object(Bucket=bucket, Key="a")["ContentLength"]
    assert size_bytes == 10_000 * len(body)
    for first in (0, len(body) * 5000 - 100, size_bytes - 200):
        got = s3.get_object(Bucket=bucket, Key="a", Range=f"bytes={first}-{first + 199}")
        expected = bytes((first + index) % 256 for index in range(200))
        assert got["Body"].read() == expected
