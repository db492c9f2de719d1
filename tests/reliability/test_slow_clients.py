"""Slow, idle, oversized and half-hearted clients: cut off, at bounded memory, without traces."""

import contextlib
import socket
import ssl
import threading
import time

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, content
from harness.server import Server

BUCKET = "slow"
PATIENCE_SECONDS = 2
LIMITS = f"""
[limits]
handshake-timeout-seconds = {PATIENCE_SECONDS}
header-timeout-seconds = {PATIENCE_SECONDS}
progress-timeout-seconds = {PATIENCE_SECONDS}
progress-min-bytes = 10000
"""
MEMORY_MAX_BYTES = 150 * MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("slow"), config=LIMITS) as running:
        s3_client(running).create_bucket(Bucket=BUCKET)
        yield running
        assert "panicked" not in running.log()


def closed_after(connection, seconds):
    """Waits until the other side has closed; returns what it said, and how long that took."""
    began = time.monotonic()
    connection.settimeout(seconds)
    said = b""
    try:
        while piece := connection.recv(1 << 16):
            said += piece
    except (ConnectionError, ssl.SSLError):
        pass
    except TimeoutError:
        pytest.fail(f"still open after {seconds} s")
    return said, time.monotonic() - began


def drip(connection, data, pause=0.1):
    """Sends byte by byte until the other side has closed; returns how long that took."""
    began = time.monotonic()
    for index in range(len(data)):
        try:
            connection.sendall(data[index : index + 1])
            time.sleep(pause)
        except OSError:
            break
    return time.monotonic() - began


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


def put_head(server, name, size_bytes, **more):
    path = f"/{BUCKET}/{name}"
    headers = {"content-length": str(size_bytes), **more}
    return raw.request_head("PUT", path, raw.signed_headers(server, "PUT", path, headers=headers))


def delete_head(server, size_bytes):
    path, query = f"/{BUCKET}", "delete="
    headers = {"content-length": str(size_bytes)}
    signed = raw.signed_headers(server, "POST", path, query=query, headers=headers)
    return raw.request_head("POST", f"{path}?{query}", signed)


def test_nothing_but_a_connection(server):
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        _, seconds = closed_after(plain, 3 * PATIENCE_SECONDS)
    assert seconds > PATIENCE_SECONDS / 2


def test_a_slow_handshake(server):
    # The head of a ClientHello that announces 512 bytes.
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        seconds = drip(plain, b"\x16\x03\x01\x02\x00" + bytes(500))
    assert seconds < 3 * PATIENCE_SECONDS + 1


def test_an_idle_connection(server):
    with raw.connect(server) as connection:
        _, seconds = closed_after(connection, 4 * PATIENCE_SECONDS + 1)
    assert seconds > PATIENCE_SECONDS / 2


def test_slow_headers(server):
    with raw.connect(server) as connection:
        head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-Slow: 1\r\n" * 100
        seconds = drip(connection, head)
    assert seconds < 4 * PATIENCE_SECONDS + 1


def test_a_slow_body_leaves_no_bytes(server):
    before = server.blob_bytes()
    cut = raw.metric(server, "coffer_s3_connections_cut_off_total")
    with raw.connect(server) as connection:
        connection.sendall(put_head(server, "slow", MIB) + content(700_000))
        wait_for(lambda: server.blob_files() != [])
        seconds = drip(connection, content(1000))
    assert seconds < 4 * PATIENCE_SECONDS + 1
    wait_for(lambda: server.blob_bytes() == before)
    assert raw.metric(server, "coffer_s3_connections_cut_off_total") > cut
    assert s3_client(server).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_a_body_that_stops_is_told_so(server):
    with raw.connect(server) as connection:
        connection.sendall(put_head(server, "stops", MIB) + content(100_000))
        said, _ = closed_after(connection, 4 * PATIENCE_SECONDS + 1)
    assert said.startswith(b"HTTP/1.1 400 "), said[:200]
    assert b"<Code>RequestTimeout</Code>" in said


def test_xml_that_stops_is_told_so(server):
    with raw.connect(server) as connection:
        connection.sendall(delete_head(server, 1000) + b"<Delete>")
        said, _ = closed_after(connection, 4 * PATIENCE_SECONDS + 1)
    assert said.startswith(b"HTTP/1.1 400 "), said[:200]
    assert b"<Code>RequestTimeout</Code>" in said


