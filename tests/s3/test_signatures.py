"""Who may: signatures in headers, in presigned URLs and over chunks."""

import base64
import datetime
import hashlib
import hmac
import http.client
import urllib.parse

import pytest

from harness import raw
from harness.checksums import checksum
from harness.clients import drain, refused, s3_client
from harness.content import content
from harness.server import Server

# Many signatures here are wrong on purpose; tests/reliability/test_crowds.py throttles.
LIMITS = "[limits]\nsign-in-failures = 1000\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("signatures"), config=LIMITS) as running:
        yield running
        assert "panicked" not in running.log()


def fetch(server, method, url, body=None, headers=None):
    """Requests a presigned URL without any signature of its own."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=raw.tls_context(server), timeout=30
    )
    try:
        connection.request(method, url.removeprefix(server.endpoint), body, headers or {})
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return response.status, names, response.read()
    finally:
        connection.close()


def presign(s3, operation, expires=60, **parameters):
    return s3.generate_presigned_url(operation, Params=parameters, ExpiresIn=expires)


def test_presigned_urls(s3, bucket, server):
    name = "odd name/ü+&=?.txt"
    url = presign(s3, "put_object", Bucket=bucket, Key=name)
    assert fetch(server, "PUT", url, b"presigned")[0] == 200
    url = presign(s3, "get_object", Bucket=bucket, Key=name, ResponseContentType="text/x-over")
    status, headers, body = fetch(server, "GET", url)
    assert (status, body) == (200, b"presigned")
    assert headers["content-type"] == "text/x-over"
    url = presign(s3, "head_object", Bucket=bucket, Key=name)
    assert fetch(server, "HEAD", url)[0] == 200
    url = presign(s3, "delete_object", Bucket=bucket, Key=name)
    assert fetch(server, "DELETE", url)[0] == 204


def test_presigned_urls_are_good_for_one_thing(s3, bucket, server):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    s3.put_object(Bucket=bucket, Key="b", Body=b"b")
    url = presign(s3, "get_object", Bucket=bucket, Key="a")
    for changed in (
        url.replace("/a?", "/b?"),
        url.replace("X-Amz-Expires=60", "X-Amz-Expires=600"),
        url + "&response-content-type=text%2Fhtml",
        url[:-1] + ("0" if url[-1] != "0" else "1"),
    ):
        status, _, body = fetch(server, "GET", changed)
        assert status == 403 and b"<Code>SignatureDoesNotMatch</Code>" in body, changed
    assert fetch(server, "PUT", url, b"x")[0] == 403
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"a"


def test_version_2_in_headers_is_refused_in_words(server, bucket):
    old = s3_client(server, signature_version="s3")
    with refused("InvalidRequest", 400) as error:
        old.list_objects_v2(Bucket=bucket)
    assert "AWS4-HMAC-SHA256" in error.message


@pytest.mark.parametrize("name", ["plain", "späced näme+&?/x"])
def test_boto3_presigns_without_settings(server, bucket, name):
    """What boto3 makes by default: URLs of version 2."""
    s3 = s3_client(server, signature_version=None)
    url = presign(s3, "put_object", Bucket=bucket, Key=name, Metadata={"who": "me"})
    assert "X-Amz-Signature" not in url
    meta = {"x-amz-meta-who": "me"}
    assert fetch(server, "PUT", url, b"presigned", headers=meta)[0] == 200
    over = {"ResponseContentType": "text/x-over"}
    url = presign(s3, "get_object", Bucket=bucket, Key=name, **over)
    status, headers, body = fetch(server, "GET", url)
    assert (status, body) == (200, b"presigned")
    assert (headers["content-type"], headers["x-amz-meta-who"]) == ("text/x-over", "me")
    url = presign(s3, "get_object", Bucket=bucket, Key=name, VersionId="null")
    assert fetch(server, "GET", url)[2] == b"presigned"
    for operation in ("list_object_versions", "get_bucket_versioning"):
        assert fetch(server, "GET", presign(s3, operation, Bucket=bucket))[0] == 200
    url = presign(s3, "head_object", Bucket=bucket, Key=name)
    assert fetch(server, "HEAD", url)[0] == 200
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"]
    part = {"UploadId": upload_id, "PartNumber": 1}
    url = presign(s3, "upload_part", Bucket=bucket, Key=name, **part)
    assert fetch(server, "PUT", url, b"a part")[0] == 200
    url = presign(s3, "abort_multipart_upload", Bucket=bucket, Key=name, UploadId=upload_id)
    assert fetch(server, "DELETE", url)[0] == 204
    url = presign(s3, "delete_object", Bucket=bucket, Key=name)
    assert fetch(server, "DELETE", url)[0] == 204


def test_version_2_urls_are_good_for_one_thing(server, bucket):
    s3 = s3_client(server, signature_version=None)
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging="hidden=1")
    url = presign(s3, "get_object", Bucket=bucket, Key="a")
    assert fetch(server, "GET", url)[0] == 200
    for changed in (
        url.replace("/a?", "/b?"),
        url.replace("Expires=1", "Expires=2"),
        url + "&response-content-type=text%2Fhtml",
        url + "&tagging",
        url + "&tagging&tagging",
        url + "&attributes",
        url + "&versionId=null",
    ):
        status, _, body = fetch(server, "GET", changed)
        assert status == 403 and b"hidden" not in body, changed
    assert fetch(server, "PUT", url, b"x")[0] == 403
    copied = {"x-amz-copy-source": f"{bucket}/a"}
    put = presign(s3, "put_object", Bucket=bucket, Key="b")
    assert fetch(server, "PUT", put, b"", headers=copied)[0] == 403
    expired = s3.generate_presigned_url(
        "get_object", Params={"Bucket": bucket, "Key": "a"}, ExpiresIn=-1
    )
    status, _, body = fetch(server, "GET", expired)
    assert status == 403 and b"expired" in body


@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
def test_boto3_presigns_listings_without_settings(server, bucket, operation):
    """A bucket's address is signed with a slash after it that it does not have."""
    s3 = s3_client(server, signature_version=None)
    for name in ("a/1", "a/2", "b"):
        s3.put_object(Bucket=bucket, Key=name, Body=b"x")
    url = presign(s3, operation, Bucket=bucket, Prefix="a/")
    assert "X-Amz-Signature" not in url
    status, _, body = fetch(server, "GET", url)
    assert status == 200 and body.count(b"<Key>") == 2, body
    assert fetch(server, "GET", url.replace(f"/{bucket}?", f"/{bucket}/a/1?"))[0] == 403


