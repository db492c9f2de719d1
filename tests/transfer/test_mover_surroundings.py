"""What the mover makes of where it runs: masks, modes, links, long names, addresses."""

import contextlib
import os
import socket
import stat
import struct
import subprocess
import threading
import time

import pytest

from harness.clients import client_environment
from harness.content import content
from harness.mover import Mover
from harness.server import BINARY, free_port


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("mask", "file", "folder"),
    [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750), (0o077, 0o600, 0o700)],
)
def test_fetched_files_are_as_the_users_mask_has_them(
    mover, s3, bucket, tmp_path, mask, file, folder
):
    for key in ("p/one", "p/inner/two"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    into = tmp_path / "into"
    mover.run("get", "-r", f"s3://{bucket}/p/", into, umask=mask)
    mover.run("get", f"s3://{bucket}/p/one", tmp_path / "alone", umask=mask)
    for path in (into / "one", into / "inner/two", tmp_path / "alone"):
        assert mode(path) == file
    for path in (into, into / "inner"):
        assert mode(path) == folder


def test_a_file_that_is_replaced_keeps_its_mode(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="x", Body=b"new")
    target = tmp_path / "target"
    for wanted in (0o600, 0o640, 0o755):
        target.write_text("old")
        target.chmod(wanted)
        mover.run("get", f"s3://{bucket}/x", target, umask=0o022)
        assert (target.read_text(), mode(target)) == ("new", wanted)


def test_what_others_may_not_read_they_may_not_read_on_the_way(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="x", Body=content(100_000))
    target = tmp_path / "secret"
    target.write_text("old")
    target.chmod(0o600)
    modes = set()
    gone = threading.Event()

    def look():
        while not gone.is_set():
            for path in tmp_path.glob(".secret.coffer-*"):
                try:
                    modes.add(mode(path))
                except FileNotFoundError:
                    continue

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(5):
        mover.run("get", f"s3://{bucket}/x", target, umask=0o022)
    gone.set()
    looking.join()
    # Between making the file and giving it its mode there is nothing in it.
    assert modes <= {0o600, 0o644}
    assert mode(target) == 0o600


def test_journals_of_uploads_are_private(mover, bucket, tmp_path):
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(200 << 20)
    process = mover.start("put", source, f"s3://{bucket}/x", "--jobs", "1", umask=0)
    end = time.monotonic() + 30
    while not mover.journals() and time.monotonic() < end:
        time.sleep(0.01)
    [journal] = mover.journals()
    assert (mode(journal), mode(journal.parent)) == (0o600, 0o700)
    process.kill()
    process.communicate(timeout=30)


def test_links_are_passed_over_unless_told_otherwise(mover, s3, bucket, tmp_path):
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "inner").mkdir(parents=True)
    outside.mkdir()
    (tree / "file").write_text("file")
    (outside / "secret").write_text("secret")
    (tree / "to-file").symlink_to("file")
    (tree / "to-folder").symlink_to(outside)
    (tree / "nowhere").symlink_to("missing")
    (tree / "inner/round").symlink_to(tree)
    named = tmp_path / "named"
    named.symlink_to(tree)
    # A folder may be named by a link.
    for folder in (tree, named):
        _, told = mover.run("put", "-r", folder, f"s3://{bucket}/p/")
        assert told.count("is a symbolic link") == 4
        assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["p/file"]
    notes = [
        each for each in mover.events("put", "-r", tree, f"s3://{bucket}/p/") if "message" in each
    ]
    assert {each["event"] for each in notes} == {"note"}
    _, told = mover.run("put", "-r", "--follow-links", tree, f"s3://{bucket}/q/", code=1)
    assert "links go in a circle" in told
    assert "nowhere" in told
    assert "2 failed, 3 went well" in told
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="q/")["Contents"]
    assert [each["Key"] for each in listed] == ["q/file", "q/to-file", "q/to-folder/secret"]


