"""coffer get, ls and cp with servers whose answers contradict each other, or have no end."""

import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.mover import Mover, answering

LISTED = '<Contents><Key>p/k</Key><Size>5</Size><ETag>"listed"</ETag></Contents>'

ENDLESS = """<IsTruncated>true</IsTruncated>\
<NextContinuationToken>t</NextContinuationToken>"""


class Answering(BaseHTTPRequestHandler):
    """Has objects of 5 bytes, by what it says of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        headers = {"etag": '"now"', "content-length": "5"}
        if "sum" in self.path:
            headers["x-amz-checksum-crc32"] = "AAAAAA=="
        self.answer(headers)

    def do_GET(self):
        path = urlsplit(self.path)
        query = parse_qs(path.query, keep_blank_values=True)
        if "prefix" in query:
            self.list(query)
        elif path.path == "/":
            token = "<ContinuationToken>t</ContinuationToken>"
            self.xml(f"<ListAllMyBucketsResult>{token}</ListAllMyBucketsResult>")
        elif path.path == "/b/endless":
            self.answer({"etag": '"now"', "transfer-encoding": "chunked"})
            try:
                while True:
                    self.wfile.write(b"5\r\nhello\r\n")
                    time.sleep(0.01)
            except OSError:
                self.close_connection = True
        else:
            self.answer({"etag": '"now"'}, b"helloworld" if "longer" in self.path else b"hello")

    def list(self, query):
        if "versions" in query:
            ends = "<NextKeyMarker>k</NextKeyMarker><NextVersionIdMarker>1</NextVersionIdMarker>"
            more = f"<IsTruncated>true</IsTruncated>{ends}"
            self.xml(f"<ListVersionsResult>{more}</ListVersionsResult>")
            return
        listed = ENDLESS if query["prefix"] == ["round/"] else LISTED
        self.xml(f"<ListBucketResult>{listed}</ListBucketResult>")

    def do_PUT(self):
        self.xml('<CopyObjectResult><ETag>"now"</ETag></CopyObjectResult>')

    def xml(self, text):
        self.answer({"content-type": "application/xml"}, text.encode())

    def answer(self, headers, body=b""):
        self.send_response(200)
        if "transfer-encoding" not in headers:
            headers = {"content-length": str(len(body))} | headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def mover(tmp_path):
    with answering(Answering) as service:
        yield Mover.elsewhere(service, tmp_path / "home")


@pytest.mark.parametrize("key", ["longer", "endless"])
def test_more_than_was_announced_is_an_error(mover, key):
    for target in ("out", "-"):
        _, told = mover.run("get", f"s3://b/{key}", target, code=1, timeout=30)
        assert "is longer than was announced" in told
    assert not (mover.home / "out").exists()
    mover.run("get", "s3://b/right", "out")
    assert (mover.home / "out").read_bytes() == b"hello"


def test_what_went_to_standard_output_is_not_said_to_be_gone(mover):
    out, told = mover.run("get", "s3://b/sum", "-", code=1)
    assert out == b"hello"
    assert "what was written to standard output does not have the object's checksum" in told
    assert "nothing was kept" not in told
    _, told = mover.run("get", "s3://b/sum", "out", code=1)
    assert "nothing was kept" in told


def test_a_list_that_comes_to_itself_has_an_end(mover):
    for command in (
        ("ls", "s3://b/round/"),
        ("ls", "--versions", "s3://b/round/"),
        ("ls",),
        ("rm", "-r", "--yes", "s3://b/round/"),
        ("get", "-r", "s3://b/round/", "into"),
    ):
        _, told = mover.run(*command, code=1, timeout=30)
        assert "is a part of a list that comes to itself" in told, command


def test_an_object_that_was_replaced_since_it_was_listed_is_not_copied(mover):
    _, told = mover.run("cp", "-r", "s3://b/p/", "s3://b/q/", code=1)
    assert "was replaced while it was fetched or copied" in told
    assert "1 failed" in told
