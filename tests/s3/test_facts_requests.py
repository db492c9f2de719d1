"""What other servers got wrong of conditions, presigned addresses, signatures and encryption,
where no other test is."""

import datetime
import hashlib
import re

import pytest

from harness import raw
from harness.clients import refused, s3_client

CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()


def code_of(answer):
    return element(answer, "Code")


def element(answer, name):
    return answer.partition(f"<{name}>".encode())[2].partition(b"<")[0].decode()


# Conditions


@pytest.mark.parametrize(
    "headers",
    [
        {"if-none-match": '"a"'},
        {"if-none-match": "*", "if-match": '"a"'},
        {"if-match": '"a", "b"'},
    ],
)
def test_conditions_that_writes_do_not_have(server, s3, bucket, headers):
    told = raw.send(server, "PUT", f"/{bucket}/a", headers=headers, body=b"x")
    assert (told[0], code_of(told[2])) == (501, "NotImplemented")
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="a")


def test_quotation_marks_of_entity_tags_do_not_matter(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"2", IfMatch=etag.strip('"'))["ETag"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"3", IfMatch=etag)
    for call in (
        lambda: s3.put_object(Bucket=bucket, Key="none", Body=b"x", IfMatch=etag),
        lambda: s3.put_object(Bucket=bucket, Key="none", Body=b"x", IfMatch="*"),
        lambda: s3.delete_object(Bucket=bucket, Key="none", IfMatch=etag),
    ):
        with refused("NoSuchKey", 404):
            call()


def test_a_deletion_with_a_condition_meets_no_marker(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
    s3.delete_object(Bucket=bucket, Key="a", IfMatch=etag)
    with refused("NoSuchKey", 404):
        s3.delete_object(Bucket=bucket, Key="a", IfMatch=etag)
    rows = s3.list_object_versions(Bucket=bucket)
    assert len(rows["DeleteMarkers"]) == 1


# Presigned addresses


def presigned(server, path, when, seconds, headers=(), method="GET"):
    """The answer to an address that was presigned at a time, for so long."""
    access_key_id, secret = server.credentials()
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    scope = f"{day}/us-east-1/s3/aws4_request"
    query = (
        "X-Amz-Algorithm=AWS4-HMAC-SHA256"
        f"&X-Amz-Credential={access_key_id}%2F{scope.replace('/', '%2F')}"
        f"&X-Amz-Date={stamp}&X-Amz-Expires={seconds}&X-Amz-SignedHeaders=host"
    )
    host = f"127.0.0.1:{server.port}"
    canonical = f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashed])
    signature = raw.hmac_sha256(raw.signing_key(secret, day), to_sign).hex()
    target = f"{path}?{query}&X-Amz-Signature={signature}"
    sent = {"host": host} | dict(headers)
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head(method, target, sent))
        return raw.receive(connection, method)


def dated(server, path, date, stamp, names="date;host;x-amz-content-sha256"):
    """The status of a GET that tells its time by a `Date` header alone."""
    access_key_id, secret = server.credentials()
    scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
    sent = {"host": f"127.0.0.1:{server.port}", "x-amz-content-sha256": raw.UNSIGNED, "date": date}
    lines = ["GET", path, "", *(f"{name}:{sent[name]}" for name in names.split(";"))]
    lines += ["", names, raw.UNSIGNED]
    hashed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashed])
    signature = raw.hmac_sha256(raw.signing_key(secret, stamp[:8]), text).hex()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("GET", path, sent))
        return raw.receive(connection)[0]


