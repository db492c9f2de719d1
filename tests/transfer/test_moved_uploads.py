"""Uploads that the server does not look at, `verify = "later"`: past their beginning they go from
the socket into the file without coming to the program."""

import errno
import socket
import threading
import time

import pytest

from harness import raw, sealed
from harness.administration import ask, make_subject
from harness.content import MIB, content
from harness.power import tape
from harness.server import Server

#: Several steps, and an end within one.
BODY = content(4 * MIB + 12_345, "moved")


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moving")
    with Server(folder, config='verify = "later"\n') as running:
        sealed.make_bucket(running, "open")
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


def new_file(server, before):
    (file,) = set(server.blob_files()) - before
    return file


def test_a_disk_that_fails_can_fail_and_record_each_byte(faulty):
    before = set(faulty.blob_files())
    document = sealed.announced(faulty, "/open/film", len(BODY))
    message = sealed.seal(document, BODY)
    assert sealed.request(faulty, "PUT", document["ticket"], message)[0] == 204
    file = new_file(faulty, before)
    assert file.read_bytes() == message
    steps = tape.read(faulty.folder / "tape", faulty.folder)
    below = str(file.relative_to(faulty.folder))
    writes = [step for step in steps if step.what == tape.WRITE and step.path == below]
    recorded = bytearray(len(message))
    for step in writes:
        recorded[step.number : step.number + len(step.data)] = step.data
    assert recorded == message, "the record of writes is not what was written"
    for number in range(len(writes)):
        for error, status in ((errno.EIO, 500), (errno.ENOSPC, 507)):
            before = set(faulty.blob_files())
            document = sealed.announced(faulty, "/open/film", len(BODY))
            message = sealed.seal(document, BODY)
            faulty.arm("write", number, 1, "/blobs/", error)
            try:
                answered = sealed.request(faulty, "PUT", document["ticket"], message)[0]
            except ConnectionError:
                answered = status  # The server says so, and reads no more.
            failed = faulty.failed()
            faulty.heal()
            # Steps are as long as what has come: there may be fewer.
            assert answered == (status if failed else 204), (number, error)
            assert failed or number > 2, "it was never made to fail"
            if failed:
                assert sealed.commit(faulty, "/open/film", document["ticket"])[0] == 404
                assert files_become(faulty, before), "a file was left"


def files_become(server, expected):
    end = time.monotonic() + 5
    while set(server.blob_files()) != expected and time.monotonic() < end:
        time.sleep(0.02)
    return set(server.blob_files()) == expected


def test_pieces_of_any_size_come_whole_and_the_connection_goes_on(moving):
    for size in (1_448, 70_000, MIB):
        with socket.create_connection(("127.0.0.1", moving.data_port), timeout=30) as connection:
            for name in ("one", "two"):
                document = sealed.announced(moving, f"/open/{name}", len(BODY))
                message = sealed.seal(document, BODY)
                head = f"PUT /transfer/{document['ticket']} HTTP/1.1\r\n"
                head += f"Content-Length: {len(message)}\r\n\r\n"
                connection.sendall(head.encode())
                for at in range(0, len(message), size):
                    connection.sendall(message[at : at + size])
                assert raw.receive(connection, "PUT")[0] == 204
                assert sealed.commit(moving, f"/open/{name}", document["ticket"])[0] == 200
                assert raw.send(moving, "GET", f"/open/{name}")[2] == BODY, (size, name)


def test_a_byte_sent_as_urgent_stops_nothing(moving):
    document = sealed.announced(moving, "/open/urgent", len(BODY))
    message = sealed.seal(document, BODY)
    with sealed.Dripping(moving, document, message) as stream:
        stream.send(MIB)
        time.sleep(0.3)
        stream.socket.send(b"!", socket.MSG_OOB)
        stream.send(len(message))
        assert raw.receive(stream.socket, "PUT")[0] == 204
    assert sealed.commit(moving, "/open/urgent", document["ticket"])[0] == 200
    assert raw.send(moving, "GET", "/open/urgent")[2] == BODY


@pytest.mark.parametrize("is_broken", [False, True], ids=["ended", "broken"])
def test_what_stops_midway_leaves_nothing(moving, is_broken):
    before = set(moving.blob_files())
    document = sealed.announced(moving, "/open/half", len(BODY))
    with sealed.Dripping(moving, document, sealed.seal(document, BODY)) as stream:
        stream.send(3 * MIB)
        time.sleep(0.3)
        new_file(moving, before)
        if is_broken:
            linger = b"\1\0\0\0\0\0\0\0"
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert files_become(moving, before), "a file was left"
    assert sealed.commit(moving, "/open/half", document["ticket"])[0] == 404


@pytest.mark.parametrize("is_fast", [False, True], ids=["dripping", "fast"])
def test_a_right_that_is_taken_back_ends_it_within_a_second(moving, is_fast):
    name = f"ends-{'fast' if is_fast else 'slow'}"
    sealed.make_bucket(moving, name)
    credentials = make_subject(moving, name, "default..s0")
    document = sealed.announced(moving, f"/{name}/new", 5 << 30, credentials=credentials)
    with sealed.Dripping(moving, document, b"") as stream:
        chunks = sealed.chunks_without_end(document, 64)
        stream.socket.sendall(next(chunks))
        stream.socket.sendall(next(chunks))

        def send():
            try:
                for piece in chunks:
                    stream.socket.sendall(piece)
            except OSError:
                return

        sender = threading.Thread(target=send, daemon=True)
        if is_fast:
            sender.start()
        time.sleep(0.3)
        assert not is_fast or sender.is_alive(), "it ended by itself"
        ask(moving, "level", "erase", name, "--yes")
        if is_fast:
            sender.join(2)
            assert not sender.is_alive(), "it went on"
        else:
            assert stream.ends_within(1)
    assert moving.blob_bytes_at_most(64 * MIB)
