"""The data port with TLS: what is told of it, who gets in, and that transfers are the same.

Where the kernel has TLS it makes the records; elsewhere the server does, and says so. These tests
hold either way; lab/tests/kernel.rs runs the kernel's in a virtual machine."""

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from harness import sealed
from harness.administration import ask, make_subject
from harness.clients import s3_client
from harness.content import MIB, content, digest, write_file
from harness.mover import Mover
from harness.raw import metric
from harness.server import Server, StartError, free_port

TLS = ("--data-tls", "kernel")


def connect(server, **options):
    """A connection to its data port, as a client that trusts its authority makes it."""
    context = ssl.create_default_context(cafile=str(server.ca))
    for name, value in options.items():
        setattr(context, name, value)
    plain = socket.create_connection(("127.0.0.1", server.data_port), timeout=20)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def asking(ticket, fill=0):
    """A request for a ticket, whose head is so long."""
    head = f"GET /transfer/{ticket} HTTP/1.1\r\n"
    rest = fill - len(head) - len("x: \r\n\r\n")
    return (head + (f"x: {'y' * rest}\r\n" if fill else "") + "\r\n").encode()


def until(stream, end):
    """All that comes until this does."""
    came = b""
    while not came.endswith(end):
        piece = stream.recv(1 << 16)
        assert piece, came
        came += piece
    return came


def test_how_it_speaks_is_said(speaking):
    offered = Path("/proc/sys/net/ipv4/tcp_available_ulp")
    has_it = offered.exists() and "tls" in offered.read_text().split()
    says = "which the kernel encrypts" if has_it else "this program encrypts and not the kernel"
    [line] = [line for line in speaking.log().splitlines() if "data port speaks TLS" in line]
    assert says in line
    assert ("WARN" in line) != has_it, "what costs more than was asked for is a warning"
    [ready] = [line for line in speaking.output if line.startswith("ready")]
    assert f"data https://127.0.0.1:{speaking.data_port}" in ready


def test_answers_tell_whether_it_does(speaking, serving):
    for server, expected in ((speaking, True), (serving, None)):
        s3_client(server).put_object(Bucket="open", Key="film", Body=content(MIB))
        assert sealed.offer(server, "/open/film").get("tls") is expected
        assert sealed.announced(server, "/open/new", MIB).get("tls") is expected


@pytest.mark.parametrize("size", [16 * 1024 + 1, MIB, 20 * MIB + 7])
def test_transfers_are_the_same(speaking, tmp_path, size):
    mover = Mover(speaking, tmp_path / "home")
    source = write_file(tmp_path / "source", size)
    moved = [metric(speaking, f"coffer_transfer_{way}_bytes_total") for way in ("received", "sent")]
    put = mover.done("put", source, "s3://open/x", "--transfer", "sealed")
    got = mover.done("get", "s3://open/x", tmp_path / "got", "--transfer", "sealed")
    for done in (put, got):
        assert (done["transfer"], done["verified"]) == ("sealed", True)
    assert digest(tmp_path / "got") == digest(source)
    for way, before in zip(("received", "sent"), moved, strict=True):
        assert metric(speaking, f"coffer_transfer_{way}_bytes_total") - before > size


def test_no_ticket_is_readable_on_the_wire(speaking):
    """What goes over the port is TLS from its first byte, a ticket too."""
    s3_client(speaking).put_object(Bucket="open", Key="film", Body=content(MIB))
    document = sealed.offer(speaking, "/open/film")
    wire = bytearray()
    with connect(speaking) as plain:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tcp = socket.create_connection(("127.0.0.1", speaking.data_port), timeout=20)
        session = plain.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")

        def pumped(step):
            while True:
                try:
                    done = step()
                    tcp.sendall(sent := outgoing.read())
                    wire.extend(sent)
                    return done
                except ssl.SSLWantReadError:
                    tcp.sendall(sent := outgoing.read())
                    came = tcp.recv(1 << 16)
                    assert came, "the server went away"
                    wire.extend(sent + came)
                    incoming.write(came)

        pumped(session.do_handshake)
        pumped(lambda: session.write(asking(document["ticket"])))
        came = bytearray()
        while len(came) < document["bytes"]:
            came += pumped(lambda: session.read(1 << 16))
        tcp.close()
    assert len(wire) > MIB
    body = bytes(came).partition(b"\r\n\r\n")[2]
    assert sealed.opened(document, body[: document["bytes"]]) == content(MIB)
    for secret in (document["ticket"].encode(), b"/transfer/", b"HTTP/1.1", body[:64]):
        assert secret not in wire


