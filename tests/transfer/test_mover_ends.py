"""coffer put -r, get -r and cp -r with a service that can't be used any more: that is told once,
and not of each file."""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from harness.mover import Mover, answering

FILES = 60

#: So many go well before the service fails.
BEFORE = 20

HTML = "text/html"
PAGE = "<!DOCTYPE html><title>Log in</title>"


def refusal(status, code):
    return status, f"<Error><Code>{code}</Code></Error>", "application/xml"


PROBLEMS = {
    "503": refusal(503, "ServiceUnavailable"),
    "500": refusal(500, "InternalError"),
    "401": refusal(401, "Unauthorized"),
    "key": refusal(403, "InvalidAccessKeyId"),
    "page": (200, PAGE, HTML),
    "login": (403, PAGE, HTML),
    "away": None,
}


class Service(BaseHTTPRequestHandler):
    """Has objects of one byte below `p/`, and takes any, until its state's `problem` says whether
    a request has another answer."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        url = urlsplit(self.path)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        query = parse_qs(url.query, keep_blank_values=True)
        name = unquote(url.path).partition("/")[2].partition("/")[2]
        problem = self.server.problem(name)
        if problem is not False:
            return self.gone() if problem is None else self.say(*problem)
        if "list-type" in query and "delimiter" not in query:
            row = "<Contents><Key>{}</Key><Size>1</Size><ETag>e</ETag></Contents>"
            rows = "".join(row.format(f"p/{number:03}") for number in range(FILES))
            return self.say(200, f"<ListBucketResult>{rows}</ListBucketResult>", "")
        if "list-type" in query:
            return self.say(200, "<ListBucketResult/>", "")
        if name and self.command in ("PUT", "GET"):
            self.server.moved.append(name)
        copied = "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"
        body = "" if self.command == "PUT" else "x"
        return self.say(200, copied if "x-amz-copy-source" in self.headers else body, "")

    def gone(self):
        self.close_connection = True
        self.connection.close()

    def say(self, status, body, kind):
        self.send_response(status)
        if kind != HTML:
            self.send_header("etag", '"e"')
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer


COMMANDS = {
    "put": ("put", "-r", "files", "s3://b/q/"),
    "get": ("get", "-r", "s3://b/p/", "into"),
    "cp": ("cp", "-r", "s3://b/p/", "s3://b/q/"),
}


@pytest.fixture
def service():
    with answering(Service, moved=[], problem=lambda _: False) as service:
        yield service


@pytest.fixture
def mover(service, tmp_path):
    mover = Mover.elsewhere(service, tmp_path / "home")
    (mover.home / "files").mkdir()
    for number in range(FILES):
        (mover.home / f"files/{number:03}").write_text("x")
    return mover


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_holds_for_all_is_told_once(service, mover, command, problem):
    def after_some(_):
        return PROBLEMS[problem] if len(service.moved) >= BEFORE else False

    service.problem = after_some
    out, told = mover.run(*COMMANDS[command], "--retries", "0", "--json", code=1)
    events = [json.loads(line) for line in out.splitlines()]
    assert [event for event in events if event["event"] == "failed"] == []
    [line] = told.splitlines()
    message = json.loads(line)["error"]["message"]
    assert "that holds for all that is left, so no more of it was tried" in message, message
    # What was moved is told, each by itself and as a number.
    moved = sum(event["event"] == "done" for event in events)
    assert f"{moved} were moved" in message, (moved, message)
    service.problem = lambda _: False
    service.moved.clear()
    mover.run(*COMMANDS[command])
    if command == "get":
        assert len(service.moved) == FILES - moved, "it goes on"


@pytest.mark.parametrize("problem", ["503", "500", "401", "page", "away"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_one_meets_alone_is_told_of_it_and_the_others_go_on(service, mover, command, problem):
    odd = ("007", "050")
    service.problem = lambda name: PROBLEMS[problem] if name.endswith(odd) else False
    _, told = mover.run(*COMMANDS[command], "--retries", "0", code=1)
    assert f"2 failed, {FILES - 2} went well" in told, told
    assert [told.count(f"/{name}") for name in odd] == [1, 1], told


def test_many_that_are_refused_alike_are_counted(service, mover):
    service.problem = lambda name: refusal(403, "AccessDenied") if name else False
    _, told = mover.run(*COMMANDS["put"], code=1)
    assert f"{FILES} failed, 0 went well" in told
    assert f"{FILES - 16} more: the server answered AccessDenied" in told
    assert told.count("AccessDenied") == 17, told
    events = mover.events(*COMMANDS["put"], code=1)
    assert sum(event["event"] == "failed" for event in events) == FILES
