"""coffer get from servers that answer what was not asked."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.mover import Mover

DATA = bytes(range(256)) * (40 << 12)


class Odd:
    """Has one object. `get(range)` gives status, headers and body of the answer to a GET."""

    def __init__(self, get):
        self.asked = asked = []

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send_response(404 if self.path == "/b" else 200)
                self.send_header("content-length", str(len(DATA)))
                self.send_header("etag", '"a"')
                self.end_headers()

            def do_GET(self):
                asked.append(self.headers.get("range"))
                first, last = map(int, self.headers["range"][6:].split("-"))
                status, headers, body = get(first, last)
                self.send_response(status)
                for name, value in ({"content-length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

        self.listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.listening.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.listening.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listening.shutdown()
        self.listening.server_close()

    def mover(self, home):
        """A user of it."""
        return Mover.elsewhere(self.listening, home)


def content_range(first, last):
    return {"content-range": f"bytes {first}-{last}/{len(DATA)}", "etag": '"a"'}


def test_another_range_is_not_taken_for_the_one_that_was_asked(tmp_path):
    def get(first, last):
        shift = 4096 if first else 0
        headers = content_range(first - shift, last - shift)
        return 206, headers, DATA[first - shift : last + 1 - shift]

    with Odd(get) as odd:
        mover = odd.mover(tmp_path / "home")
        _, told = mover.run("get", "s3://b/k", "out", code=1)
        assert "not the range that was asked for" in told
        assert not (mover.home / "out").exists()


def test_another_objects_bytes_are_not_taken(tmp_path):
    def get(first, last):
        return 206, content_range(first, last) | {"etag": '"b"'}, DATA[first : last + 1]

    with Odd(get) as odd:
        mover = odd.mover(tmp_path / "home")
        _, told = mover.run("get", "s3://b/k", "out", code=1)
        assert "was replaced while it was fetched" in told
        assert not (mover.home / "out").exists()


@pytest.mark.parametrize("retries", [0, 2])
def test_a_request_is_sent_again_as_often_as_was_said(tmp_path, retries):
    with Odd(lambda *_: (500, {}, b"")) as odd:
        mover = odd.mover(tmp_path / "home")
        command = ("get", "s3://b/k", "out", "--retries", retries, "--jobs", "1")
        mover.run(*command, code=1)
        assert len(odd.asked) == retries + 1


def test_right_ranges_come(tmp_path):
    def get(first, last):
        return 206, content_range(first, last), DATA[first : last + 1]

    with Odd(get) as odd:
        mover = odd.mover(tmp_path / "home")
        mover.run("get", "s3://b/k", "out")
        assert (mover.home / "out").read_bytes() == DATA


def test_a_server_without_ranges_is_named_as_one(tmp_path):
    with Odd(lambda *_: (200, {"etag": '"a"'}, DATA)) as odd:
        mover = odd.mover(tmp_path / "home")
        _, told = mover.run("get", "s3://b/k", "out", code=1)
        assert "knows no ranges" in told and "login page" not in told
        assert not (mover.home / "out").exists()
