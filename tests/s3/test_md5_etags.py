"""MD5s as entity tags, as S3 makes them without KMS: of a server (`etag = "md5"`), of a bucket."""

import hashlib
import json
import re
from base64 import b64encode

import pytest

from harness.administration import ask, run
from harness.clients import drain, refused, s3_client
from harness.content import PART_MIN_BYTES, content
from harness.server import Server, coffer


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


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("plain")) as running:
        yield running


@pytest.fixture
def plain(plain_server):
    """A client of a server with the default, and a bucket."""
    client = s3_client(plain_server)
    client.create_bucket(Bucket="plain")
    yield client
    drain(client, "plain")


def md5_of(body):
    return b64encode(hashlib.md5(body).digest()).decode()


def put_parts(client, with_md5):
    """Puts two parts, each with or without `Content-MD5`."""
    upload = client.create_multipart_upload(Bucket="plain", Key="a")["UploadId"]
    where = {"Bucket": "plain", "Key": "a", "UploadId": upload}
    bodies = [content(PART_MIN_BYTES, 1), content(100, 2)]
    parts = []
    for number, (body, has_md5) in enumerate(zip(bodies, with_md5, strict=True), 1):
        more = {"ContentMD5": md5_of(body)} if has_md5 else {}
        etag = client.upload_part(**where, PartNumber=number, Body=body, **more)["ETag"]
        assert (etag == f'"{hashlib.md5(body).hexdigest()}"') is has_md5
        parts.append({"PartNumber": number, "ETag": etag})
    done = client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    joined = b"".join(hashlib.md5(body).digest() for body in bodies)
    return done["ETag"], f'"{hashlib.md5(joined).hexdigest()}-2"'


def test_by_default_an_md5_that_was_sent_is_the_entity_tag(plain):
    for size_bytes in (0, 10, 100_000):
        body = content(size_bytes)
        stored = plain.put_object(Bucket="plain", Key="a", Body=body, ContentMD5=md5_of(body))
        assert stored["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
        assert stored["ServerSideEncryption"] == "aws:kms"
    found, expected = put_parts(plain, [True, True])
    assert found == expected


def test_by_default_no_other_entity_tag_looks_like_an_md5(plain):
    etag = plain.put_object(Bucket="plain", Key="a", Body=b"a")["ETag"].strip('"')
    assert re.fullmatch("[0-9a-f]{32}-1", etag)
    for with_md5 in ([False, False], [True, False]):
        found, other = put_parts(plain, with_md5)
        assert found != other and re.fullmatch('"[0-9a-f]{32}-2"', found)


def ask_for(client, etag):
    """Has the client make buckets with this header, signed with the others."""

    def add(request, **_):
        request.headers["x-coffer-etag"] = etag

    client.meta.events.register("before-sign.s3.CreateBucket", add)
    return client


def assert_md5s(client, bucket):
    body = content(100_000)
    expected = f'"{hashlib.md5(body).hexdigest()}"'
    client.put_object(Bucket="plain", Key="a", Body=body)
    source = {"Bucket": "plain", "Key": "a"}
    copied = client.copy_object(Bucket=bucket, Key="a", CopySource=source)
    assert copied["CopyObjectResult"]["ETag"] == expected
    assert client.put_object(Bucket=bucket, Key="b", Body=body)["ETag"] == expected
    upload = client.create_multipart_upload(Bucket=bucket, Key="c")["UploadId"]
    where = {"Bucket": bucket, "Key": "c", "UploadId": upload}
    assert client.upload_part(**where, PartNumber=1, Body=body)["ETag"] == expected
    drain(client, bucket)


def test_of_one_bucket_by_a_header(plain_server, plain):
    client = ask_for(s3_client(plain_server), "md5")
    client.create_bucket(Bucket="mirrored")
    assert ask(plain_server, "bucket", "show", "mirrored")["etag"] == "md5"
    assert ask(plain_server, "bucket", "show", "plain")["etag"] == "random"
    plain_server.restart()
    assert_md5s(client, "mirrored")
    with refused("InvalidArgument", 400):
        ask_for(s3_client(plain_server), "sha256").create_bucket(Bucket="mirrored")


def test_of_one_bucket_by_a_command(plain_server, plain):
    made = ask(plain_server, "bucket", "create", "mirrored", "--etag", "md5")
    assert made["etag"] == "md5"
    rows = run(plain_server, "bucket", "list").splitlines()
    assert "ETAG" in rows[0] and any(
        [w for w in row.split() if w in ("mirrored", "md5")] == ["mirrored", "md5"] for row in rows
    )
    assert_md5s(plain, "mirrored")


def test_of_a_server_all_buckets_are_told_so(server, s3, bucket):
    assert ask(server, "bucket", "show", bucket)["etag"] == "md5"


def test_random_ones_that_the_configuration_rules_out_are_told(server):
    words = ["--data", server.data, "bucket", "create"]
    done = coffer(*words, "wished-random", "--etag", "random", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["etag"] == "md5"
    assert b"warning: bucket wished-random has MD5 ETags all the same" in done.stderr
    for name, more in (("not-said", ()), ("wished-md5", ("--etag", "md5"))):
        done = coffer(*words, name, *more)
        assert done.returncode == 0 and done.stderr == b""