def test_names_longer_than_files_have(mover, s3, bucket, tmp_path):
    long = "n" * 300
    for key in (f"p/{long}", f"p/{long}/below", "p/good"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    into = tmp_path / "into"
    _, told = mover.run("get", "-r", f"s3://{bucket}/p/", into, code=1)
    assert "longer name than files have" in told
    assert told.count("under another name") == 2
    assert "2 failed, 1 went well" in told
    assert os.listdir(into) == ["good"]
    _, told = mover.run("get", f"s3://{bucket}/p/{long}", tmp_path, code=1)
    assert "fetch it under another name" in told
    assert not list(tmp_path.glob(".*"))
    mover.run("get", f"s3://{bucket}/p/{long}", tmp_path / "short")


def test_a_server_that_starts_is_waited_for(own_server, tmp_path):
    server = own_server().start()
    mover = Mover(server, tmp_path / "home")
    mover.run("ls")
    server.stop()
    process = mover.start("ls")
    time.sleep(0.5)
    assert process.poll() is None
    server.start()
    out, told = process.communicate(timeout=30)
    assert process.returncode == 0, (out, told)


def test_a_server_that_does_not_come_is_waited_for_once(mover, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(40):
        (tree / str(number)).write_text("x")
    nowhere = ("--endpoint", f"https://127.0.0.1:{free_port()}")
    began = time.monotonic()
    _, told = mover.run("put", "-r", tree, "s3://bucket/", *nowhere, code=1)
    assert told.count("Connection refused") == 1 and len(told.splitlines()) == 1, told
    assert 2 < time.monotonic() - began < 15
    began = time.monotonic()
    _, told = mover.run("ls", *nowhere, "--retries", "0", code=1)
    assert "cannot be reached: Connection refused" in told
    assert time.monotonic() - began < 2


def test_a_first_connection_that_is_reset_is_no_reason_to_give_up(mover, server, bucket, tmp_path):
    source = tmp_path / "source"
    source.write_text("x")
    for command in (
        ("put", source, f"s3://{bucket}/x"),
        ("get", f"s3://{bucket}/x", tmp_path / "target"),
        ("ls", f"s3://{bucket}"),
    ):
        for retries, code in ((8, 0), (0, 1)):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                resetting = threading.Thread(target=reset_once, args=(listener, server.port))
                resetting.start()
                where = ("--endpoint", f"https://127.0.0.1:{listener.getsockname()[1]}")
                _, told = mover.run(*command, *where, "--retries", retries, code=code)
                assert code == 0 or "Connection reset" in told
                resetting.join()


def reset_once(listener, port):
    """Resets the first connection, and passes on the others to a port while any comes."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.05)
    connection.close()
    listener.settimeout(2)
    with contextlib.suppress(TimeoutError):
        while True:
            here, _ = listener.accept()
            there = socket.create_connection(("127.0.0.1", port))
            for pair in ((here, there), (there, here)):
                threading.Thread(target=pump, args=pair, daemon=True).start()


def pump(source, target):
    """Passes on what comes, and its end."""
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def test_tls_and_plain_http_at_the_wrong_port(mover, server, tmp_path):
    source = tmp_path / "source"
    source.write_text("x")
    plain = server.endpoint.replace("https", "http")
    for command in (
        ("ls",),
        ("put", source, "s3://bucket/x"),
        ("get", "s3://bucket/x", tmp_path / "target"),
    ):
        _, told = mover.run(*command, "--endpoint", plain, code=2)
        assert f"if it speaks TLS, write {server.endpoint}" in told
    for answer in (b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n", b""):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            answering = threading.Thread(target=answer_all, args=(listener, answer))
            answering.start()
            _, told = mover.run("ls", "--endpoint", f"https://127.0.0.1:{port}", code=1)
            listener.shutdown(socket.SHUT_RDWR)
            answering.join()
        assert "TLS: check the port, or write http://" in told
        assert told.count("\n") == 1
        for word in ("rustls", "corrupt", "Invalid", "eof"):
            assert word not in told
    # What speaks TLS and nothing else answers a request by an alert.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        alert = b"\x15\x03\x01\x00\x02\x02\x46"
        answering = threading.Thread(target=answer_once, args=(listener, alert))
        answering.start()
        _, told = mover.run("ls", "--endpoint", f"http://127.0.0.1:{port}", code=2)
        answering.join()
    assert f"write https://127.0.0.1:{port}" in told


def answer_all(listener, answer):
    """Answers each connection so, until no other can be made."""
    with contextlib.suppress(OSError):
        while True:
            with contextlib.suppress(ConnectionError):
                answer_once(listener, answer)


def answer_once(listener, answer):
    """Reads something, answers, and waits for the other side to end."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(10)
        connection.recv(1 << 16)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def test_addresses_need_not_be_typed(server, bucket, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = client_environment(server, home)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del environment[name]

    def run(*arguments, code=0, **more):
        command = [BINARY, *map(str, arguments)]
        options = {"cwd": home, "capture_output": True, "timeout": 60, "check": False}
        done = subprocess.run(command, env=environment | more, **options)
        assert done.returncode == code, done
        return (done.stdout + done.stderr).decode()

    file = ("--credentials", server.credentials_path)
    assert bucket in run("ls", *file, AWS_ENDPOINT_URL=server.endpoint)
    (home / ".aws").mkdir()
    (home / ".aws/config").write_text(f"[profile p]\nendpoint_url = {server.endpoint}\n")
    config = home / "credentials"
    config.write_text(server.credentials_path.read_text().replace("[default]", "[p]"))
    assert bucket in run("ls", "--credentials", config, "--profile", "p")
    assert "say which server" in run("ls", *file, code=2)
    # Commands of administration ask for theirs.
    told = run("level", "list", *file, code=2, AWS_ENDPOINT_URL=server.endpoint)
    assert "where its administration is: --endpoint" in told
    assert "--credentials" in run("offline", "ls", "--data", server.data, *file, code=2)
    # The server itself says where it serves, and has its authority in the folder.
    del environment["AWS_CA_BUNDLE"]
    assert bucket in run("ls", "--data", server.data)
    assert bucket in run("ls", "--data", server.data, *file)
