"""Objects: put, get, head, delete; their headers and metadata."""

import datetime
import http.client
import re

import pytest

from harness import raw
from harness.clients import refused
from harness.content import CHUNK_BYTES, INLINE_MAX_BYTES, MIB, content

SIZES = sorted(
    {
        0,
        1,
        INLINE_MAX_BYTES - 1,
        INLINE_MAX_BYTES,
        INLINE_MAX_BYTES + 1,
        2 * CHUNK_BYTES - 1,
        2 * CHUNK_BYTES,
        2 * CHUNK_BYTES + 1,
        MIB,
        3 * MIB + 12345,
    }
)


@pytest.mark.parametrize("size_bytes", SIZES)
def test_what_is_put_is_got(s3, bucket, size_bytes):
    body = content(size_bytes)
    put = s3.put_object(Bucket=bucket, Key="a", Body=body)
    got = s3.get_object(Bucket=bucket, Key="a")
    assert got["Body"].read() == body
    assert got["ContentLength"] == size_bytes
    assert got["ETag"] == put["ETag"]
    assert got["AcceptRanges"] == "bytes"
    head = s3.head_object(Bucket=bucket, Key="a")
    assert (head["ContentLength"], head["ETag"]) == (size_bytes, put["ETag"])
    age = datetime.datetime.now(datetime.UTC) - head["LastModified"]
    assert abs(age.total_seconds()) < 60


def test_an_object_is_replaced_whole(s3, bucket, server):
    first = s3.put_object(Bucket=bucket, Key="a", Body=content(MIB), Metadata={"old": "1"})
    second = s3.put_object(Bucket=bucket, Key="a", Body=b"new")
    got = s3.get_object(Bucket=bucket, Key="a")
    assert (got["Body"].read(), got["Metadata"]) == (b"new", {})
    assert first["ETag"] != second["ETag"]
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_delete_is_idempotent(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for _ in range(2):
        answer = s3.delete_object(Bucket=bucket, Key="a")
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="a")
    with refused(status=404):
        s3.head_object(Bucket=bucket, Key="a")