def test_plain_http_gets_a_sentence(speaking):
    with socket.create_connection(("127.0.0.1", speaking.data_port), timeout=20) as plain:
        plain.sendall(asking("A" * 43))
        came = until(plain, b"\n")
    assert came.startswith(b"HTTP/1.1 400 ") and b"https://" in came


def test_older_versions_of_tls_are_refused(speaking):
    with pytest.raises(ssl.SSLError), connect(speaking, maximum_version=ssl.TLSVersion.TLSv1_2):
        pass
    with connect(speaking) as stream:
        assert stream.version() == "TLSv1.3"


def test_requests_that_come_in_one_record_are_all_answered(speaking):
    """The first head is as long as one may be, so that the second waits in the record."""
    with connect(speaking) as stream:
        stream.sendall(asking("A" * 43, fill=4096) + asking("B" * 43))
        came = b""
        while came.count(b"404") < 2:
            piece = stream.recv(1 << 16)
            assert piece, came
            came += piece


def test_connections_that_never_shake_hands_go(tmp_path):
    config = "[limits]\nhandshake-timeout-seconds = 1\n"
    with Server(tmp_path, arguments=TLS, config=config) as server:
        address = ("127.0.0.1", server.data_port)
        silent = [socket.create_connection(address, timeout=10) for _ in range(50)]
        garbage = [socket.create_connection(address, timeout=10) for _ in range(50)]
        for one in garbage:
            one.sendall(b"\x16\x03\x01\x00\x10" + bytes(16))
        for one in silent + garbage:
            try:
                while one.recv(1 << 10):
                    pass
            except ConnectionResetError:
                pass
            one.close()
        with connect(server) as stream:
            stream.sendall(asking("A" * 43))
            assert b"404" in until(stream, b"\r\n\r\n")


def test_what_ends_a_transfer_ends_it_within_a_second(speaking):
    film = content(24 * MIB)
    s3_client(speaking).put_object(Bucket="open", Key="long", Body=film)
    credentials = make_subject(speaking, "watcher", "default..s0")
    sealed.make_bucket(speaking, "watched")
    s3_client(speaking).put_object(Bucket="watched", Key="long", Body=film)
    document = sealed.offer(speaking, "/watched/long", credentials=credentials)
    with connect(speaking) as stream:
        stream.sendall(asking(document["ticket"]))
        received = len(stream.recv(1 << 14))
        ask(speaking, "subject", "disable", "watcher")
        time.sleep(1)
        with pytest.raises(OSError):
            while piece := stream.recv(1 << 20):
                received += len(piece)
            raise OSError("ended")
    assert received < document["bytes"], "the stream went on"


def test_a_port_of_another_name_is_not_trusted(tmp_path):
    """The certificate is for the host of S3, and not for that which is advertised."""
    port = free_port()
    arguments = [*TLS, "--data-listen", f"0.0.0.0:{port}"]
    arguments += ["--data-advertise", f"https://127.0.0.2:{port}"]
    with Server(tmp_path, arguments=arguments) as server:
        sealed.make_bucket(server, "open")
        mover = Mover(server, tmp_path / "home")
        source = write_file(tmp_path / "source", MIB)
        _, said = mover.run("put", source, "s3://open/x", "--transfer", "sealed", code=1)
        assert f"the data port 127.0.0.2:{port} cannot be reached" in said
        assert "certificate" in said
        events = mover.events("put", source, "s3://open/x")
        [note] = [event["message"] for event in events if event["event"] == "note"]
        assert "going on by TLS" in note
        [done] = [event for event in events if event["event"] == "done"]
        assert (done["transfer"], done["verified"]) == ("tls", True)


def test_what_is_advertised_must_fit(tmp_path):
    arguments = [*TLS, "--data-advertise", "http://data.example.org:9002"]
    with pytest.raises(StartError) as refused:
        Server(tmp_path, arguments=arguments).start()
    assert "write https:// in place of http://" in str(refused.value)


def test_many_at_once(speaking, tmp_path):
    """Uploads and downloads side by side, over connections that are kept."""
    mover = Mover(speaking, tmp_path / "home")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(20):
        write_file(folder / f"{number}", 200_000 + number)
    words = ("--transfer", "sealed", "--jobs", "8")
    failed = []

    def back_and_forth(place):
        try:
            mover.run("put", "-r", folder, f"s3://open/{place}/", *words)
            mover.run("get", "-r", f"s3://open/{place}/", tmp_path / place, *words)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=back_and_forth, args=(place,)) for place in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for place in ("a", "b"):
        for number in range(20):
            assert digest(tmp_path / place / f"{number}") == digest(folder / f"{number}")
