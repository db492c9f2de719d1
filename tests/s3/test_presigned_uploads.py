"""Presigned PUTs as SDKs make them: with a checksum of no body in the query, which AWS ignores."""

import base64
import hashlib
import http.client
import urllib.parse

import pytest

from harness import raw
from harness.clients import REGION

BODY = b"what is uploaded in the end"


def presign(server, path, extra, signed="host"):
    """A presigned PUT with more parameters in its query, all signed."""
    access_key_id, secret = server.credentials()
    stamp = raw.now().strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    pairs = extra | {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Content-Sha256": raw.UNSIGNED,
        "X-Amz-Credential": f"{access_key_id}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": "300",
        "X-Amz-SignedHeaders": signed,
    }
    query = "&".join(
        f"{urllib.parse.quote(name, safe='~')}={urllib.parse.quote(value, safe='~')}"
        for name, value in sorted(pairs.items())
    )
    host = f"127.0.0.1:{server.port}"
    canonical = "\n".join(["PUT", path, query, f"host:{host}", "", "host", raw.UNSIGNED])
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashed])
    signature = raw.hmac_sha256(raw.signing_key(secret, stamp[:8]), to_sign).hex()
    return f"{path}?{query}&X-Amz-Signature={signature}"


def put(server, url, headers=None):
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=raw.tls_context(server), timeout=30
    )
    try:
        connection.request("PUT", url, BODY, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "extra",
    [
        # @aws-sdk/s3-request-presigner and aws-sdk-go-v2, with their defaults.
        {
            "x-amz-checksum-crc32": "AAAAAA==",
            "x-amz-sdk-checksum-algorithm": "CRC32",
            "x-id": "PutObject",
        },
        {"X-Amz-Checksum-Crc32": "AAAAAA==", "X-Amz-Sdk-Checksum-Algorithm": "CRC32"},
        {"x-amz-sdk-checksum-algorithm": "CRC32"},
        {"x-amz-checksum-crc64nvme": "AAAAAAAAAAA="},
        {"x-amz-checksum-sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
        {"x-amz-checksum-sha512": "never heard of"},
    ],
)
def test_checksums_in_the_query_are_ignored(server, s3, bucket, extra):
    status, body = put(server, presign(server, f"/{bucket}/a", extra))
    assert status == 200, body
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == BODY


def test_a_plus_is_one_whatever_else_was_signed(server, s3, bucket):
    """By version 2 it is a space, which another parameter of that does not make of this one."""
    status, body = put(server, presign(server, f"/{bucket}/p+q", {"AWSAccessKeyId": "x"}))
    assert status == 200, body
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["p+q"]


def test_of_a_part(server, s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    extra = {"x-amz-checksum-crc32": "AAAAAA==", "partNumber": "1", "uploadId": upload}
    status, body = put(server, presign(server, f"/{bucket}/a", extra))
    assert status == 200, body


@pytest.mark.parametrize("name", ["x-amz-meta-a", "X-Amz-Meta-A"])
def test_a_wish_in_the_query_may_be_empty(server, s3, bucket, name):
    """As in a header."""
    url = presign(server, f"/{bucket}/a", {name: "", name[:6] + "tagging": ""})
    status, body = put(server, url)
    assert status == 200, body
    assert s3.head_object(Bucket=bucket, Key="a")["Metadata"] == {"a": ""}
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == []


def test_a_checksum_in_a_header_counts(server, s3, bucket):
    url = presign(server, f"/{bucket}/a", {"x-amz-checksum-crc32": "AAAAAA=="})
    status, body = put(server, url, {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="})
    assert status == 400 and b"<Code>BadDigest</Code>" in body, body
    url = presign(server, f"/{bucket}/a", {"x-amz-meta-a": "b"})
    digest = hashlib.md5(BODY).digest()
    assert put(server, url, {"content-md5": base64.b64encode(digest).decode()})[0] == 200
    assert s3.head_object(Bucket=bucket, Key="a")["Metadata"] == {"a": "b"}


@pytest.mark.parametrize(
    "extra",
    [
        {"x-amz-object-lock-legal-hold": "ON\n"},
        {"x-amz-tagging": "class=secret\n"},
        {"x-amz-meta-note": "line 1\nline 2"},
        {"x-amz-expected-bucket-owner": "111111111111\n"},
        {"x-amz-meta-a b": "1"},
    ],
)
def test_what_no_header_can_hold_is_refused(server, s3, bucket, extra):
    status, body = put(server, presign(server, f"/{bucket}/a", extra))
    assert status == 400 and b"<Code>InvalidArgument</Code>" in body, body
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
