"""What the server says of its own sealing."""

import pytest
import requests

from harness.clients import refused, s3_client
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


AES = ("AES256", None)
WITH_BUCKET_KEY = ("aws:kms", "default", True)


def told(answer):
    """As `sealed`, and whether there is a bucket key where one is told."""
    return (*sealed(answer), answer.get("BucketKeyEnabled"))[
        : 3 if "BucketKeyEnabled" in answer else 2
    ]


ASKED = [
    ({"ServerSideEncryption": "AES256"}, AES),
    ({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/default"}, TRUTH),
    ({"ServerSideEncryption": "aws:kms", "BucketKeyEnabled": True}, WITH_BUCKET_KEY),
]


@pytest.mark.parametrize(("asked", "expected"), ASKED)
def test_what_was_asked_for_is_told(s3, bucket, asked, expected):
    for size_bytes in (3, 50_000):
        stored = s3.put_object(Bucket=bucket, Key="a", Body=content(size_bytes), **asked)
        assert told(stored) == expected
        assert stored["ETag"].endswith('-1"'), "nobody takes it for an MD5"
        assert told(s3.get_object(Bucket=bucket, Key="a")) == expected
        assert told(s3.head_object(Bucket=bucket, Key="a")) == expected
    source = {"Bucket": bucket, "Key": "a"}
    created = s3.create_multipart_upload(Bucket=bucket, Key="c", **asked)
    assert told(created) == expected
    where = {"Bucket": bucket, "Key": "c", "UploadId": created["UploadId"]}
    part = s3.upload_part(**where, PartNumber=1, Body=b"a")
    assert told(part) == expected
    assert told(s3.upload_part_copy(**where, PartNumber=2, CopySource=source)) == expected
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    for _ in range(2):
        assert told(s3.complete_multipart_upload(**where, MultipartUpload=parts)) == expected
    assert told(s3.head_object(Bucket=bucket, Key="c")) == expected


def test_a_copy_has_what_its_request_asks_for(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", ServerSideEncryption="AES256")
    source = {"Bucket": bucket, "Key": "a"}
    assert told(s3.copy_object(Bucket=bucket, Key="b", CopySource=source)) == TRUTH
    for asked, expected in ASKED:
        copied = s3.copy_object(Bucket=bucket, Key="a", CopySource=source, **asked)
        assert told(copied) == expected
        assert told(s3.head_object(**source)) == expected


def test_reading_and_parts_ask_for_none(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="c")["UploadId"]
    where = {"Bucket": bucket, "Key": "c", "UploadId": upload}
    client = s3_client(server)

    def ask(request, **_):
        request.headers["x-amz-server-side-encryption"] = "AES256"

    client.meta.events.register("before-sign.s3", ask)
    for call in (
        lambda: client.get_object(Bucket=bucket, Key="a"),
        lambda: client.upload_part(**where, PartNumber=1, Body=b"a"),
        lambda: client.get_object_attributes(Bucket=bucket, Key="a", ObjectAttributes=["ETag"]),
    ):
        with refused("InvalidArgument", 400) as error:
            call()
        assert "x-amz-server-side-encryption" in error.message
    with refused(status=400):
        client.head_object(Bucket=bucket, Key="a")
    # MinIO's libraries say it again at the end.
    part = s3.upload_part(**where, PartNumber=1, Body=b"a")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(**where, MultipartUpload=parts)
    assert told(s3.head_object(Bucket=bucket, Key="c")) == TRUTH


def configure(s3, bucket, algorithm, key=None, bucket_key=None):
    by_default = {"SSEAlgorithm": algorithm} | ({"KMSMasterKeyID": key} if key else {})
    rule = {"ApplyServerSideEncryptionByDefault": by_default}
    if bucket_key is not None:
        rule["BucketKeyEnabled"] = bucket_key
    configuration = {"Rules": [rule]}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=configuration)


def configured(s3, bucket):
    answer = s3.get_bucket_encryption(Bucket=bucket)
    [rule] = answer["ServerSideEncryptionConfiguration"]["Rules"]
    return rule["ApplyServerSideEncryptionByDefault"], rule["BucketKeyEnabled"]


BY_LEVEL = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "default"}


def test_the_default_of_a_bucket_is_kept_and_applied(server, s3, bucket):
    def put(**asked):
        return told(s3.put_object(Bucket=bucket, Key="a", Body=b"a", **asked))

    assert configured(s3, bucket) == (BY_LEVEL, False)
    configure(s3, bucket, "AES256")
    assert configured(s3, bucket) == ({"SSEAlgorithm": "AES256"}, False)
    assert put() == AES and put(ServerSideEncryption="aws:kms") == TRUTH
    source = {"Bucket": bucket, "Key": "a"}
    assert told(s3.copy_object(Bucket=bucket, Key="b", CopySource=source)) == AES
    assert told(s3.create_multipart_upload(Bucket=bucket, Key="c")) == AES
    server.restart()
    assert configured(s3, bucket) == ({"SSEAlgorithm": "AES256"}, False)
    configure(s3, bucket, "aws:kms", key="alias/default", bucket_key=True)
    assert configured(s3, bucket) == (BY_LEVEL, True)
    assert put() == WITH_BUCKET_KEY
    assert put(ServerSideEncryption="aws:kms", BucketKeyEnabled=False) == TRUTH
    assert put(ServerSideEncryption="AES256") == AES
    s3.delete_bucket_encryption(Bucket=bucket)
    assert configured(s3, bucket) == (BY_LEVEL, False) and put() == TRUTH


def test_defaults_that_can_not_be(s3, bucket):
    for algorithm, key in (("AES256", "default"), ("aws:kms", "another")):
        with refused("InvalidArgument", 400):
            configure(s3, bucket, algorithm, key=key)
    with refused("NotImplemented", 501):
        configure(s3, bucket, "aws:kms:dsse")
    with refused("MalformedXML", 400):
        configure(s3, bucket, "rot13")
    with refused("MalformedXML", 400):
        rule = {"Rules": [{}]}
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rule)
    assert configured(s3, bucket) == (BY_LEVEL, False)


def test_a_form_asks_as_a_put_does(server, s3, bucket):
    fields = {"x-amz-server-side-encryption": "AES256"}
    conditions = [{name: value} for name, value in fields.items()]
    form = s3.generate_presigned_post(bucket, "a", Fields=fields, Conditions=conditions)
    answer = requests.post(
        form["url"],
        data=form["fields"],
        files={"file": ("a", b"a")},
        verify=str(server.ca),
        timeout=60,
    )
    assert answer.headers["x-amz-server-side-encryption"] == "AES256", answer.text
    assert told(s3.head_object(Bucket=bucket, Key="a")) == AES


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
