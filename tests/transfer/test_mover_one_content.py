"""coffer get, cp, rm and migrate with services of others: what comes is one content of the object
that was asked for, and nothing else."""

import os
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.content import MIB
from harness.migration import Migrator
from harness.mover import Mover, answering

LARGE = 17 * MIB
PAGE = b"<!DOCTYPE html><html><title>Log in</title></html>"
ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code></Error>"


def modified(content):
    """When a content was stored: one second after the one before."""
    return formatdate(1_790_000_000 + content, usegmt=True)


class Playing(BaseHTTPRequestHandler):
    """Answers by `play(request)` of its server: status, headers, body."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        url = urlsplit(self.path)
        self.query = parse_qs(url.query, keep_blank_values=True)
        self.key = url.path.removeprefix("/b/")
        self.span = None
        if "range" in self.headers:
            first, last = map(int, self.headers["range"][6:].split("-"))
            self.span = slice(first, last + 1)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status, headers, body = self.server.play(self)
        self.send_response(status)
        if "transfer-encoding" not in headers:
            headers = {"content-length": str(len(body))} | headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer


def listed(*objects):
    """A list of names, lengths, ETags and times."""

    def entry(key, size, etag, time):
        tag = f"<ETag>{etag}</ETag>" if etag else ""
        rest = f"<Size>{size}</Size>{tag}<LastModified>{time}</LastModified>"
        return f"<Contents><Key>{key}</Key>{rest}</Contents>"

    entries = "".join(entry(*one) for one in objects)
    return 200, {}, f"<ListBucketResult>{entries}</ListBucketResult>".encode()


class Replaced:
    """Has an object `k` that another content takes the place of, after so many reads. What an
    answer tells of a content is what `head` and `part` say."""

    def __init__(self, size, head, part=None, after=1):
        self.size, self.head, self.part, self.after = size, head, part or head, after
        self.content = 0
        self.reads = 0
        self.is_down_behind_the_first = False

    def __call__(self, asked):
        if asked.key in ("b", "/b") or "list-type" in asked.query:
            return 404, {}, b""
        body = bytes([65 + self.content]) * self.size
        if asked.command == "HEAD":
            return 200, self.head(self.content) | {"content-length": str(self.size)}, b""
        span = asked.span
        if self.is_down_behind_the_first and span.start > 0:
            return 503, {}, b""
        told = {"content-range": f"bytes {span.start}-{span.stop - 1}/{self.size}"}
        answer = 206, told | self.part(self.content), body[span]
        self.reads += 1
        if self.reads == self.after:
            self.content += 1
        return answer


def dated(content):
    return {"last-modified": modified(content), "x-amz-request-id": "1"}


def tagged(content):
    return {"etag": f'"{content}"'}


def weak(content):
    return dated(content) | {"etag": f'W/"{content}"'}


def unmarked(_):
    return {"x-amz-request-id": "1"}


@pytest.fixture
def play(tmp_path):
    """Has a service answer by a function, and gives a user of it."""
    with answering(Playing, play=None) as service:
        mover = Mover.elsewhere(service, tmp_path / "home")

        def begin(function):
            service.play = function
            return mover

        yield begin


@pytest.mark.parametrize("target", ["out", "-"])
@pytest.mark.parametrize(
    ("head", "part", "told"),
    [
        (dated, dated, "was replaced while it was fetched"),
        (tagged, tagged, "was replaced while it was fetched"),
        (tagged, dated, "tells no ETag, though the object has one"),
        (weak, weak, "was replaced while it was fetched"),
        (lambda _: {"etag": 'W/"0"'}, None, "names the object's bytes, which a weak one does not"),
        (unmarked, unmarked, "tells neither an ETag that names the object's bytes"),
    ],
)
def test_a_file_is_of_one_content(play, head, part, told, target):
    mover = play(Replaced(LARGE, head, part))
    out, why = mover.run("get", "s3://b/k", target, "--jobs", "1", "--retries", "1", code=1)
    assert told in why
    assert not (mover.home / "out").exists()
    assert set(out) <= {65}


def test_no_condition_is_set_on_a_weak_tag(play):
    object_ = Replaced(LARGE, weak, after=0)

    def strict(asked):
        if "list-type" in asked.query:
            time = "2026-09-21T14:13:20.000Z"
            return listed(("p/k", LARGE, 'W/"0"', time), ("p/s", LARGE, 'W/"0"', time))
        # Compared strongly, as RFC 9110 has it, no weak tag is the same as another.
        return (412, {}, b"") if "if-match" in asked.headers else object_(asked)

    mover = play(strict)
    mover.run("get", "s3://b/k", "out")
    mover.run("get", "-r", "s3://b/p/", "into")
    for file in ("out", "into/k", "into/s"):
        assert (mover.home / file).read_bytes() == b"A" * LARGE


@pytest.mark.parametrize("head", [dated, tagged, weak, unmarked])
def test_a_small_file_comes_by_what_is_told(play, head):
    mover = play(Replaced(100, head, after=0))
    mover.run("get", "s3://b/k", "out")
    assert (mover.home / "out").read_bytes() == b"A" * 100


def test_after_a_break_no_other_content_is_gone_on_with(play):
    object_ = Replaced(LARGE, dated, after=0)
    mover = play(object_)
    object_.is_down_behind_the_first = True
    mover.run("get", "s3://b/k", "out", "--jobs", "1", "--retries", "0", code=1)
    object_.is_down_behind_the_first = False
    same = mover.done("get", "s3://b/k", "out")
    assert same["kept_bytes"] == 16 * MIB
    object_.is_down_behind_the_first = True
    mover.run("get", "s3://b/k", "out", "--jobs", "1", "--retries", "0", code=1)
    object_.is_down_behind_the_first = False
    object_.content = 1
    other = mover.done("get", "s3://b/k", "out")
    assert other["kept_bytes"] == 0
    assert (mover.home / "out").read_bytes() == b"B" * LARGE


def test_a_file_of_a_folder_is_of_one_content(play):
    def cut(asked):
        if "list-type" in asked.query:
            return listed(("p/a", 10, "", "2026-09-21T14:13:20.000Z"))
        if asked.command == "HEAD":
            return 200, dated(1) | {"content-length": "10"}, b""
        if asked.span:
            told = {"content-range": f"bytes {asked.span.start}-{asked.span.stop - 1}/10"}
            return 206, dated(1) | told, (b"B" * 10)[asked.span]
        asked.close_connection = True
        return 200, dated(0) | {"content-length": "10"}, b"A" * 5

    mover = play(cut)
    _, told = mover.run("get", "-r", "s3://b/p/", "into", code=1)
    assert "was replaced while it was fetched" in told
    assert not (mover.home / "into/a").exists()


ODD = {
    "part": (206, {"content-range": "bytes 0-4/10"}, b"01234"),
    "short": (200, {}, b"012"),
    "chunks": (200, {"transfer-encoding": "chunked"}, b"3\r\n012\r\n0\r\n\r\n"),
    "empty": (200, {}, b""),
    "nothing": (204, {}, b""),
    "other": (203, {}, b"0123456789"),
}


@pytest.mark.parametrize("key", ODD)
def test_what_s3_gives_to_no_read_is_no_file(play, key):
    def odd(asked):
        if "list-type" in asked.query:
            return listed((f"p/{key}", 10, "e", "2026-09-21T14:13:20.000Z"))
        if asked.command == "HEAD":
            return 200, {"etag": '"e"', "content-length": "10"}, b""
        status, headers, body = ODD[key]
        return status, headers | {"etag": '"e"'}, body

    mover = play(odd)
    for command in (("-r", "s3://b/p/", "into"), (f"s3://b/p/{key}", "out")):
        mover.run("get", *command, "--retries", "0", code=1)
    assert not (mover.home / "into" / key).exists()
    assert not (mover.home / "out").exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "Text/HTML; charset=utf-8", "last-modified": modified(0)},
        {"last-modified": modified(0)},
        {"content-type": "text/html", "x-amz-cf-id": "abc"},
        {"content-type": "application/xhtml+xml", "last-modified": modified(0)},
    ],
)
def test_a_login_page_is_no_object_whatever_it_is_called(play, headers):
    mover = play(lambda _: (200, headers, PAGE))
    for command in (
        ("get", "s3://b/k", "out"),
        ("get", "s3://b/k", "-"),
        ("cp", "s3://b/k", "s3://b/l"),
        ("rm", "s3://b/k"),
    ):
        out, told = mover.run(*command, "--retries", "0", code=1)
        assert "no login page or proxy" in told
        assert out == b""
    assert not (mover.home / "out").exists()


def test_an_error_behind_a_success_is_no_object(play):
    headers = {"content-type": "application/xml", "x-amz-request-id": "1"}
    mover = play(lambda _: (200, headers, ERROR))
    for target in ("out", "-"):
        out, _ = mover.run("get", "s3://b/k", target, "--retries", "0", code=1)
        assert out == b""
    # An object may be such a document: then it is told what it is.
    for more in ({"etag": '"e"'}, {"last-modified": modified(0)}):
        mover = play(lambda _, more=more: (200, headers | more, ERROR))
        mover.run("get", "s3://b/k", "out")
        assert (mover.home / "out").read_bytes() == ERROR


def test_an_empty_page_deletes_nothing(play):
    def page(asked):
        if asked.command == "HEAD":
            return 200, {"etag": '"e"', "content-length": "5"}, b""
        return 200, {"content-type": "text/html"}, b""

    mover = play(page)
    _, told = mover.run("rm", "s3://b/k", code=1)
    assert "is no S3 answer to a deletion" in told


@pytest.mark.parametrize("name", ["link/x", "a/link/x", "link/"])
def test_folders_below_the_target_are_reached_through_no_link(play, name):
    body = b"" if name.endswith("/") else b"x"

    def named(asked):
        if "list-type" in asked.query:
            time = "2026-09-21T14:13:20.000Z"
            return listed((f"p/{name}", len(body), "e", time), ("p/z", 1, "e", time))
        return 200, {"etag": '"e"'}, b"x" if asked.key.endswith("z") else body

    mover = play(named)
    outside = mover.home / "outside"
    outside.mkdir()
    (mover.home / "into/a").mkdir(parents=True)
    for folder in (mover.home / "into", mover.home / "into/a"):
        (folder / "link").symlink_to(outside)
    _, told = mover.run("get", "-r", "s3://b/p/", "into", code=1)
    assert "link is a link" in told
    assert os.listdir(outside) == []
    assert (mover.home / "into/z").read_bytes() == b"x"
    # The target itself may be one.
    (mover.home / "named").symlink_to(outside)
    mover.run("get", "-r", "s3://b/p/", "named")
    assert (outside / "z").exists()


class Source:
    """Has one large object, and answers to reads of it in a way of its own."""

    def __init__(self, bucket, tell, part):
        self.bucket, self.tell, self.part = bucket, tell, part
        self.contents = [bytes([65 + content]) * LARGE for content in (0, 1)]
        self.content = 0

    def __call__(self, asked):
        path = urlsplit(asked.path).path
        told = self.tell(self.content)
        if path == f"/{self.bucket}/k" and asked.command == "HEAD":
            return 200, told | {"content-length": str(LARGE)}, b""
        if path == f"/{self.bucket}/k" and asked.span:
            answer = self.part(self, asked.span)
            self.content = 1
            return answer
        if "list-type" in asked.query:
            etag = told.get("etag", "").strip('"')
            return listed(("k", LARGE, etag, "2026-09-21T14:13:20.000Z"))
        return 501, {}, b"<Error><Code>NotImplemented</Code></Error>"

    def range(self, span, shift=0):
        first, last = span.start - shift, span.stop - 1 - shift
        return {"content-range": f"bytes {first}-{last}/{LARGE}"} | self.tell(self.content)


def replaced(source, span):
    return 206, source.range(span), source.contents[source.content][span]


def shifted(source, span):
    source.content = 0
    shift = min(span.start, 4096)
    return 206, source.range(span, shift), source.contents[0][span]


@pytest.mark.parametrize(
    ("tell", "part", "code"),
    [
        (dated, replaced, "object_changed"),
        (tagged, replaced, "object_changed"),
        (tagged, shifted, "failed"),
    ],
)
def test_what_is_migrated_is_of_one_content(server, s3, bucket, tmp_path, tell, part, code):
    with answering(Playing, play=Source(bucket, tell, part)) as service:
        endpoint = f"http://127.0.0.1:{service.server_port}"
        home = tmp_path / "home"
        user = Migrator(server, home, endpoint=endpoint, credentials=("id", "secret"))
        run = user.migrate("--jobs", "1", source=f"{endpoint}/{bucket}", code=1)
    assert run.codes() == [code]
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
