"""Checksums that S3 has since 2026 and coffer has not: refused, for what is sent to be compared
must not be passed over."""

import base64

import pytest

from harness.clients import refused
from harness.raw import send

NEWER = {"MD5": 16, "SHA512": 64, "XXHASH64": 8, "XXHASH3": 8, "XXHASH128": 16}


@pytest.mark.parametrize("name", NEWER)
def test_newer_checksums_are_refused(server, s3, bucket, name):
    value = base64.b64encode(bytes(NEWER[name])).decode()
    header = f"x-amz-checksum-{name.lower()}"
    trailer = {
        "x-amz-trailer": header,
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": "1",
    }
    chunked = f"1\r\nx\r\n0\r\n{header}:{value}\r\n\r\n".encode()
    for headers, body, hashed in (
        ({header: value}, b"x", {}),
        (trailer, chunked, {"payload_hash": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}),
    ):
        path = f"/{bucket}/a"
        status, _, answer = send(server, "PUT", path, headers=headers, body=body, **hashed)
        assert (status, b"<Code>InvalidRequest</Code>" in answer) == (400, True), answer
        assert b"Checksum algorithm provided is unsupported" in answer
    with refused("InvalidRequest", 400):
        s3.create_multipart_upload(Bucket=bucket, Key="a", ChecksumAlgorithm=name)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
