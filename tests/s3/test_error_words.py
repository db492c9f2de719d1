"""Messages of errors are AWS's where those are known: there are programs that look for them."""

import html

import pytest

from harness import raw
from harness.clients import refused

NONE = "0" * 32
LIST = (
    b"<AccessControlPolicy><Owner><ID>a</ID></Owner><AccessControlList></AccessControlList>"
    b"</AccessControlPolicy>"
)


def message(body):
    return html.unescape(body.split(b"<Message>")[1].split(b"</Message>")[0].decode())


def begun(s3, bucket, **more):
    """An upload with two parts that are too small, and what its completion needs."""
    where = {"Bucket": bucket, "Key": "parts"}
    where["UploadId"] = s3.create_multipart_upload(**where, **more)["UploadId"]
    etags = [s3.upload_part(**where, PartNumber=n, Body=b"few")["ETag"] for n in (1, 2)]
    return where, [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, 1)]


def test_parts(s3, server, bucket):
    where, parts = begun(s3, bucket)
    with refused("EntityTooSmall", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert error.message == "Your proposed upload is smaller than the minimum allowed size"
    for wrong in ({"PartNumber": 1, "ETag": NONE}, {"PartNumber": 9, "ETag": parts[0]["ETag"]}):
        with refused("InvalidPart", 400) as error:
            s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [wrong]})
        assert error.message == (
            "One or more of the specified parts could not be found.  The part may not have been "
            "uploaded, or the specified entity tag may not match the part's entity tag."
        )
    body = (
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
        f"<ETag>{parts[0]['ETag']}</ETag></Part></CompleteMultipartUpload>"
    ).encode()
    status, _, told = raw.send(
        server,
        "POST",
        f"/{bucket}/parts",
        query=f"uploadId={where['UploadId']}",
        body=body,
        headers={"x-amz-mp-object-size": "5x"},
    )
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    assert message(told) == "Value for x-amz-mp-object-size header is invalid: '5x'"


@pytest.mark.parametrize(("number", "code"), [(0, "PartNumber must be >= 1"), (10_001, "Part")])
def test_numbers_of_parts(s3, bucket, number, code):
    where, [part, _] = begun(s3, bucket)
    named = {"Parts": [part | {"PartNumber": number}]}
    with refused("InvalidArgument", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload=named)
    assert error.message.startswith(code)
    told = error.response["Error"]
    assert number or (told["ArgumentName"], told["ArgumentValue"]) == ("PartNumber", "0")


def test_kinds_of_checksums(server, bucket):
    for kind, words in (
        ("HALF", "Value for x-amz-checksum-type header is invalid."),
        (
            "COMPOSITE",
            "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm "
            "header.",
        ),
    ):
        headers = {"x-amz-checksum-type": kind}
        asked = {"query": "uploads=", "headers": headers}
        status, _, told = raw.send(server, "POST", f"/{bucket}/a", **asked)
        assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
        assert message(told) == words


def test_checksums_of_a_part(s3, server, bucket):
    where, parts = begun(s3, bucket, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
    named = {"Parts": [parts[0] | {"ChecksumSHA1": "Kq5sNclPz7QV2+lfQIuc6R7oRu0="}]}
    with refused("BadDigest", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload=named)
    assert error.message == "The sha1 you specified for part 1 did not match what we received."
    asked = {
        "query": f"partNumber=3&uploadId={where['UploadId']}",
        "headers": {"x-amz-checksum-sha1": "", "x-amz-checksum-crc32c": ""},
    }
    status, _, told = raw.send(server, "PUT", f"/{bucket}/parts", body=b"few", **asked)
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    assert message(told) == (
        "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."
    )


def test_checksums_of_a_whole(s3, bucket):
    kind = {"ChecksumType": "FULL_OBJECT"}
    where, parts = begun(s3, bucket, ChecksumAlgorithm="CRC32", **kind)
    whole = {"MultipartUpload": {"Parts": parts[:1]}, "ChecksumCRC32": "AAAAAA=="}
    with refused("BadDigest", 400) as error:
        s3.complete_multipart_upload(**where, **whole, **kind)
    assert error.message == "The CRC32 you specified did not match the calculated checksum."


def test_a_checksum_that_s3_does_not_have(server, bucket):
    headers = {"x-amz-checksum-md4": "AAAA"}
    status, _, told = raw.send(server, "PUT", f"/{bucket}/a", body=b"a", headers=headers)
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    words = "The algorithm type you specified in x-amz-checksum- header is invalid."
    assert message(told) == words


def test_a_delete_marker(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    marker = s3.delete_object(Bucket=bucket, Key="a")["VersionId"]
    with refused("MethodNotAllowed", 405) as error:
        s3.get_object(Bucket=bucket, Key="a", VersionId=marker)
    assert error.message == "The specified method is not allowed against this resource."


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            "ftp://example.com",
            "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
        ),
        (
            "/" + "a" * 2048,
            "The length of website redirect location cannot exceed 2,048 characters.",
        ),
    ],
)
def test_redirects(s3, bucket, place, words):
    with refused("InvalidRedirectLocation", 400) as error:
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", WebsiteRedirectLocation=place)
    assert error.message == words