def test_one_too_many_is_told_to_slow_down(own_server):
    """One request at a time: a second one waits for its turn, and then gets S3's answer, also
    while it sends a body, or before it does.
    """
    limits = "[limits]\nrequests = 1\nrequest-wait-seconds = 1\n"
    server = own_server(config=limits).start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    with raw.connect(server) as connection:
        connection.sendall(put_head(server, "first", MIB) + content(100_000))
        wait_for(lambda: raw.metric(server, "coffer_s3_requests_in_flight") == 1)
        status, headers, body = raw.send(server, "GET", f"/{BUCKET}")
        with raw.connect(server) as sending:
            sending.sendall(put_head(server, "second", 5 * MIB) + content(5 * MIB))
            assert raw.receive(sending)[0] == 503
        with raw.connect(server) as asking:
            asking.sendall(put_head(server, "third", MIB, expect="100-continue"))
            refused_status, refused_headers, _ = raw.receive(asking)
    assert (refused_status, refused_headers["connection"]) == (503, "close")
    assert status == 503
    assert headers["retry-after"] == "1"
    assert b"<Code>SlowDown</Code>" in body
    request_id = headers["x-amz-request-id"]
    assert f"<RequestId>{request_id}</RequestId>".encode() in body


def test_a_slow_reader(server):
    s3 = s3_client(server)
    s3.put_object(Bucket=BUCKET, Key="big", Body=bytes(64 * MIB))
    path = f"/{BUCKET}/big"
    head = raw.request_head("GET", path, raw.signed_headers(server, "GET", path))
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(raw.connect(server)) for _ in range(30)]
        for connection in connections:
            connection.sendall(head)
        time.sleep(1)
        assert server.resident_bytes() < MEMORY_MAX_BYTES
        wait_for(
            lambda: raw.metric(server, "coffer_s3_requests_in_flight") == 0,
            4 * PATIENCE_SECONDS + 2,
        )
        # What the sockets held can still be read; then it ends, far before the object does.
        received = 0
        with contextlib.suppress(OSError):
            while piece := connections[0].recv(1 << 20):
                received += len(piece)
        assert received < 32 * MIB
    s3.delete_object(Bucket=BUCKET, Key="big")


def test_a_steady_reader_is_not_cut_off(server):
    """Slow but steady: more than `progress-min-bytes` in each while."""
    s3 = s3_client(server)
    body = content(300_000)
    s3.put_object(Bucket=BUCKET, Key="steady", Body=body)
    got = s3.get_object(Bucket=BUCKET, Key="steady")["Body"]
    received = b""
    while piece := got.read(30_000):
        received += piece
        time.sleep(PATIENCE_SECONDS / 4)
    assert received == body
    s3.delete_object(Bucket=BUCKET, Key="steady")


OVERSIZED = {
    "a long header": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-A: 1\r\n" * 5000 + b"\r\n",
    "a long line": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "no HTTP": bytes(range(256)) * 100,
    "an endless head": b"a" * 1_000_000,
}


@pytest.mark.parametrize("kind", OVERSIZED)
def test_oversized_heads(server, kind):
    with raw.connect(server) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(OVERSIZED[kind])
        said, _ = closed_after(connection, 4 * PATIENCE_SECONDS + 1)
    assert said == b"" or said.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), said[:100]


def test_plain_http_on_the_tls_port(server):
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        closed_after(plain, 2 * PATIENCE_SECONDS)


def test_xml_that_is_too_large_or_nonsense(server):
    path, query = f"/{BUCKET}", "delete="
    for body in (
        b"<Delete>" + b"<Object><Key>a</Key></Object>" * 100_000 + b"</Delete>",
        b"<Delete>" + b"<a>" * 100_000,
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        b"<Delete><Object><Key>&b;</Key></Object></Delete>",
        b"\xff\xfe\x00",
    ):
        try:
            status, _, answer = raw.send(server, "POST", path, query=query, body=body)
        except (ConnectionError, ssl.SSLError):
            continue
        assert 400 <= status < 500, answer[:300]
    assert server.resident_bytes() < MEMORY_MAX_BYTES


def test_xml_of_nine_mebibytes(server):
    body = b"<Delete>" + bytes(9 * MIB)
    status, _, answer = raw.send(server, "POST", f"/{BUCKET}", query="delete=", body=body)
    assert (status, b"<Code>MaxMessageLengthExceeded</Code>" in answer) == (400, True), answer


