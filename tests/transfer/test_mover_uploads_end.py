"""coffer put where an upload in parts can't be ended: it stays known until it is."""

from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.content import MIB, write_file
from harness.mover import Mover, answering

REFUSED = (403, "<Error><Code>AccessDenied</Code></Error>")


class Uploads(BaseHTTPRequestHandler):
    """Takes uploads in parts. Its state's `completes` says whether it makes objects of them, and
    `ending` how it answers to their ends; `there` has what it holds of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        there, upload_id = self.server.there, query.get("uploadId", [None])[0]
        if "uploads" in query:
            self.server.count += 1
            there.append(f"u{self.server.count}")
            result = "InitiateMultipartUploadResult"
            return self.answer(200, f"<{result}><UploadId>{there[-1]}</UploadId></{result}>")
        if upload_id and upload_id not in there:
            return self.answer(404, "<Error><Code>NoSuchUpload</Code></Error>")
        match self.command:
            case "PUT":
                return self.answer(200, "")
            case "POST" if self.server.completes:
                there.remove(upload_id)
                result = "CompleteMultipartUploadResult"
                return self.answer(200, f"<{result}><ETag>e</ETag></{result}>")
            case "POST":
                return self.answer(400, "<Error><Code>InvalidPart</Code></Error>")
            case "DELETE" if self.server.ending == "lost":
                there.remove(upload_id)
                self.close_connection = True
                return self.connection.close()
            case "DELETE" if self.server.ending:
                return self.answer(*self.server.ending)
            case "DELETE":
                there.remove(upload_id)
                return self.answer(204, "")
            case "GET" if upload_id:
                return self.answer(200, "<ListPartsResult></ListPartsResult>")
        return self.answer(404, "")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("etag", '"e"')
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = handle_any


@pytest.fixture
def service():
    with answering(Uploads, there=[], count=0, completes=False, ending=None) as service:
        yield service


@pytest.fixture
def mover(service, tmp_path):
    mover = Mover.elsewhere(service, tmp_path / "home")
    mover.environment["XDG_STATE_HOME"] = str(mover.home)
    write_file(mover.home / "large", 17 * MIB)
    return mover


PUT = ("put", "large", "s3://b/k", "--retries", "0")


@pytest.mark.parametrize("ending", [REFUSED, "lost", (503, "")])
def test_an_upload_whose_end_is_not_known_is_ended_by_a_later_run(service, mover, ending):
    service.ending = ending
    _, told = mover.run(*PUT, code=1)
    assert "InvalidPart" in told
    assert len(mover.journals()) == 1, "it is noted"
    # It can't be ended yet, and another upload fails as well: both are known.
    _, told = mover.run(*PUT, code=1)
    assert "InvalidPart" in told
    service.ending, service.completes = None, True
    mover.run(*PUT)
    assert service.there == []
    assert mover.journals() == []


def test_an_upload_stays_known_though_the_file_is_stored(service, mover):
    service.ending = REFUSED
    mover.run(*PUT, code=1)
    service.completes = True
    mover.run(*PUT)
    assert service.there == ["u1"] and len(mover.journals()) == 1
    service.ending = None
    write_file(mover.home / "large", 18 * MIB)
    mover.run(*PUT)
    assert service.there == [] and mover.journals() == []


def test_an_upload_that_is_ended_leaves_nothing(service, mover):
    mover.run(*PUT, code=1)
    assert service.there == [] and mover.journals() == []