def test_multi_delete(s3, bucket):
    for index in range(5):
        s3.put_object(Bucket=bucket, Key=f"{index}", Body=b"a")
    names = [{"Key": name} for name in ("0", "1", "never-there", "<&>\"'")]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": names})
    assert sorted(found["Key"] for found in answer["Deleted"]) == sorted(n["Key"] for n in names)
    assert "Errors" not in answer
    quiet = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "2"}], "Quiet": True})
    assert "Deleted" not in quiet
    assert [found["Key"] for found in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["3", "4"]


def test_multi_delete_takes_a_thousand(s3, bucket):
    s3.put_object(Bucket=bucket, Key="name-999", Body=b"a")
    names = [{"Key": f"name-{index}"} for index in range(1000)]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": names})
    assert len(answer["Deleted"]) == 1000
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    with refused("MalformedXML", 400):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": [*names, {"Key": "one more"}]})


HEADERS = {
    "CacheControl": "max-age=60, private",
    "ContentDisposition": "attachment; filename=\"a b.txt\"; filename*=UTF-8''%e2%82%ac.txt",
    "ContentEncoding": "gzip",
    "ContentLanguage": "de-CH",
    "ContentType": "text/plain; charset=utf-8",
    "Expires": "Wed, 21 Oct 2099 07:28:00 GMT",
}


@pytest.mark.parametrize("size_bytes", [10, 100_000])
def test_headers_and_metadata_come_back(s3, bucket, size_bytes):
    metadata = {"colour": "blue", "empty-ish": "-", "with-space": "a  b", "long": "x" * 1500}
    s3.put_object(Bucket=bucket, Key="a", Body=content(size_bytes), Metadata=metadata, **HEADERS)
    for answer in (s3.head_object(Bucket=bucket, Key="a"), s3.get_object(Bucket=bucket, Key="a")):
        raw = answer["ResponseMetadata"]["HTTPHeaders"]
        assert raw["cache-control"] == HEADERS["CacheControl"]
        assert raw["content-disposition"] == HEADERS["ContentDisposition"]
        assert raw["content-encoding"] == HEADERS["ContentEncoding"]
        assert raw["content-language"] == HEADERS["ContentLanguage"]
        assert raw["content-type"] == HEADERS["ContentType"]
        assert raw["expires"] == HEADERS["Expires"]
        assert answer["Metadata"] == metadata | {"with-space": answer["Metadata"]["with-space"]}
        assert answer["Metadata"]["with-space"].split() == ["a", "b"]


def test_content_type_has_s3s_default(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    assert s3.head_object(Bucket=bucket, Key="a")["ContentType"] == "binary/octet-stream"


def test_too_much_metadata(s3, bucket):
    with refused("MetadataTooLarge", 400):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", Metadata={"long": "x" * 2049})


def test_metadata_of_many_entries(s3, bucket, monkeypatch):
    # This client takes a hundred lines in an answer otherwise.
    monkeypatch.setattr(http.client, "_MAXHEADERS", 256)
    many = {f"k{number:03}": "v" for number in range(150)}
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Metadata=many)
    assert s3.head_object(Bucket=bucket, Key="a")["Metadata"] == many


def send_without_length(server, path, query=""):
    """A PUT that tells no length and no transfer coding: in HTTP/1.1 it has no body."""
    headers = raw.signed_headers(server, "PUT", path, query=query)
    target = path + ("?" + query if query else "")
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", target, headers))
        status, _, body = raw.receive(connection, "PUT")
    found = re.search(rb"<Code>(\w+)</Code>", body)
    return status, found and found[1].decode()


def test_a_put_without_a_length_empties_nothing(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"precious")
    missing = (411, "MissingContentLength")
    assert send_without_length(server, f"/{bucket}/a") == missing
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"precious"
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    part = f"partNumber=1&uploadId={upload}"
    assert send_without_length(server, f"/{bucket}/a", part) == missing
    assert "Parts" not in s3.list_parts(Bucket=bucket, Key="a", UploadId=upload)
    # Others have no body.
    assert send_without_length(server, f"/{bucket}-more") == (200, None)
    s3.delete_bucket(Bucket=f"{bucket}-more")
    assert raw.send(server, "PUT", f"/{bucket}/empty")[0] == 200
    assert s3.head_object(Bucket=bucket, Key="empty")["ContentLength"] == 0


def test_response_overrides(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", **HEADERS)
    overrides = {
        "ResponseCacheControl": "no-store",
        "ResponseContentDisposition": "inline; filename=x",
        "ResponseContentEncoding": "identity",
        "ResponseContentLanguage": "fr",
        "ResponseContentType": "application/x-test",
        "ResponseExpires": datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    }
    for call in (s3.get_object, s3.head_object):
        raw = call(Bucket=bucket, Key="a", **overrides)["ResponseMetadata"]["HTTPHeaders"]
        assert raw["cache-control"] == "no-store"
        assert raw["content-disposition"] == "inline; filename=x"
        assert raw["content-encoding"] == "identity"
        assert raw["content-language"] == "fr"
        assert raw["content-type"] == "application/x-test"
        assert raw["expires"].startswith("Wed, 02 Jan 2030 03:04:05")


def test_content_md5_is_checked(s3, bucket):
    good = "kAFQmDzST7DWlj99KOF/cg=="  # of "abc"
    s3.put_object(Bucket=bucket, Key="a", Body=b"abc", ContentMD5=good)
    with refused("BadDigest", 400):
        s3.put_object(Bucket=bucket, Key="b", Body=b"abd", ContentMD5=good)
    with refused("InvalidDigest", 400):
        s3.put_object(Bucket=bucket, Key="b", Body=b"abc", ContentMD5="nonsense")
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="b")


def test_etags_do_not_look_like_md5(s3, bucket):
    for size_bytes in (0, 10, 100_000):
        etag = s3.put_object(Bucket=bucket, Key="a", Body=content(size_bytes))["ETag"]
        assert etag.startswith('"') and etag.endswith('"')
        assert not re.fullmatch(r"[0-9a-fA-F]{32}", etag.strip('"')), etag


def test_ids_of_requests(s3, bucket):
    seen = set()
    for _ in range(3):
        seen.add(s3.list_buckets()["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"])
    with refused("NoSuchKey", 404) as error:
        s3.get_object(Bucket=bucket, Key="missing")
    seen.add(error.headers["x-amz-request-id"])
    assert len(seen) == 4
    assert error.response["Error"].get("RequestId") in (None, error.headers["x-amz-request-id"])
    assert error.response["ResponseMetadata"]["RequestId"] == error.headers["x-amz-request-id"]
    assert error.message


@pytest.mark.parametrize(
    "query", ["response-content-disposition=a%0Ab", "response-cache-control=%01"]
)
def test_response_headers_that_are_none_are_refused(server, s3, bucket, query):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for method in ("GET", "HEAD"):
        assert raw.send(server, method, f"/{bucket}/a", query=query)[0] == 400, method


def test_content_headers_in_any_script(server, s3, bucket):
    sent = {
        "content-disposition": 'attachment; filename="Übersicht.pdf"',
        "content-type": "text/plain; name=ä",
        "cache-control": "x=ä",
        "expires": "ä",
    }
    path = f"/{bucket}/a"
    assert raw.send(server, "PUT", path, headers=sent, body=b"a")[0] == 200
    copy = {"x-amz-copy-source": path, "x-amz-metadata-directive": "REPLACE"}
    assert raw.send(server, "PUT", path + "b", headers=sent | copy)[0] == 200
    status, _, told = raw.send(server, "POST", path + "c", query="uploads=", headers=sent)
    assert status == 200
    upload = re.search(rb"<UploadId>(.*)</UploadId>", told)[1].decode()
    where = {"Bucket": bucket, "Key": "ac", "UploadId": upload}
    part = s3.upload_part(**where, PartNumber=1, Body=b"a")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    s3.complete_multipart_upload(**where, MultipartUpload=parts)
    for key in ("a", "ab", "ac"):
        _, headers, _ = raw.send(server, "HEAD", f"/{bucket}/{key}")
        # http.client reads headers as ISO-8859-1.
        told = {name: headers[name].encode("latin-1").decode() for name in sent}
        assert told == sent, key