@pytest.mark.parametrize(
    ("headers", "body", "code", "words"),
    [
        ({}, b"", "MissingSecurityHeader", "Your request was missing a required header"),
        # Which of both is meant is asked before either is read.
        (
            {"x-amz-grant-read": "ann"},
            LIST,
            "UnexpectedContent",
            "This request does not support content.",
        ),
        (
            {"x-amz-grant-read": "ann", "x-amz-acl": "private"},
            b"",
            "InvalidRequest",
            "Specifying both Canned ACLs and Header Grants is not allowed",
        ),
    ],
)
def test_lists(server, bucket, headers, body, code, words):
    asked = {"query": "acl=", "headers": headers, "body": body}
    status, _, told = raw.send(server, "PUT", f"/{bucket}", **asked)
    assert status == 400 and f"<Code>{code}</Code>".encode() in told, told
    assert message(told) == words
    missing = b"<MissingHeaderName>x-amz-acl</MissingHeaderName>"
    assert (missing in told) == (code == "MissingSecurityHeader")


@pytest.mark.parametrize("until", ["soon", "2030-01-01", "Tue, 01 Jan 2030 00:00:00 GMT"])
def test_ends_of_locks(server, s3, bucket, until):
    """Neither passed over nor locked until another time."""
    lock = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": until}
    source = {"x-amz-copy-source": f"{bucket}/source"}
    s3.put_object(Bucket=bucket, Key="source", Body=b"a")
    for method, query, headers in (
        ("PUT", "", lock),
        ("PUT", "", lock | source),
        ("POST", "uploads=", lock),
    ):
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, method, f"/{bucket}/a", **asked)
        assert status == 400 and b"<Code>InvalidArgument</Code>" in told, told
        assert message(told) == "The retain until date must be provided in ISO 8601 format"
        assert f"<ArgumentValue>{until}</ArgumentValue>".encode() in told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_an_object_lock_configuration_that_is_empty(server, bucket):
    status, _, told = raw.send(server, "PUT", f"/{bucket}", query="object-lock=")
    assert status == 400 and b"<Code>MissingRequestBodyError</Code>" in told, told
    assert message(told) == "Request Body is empty"


def test_authorizations_that_are_none(server, bucket):
    credential = "Credential=AK/32234/us-east-1/{}, SignedHeaders=host, Signature=0"
    malformed = "The authorization header is malformed; incorrect "
    for sent, words in (
        ("none", "Authorization header is invalid -- one and only one ' ' (space) required."),
        ("Bearer hidden", "Unsupported Authorization Type"),
        (
            f"AWS4-HMAC-SHA256 {credential.format('ec2/aws4_request')}",
            f'{malformed}service "ec2". This endpoint belongs to "s3".',
        ),
        (
            f"AWS4-HMAC-SHA256 {credential.format('s3/aws_request')}",
            f'{malformed}terminal "aws_request". This endpoint uses "aws4_request".',
        ),
        (
            f"AWS4-HMAC-SHA256 {credential.format('s3/aws4_request')}",
            f'{malformed}date format "32234". This date in the credential must be in the format '
            '"yyyyMMdd".',
        ),
    ):
        with raw.connect(server) as connection:
            headers = {"host": "h", "authorization": sent}
            connection.sendall(raw.request_head("GET", f"/{bucket}", headers))
            status, _, told = raw.receive(connection)
        assert status == 400
        assert message(told) == words, told
