"""coffer migrate to a target that compares no checksums, and tells them."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from harness.checksums import raw_checksum
from harness.content import MIB, write_file
from harness.mover import Mover, answering

HEADER = "x-amz-checksum-crc64nvme"


class Target(BaseHTTPRequestHandler):
    """A bucket that takes uploads in parts: their checksums are neither asked for nor compared. A
    byte of what it stores is turned over while its state's `damages` says so."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        number = int(self.query()["partNumber"][0])
        if number > self.server.most:
            return self.answer(503, "")
        self.server.parts[number] = body
        self.server.sent.append(number)
        return self.answer(200, "", etag=hashlib.md5(body).hexdigest())

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if "uploads" in self.query():
            self.server.parts.clear()
            result = "InitiateMultipartUploadResult"
            return self.answer(200, f"<{result}><UploadId>u</UploadId></{result}>")
        # As a server of S3 does, it stores nothing where another is meant.
        if "if-none-match" in self.headers and self.server.objects:
            return self.answer(412, "<Error><Code>PreconditionFailed</Code></Error>")
        whole = b"".join(part for _, part in sorted(self.server.parts.items()))
        if self.server.damages:
            whole = bytes([whole[0] ^ 1]) + whole[1:]
        key = unquote(urlsplit(self.path).path).split("/", 2)[2]
        self.server.objects[key] = whole
        result = "CompleteMultipartUploadResult"
        return self.answer(200, f"<{result}><ETag>{self.etag(whole)}</ETag></{result}>")

    def do_DELETE(self):
        self.answer(204, "")

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, query = unquote(urlsplit(self.path).path), self.query()
        key = path.split("/", 2)[2] if path.count("/") > 1 else ""
        if "uploadId" in query:
            rows = "".join(
                f"<Part><PartNumber>{number}</PartNumber><Size>{len(part)}</Size>"
                f"<ETag>&quot;{hashlib.md5(part).hexdigest()}&quot;</ETag></Part>"
                for number, part in sorted(self.server.parts.items())
            )
            return self.answer(200, f"<ListPartsResult>{rows}</ListPartsResult>")
        if "list-type" in query or "versions" in query:
            return self.listed("versions" in query)
        if key:
            whole = self.server.objects.get(key)
            if whole is None:
                return self.answer(404, "")
            sum = base64.b64encode(raw_checksum("CRC64NVME", whole)).decode()
            told = {HEADER: sum, "x-amz-checksum-type": "FULL_OBJECT"}
            return self.answer(200, whole, etag=self.etag(whole), headers=told)
        if query:
            return self.answer(404, "<Error><Code>NoSuchConfiguration</Code></Error>")
        return self.answer(200, "")

    def listed(self, is_versions):
        element = "Version" if is_versions else "Contents"
        version = "<VersionId>null</VersionId><IsLatest>true</IsLatest>" if is_versions else ""
        rows = "".join(
            f"<{element}><Key>{key}</Key>{version}<Size>{len(whole)}</Size>"
            f"<ETag>{self.etag(whole)}</ETag>"
            f"<LastModified>2026-09-21T14:13:20.000Z</LastModified></{element}>"
            for key, whole in self.server.objects.items()
        )
        name = "ListVersionsResult" if is_versions else "ListBucketResult"
        self.answer(200, f"<{name}>{rows}</{name}>")

    def query(self):
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    def etag(self, whole):
        return hashlib.md5(whole).hexdigest() + "-2"

    def answer(self, status, body, etag="e", headers=None):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        told = {"etag": f'"{etag}"', "content-length": str(len(body))} | (headers or {})
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def target():
    with answering(Target, parts={}, objects={}, sent=[], most=99, damages=False) as target:
        yield target


@pytest.fixture
def mover(target, tmp_path):
    mover = Mover.elsewhere(target, tmp_path / "home")
    mover.environment["XDG_STATE_HOME"] = str(mover.home)
    (mover.home / "files").mkdir()
    write_file(mover.home / "files/large", 40 * MIB)
    return mover


def migrate(mover, code):
    """Runs it: what it told to have failed."""
    command = ("migrate", "files", "s3://bucket/", "--retries", "0", "--jobs", "1", "--json")
    out, _ = mover.run(*command, code=code)
    events = [json.loads(line) for line in out.splitlines()]
    return [event for event in events if event["event"] == "failed"]


def test_parts_that_are_noted_wrong_go_again(target, mover):
    target.most = 2
    migrate(mover, 1)
    [ledger] = (mover.home / "coffer/migrations").glob("*.jsonl")
    text = ledger.read_text()
    assert text.count('"line":"part"') == 2
    ledger.write_text(re.sub(r'"number":1,(.*?)"crc":\d+', r'"number":1,\1"crc":5', text))
    target.most = 99
    target.sent.clear()
    assert migrate(mover, 0) == []
    assert target.objects["large"] == (mover.home / "files/large").read_bytes()
    assert sorted(target.sent) == [1, 3], "the part that was noted right is kept"
    assert migrate(mover, 0) == []


def test_what_was_stored_otherwise_is_replaced_by_the_next_run(target, mover):
    target.damages = True
    [failed] = migrate(mover, 1)
    assert failed["code"] == "checksum_mismatch", failed
    target.damages = False
    assert migrate(mover, 0) == []
    assert target.objects["large"] == (mover.home / "files/large").read_bytes()
    # What another stored there stays.
    target.objects["large"] = b"x" * (40 * MIB)
    [failed] = migrate(mover, 1)
    assert failed["code"] == "occupied", failed
