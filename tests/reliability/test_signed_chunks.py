"""Uploads in signed chunks: however long these are, they are not held in memory."""

import contextlib
import time

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, content

BUCKET = "chunked"
MEMORY_MAX_BYTES = 150 * MIB


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


def test_long_signed_chunks_that_are_never_ended(own_server, capsys):
    """60 connections with nearly 4 MiB of a signed chunk each would be 240 MiB, were chunks held
    until their signatures are known. What was sent of them leaves no bytes.
    """
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    sent = content(4 * MIB - 1)
    chunk = f"{4 * MIB:x};chunk-signature={'0' * 64}\r\n".encode() + sent
    path = f"/{BUCKET}/chunked"
    headers = {
        "content-length": str(len(chunk) + 1000),
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(4 * MIB),
    }
    signed = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            connection = stack.enter_context(raw.connect(server))
            head = raw.signed_headers(server, "PUT", path, headers=headers, payload_hash=signed)
            connection.sendall(raw.request_head("PUT", path, head) + chunk)
        wait_for(lambda: raw.metric(server, "coffer_s3_requests_in_flight") == 60)
        wait_for(lambda: server.blob_bytes() > 60 * 3 * MIB, 30)
        with capsys.disabled():
            print(f"\nsigned chunks: {server.resident_peak_bytes() / MIB:.0f} MiB at most")
        assert server.resident_peak_bytes() < MEMORY_MAX_BYTES
        # The last byte of a chunk is taken by its signature, which is wrong.
        connection.sendall(b"a\r\n" + b"0" * 1000)
        status, _, answer = raw.receive(connection)
        assert (status, b"<Code>SignatureDoesNotMatch</Code>" in answer) == (403, True), answer
    assert server.blob_bytes_at_most(0)
    assert s3_client(server).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
