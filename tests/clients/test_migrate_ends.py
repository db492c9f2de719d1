"""coffer migrate to a service that can't be used any more: that is told once, and not of each."""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.mover import Mover, answering

FILES = 200

#: So many are moved at once.
AT_ONCE = 16


class Target(BaseHTTPRequestHandler):
    """A bucket that takes objects, until its state's `problem` has another answer.

    `problem` gets the name that is stored, or none where something else is asked."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        if self.met(None):
            return
        path = urlsplit(self.path).path
        self.answer(200 if path.count("/") == 1 else 404, "")

    def do_GET(self):
        if self.met(None):
            return
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            self.answer(200, "<ListBucketResult/>")
        else:
            self.answer(501, "<Error><Code>NotImplemented</Code></Error>")

    def do_PUT(self):
        self.rfile.read(int(self.headers["content-length"]))
        if not self.met(urlsplit(self.path).path.rsplit("/", 1)[-1]):
            self.server.stored.append(self.path)
            sum = self.headers["x-amz-checksum-crc64nvme"]
            self.answer(200, "", {"x-amz-checksum-crc64nvme": sum})

    def met(self, name):
        problem = self.server.problem(name)
        if problem == "away":
            self.close_connection = True
            self.connection.close()
        elif problem:
            status, code = problem
            self.answer(status, f"<Error><Code>{code}</Code></Error>")
        return bool(problem)

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for header, value in {"etag": '"e"', **(headers or {})}.items():
            self.send_header(header, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


@pytest.fixture
def target():
    with answering(Target, stored=[], problem=lambda _: None) as target:
        yield target


@pytest.fixture
def mover(target, tmp_path):
    mover = Mover.elsewhere(target, tmp_path / "home")
    (mover.home / "files").mkdir()
    for number in range(FILES):
        (mover.home / f"files/{number:03}").write_text(str(number))
    return mover


def migrate(mover, code):
    """Runs it: what it told to have failed."""
    command = ("migrate", "files", "s3://bucket/", "--retries", "0", "--json")
    out, _ = mover.run(*command, code=code)
    events = [json.loads(line) for line in out.splitlines()]
    return [event for event in events if event["event"] == "failed"]


@pytest.mark.parametrize(
    "problem",
    [
        (403, "InvalidAccessKeyId"),
        (401, "Unauthorized"),
        (404, "NoSuchBucket"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (507, "StorageFull"),
        "away",
    ],
)
def test_what_holds_for_all_is_told_once_and_the_next_run_goes_on(target, mover, problem):
    def after_some(name):
        is_asked = name is not None or problem != (507, "StorageFull")
        return problem if is_asked and len(target.stored) >= 50 else None

    target.problem = after_some
    *alone, told = migrate(mover, 1)
    # What found no room beside the last that did is told by itself.
    assert len(alone) <= (AT_ONCE if problem == (507, "StorageFull") else 0), alone
    assert "that holds for all that is left" in told["message"], told
    assert told["code"] == ("unreachable" if problem == "away" else problem[1])
    assert len(target.stored) < 100
    target.problem = lambda _: None
    assert migrate(mover, 0) == []
    assert len({path.rsplit("/")[-1] for path in target.stored}) == FILES


@pytest.mark.parametrize(
    "problem",
    [(500, "InternalError"), (503, "ServiceUnavailable"), (507, "StorageFull"), "away"],
)
def test_what_one_alone_meets_is_told_of_it_and_the_others_come(target, mover, problem):
    odd = {"007", "100"}
    target.problem = lambda name: problem if name in odd else None
    told = migrate(mover, 1)
    assert {event["what"].rsplit("/")[-1] for event in told} == odd
    assert len(target.stored) == FILES - 2
