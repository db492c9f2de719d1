"""coffer put, get, cp, rm and ls where a network answers all by a page until one logs in."""

import subprocess
from http.server import BaseHTTPRequestHandler

import pytest

from harness.mover import Mover, answering
from harness.server import BINARY

PAGE = b"<!DOCTYPE html><html><title>Log in</title><br></html>"


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(PAGE)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer


@pytest.fixture
def mover(tmp_path):
    with answering(Page) as service:
        yield Mover.elsewhere(service, tmp_path / "home")


def test_a_login_page_is_no_success(mover):
    (mover.home / "small").write_bytes(b"small")
    (mover.home / "large").write_bytes(bytes(17 << 20))
    for command in (
        ("put", "small", "s3://b/k"),
        ("put", "large", "s3://b/k"),
        ("get", "s3://b/k", "out"),
        ("get", "-r", "s3://b/k/", "into"),
        ("get", "s3://b/k", "-"),
        ("cp", "s3://b/k", "s3://b/l"),
        ("rm", "s3://b/k"),
        ("rm", "-r", "--yes", "s3://b/k/"),
        ("ls", "s3://b"),
    ):
        out, told = mover.run(*command, code=1, timeout=60)
        assert "is there an S3 service at that address, and no login page" in told, command
        assert not out, command
    assert not (mover.home / "out").exists()


def shell(mover, command):
    """Runs it by a shell, which can close what is open."""
    return subprocess.run(
        ["sh", "-c", command, BINARY],
        env=mover.environment,
        cwd=mover.home,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirected", ["<&-", "0>written"])
def test_an_input_that_cannot_be_read_is_no_empty_object(mover, redirected):
    done = shell(mover, f'"$0" put - s3://b/k {redirected}')
    assert done.returncode == 2
    assert b"standard input is" in done.stderr


def test_an_output_that_cannot_be_written_is_told(mover):
    for command in ("get s3://b/k -", "ls s3://b"):
        done = shell(mover, f'"$0" {command} 1</dev/null')
        assert done.returncode == 1
        assert b"open to be read only" in done.stderr


def test_arguments_that_say_nothing_or_too_much(mover):
    (mover.home / "small").write_bytes(b"small")
    _, told = mover.run("put", "small", "s3://b/k", "--metadata", "=x", code=2)
    assert "write a name before the =" in told
    for command in (("ls",), ("subject", "list")):
        _, told = mover.run(*command, "--endpoint", "https://user:hidden@h:9000", code=2)
        assert "hidden" not in told
    _, told = mover.run("migrate", "https://user:hidden@h:9000", "--source-profile", "p", code=2)
    assert "hidden" not in told
