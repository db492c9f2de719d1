"""coffer put with servers that tell of something else than was sent, or end before they answer."""

import signal
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.content import MIB, write_file
from harness.mover import Mover, answering

WRONG = "AAAAAAAAAAA="


class Uploads(BaseHTTPRequestHandler):
    """Takes whatever comes, and tells of it as the state's `odd` says."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(404)

    def do_GET(self):
        self.answer(404)

    def do_PUT(self):
        self.rfile.read(int(self.headers["content-length"]))
        headers, body, status = {"etag": '"e"'}, "", 200
        match self.server.odd:
            case "part checksum" | "whole checksum":
                headers["x-amz-checksum-crc64nvme"] = WRONG
            case "error":
                body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
            case "range":
                status = 206
        self.answer(status, body, headers)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "uploads" in query:
            self.server.began.set()
            self.server.may_answer.wait(1)
            result = "InitiateMultipartUploadResult"
            self.answer(200, f"<{result}><UploadId>u</UploadId></{result}>")
            return
        etag = "" if self.server.odd == "no etag" else "<ETag>e</ETag>"
        told = {
            "completed checksum": f"<ChecksumCRC64NVME>{WRONG}</ChecksumCRC64NVME>"
            "<ChecksumType>FULL_OBJECT</ChecksumType>",
            # It is of the parts' checksums, and nothing to compare with.
            "composite": f"<ChecksumCRC64NVME>{WRONG}</ChecksumCRC64NVME>"
            "<ChecksumType>COMPOSITE</ChecksumType>",
        }.get(self.server.odd, "")
        result = "CompleteMultipartUploadResult"
        self.answer(200, f"<{result}>{etag}{told}</{result}>")

    def do_DELETE(self):
        self.server.ended.append(self.path)
        if self.server.odd == "stands still":
            self.server.has_ended.wait(60)
        self.answer(204)

    def answer(self, status, body="", headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


@pytest.fixture
def service():
    may_answer = threading.Event()
    may_answer.set()
    state = {"odd": "", "ended": [], "began": threading.Event(), "may_answer": may_answer}
    with answering(Uploads, **state, has_ended=threading.Event()) as service:
        yield service
        service.has_ended.set()


@pytest.fixture
def mover(service, tmp_path):
    return Mover.elsewhere(service, tmp_path / "home")


@pytest.mark.parametrize(
    ("odd", "size"),
    [("whole checksum", 100), ("part checksum", 20 * MIB), ("completed checksum", 20 * MIB)],
)
def test_another_checksum_than_was_sent_is_an_error(service, mover, tmp_path, odd, size):
    source = write_file(tmp_path / "source", size)
    mover.run("put", source, "s3://b/k")
    service.odd = odd
    _, told = mover.run("put", source, "s3://b/k", "--json", code=1)
    assert '"checksum_mismatch"' in told
    assert "s3://b/k" in told
    assert WRONG in told


def test_a_checksum_of_checksums_is_not_compared(service, mover, tmp_path):
    service.odd = "composite"
    mover.run("put", write_file(tmp_path / "source", 20 * MIB), "s3://b/k")


@pytest.mark.parametrize(
    ("odd", "size", "expected"),
    [
        ("error", 100, "AccessDenied"),
        ("error", 20 * MIB, "AccessDenied"),
        ("range", 100, "a request for a range"),
        ("range", 20 * MIB, "a request for a range"),
        ("no etag", 20 * MIB, "names no ETag"),
    ],
)
def test_what_is_no_answer_to_an_upload_stores_nothing(
    service, mover, tmp_path, odd, size, expected
):
    service.odd = odd
    source = write_file(tmp_path / "source", size)
    _, told = mover.run("put", source, "s3://b/k", "--retries", "0", code=1)
    assert expected in told


def test_an_upload_that_is_begun_as_the_command_is_ended_is_ended(service, mover, tmp_path):
    service.may_answer.clear()
    started = mover.start("put", write_file(tmp_path / "source", 20 * MIB), "s3://b/k")
    assert service.began.wait(30)
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=30)
    assert started.returncode == 1, told
    assert service.ended == ["/b/k?uploadId=u"]


def test_a_stream_that_is_broken_off_waits_for_no_server_that_stands_still(service, mover):
    service.odd = "stands still"
    started = mover.start("put", "-", "s3://b/k", stdin=subprocess.PIPE)
    started.stdin.write(bytes(20 * MIB))
    started.stdin.flush()
    assert service.began.wait(30)
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    assert started.wait(20) == 1
    assert service.ended == ["/b/k?uploadId=u"]


def test_a_value_that_no_header_holds_is_named(mover, tmp_path):
    source = write_file(tmp_path / "source", 100)
    _, told = mover.run("put", source, "s3://b/k", "--content-type", "text/a\nb", code=2)
    assert "--content-type" in told
    assert "--endpoint:" not in told
    for name, what in (
        ("ACCESS_KEY_ID", "the access key's id"),
        ("SESSION_TOKEN", "the session token"),
    ):
        before = dict(mover.environment)
        mover.environment |= {f"AWS_{name}": "hidden\nvalue"}
        _, told = mover.run("put", source, "s3://b/k", code=1)
        assert f"{what}: has a line break" in told
        assert "hidden" not in told
        mover.environment = before


def test_connections_that_end_as_they_shake_hands_are_made_again(mover, tmp_path):
    made = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def end_all():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                made.append(connection.recv(65536))
                connection.close()

        threading.Thread(target=end_all, daemon=True).start()
        port = listening.getsockname()[1]
        mover.environment |= {"AWS_ENDPOINT_URL": f"https://127.0.0.1:{port}"}
        _, told = mover.run("ls", "s3://b/", "--retries", "3", code=1)
        listening.shutdown(socket.SHUT_RDWR)
    assert len(made) == 4
    assert "check the port" in told