def version_2_url(server, path):
    """A URL presigned by version 2 for reading this path, and nothing else."""
    access_key_id, secret = server.credentials()
    expires = int(raw.now().timestamp()) + 60
    to_sign = f"GET\n\n\n{expires}\n{path}".encode()
    signature = base64.b64encode(hmac.digest(secret.encode(), to_sign, "sha1")).decode()
    query = {"AWSAccessKeyId": access_key_id, "Expires": expires, "Signature": signature}
    return f"{path}?{urllib.parse.urlencode(query)}"


@pytest.mark.parametrize(
    "selects", ["encryption", "publicAccessBlock", "attributes", "retention", "x-id"]
)
def test_version_2_urls_select_nothing_by_a_header_of_the_same_name(server, s3, bucket, selects):
    """A header that the signature does not cover comes from who uses the URL, not who made it."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for path in (f"/{bucket}", f"/{bucket}/a"):
        url = version_2_url(server, path)
        assert fetch(server, "GET", url)[0] == 200
        for value in ("", "1"):
            told = {selects: value}
            status, _, body = fetch(server, "GET", f"{url}&{selects}={value}", headers=told)
            assert status == 403 and b"<Code>AccessDenied</Code>" in body, (status, body)


def test_version_2_urls_take_no_header_of_ours_from_who_uses_them(server, s3):
    """Nothing that they sign covers it."""
    old = s3_client(server, signature_version=None)
    url = presign(old, "create_bucket", Bucket="made-by-url")
    etag = {"x-coffer-etag": "md5"}
    status, _, body = fetch(server, "PUT", url, headers=etag)
    assert status == 403 and b"<HeadersNotSigned>x-coffer-etag</HeadersNotSigned>" in body, body
    assert fetch(server, "PUT", url)[0] == 200
    s3.put_object(Bucket="made-by-url", Key="a", Body=b"a")
    url = presign(old, "get_object", Bucket="made-by-url", Key="a")
    assert fetch(server, "GET", url, headers={"x-coffer-transfer": "x"})[0] == 403
    assert fetch(server, "GET", url)[0] == 200
    drain(s3, "made-by-url")


def test_request_ids_tell_nothing(server):
    """Neither how many requests there were between two, nor when the server was started."""
    odd = 0x9E37_79B9_7F4A_7C15
    undo = pow(odd, -1, 1 << 64)
    ids, host_ids = [], []
    for _ in range(8):
        _, headers, _ = raw.send(server, "GET", "/")
        assert len(headers["x-amz-request-id"]) == 16 and len(headers["x-amz-id-2"]) == 32
        ids.append(int(headers["x-amz-request-id"], 16))
        host_ids.append(base64.b64decode(headers["x-amz-id-2"]))
    steps = {(b - a) % (1 << 64) for a, b in zip(ids, ids[1:], strict=False)}
    assert len(steps) == len(ids) - 1, "the ids are counted"
    counts = {(b - a) * undo % (1 << 64) for a, b in zip(ids, ids[1:], strict=False)}
    assert min(counts) > 1 << 32, "the ids are counted, and multiplied"
    for place in range(0, 24, 8):
        words = [host_id[place : place + 8] for host_id in host_ids]
        assert len(set(words)) == len(words), "a part of the second id is the same for all"


def test_presigned_urls_expire(s3, bucket, server):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    query = presigned_query(server, f"/{bucket}/a", raw.now() - datetime.timedelta(minutes=5), 240)
    status, _, body = fetch(server, "GET", f"/{bucket}/a?{query}")
    assert status == 403 and b"<Code>AccessDenied</Code>" in body
    query = presigned_query(server, f"/{bucket}/a", raw.now() - datetime.timedelta(minutes=5), 360)
    assert fetch(server, "GET", f"/{bucket}/a?{query}")[0] == 200
    for wrong in (7 * 86400 + 1, -1, "", "%2B60", "60.0"):
        query = presigned_query(server, f"/{bucket}/a", raw.now(), wrong)
        status, _, body = fetch(server, "GET", f"/{bucket}/a?{query}")
        assert status == 400 and b"<Code>AuthorizationQueryParametersError</Code>" in body, wrong


def presigned_query(server, path, when, expires):
    access_key_id, secret = server.credentials()
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    scope = f"{day}/us-east-1/s3/aws4_request"
    query = (
        "X-Amz-Algorithm=AWS4-HMAC-SHA256"
        f"&X-Amz-Credential={access_key_id}%2F{scope.replace('/', '%2F')}"
        f"&X-Amz-Date={stamp}&X-Amz-Expires={expires}&X-Amz-SignedHeaders=host"
    )
    canonical = f"GET\n{path}\n{query}\nhost:127.0.0.1:{server.port}\n\nhost\nUNSIGNED-PAYLOAD"
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    signature = raw.hmac_sha256(raw.signing_key(secret, day), to_sign).hex()
    return f"{query}&X-Amz-Signature={signature}"


def test_strangers(server, bucket):
    access_key_id, secret = server.credentials()
    unknown = s3_client(server, credentials=("AKIAUNKNOWNUNKNOWNUN", secret))
    with refused("InvalidAccessKeyId", 403):
        unknown.list_buckets()
    wrong = s3_client(server, credentials=(access_key_id, "x" * 40))
    with refused("SignatureDoesNotMatch", 403) as error:
        wrong.list_objects_v2(Bucket=bucket)
    assert secret not in str(error.response)
    status, _, body = fetch(server, "GET", f"/{bucket}")
    assert status == 403 and b"<Code>AccessDenied</Code>" in body


@pytest.mark.parametrize("minutes", [-20, 20])
def test_clocks_that_differ(server, bucket, minutes):
    when = raw.now() + datetime.timedelta(minutes=minutes)
    status, _, body = raw.send(server, "GET", f"/{bucket}", when=when)
    assert status == 403 and b"<Code>RequestTimeTooSkewed</Code>" in body, body


def test_signed_payloads_are_checked(server, s3, bucket):
    right = hashlib.sha256(b"body").hexdigest()
    path = f"/{bucket}/a"
    assert raw.send(server, "PUT", path, body=b"body", payload_hash=right)[0] == 200
    for body in (b"BODY", content(100_000)):
        status, _, answer = raw.send(server, "PUT", path, body=body, payload_hash=right)
        assert status == 400 and b"<Code>XAmzContentSHA256Mismatch</Code>" in answer, answer
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"body"


EMPTY = hashlib.sha256(b"").hexdigest()


class Chunked:
    """A body in signed aws-chunks."""

    def __init__(self, server, path, pieces, *, trailer=None):
        self.server, self.path, self.pieces, self.trailer = server, path, pieces, trailer
        self.when = raw.now()
        kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
        self.headers = {
            "content-encoding": "aws-chunked",
            "x-amz-decoded-content-length": str(sum(map(len, pieces))),
        }
        if trailer:
            self.headers["x-amz-trailer"] = trailer[0]
        self.kind = kind

    def _sign(self, previous, *hashes, what="PAYLOAD"):
        stamp, day = self.when.strftime("%Y%m%dT%H%M%SZ"), self.when.strftime("%Y%m%d")
        scope = f"{day}/us-east-1/s3/aws4_request"
        lines = [f"AWS4-HMAC-SHA256-{what}", stamp, scope, previous, *hashes]
        key = raw.signing_key(self.server.credentials()[1], day)
        return raw.hmac_sha256(key, "\n".join(lines)).hex()

    def body(self, seed):
        out, previous = b"", seed
        for piece in [*self.pieces, b""]:
            previous = self._sign(previous, EMPTY, hashlib.sha256(piece).hexdigest())
            out += f"{len(piece):x};chunk-signature={previous}\r\n".encode()
            out += piece + (b"\r\n" if piece or not self.trailer else b"")
        if self.trailer:
            line = f"{self.trailer[0]}:{self.trailer[1]}"
            hashed = hashlib.sha256(f"{line}\n".encode()).hexdigest()
            signature = self._sign(previous, hashed, what="TRAILER")
            out += f"{line}\r\nx-amz-trailer-signature:{signature}\r\n\r\n".encode()
        return out

    def send(self, damage=lambda body: body):
        length = len(self.body("0" * 64))
        headers = self.headers | {"content-length": str(length)}
        signed = raw.signed_headers(
            self.server,
            "PUT",
            self.path,
            headers=headers,
            payload_hash=self.kind,
            when=self.when,
        )
        body = self.body(signed["authorization"].rpartition("Signature=")[2])
        with raw.connect(self.server) as connection:
            connection.sendall(raw.request_head("PUT", self.path, signed) + damage(body))
            return raw.receive(connection, "PUT")


@pytest.mark.parametrize("size_bytes", [0, 10, 65536 * 3, 200_001])
def test_signed_chunks(server, s3, bucket, size_bytes):
    body = content(size_bytes)
    pieces = [body[at : at + 65536] for at in range(0, size_bytes, 65536)]
    status, _, answer = Chunked(server, f"/{bucket}/a", pieces).send()
    assert status == 200, answer
    got = s3.get_object(Bucket=bucket, Key="a")
    assert got["Body"].read() == body
    assert "ContentEncoding" not in got


def test_signed_chunks_with_trailer(server, s3, bucket):
    body = content(150_000)
    pieces = [body[:65536], body[65536:131072], body[131072:]]
    trailer = ("x-amz-checksum-crc32c", checksum("CRC32C", body))
    status, headers, answer = Chunked(server, f"/{bucket}/a", pieces, trailer=trailer).send()
    assert status == 200, answer
    assert headers["x-amz-checksum-crc32c"] == trailer[1]
    wrong = (trailer[0], base64.b64encode(b"1234").decode())
    status, _, answer = Chunked(server, f"/{bucket}/b", pieces, trailer=wrong).send()
    assert status == 400 and b"<Code>BadDigest</Code>" in answer, answer


def test_changed_chunks_are_refused(server, s3, bucket):
    body = content(100_000)
    pieces = [body[:65536], body[65536:]]

    def flip(sent):
        changed = bytearray(sent)
        changed[70_000] ^= 1
        return bytes(changed)

    status, _, answer = Chunked(server, f"/{bucket}/a", pieces).send(damage=flip)
    assert status == 403 and b"<Code>SignatureDoesNotMatch</Code>" in answer, answer
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")


def test_unsigned_chunks_with_trailer(server, s3, bucket):
    body = content(100_000)
    sent = f"{65536:x}\r\n".encode() + body[:65536] + b"\r\n"
    sent += f"{len(body) - 65536:x}\r\n".encode() + body[65536:] + b"\r\n0\r\n"
    sent += f"x-amz-checksum-crc64nvme:{checksum('CRC64NVME', body)}\r\n\r\n".encode()
    headers = {
        "content-encoding": "gzip,aws-chunked",
        "x-amz-decoded-content-length": str(len(body)),
        "x-amz-trailer": "x-amz-checksum-crc64nvme",
    }
    status, _, answer = raw.send(
        server,
        "PUT",
        f"/{bucket}/a",
        headers=headers,
        body=sent,
        payload_hash="STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    )
    assert status == 200, answer
    got = s3.get_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert got["Body"].read() == body
    assert got["ContentEncoding"] == "gzip"
    assert got["ChecksumCRC64NVME"] == checksum("CRC64NVME", body)


@pytest.mark.parametrize("declared", [50_000, 150_000])
def test_decoded_length_is_checked(server, s3, bucket, declared):
    chunked = Chunked(server, f"/{bucket}/a", [content(50_000), content(50_000)])
    chunked.headers["x-amz-decoded-content-length"] = str(declared)
    status, _, answer = chunked.send()
    assert 400 <= status < 500, answer
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")
