"""What the server says of its own sealing."""

import base64
import hashlib

import pytest

from harness.clients import refused
from harness.content import content


def sealed(answer):
    return answer.get("ServerSideEncryption"), answer.get("SSEKMSKeyId")


TRUTH = ("aws:kms", "default")


def test_every_answer_tells_the_level(s3, bucket):
    assert sealed(s3.put_object(Bucket=bucket, Key="a", Body=content(50_000))) == TRUTH
    assert sealed(s3.get_object(Bucket=bucket, Key="a")) == TRUTH
    assert sealed(s3.head_object(Bucket=bucket, Key="a")) == TRUTH
    source = {"Bucket": bucket, "Key": "a"}
    assert sealed(s3.copy_object(Bucket=bucket, Key="b", CopySource=source)) == TRUTH
    created = s3.create_multipart_upload(Bucket=bucket, Key="c")
    assert sealed(created) == TRUTH
    where = {"Bucket": bucket, "Key": "c", "UploadId": created["UploadId"]}
    part = s3.upload_part(**where, PartNumber=1, Body=b"a")
    assert sealed(part) == TRUTH
    assert sealed(s3.upload_part_copy(**where, PartNumber=2, CopySource=source)) == TRUTH
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    assert sealed(s3.complete_multipart_upload(**where, MultipartUpload=parts)) == TRUTH


def test_bucket_encryption(s3, bucket):
    answer = s3.get_bucket_encryption(Bucket=bucket)
    rule = answer["ServerSideEncryptionConfiguration"]["Rules"][0]
    default = rule["ApplyServerSideEncryptionByDefault"]
    assert default == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "default"}


CUSTOMER_KEY = "x" * 32
CUSTOMER = {
    "SSECustomerAlgorithm": "AES256",
    "SSECustomerKey": CUSTOMER_KEY,
    "SSECustomerKeyMD5": base64.b64encode(hashlib.md5(CUSTOMER_KEY.encode()).digest()).decode(),
}


def test_keys_of_customers_are_refused(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    source = {"Bucket": bucket, "Key": "a"}
    upload = s3.create_multipart_upload(Bucket=bucket, Key="c")["UploadId"]
    where = {"Bucket": bucket, "Key": "c", "UploadId": upload}
    for call in (
        lambda: s3.put_object(Bucket=bucket, Key="b", Body=b"a", **CUSTOMER),
        lambda: s3.get_object(**source, **CUSTOMER),
        lambda: s3.copy_object(Bucket=bucket, Key="b", CopySource=source, **CUSTOMER),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key="b", **CUSTOMER),
        lambda: s3.upload_part(**where, PartNumber=1, Body=b"a", **CUSTOMER),
        lambda: s3.copy_object(
            Bucket=bucket,
            Key="b",
            CopySource=source,
            **{f"CopySource{name}": value for name, value in CUSTOMER.items()},
        ),
    ):
        with refused() as error:
            call()
        assert error.status in (400, 501)
        assert "SSE-C" in error.message or "customer" in error.message.lower()
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["a"]
    with refused() as error:
        s3.head_object(**source, **CUSTOMER)
    assert error.status in (400, 501)


def test_our_own_level_may_be_named(s3, bucket):
    asked = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "default"}
    assert sealed(s3.put_object(Bucket=bucket, Key="a", Body=b"a", **asked)) == TRUTH
    answer = s3.put_object(Bucket=bucket, Key="a", Body=b"a", ServerSideEncryption="aws:kms")
    assert sealed(answer) == TRUTH


@pytest.mark.parametrize(
    "asked",
    [
        {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "another"},
        {"ServerSideEncryption": "aws:kms:dsse"},
    ],
)
def test_what_is_not_so_is_refused(s3, bucket, asked):
    with refused() as error:
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", **asked)
    assert error.status in (400, 404, 501)