def test_large_deletions_that_are_never_ended(own_server, capsys):
    """60 connections with 6 MiB each would be 360 MiB; whoever deletes one object still can."""
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    sent = b"<Delete>" + b" " * (6 * MIB)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(raw.connect(server)) for _ in range(60)]
        for connection in connections:
            connection.sendall(delete_head(server, len(sent) + 1) + sent)
        body = b"<Delete><Object><Key>a</Key></Object></Delete>"
        told = raw.md5_of(body)
        status, _, answer = raw.send(
            server, "POST", f"/{BUCKET}", query="delete=", body=body, headers=told
        )
        assert status == 200, answer
        assert raw.metric(server, "coffer_s3_requests_in_flight") > 2
        last = connections[-1]
        status, headers, answer = raw.receive(last)
        assert (status, headers["retry-after"]) == (503, "1")
        assert b"<Code>SlowDown</Code>" in answer
    with capsys.disabled():
        print(f"\nlarge deletions: {server.resident_peak_bytes() / MIB:.0f} MiB resident at most")
    assert server.resident_peak_bytes() < MEMORY_MAX_BYTES


def test_xml_in_many_small_chunks(own_server):
    """A byte a chunk: what a piece costs besides its bytes is not paid for each."""
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    chunks = b"1\r\n \r\n" * 1_000_000 + b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"
    headers = {"x-amz-decoded-content-length": "1000000", "x-amz-trailer": "x-amz-checksum-crc32"}
    headers["content-encoding"] = "aws-chunked"
    before = server.resident_bytes()
    status, _, _ = raw.send(
        server,
        "POST",
        f"/{BUCKET}",
        query="delete=",
        headers=headers,
        body=chunks,
        payload_hash="STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    )
    assert status == 400
    assert server.resident_peak_bytes() - before < 40 * MIB


def test_half_sent_uploads_leave_no_bytes(server):
    before = server.blob_bytes()
    body = content(400_000)

    def half():
        with raw.connect(server) as connection:
            connection.sendall(put_head(server, "half", MIB) + body)

    for _ in range(40):
        half()
    with contextlib.ExitStack() as stack:
        held = []
        for index in range(100):
            connection = stack.enter_context(raw.connect(server))
            connection.sendall(put_head(server, f"half-{index}", MIB) + body)
            held.append(connection)
        assert server.resident_bytes() < MEMORY_MAX_BYTES
    wait_for(lambda: server.blob_bytes() == before, 4 * PATIENCE_SECONDS + 2)
    assert s3_client(server).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_thousands_of_connections(server, capsys):
    """2,500 at once, all idle, and then all cut off."""
    count, failed = 2_500, []
    connections, lock = [], threading.Lock()
    context = raw.tls_context(server)

    def open_some(share):
        for _ in range(share):
            try:
                plain = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                sealed = context.wrap_socket(plain, server_hostname="127.0.0.1")
                with lock:
                    connections.append(sealed)
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=open_some, args=(count // 10,)) for _ in range(10)]
    for thread in threads:
        thread.start()
    peak = 0
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, server.resident_bytes())
        time.sleep(0.05)
    with capsys.disabled():
        print(f"\n{len(connections)} connections: {peak / MIB:.0f} MiB resident at most")
    assert peak < MEMORY_MAX_BYTES
    assert len(connections) > 2_000, failed[:3]
    # Somebody with a request still gets through, once idle ones have made room.
    s3 = s3_client(server, connect_timeout=20)
    s3.put_object(Bucket=BUCKET, Key="through", Body=b"a")
    s3.delete_object(Bucket=BUCKET, Key="through")
    wait_for(lambda: raw.metric(server, "coffer_s3_connections") <= 2, 4 * PATIENCE_SECONDS + 10)
    for connection in connections:
        connection.close()


def test_requests_in_a_row_on_one_connection(server):
    path = f"/{BUCKET}"
    with raw.connect(server) as connection:
        for _ in range(100):
            headers = raw.signed_headers(server, "GET", path)
            connection.sendall(raw.request_head("GET", path, headers))
            assert raw.receive(connection)[0] == 200


def test_memory_at_work(own_server, capsys):
    """100 connections of 64 MiB both ways at once stay within the promise."""
    server = own_server().start()
    s3 = s3_client(server, max_pool_connections=128)
    s3.create_bucket(Bucket=BUCKET)
    idle = server.resident_bytes()
    body = content(64 * MIB)
    s3.put_object(Bucket=BUCKET, Key="source", Body=body)

    def work(index):
        if index % 10 == 0:
            s3.put_object(Bucket=BUCKET, Key=f"{index}", Body=body)
            s3.delete_object(Bucket=BUCKET, Key=f"{index}")
        else:
            stream = s3.get_object(Bucket=BUCKET, Key="source")["Body"]
            for _ in stream.iter_chunks(1 << 20):
                pass

    threads = [threading.Thread(target=work, args=(index,)) for index in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peak = server.resident_peak_bytes()
    with capsys.disabled():
        print(f"\nresident: {idle / MIB:.0f} MiB idle, {peak / MIB:.0f} MiB with 100 connections")
    assert idle < 40 * MIB
    assert peak < 150 * MIB
