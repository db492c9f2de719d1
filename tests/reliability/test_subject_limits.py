"""What one subject, or one address, may take: connections, uploads under way, buckets."""

import contextlib
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import ClientError

from harness import raw
from harness.administration import make_subject, run
from harness.clients import refused, s3_client

BUCKET = "shared"


def connection(server, stack, source="127.0.0.1"):
    """A connection from one of this machine's many addresses."""
    address = ("127.0.0.1", server.port)
    plain = socket.create_connection(address, timeout=30, source_address=(source, 0))
    sealed = raw.tls_context(server).wrap_socket(plain, server_hostname="127.0.0.1")
    return stack.enter_context(contextlib.closing(sealed))


def asks(server, sealed, credentials=None):
    """Lists the buckets; gives the status and the text of the answer."""
    signed = raw.signed_headers(server, "GET", "/", credentials=credentials)
    sealed.sendall(raw.request_head("GET", "/", signed))
    status, _, body = raw.receive(sealed)
    return status, body.decode()


def works(server, sealed, name, credentials=None):
    """Begins an upload and does not go on."""
    path, headers = f"/{BUCKET}/{name}", {"content-length": "60000000"}
    signed = raw.signed_headers(server, "PUT", path, headers=headers, credentials=credentials)
    sealed.sendall(raw.request_head("PUT", path, signed) + b"A" * 100_000)


def was_closed(sealed):
    sealed.settimeout(5)
    try:
        return sealed.recv(1) == b""
    except TimeoutError:
        return False


def test_a_subject_has_so_many_connections_and_the_oldest_idle_one_goes(own_server):
    config = "[limits]\nconnections-per-subject = 3\n"
    with own_server(config=config) as server, contextlib.ExitStack() as stack:
        s3_client(server).create_bucket(Bucket=BUCKET)
        other = make_subject(server, "other", "default")
        own = [connection(server, stack) for _ in range(4)]
        for sealed in own:
            assert asks(server, sealed)[0] == 200
        assert was_closed(own[0])
        # Those at work are left alone, and what would be one more is refused by a sentence.
        for number, sealed in enumerate(own[1:]):
            works(server, sealed, str(number))
        late = connection(server, stack, "127.0.0.2")
        while raw.metric(server, "coffer_s3_requests_in_flight") < 3:
            pass
        status, text = asks(server, late)
        assert status == 503 and "<Code>SlowDown</Code>" in text
        assert "3 connections at work, as many as one may have" in text
        assert asks(server, connection(server, stack), other)[0] == 200
        own[1].close()
        while raw.metric(server, "coffer_s3_requests_in_flight") > 2:
            pass
        assert asks(server, connection(server, stack))[0] == 200


def test_an_address_has_so_many_connections(own_server):
    config = "[limits]\nconnections-per-address = 2\n"
    with own_server(config=config) as server, contextlib.ExitStack() as stack:
        client = s3_client(server)
        client.create_bucket(Bucket=BUCKET)
        client.close()
        for number in range(2):
            works(server, connection(server, stack), str(number))
        while raw.metric(server, "coffer_s3_requests_in_flight") < 2:
            pass
        with contextlib.suppress(OSError, ssl.SSLError):
            connection(server, stack)
            raise AssertionError("a third connection of an address shook hands")
        assert asks(server, connection(server, stack, "127.0.0.2"))[0] == 200
        assert raw.metric(server, "coffer_s3_connections_kept_out_total") >= 1


def test_a_subject_has_so_many_uploads_under_way(own_server):
    with own_server(config="[limits]\nuploads-per-subject = 5\n") as server:
        s3 = s3_client(server)
        for bucket in (BUCKET, "second"):
            s3.create_bucket(Bucket=bucket)
        grants = ("--roles", "data-user", "--grant", f"{BUCKET}=read,write,list")
        other = s3_client(server, credentials=make_subject(server, "other", "default", *grants))
        begun, messages = [], []

        def begin(number):
            bucket = (BUCKET, "second")[number % 2]
            try:
                told = s3.create_multipart_upload(Bucket=bucket, Key="o")
                begun.append((bucket, told["UploadId"]))
            except ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                messages.append((status, error.response["Error"]))

        with ThreadPoolExecutor(32) as threads:
            list(threads.map(begin, range(100)))
        assert len(begun) == 5 and len(messages) == 95
        assert {(status, error["Code"]) for status, error in messages} == {(403, "QuotaExceeded")}
        message = messages[0][1]["Message"]
        assert "5 multipart uploads under way" in message and "ListMultipartUploads" in message
        other.create_multipart_upload(Bucket=BUCKET, Key="o")
        # After a restart they still count, and what is completed or aborted makes room.
        assert server.stop() == 0
        server.start()
        while raw.metric(server, "coffer_open_uploads") < 6:
            time.sleep(0.1)
        s3 = s3_client(server)
        with refused("QuotaExceeded", 403):
            s3.create_multipart_upload(Bucket=BUCKET, Key="o")
        (bucket, upload), (second, aborted) = begun[:2]
        part = s3.upload_part(Bucket=bucket, Key="o", UploadId=upload, PartNumber=1, Body=b"p")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        for _ in range(2):
            s3.complete_multipart_upload(
                Bucket=bucket, Key="o", UploadId=upload, MultipartUpload=parts
            )
        s3.abort_multipart_upload(Bucket=second, Key="o", UploadId=aborted)
        for _ in range(2):
            s3.create_multipart_upload(Bucket=BUCKET, Key="o")
        with refused("QuotaExceeded", 403):
            s3.create_multipart_upload(Bucket=BUCKET, Key="o")
        run(server, "bucket", "end-uploads", "--all", "--older-than", "0s")
        s3.create_multipart_upload(Bucket=BUCKET, Key="o")


def test_a_subject_makes_so_many_buckets(own_server):
    with own_server(config="[limits]\nbuckets-per-subject = 3\n") as server:
        s3 = s3_client(server)
        made, messages = [], []

        def make(number):
            try:
                s3.create_bucket(Bucket=f"made-{number}")
                made.append(number)
            except ClientError as error:
                messages.append(error.response["Error"])

        with ThreadPoolExecutor(32) as threads:
            list(threads.map(make, range(100)))
        assert len(made) == 3 and {error["Code"] for error in messages} == {"TooManyBuckets"}
        assert "3 buckets, as many as one may have" in messages[0]["Message"]
        other = s3_client(server, credentials=make_subject(server, "other", "default"))
        other.create_bucket(Bucket="of-another")
        run(server, "bucket", "create", "by-an-administrator")
        s3.delete_bucket(Bucket=f"made-{made[0]}")
        assert server.stop() == 0
        server.start()
        s3 = s3_client(server)
        s3.create_bucket(Bucket="again")
        with refused("TooManyBuckets", 400):
            s3.create_bucket(Bucket="one-more")
