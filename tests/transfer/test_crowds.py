"""The data port under those who mean no good: memory stays bounded, and S3 is served meanwhile."""

import contextlib
import json
import os
import socket
import time

import pytest

from harness import raw, sealed
from harness.administration import ask
from harness.clients import s3_client
from harness.content import MIB, content
from harness.server import Server

IDLE = 3_000
SIZE = 16 * MIB
CONFIG = """
[limits]
progress-timeout-seconds = 2
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
        ask(running, "level", "create", "open", "--rank", 0, "--same-label", "--sealed-transfer")
        ask(running, "bucket", "create", "open", "--level", "open")
        s3_client(running).put_object(Bucket="open", Key="film", Body=content(SIZE, "film"))
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


def offer_of(server, name="film"):
    headers = {"x-coffer-transfer": "sealed"}
    status, _, body = raw.send(server, "GET", f"/open/{name}", headers=headers)
    assert status == 200
    return json.loads(body)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.data_port), timeout=30)


def ask_for(connection, ticket):
    connection.sendall(f"GET /transfer/{ticket} HTTP/1.1\r\n\r\n".encode())


def is_served(server, seconds):
    """Whether S3 answers, and how a whole transfer goes, within so many seconds each."""
    began = time.monotonic()
    s3_client(server).put_object(Bucket="open", Key="small", Body=b"small")
    assert time.monotonic() - began < seconds
    offer = offer_of(server)
    with connect(server) as connection:
        ask_for(connection, offer["ticket"])
        got = 0
        while got < offer["bytes"]:
            piece = connection.recv(1 << 20)
            assert piece, f"{got} of {offer['bytes']}"
            got += len(piece)


def test_idle_connections_cost_little_and_keep_no_one_out(server):
    before = server.resident_bytes()
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(connect(server))
        is_served(server, 5)
        grown = server.resident_bytes() - before
        assert grown < 100 * MIB, f"{grown} bytes for {IDLE} connections"


def test_a_connection_that_is_done_makes_room(tmp_path):
    """All connections that there may be, idle after an upload: a newcomer gets the place of one."""
    slots = 16  # a quarter of those to S3
    with Server(tmp_path, config=f"[limits]\nconnections = {4 * slots}\n") as server:
        sealed.make_bucket(server, "open")
        with contextlib.ExitStack() as stack:
            for number in range(slots):
                message = sealed.announced(server, f"/open/{number}", MIB)
                body = sealed.seal(message, content(MIB))
                connection = stack.enter_context(connect(server))
                head = f"PUT /transfer/{message['ticket']} HTTP/1.1\r\n"
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                assert connection.recv(4096).startswith(b"HTTP/1.1 204"), number
            began = time.monotonic()
            newcomer = stack.enter_context(connect(server))
            ask_for(newcomer, "A" * 43)
            assert newcomer.recv(4096).startswith(b"HTTP/1.1 404")
            assert time.monotonic() - began < 5


def test_garbage_harms_nothing(server):
    before = server.resident_bytes()
    for number in range(500):
        with connect(server) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(os.urandom(1 + 37 * number % 20_000))
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(4096)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer
    is_served(server, 5)
    assert server.resident_bytes() - before < 64 * MIB


def test_who_reads_nothing_is_cut_off_and_holds_little(server):
    before = server.resident_bytes()
    cut = raw.metric(server, "coffer_transfers_total")
    readers = []
    for _ in range(50):
        reader = connect(server)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask_for(reader, offer_of(server)["ticket"])
        readers.append(reader)
    is_served(server, 5)
    assert server.resident_bytes() - before < 64 * MIB
    deadline = time.monotonic() + 30
    while raw.metric(server, "coffer_transfers_total") - cut < 51:
        assert time.monotonic() < deadline, "slow readers are still served"
        time.sleep(0.2)
    status, text = raw.get_admin(server, "/metrics")
    series = 'coffer_transfers_total{direction="get",outcome="cut"}'
    (line,) = (line for line in text.splitlines() if line.startswith(series))
    assert status == 200 and float(line.split()[-1]) >= 50
    for reader in readers:
        reader.close()


def test_a_head_that_does_not_end_is_not_waited_for(server):
    with connect(server) as connection:
        connection.sendall(b"GET /transfer/")
        began = time.monotonic()
        assert connection.recv(100) == b""
        assert time.monotonic() - began < 15


def test_one_connection_serves_many_transfers(server):
    with connect(server) as connection:
        for _ in range(3):
            offer = offer_of(server)
            ask_for(connection, offer["ticket"])
            status, headers, body = raw.receive(connection)
            assert status == 200 and len(body) == offer["bytes"]
            assert "connection" not in headers
            ask_for(connection, offer["ticket"])
            assert raw.receive(connection)[0] == 404
