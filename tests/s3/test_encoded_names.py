"""Names that arrive encoded: a `+` is a space wherever AWS reads one, `%2B` is a plus."""

import base64
import hashlib
import hmac
import re
import time
import urllib.parse

import pytest

from harness.content import PART_MIN_BYTES, content
from harness.raw import connect, receive, request_head, send

SPACE, PLUS = "a b.txt", "a+b.txt"


@pytest.fixture
def pair(s3, bucket):
    """A bucket with two names that differ in how a space is encoded."""
    s3.put_object(Bucket=bucket, Key=SPACE, Body=b"space")
    s3.put_object(Bucket=bucket, Key=PLUS, Body=b"plus")
    return bucket


def etag_in(document):
    return re.search(rb"<ETag>(.+)</ETag>", document)[1].decode().replace("&quot;", '"')


def body_of(s3, bucket, key="to"):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.parametrize(
    ("source", "expected"),
    [("a+b.txt", b"space"), ("a%20b.txt", b"space"), ("a%2Bb.txt", b"plus"), ("a b.txt", b"space")],
)
def test_a_copy_takes_the_source_that_is_meant(server, s3, pair, source, expected):
    headers = {"x-amz-copy-source": f"/{pair}/{source}"}
    status, _, body = send(server, "PUT", f"/{pair}/to", headers=headers)
    assert status == 200, body
    assert body_of(s3, pair) == expected


@pytest.mark.parametrize(("source", "expected"), [("a+b.txt", b"space"), ("a%2Bb.txt", b"plus")])
def test_a_part_is_copied_of_the_source_that_is_meant(server, s3, pair, source, expected):
    upload = s3.create_multipart_upload(Bucket=pair, Key="to")["UploadId"]
    query = f"partNumber=1&uploadId={upload}"
    headers = {"x-amz-copy-source": f"{pair}/{source}"}
    status, _, body = send(server, "PUT", f"/{pair}/to", query=query, headers=headers)
    assert status == 200, body
    part = {"PartNumber": 1, "ETag": etag_in(body)}
    s3.complete_multipart_upload(
        Bucket=pair, Key="to", UploadId=upload, MultipartUpload={"Parts": [part]}
    )
    assert body_of(s3, pair) == expected


def test_boto3_copies_either_name(s3, pair):
    for key, expected in [(SPACE, b"space"), (PLUS, b"plus")]:
        s3.copy_object(Bucket=pair, Key="to", CopySource={"Bucket": pair, "Key": key})
        assert body_of(s3, pair) == expected
        s3.copy_object(Bucket=pair, Key="to", CopySource=f"{pair}/{key}")
        assert body_of(s3, pair) == expected


def test_boto3_copies_either_name_in_parts(s3, bucket):
    for key in (SPACE, PLUS):
        s3.put_object(Bucket=bucket, Key=key, Body=content(PART_MIN_BYTES + len(key), ord(key[1])))
    for key in (SPACE, PLUS):
        upload = s3.create_multipart_upload(Bucket=bucket, Key="to")["UploadId"]
        where = {"Bucket": bucket, "Key": "to", "UploadId": upload}
        source = {"Bucket": bucket, "Key": key}
        copied = s3.upload_part_copy(**where, PartNumber=1, CopySource=source)
        part = {"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"]}
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [part]})
        assert body_of(s3, bucket) == body_of(s3, bucket, key)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("list-type=2&prefix=a+", [SPACE]),
        ("list-type=2&prefix=a%20", [SPACE]),
        ("list-type=2&prefix=a%2B", [PLUS]),
        ("list-type=2&start-after=a+b.txt", [PLUS]),
        ("list-type=2&start-after=a%2Bb.txt", []),
        ("marker=a+b.txt", [PLUS]),
        ("versions=&key-marker=a+b.txt", [PLUS]),
        ("list-type=2&delimiter=+", [PLUS, "a "]),
        ("list-type=2&prefix=a+&encoding-type=url", ["a%20b.txt"]),
        ("list-type=2&prefix=a%2B&encoding-type=url", ["a%2Bb.txt"]),
    ],
)
def test_a_plus_in_a_query_is_a_space(server, pair, query, expected):
    status, _, body = send(server, "GET", f"/{pair}", query=query)
    assert status == 200, body
    found = body.decode().replace("<CommonPrefixes><Prefix>", "<Key>").split("<Key>")[1:]
    assert [key.split("</")[0] for key in found] == expected


def test_a_plus_in_tags_of_a_header_is_a_space(server, s3, pair):
    headers = {"x-amz-tagging": "a+b=c+d&e%2Bf=g%2Bh"}
    assert send(server, "PUT", f"/{pair}/to", headers=headers)[0] == 200
    tags = s3.get_object_tagging(Bucket=pair, Key="to")["TagSet"]
    assert tags == [{"Key": "a b", "Value": "c d"}, {"Key": "e+f", "Value": "g+h"}]


def test_a_plus_in_a_presigned_url_is_what_the_client_meant(server, s3, pair):
    parameters = {"Bucket": pair, "Key": PLUS, "ResponseContentDisposition": "inline; a+b c"}
    url = urllib.parse.urlsplit(s3.generate_presigned_url("get_object", Params=parameters))
    status, headers, body = fetch(server, url.path, url.query)
    assert (status, body) == (200, b"plus")
    assert headers["content-disposition"] == "inline; a+b c"


def test_a_plus_in_a_path_that_version_2_signed_is_a_space(server, pair):
    """Version 2 signs the path as it came, and tells no space from a plus."""
    for key, written, expected in [(SPACE, "a+b.txt", b"space"), (PLUS, "a%2Bb.txt", b"plus")]:
        url = presign_version_2(server, f"/{pair}/{written}")
        status, _, body = fetch(server, *url.split("?"))
        assert (status, body) == (200, expected), key


def presign_version_2(server, path):
    access_key_id, secret = server.credentials()
    expires = int(time.time()) + 60
    to_sign = f"GET\n\n\n{expires}\n{path}"
    signature = base64.b64encode(hmac.digest(secret.encode(), to_sign.encode(), hashlib.sha1))
    pairs = {"AWSAccessKeyId": access_key_id, "Expires": expires, "Signature": signature.decode()}
    return f"{path}?{urllib.parse.urlencode(pairs)}"


def fetch(server, path, query):
    """A GET of an address that carries its signature."""
    head = request_head("GET", f"{path}?{query}", {"host": f"127.0.0.1:{server.port}"})
    with connect(server) as connection:
        connection.sendall(head)
        return receive(connection)
