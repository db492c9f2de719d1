"""Configuration that can't be set, but can be set to what it is; redirects, odd metadata."""

import http.client
from email.header import decode_header

import pytest

from harness import raw
from harness.clients import refused


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("request_payment", {"RequestPaymentConfiguration": {"Payer": "BucketOwner"}}),
        ("accelerate_configuration", {"AccelerateConfiguration": {"Status": "Suspended"}}),
        ("logging", {"BucketLoggingStatus": {}}),
        ("notification_configuration", {"NotificationConfiguration": {}}),
    ],
)
def test_what_is_so_already_can_be_set(s3, bucket, name, parameters):
    getattr(s3, f"put_bucket_{name}")(Bucket=bucket, **parameters)
    with refused("NoSuchBucket", 404):
        getattr(s3, f"put_bucket_{name}")(Bucket="no-such-bucket", **parameters)


TOPIC = {"TopicArn": "arn:aws:sns:us-east-1:123456789012:t", "Events": ["s3:ObjectCreated:*"]}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("request_payment", {"RequestPaymentConfiguration": {"Payer": "Requester"}}),
        ("accelerate_configuration", {"AccelerateConfiguration": {"Status": "Enabled"}}),
        (
            "logging",
            {"BucketLoggingStatus": {"LoggingEnabled": {"TargetBucket": "b", "TargetPrefix": "p"}}},
        ),
        (
            "notification_configuration",
            {"NotificationConfiguration": {"TopicConfigurations": [TOPIC]}},
        ),
    ],
)
def test_other_settings_are_refused_with_a_sentence(s3, bucket, name, parameters):
    with refused("NotImplemented", 501) as error:
        getattr(s3, f"put_bucket_{name}")(Bucket=bucket, **parameters)
    assert error.message.endswith("is not implemented") and len(error.message) > 30


def test_what_was_never_set_can_be_removed(s3, bucket):
    s3.delete_bucket_website(Bucket=bucket)
    s3.delete_bucket_replication(Bucket=bucket)


def test_redirects_are_kept(s3, bucket):
    where = {"Bucket": bucket, "Key": "a"}
    s3.put_object(**where, Body=b"a", WebsiteRedirectLocation="/b?c")
    assert s3.get_object(**where)["WebsiteRedirectLocation"] == "/b?c"
    assert s3.head_object(**where)["WebsiteRedirectLocation"] == "/b?c"
    s3.copy_object(Bucket=bucket, Key="b", CopySource=where)
    assert "WebsiteRedirectLocation" not in s3.head_object(Bucket=bucket, Key="b")
    s3.copy_object(**where, CopySource=where, WebsiteRedirectLocation="https://example.com/")
    assert s3.head_object(**where)["WebsiteRedirectLocation"] == "https://example.com/"
    upload = s3.create_multipart_upload(Bucket=bucket, Key="c", WebsiteRedirectLocation="/c")
    parts = {"Bucket": bucket, "Key": "c", "UploadId": upload["UploadId"]}
    etag = s3.upload_part(**parts, PartNumber=1, Body=b"a")["ETag"]
    done = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    s3.complete_multipart_upload(**parts, MultipartUpload=done)
    assert s3.head_object(Bucket=bucket, Key="c")["WebsiteRedirectLocation"] == "/c"
    for wrong in ("b", "ftp://example.com/", "/" + "x" * 2048):
        with refused("InvalidRedirectLocation", 400):
            s3.put_object(Bucket=bucket, Key="d", Body=b"a", WebsiteRedirectLocation=wrong)


@pytest.mark.parametrize("sent", ["ä", "=?UTF-8?B?w6Q=?=", "=?ISO-8859-1?Q?=E4?="])
def test_metadata_is_text_however_it_was_written(server, s3, bucket, sent):
    path = f"/{bucket}/a"
    status, _, told = raw.send(server, "PUT", path, headers={"x-amz-meta-a": sent}, body=b"a")
    assert status == 200, told
    _, headers, _ = raw.send(server, "HEAD", path)
    assert decode_header(headers["x-amz-meta-a"]) == [("ä".encode(), "utf-8")]


def test_metadata_in_latin_1_is_text(server, bucket):
    """Python's http.client sends text so, and browsers' fetch; what they sign is UTF-8."""
    path = f"/{bucket}/a"
    headers = raw.signed_headers(server, "PUT", path, headers={"x-amz-meta-a": "für ß"})
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=raw.tls_context(server), timeout=30
    )
    try:
        connection.request("PUT", path, b"a", headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
    finally:
        connection.close()
    _, headers, _ = raw.send(server, "HEAD", path)
    assert decode_header(headers["x-amz-meta-a"]) == [("für ß".encode(), "utf-8")]