def test_a_signed_date_header_tells_the_time(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    now = raw.now()
    stamp, path = now.strftime("%Y%m%dT%H%M%SZ"), f"/{bucket}/a"
    for form in ("%a, %d %b %Y %H:%M:%S GMT", "%Y%m%dT%H%M%SZ"):
        date = now.strftime(form)
        assert dated(server, path, date, stamp) == 200
        assert dated(server, path, date, stamp, "host;x-amz-content-sha256") == 403


@pytest.mark.parametrize(
    ("method", "place"),
    [("POST", "/{}/a"), ("PATCH", "/{}/a"), ("PATCH", "/{}"), ("PUT", "/"), ("DELETE", "/")],
)
def test_methods_that_a_place_does_not_have(server, bucket, method, place):
    told = raw.send(server, method, place.format(bucket))
    assert (told[0], code_of(told[2])) == (405, "MethodNotAllowed")


def ago(**delta):
    return raw.now() - datetime.timedelta(**delta)


def test_an_expired_address_says_when_it_expired(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    when = ago(minutes=5)
    status, _, answer = presigned(server, f"/{bucket}/a", when, 240)
    assert (status, code_of(answer)) == (403, "AccessDenied")
    assert element(answer, "Message") == "Request has expired"
    assert element(answer, "X-Amz-Expires") == "240"
    expired = (when + datetime.timedelta(seconds=240)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert element(answer, "Expires") == expired
    assert element(answer, "ServerTime")[:13] == raw.now().strftime("%Y-%m-%dT%H")
    status, _, answer = presigned(server, f"/{bucket}/a", ago(minutes=-20), 3600)
    assert (status, code_of(answer)) == (403, "AccessDenied")
    assert element(answer, "Message") == "Request is not yet valid"


def test_a_clock_that_differs_shortens_no_life(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for when, seconds in [
        (ago(minutes=50), 3600),
        (ago(days=6), 604_800),
        (ago(minutes=-14), 60),
    ]:
        assert presigned(server, f"/{bucket}/a", when, seconds)[0] == 200, when
    status, _, answer = presigned(server, f"/{bucket}/a", ago(minutes=1), 604_801)
    assert (status, code_of(answer)) == (400, "AuthorizationQueryParametersError")


def test_an_address_for_no_time_has_expired(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    # Made a moment ahead, so that its second is not over.
    status, _, answer = presigned(server, f"/{bucket}/a", ago(seconds=-5), 0)
    assert (status, code_of(answer)) == (403, "AccessDenied")
    assert element(answer, "Message") == "Request has expired"
    assert element(answer, "X-Amz-Expires") == "0"


def test_an_address_by_version_2_lacks_nothing(server, bucket):
    old = s3_client(server, signature_version="s3")
    url = old.generate_presigned_url("list_objects", Params={"Bucket": bucket})
    target = url.removeprefix(server.endpoint)
    wanted = "Query-string authentication requires the Signature, Expires and AWSAccessKeyId"
    wrong = "Invalid date (should be seconds since epoch): x"
    for found, instead, message in (
        (r"Expires=\d+", "prefix=a", wanted),
        (r"AWSAccessKeyId=\w+", "prefix=a", wanted),
        (r"Expires=", "Expires=x", wrong),
    ):
        with raw.connect(server) as connection:
            changed = re.sub(found, instead, target)
            host = {"host": f"127.0.0.1:{server.port}"}
            connection.sendall(raw.request_head("GET", changed, host))
            status, _, answer = raw.receive(connection)
        assert (status, code_of(answer)) == (403, "AccessDenied"), changed
        assert element(answer, "Message").startswith(message)


def test_headers_that_are_not_signed_are_named(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    more = {"x-amz-acl": "private", "x-amz-copy-source": f"{bucket}/a"}
    status, _, answer = presigned(server, f"/{bucket}/b", ago(minutes=1), 600, more, "PUT")
    assert (status, code_of(answer)) == (403, "AccessDenied")
    assert element(answer, "HeadersNotSigned") == "x-amz-acl, x-amz-copy-source"
    headers = raw.signed_headers(server, "GET", f"/{bucket}/a")
    with raw.connect(server) as connection:
        unsigned = headers | {"x-amz-expected-bucket-owner": "111122223333"}
        connection.sendall(raw.request_head("GET", f"/{bucket}/a", unsigned))
        status, _, answer = raw.receive(connection)
    assert (status, code_of(answer)) == (403, "AccessDenied")
    assert element(answer, "HeadersNotSigned") == "x-amz-expected-bucket-owner"


def test_a_clock_that_is_wrong_is_told_the_time(server, bucket):
    status, _, answer = raw.send(server, "GET", f"/{bucket}", when=ago(minutes=20))
    assert (status, code_of(answer)) == (403, "RequestTimeTooSkewed")
    assert element(answer, "MaxAllowedSkewMilliseconds") == "900000"
    assert element(answer, "ServerTime")[:13] == raw.now().strftime("%Y-%m-%dT%H")


# Signed chunks


def put_signed_chunks(server, bucket, pieces):
    when, path = raw.now(), f"/{bucket}/chunked"
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    scope = f"{day}/us-east-1/s3/aws4_request"
    key = raw.signing_key(server.credentials()[1], day)

    def body(previous):
        out = b""
        for piece in [*pieces, b""]:
            lines = [f"{CHUNKS[10:]}", stamp, scope, previous, EMPTY]
            lines[0] = "AWS4-HMAC-SHA256-PAYLOAD"
            lines.append(hashlib.sha256(piece).hexdigest())
            previous = raw.hmac_sha256(key, "\n".join(lines)).hex()
            out += f"{len(piece):x};chunk-signature={previous}\r\n".encode() + piece + b"\r\n"
        return out

    headers = {
        "content-encoding": "aws-chunked",
        "content-length": str(len(body("0" * 64))),
        "x-amz-decoded-content-length": str(sum(map(len, pieces))),
    }
    more = {"headers": headers, "payload_hash": CHUNKS, "when": when}
    signed = raw.signed_headers(server, "PUT", path, **more)
    sent = body(signed["authorization"].rpartition("Signature=")[2])
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", path, signed) + sent)
        status, _, answer = raw.receive(connection, "PUT")
    return status, code_of(answer)


def test_signed_chunks_but_the_last_have_8192_bytes(server, s3, bucket):
    assert put_signed_chunks(server, bucket, [b"a" * 8192, b"b" * 8192, b"c"]) == (200, "")
    assert s3.head_object(Bucket=bucket, Key="chunked")["ContentLength"] == 16_385
    assert put_signed_chunks(server, bucket, [b"a" * 8191]) == (200, "")
    refusal = (403, "InvalidChunkSizeError")
    assert put_signed_chunks(server, bucket, [b"a" * 8191, b"c"]) == refusal
    assert put_signed_chunks(server, bucket, [b"a" * 8192, b"b", b"c"]) == refusal


# Encryption


def test_a_copy_is_never_encrypted_as_its_source(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", ServerSideEncryption="AES256")
    source = {"Bucket": bucket, "Key": "a"}
    copied = s3.copy_object(Bucket=bucket, Key="b", CopySource=source)
    assert copied["ServerSideEncryption"] == "aws:kms"
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", ServerSideEncryption="aws:kms")
    copied = s3.copy_object(Bucket=bucket, Key="b", CopySource=source)
    assert copied["ServerSideEncryption"] == "AES256"


def test_the_bucket_key_is_told_wherever_it_was_asked_for(s3, bucket):
    asked = {"ServerSideEncryption": "aws:kms", "BucketKeyEnabled": True}
    where = {"Bucket": bucket, "Key": "a"}
    assert s3.put_object(**where, Body=b"a", **asked)["BucketKeyEnabled"] is True
    assert s3.head_object(**where)["BucketKeyEnabled"] is True
    assert s3.get_object(**where)["BucketKeyEnabled"] is True
    copied = s3.copy_object(Bucket=bucket, Key="b", CopySource=where, **asked)
    assert copied["BucketKeyEnabled"] is True
    made = s3.create_multipart_upload(**where, **asked)
    assert made["BucketKeyEnabled"] is True
    upload = where | {"UploadId": made["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=b"a")
    copied = s3.upload_part_copy(**upload, PartNumber=2, CopySource=where)
    assert part["BucketKeyEnabled"] is True and copied["BucketKeyEnabled"] is True
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    assert s3.complete_multipart_upload(**upload, MultipartUpload=parts)["BucketKeyEnabled"] is True


def test_there_are_no_session_tokens(server, bucket):
    headers = {"x-amz-security-token": "t"}
    status, _, answer = raw.send(server, "GET", f"/{bucket}", headers=headers)
    assert (status, code_of(answer)) == (400, "InvalidToken")
