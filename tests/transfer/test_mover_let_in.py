"""coffer put and get where a service lets them in no more: a session ends, a network wants a login,
or something on the way spoils the signatures of some names."""

import base64
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from harness.content import MIB, content
from harness.mover import Mover, answering

PART = 16 * MIB
DATA = content(40 * MIB, "let in")
LIST = "<IsTruncated>false</IsTruncated>"


def error(code):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()


PAGE = b"<!DOCTYPE html><title>Log in</title>"
HTML = {"content-type": "text/html"}
#: How it is answered from some request on.
OUT = {
    "session": (400, {}, error("ExpiredToken")),
    "key": (403, {}, error("InvalidAccessKeyId")),
    "denied": (403, {}, error("AccessDenied")),
    "page": (200, HTML, PAGE),
    "refusal": (403, HTML, PAGE),
    "redirect": (302, {"location": "http://login.invalid/"}, b""),
}


class Door(BaseHTTPRequestHandler):
    """Answers as `play` says, and once there are `most` reads or parts, as `out` does."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        url = urlsplit(self.path)
        self.query = parse_qs(url.query, keep_blank_values=True)
        self.key = unquote(url.path)
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        door = self.server
        is_out = door.out and len(door.moved) >= door.most
        status, headers, body = door.out if is_out else door.play(self)
        self.send_response(status)
        for name, value in ({"content-length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer


def fetched(asked):
    """Has an object."""
    if asked.command == "HEAD":
        return 200, {"etag": '"e"', "content-length": str(len(DATA))}, b""
    if "range" not in asked.headers:
        return 404, {}, error("NoSuchKey")
    first, last = map(int, asked.headers["range"][6:].split("-"))
    asked.server.moved.append(first)
    told = {"etag": '"e"', "content-range": f"bytes {first}-{last}/{len(DATA)}"}
    return 206, told, DATA[first : last + 1]


def stored(asked):
    """Takes an upload in parts."""
    door = asked.server
    if asked.command == "HEAD":
        return 404, {}, b""
    if "uploads" in asked.query:
        door.begun.append(asked.key)
        begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
        return 200, {}, f"{begun}</InitiateMultipartUploadResult>".encode()
    if asked.command == "DELETE":
        door.ended.append(asked.key)
        return 204, {}, b""
    if asked.command == "PUT":
        number = int(asked.query["partNumber"][0])
        door.moved.append(number)
        door.parts[number] = asked.body
        return 200, {"etag": f'"{number}"'}, b""
    if asked.command == "POST":
        result = "CompleteMultipartUploadResult"
        return 200, {}, f"<{result}><ETag>e</ETag></{result}>".encode()
    parts = "".join(
        f'<Part><PartNumber>{number}</PartNumber><Size>{len(part)}</Size><ETag>"{number}"</ETag>'
        "</Part>"
        for number, part in sorted(door.parts.items())
    )
    return 200, {}, f"<ListPartsResult>{LIST}{parts}</ListPartsResult>".encode()


@pytest.fixture
def door():
    state = {"out": None, "most": 0, "moved": [], "parts": {}, "begun": [], "ended": []}
    with answering(Door, play=None, **state) as service:
        yield service


@pytest.fixture
def mover(door, tmp_path):
    return Mover.elsewhere(door, tmp_path / "home")


@pytest.mark.parametrize("way", OUT)
def test_what_was_fetched_stays_for_who_is_let_in_again(door, mover, way):
    door.play, door.out, door.most = fetched, OUT[way], 1
    _, told = mover.run("get", "s3://b/k", "out", "--jobs", "1", code=1)
    assert "what was fetched of it is kept: the same command" in told
    # Nor does an attempt that is still not let in throw it away.
    mover.run("get", "s3://b/k", "out", "--jobs", "1", code=1)
    door.out = None
    done = mover.done("get", "s3://b/k", "out")
    assert done["kept_bytes"] == PART
    assert (mover.home / "out").read_bytes() == DATA
    assert sorted(path.name for path in mover.home.glob(".out*")) == []


def test_where_nothing_was_fetched_nothing_stays(door, mover):
    door.play = lambda asked: OUT["denied"] if asked.command == "GET" else fetched(asked)
    _, told = mover.run("get", "s3://b/k", "out", "--jobs", "1", code=1)
    assert "AccessDenied" in told and "is kept" not in told
    assert list(mover.home.glob(".out*")) == []


@pytest.mark.parametrize("way", OUT)
def test_what_was_stored_stays_for_who_is_let_in_again(door, mover, way):
    (mover.home / "file").write_bytes(DATA)
    door.play, door.out, door.most = stored, OUT[way], 1
    _, told = mover.run("put", "file", "s3://b/k", "--jobs", "1", code=1)
    assert "what was stored of it is kept: the same command" in told
    mover.run("put", "file", "s3://b/k", "--jobs", "1", code=1)
    door.out = None
    done = mover.done("put", "file", "s3://b/k")
    assert done["kept_bytes"] == PART
    assert b"".join(part for _, part in sorted(door.parts.items())) == DATA
    assert door.begun == ["/b/k"] and door.ended == [], "no other upload, and none was ended"
    assert sorted(door.moved) == [1, 2, 3]


def test_a_session_that_ends_before_it_is_compared_lets_no_file_pass(door, mover):
    body = b"a small object"
    whole = base64.b64encode(bytes(4)).decode()

    def play(asked):
        if "attributes" in asked.query or "partNumber" in asked.query:
            return OUT["session"]
        told = {"etag": '"e"', "x-amz-checksum-crc32c": f"{whole}-2"}
        told |= {"content-length": str(len(body))}
        if asked.command == "HEAD":
            return 200, told, b""
        return 206, told | {"content-range": f"bytes 0-{len(body) - 1}/{len(body)}"}, body

    door.play = play
    _, told = mover.run("get", "s3://b/k", "out", code=1)
    assert "ExpiredToken" in told
    assert not (mover.home / "out").exists()


def entries(*keys):
    rest = "<Size>1</Size><ETag>e</ETag><LastModified>2026-09-21T14:13:20.000Z</LastModified>"
    listed = "".join(f"<Contents><Key>{key}</Key>{rest}</Contents>" for key in keys)
    return 200, {}, f"<ListBucketResult>{LIST}{listed}</ListBucketResult>".encode()


def test_a_folder_says_what_was_moved_when_its_session_ends(door, mover):
    def play(asked):
        if "list-type" in asked.query:
            return entries("p/a", "p/b", "p/c")
        if asked.key == "/b":
            return 404, {}, b""
        door.moved.append(asked.key)
        return 200, {"etag": '"e"'}, b"x"

    door.play, door.out, door.most = play, OUT["session"], 2
    _, told = mover.run("get", "-r", "s3://b/p/", "into", "--jobs", "1", code=1)
    assert told.count("ExpiredToken") == 1
    assert "what was moved is noted: the same command" in told
    door.out = None
    mover.run("get", "-r", "s3://b/p/", "into")
    assert door.moved == ["/b/p/a", "/b/p/b", "/b/p/c"]


@pytest.mark.parametrize("jobs", [1, 8])
def test_names_that_are_signed_wrong_are_told_alone(door, mover, jobs):
    def spoiled(asked):
        if "+" in asked.key:
            return 403, {}, error("SignatureDoesNotMatch")
        if asked.command == "PUT":
            door.moved.append(asked.key)
        return 200, {"etag": '"e"'}, b""

    names = [f"{number}+" for number in range(12)] + ["right"]
    for name in names:
        (mover.home / name).write_text("x")
    door.play = spoiled
    # That the bucket tells what it allows shows that the secret is the right one.
    _, told = mover.run("put", *names, "s3://b/", "--jobs", jobs, code=1)
    assert told.count("SignatureDoesNotMatch") == 12 and "12 failed, 1 went well" in told
    assert door.moved == ["/b/right"]


NAMES = ("1+", "2+", "3")


@pytest.mark.parametrize("buckets", ["listed", "denied"])
@pytest.mark.parametrize("command", ["put", "put -r", "cp -r"])
def test_a_name_that_is_signed_wrong_ends_no_folder_though_it_is_the_first(
    door, mover, buckets, command
):
    odd = []

    def spoiled(asked):
        if asked.key == "/":
            listed = b"<ListAllMyBucketsResult></ListAllMyBucketsResult>"
            return (200, {}, listed) if buckets == "listed" else OUT["denied"]
        if "cp" in command and "list-type" in asked.query:
            row = "<Contents><Key>f/{}</Key><Size>1</Size><ETag>e</ETag></Contents>"
            rows = "".join(row.format(name) for name in NAMES)
            return 200, {}, f"<ListBucketResult>{LIST}{rows}</ListBucketResult>".encode()
        if asked.command == "HEAD" and "cp" in command:
            return 200, {"etag": '"e"', "content-length": "1"}, b""
        if asked.command == "PUT":
            if asked.key not in odd and len(odd) < 2:
                odd.append(asked.key)
            if asked.key in odd:
                return 403, {}, error("SignatureDoesNotMatch")
            door.moved.append(asked.key)
            copied = b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"
            return 200, {"etag": '"e"'}, copied if "x-amz-copy-source" in asked.headers else b""
        # What the bucket allows is not told.
        return 403, {}, error("SignatureDoesNotMatch")

    folder = mover.home / "f"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text("x")
    door.play = spoiled
    names = [folder / name for name in NAMES]
    places = {"put": [*names, "s3://b/"], "put -r": [folder, "s3://b/"]}
    places["cp -r"] = ["s3://b/f/", "s3://b/g/"]
    moving = [*command.split(), *places[command]]
    _, told = mover.run(*moving, "--jobs", "1", code=1)
    assert told.count("SignatureDoesNotMatch") == 2 and "2 failed, 1 went well" in told, told
    assert len(door.moved) == 1


def test_signatures_that_are_all_wrong_are_told_once(door, mover):
    asked_for = []

    def spoiled(asked):
        asked_for.append(asked.key)
        return 403, {}, error("SignatureDoesNotMatch")

    files = mover.home / "files"
    files.mkdir()
    for number in range(20):
        (files / f"{number}").write_text("x")
    door.play = spoiled
    _, told = mover.run("put", "-r", files, "s3://b/", "--jobs", "2", code=1)
    assert told.count("SignatureDoesNotMatch") == 1 and len(told.splitlines()) == 1, told
    # Beside two files, what the bucket allows was asked for.
    assert len(asked_for) <= 4, asked_for
