"""coffer ls, get, cp and rm with servers whose lists are odd: nothing of them counts as gone, or as
asked for, that is not."""

import re
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.mover import Mover, answering


class Listing(BaseHTTPRequestHandler):
    """Has objects of one byte, which it lists as its state's `listed` says, and notes what changes.

    `listed` has the query of a list, and gives names and what else stands there. What is in
    `locked` is not deleted."""

    protocol_version = "HTTP/1.1"
    # Head and body go out one by one, and the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(b"x")

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "prefix" not in query:
            return self.answer(b"x")
        query = {name: values[0] for name, values in query.items()}
        keys, rest = self.server.listed(query)
        kind, element = (
            ("ListVersionsResult", "Version")
            if "versions" in query
            else ("ListBucketResult", "Contents")
        )
        version = "<VersionId>v</VersionId>" if "versions" in query else ""
        rows = [f"<{element}><Key>{key}</Key>{version}<Size>1</Size></{element}>" for key in keys]
        return self.answer(f"<{kind}>{''.join(rows)}{rest}</{kind}>".encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        failed = []
        for key in re.findall(r"<Key>(.*?)</Key>", body):
            if key in self.server.locked:
                failed.append(f"<Error><Key>{key}</Key><Code>AccessDenied</Code></Error>")
            else:
                self.server.changed.append(key)
        self.answer(f"<DeleteResult>{''.join(failed)}</DeleteResult>".encode())

    def do_PUT(self):
        self.server.changed.append(self.path)
        self.answer(b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"e"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def service():
    with answering(Listing, listed=None, changed=[], locked=()) as service:
        yield service


@pytest.fixture
def mover(service, tmp_path):
    return Mover.elsewhere(service, tmp_path / "home")


TOKEN = "<NextContinuationToken>t</NextContinuationToken>"
KEY_MARKER = "<NextKeyMarker>p/a</NextKeyMarker>"


def in_two(flag, marker=TOKEN):
    """Two names on two pages, of which the first says so that there is more."""

    def listed(query):
        if "continuation-token" in query or "key-marker" in query:
            return ["p/b"], ""
        return ["p/a"], f"{flag}{marker}"

    return listed


@pytest.mark.parametrize("flag", ["1", "TRUE", " true\n", "True", "false", None])
def test_a_list_goes_on_however_that_is_told(service, mover, flag):
    flag = f"<IsTruncated>{flag}</IsTruncated>" if flag else ""
    service.listed = in_two(flag, KEY_MARKER)
    out, _ = mover.run("ls", "--versions", "s3://b/p/")
    assert out.count(b"p/") == 2
    pages = in_two(flag)
    service.listed = lambda query: ([], "") if "p/b" in service.changed else pages(query)
    mover.run("get", "-r", "s3://b/p/", "out")
    assert {path.name for path in (mover.home / "out").iterdir()} == {"a", "b"}
    out, _ = mover.run("ls", "-r", "s3://b/p/")
    assert out.count(b"p/") == 2
    mover.run("rm", "-r", "--yes", "s3://b/p/")
    assert sorted(service.changed) == ["p/a", "p/b"]


def test_an_object_that_is_listed_twice_comes_once(service, mover):
    def listed(query):
        if "continuation-token" in query:
            return ["p/b", "p/c", "p/c"], ""
        return ["p/a", "p/a", "p/b"], f"<IsTruncated>true</IsTruncated>{TOKEN}"

    service.listed = listed
    for command in (("get", "-r", "s3://b/p/", "out"), ("cp", "-r", "s3://b/p/", "s3://c/")):
        events = mover.events(*command)
        assert [event["event"] for event in events].count("failed") == 0, events
        assert events[-1]["done"] == 3, events
    assert len(service.changed) == 3
    assert {path.name for path in (mover.home / "out").iterdir()} == {"a", "b", "c"}


def test_a_list_that_does_not_say_whether_it_goes_on_is_an_error(service, mover):
    flag = "<IsTruncated>?</IsTruncated>"
    service.listed = in_two(flag)
    for command in (
        ("ls", "-r", "s3://b/p/"),
        ("get", "-r", "s3://b/p/", "out"),
        ("cp", "-r", "s3://b/p/", "s3://c/"),
        ("rm", "-r", "--yes", "s3://b/p/"),
    ):
        _, told = mover.run(*command, code=1)
        assert "IsTruncated" in told, command
    service.listed = in_two(flag, KEY_MARKER)
    for command in (("ls", "--versions"), ("rm", "-r", "--versions", "--yes")):
        _, told = mover.run(*command, "s3://b/p/", code=1)
        assert "IsTruncated" in told, command
    assert service.changed == []


def test_names_that_were_not_asked_for_are_left_alone(service, mover):
    service.listed = lambda _: (["p/a", "keep/other"], "")
    for command in (
        ("rm", "-r", "--yes", "s3://b/p/"),
        ("rm", "-r", "--versions", "--yes", "s3://b/p/"),
        ("cp", "-r", "s3://b/p/", "s3://c/"),
        ("get", "-r", "s3://b/p/", "out"),
        ("ls", "-r", "s3://b/p/"),
    ):
        _, told = mover.run(*command, code=1)
        assert "lists keep/other, which does not begin with p/" in told, command
    assert service.changed == []


def test_pages_that_come_round_have_an_end(service, mover):
    following = {None: "A", "A": "B", "B": "C", "C": "A"}

    def listed(query):
        token = following[query.get("continuation-token")]
        more = f"<NextContinuationToken>{token}</NextContinuationToken>"
        return ["p/a"], f"<IsTruncated>true</IsTruncated>{more}"

    service.listed = listed
    for command in (
        ("ls", "-r", "s3://b/p/"),
        ("get", "-r", "s3://b/p/", "out"),
        ("cp", "-r", "s3://b/p/", "s3://c/"),
        ("rm", "-r", "--yes", "s3://b/p/"),
    ):
        _, told = mover.run(*command, code=1, timeout=30)
        assert "is a part of a list that comes to itself" in told, command


def by_offsets(service, keys):
    """Pages of 1,000, which go on behind so many of the objects that there are."""

    def listed(query):
        there = [key for key in keys if key not in set(service.changed)]
        start = int(query.get("continuation-token", 0))
        end = start + 1_000
        more = f"<NextContinuationToken>{end}</NextContinuationToken>"
        more = f"<IsTruncated>true</IsTruncated>{more}" if end < len(there) else ""
        return there[start:end], more

    return listed


def test_all_are_deleted_where_a_list_goes_on_by_offsets(service, mover):
    keys = [f"p/{number:04}" for number in range(4_500)]
    service.listed = by_offsets(service, keys)
    mover.run("rm", "-r", "--yes", "s3://b/p/")
    assert sorted(service.changed) == keys


def test_what_can_not_be_deleted_is_told_once_and_the_rest_is(service, mover):
    keys = [f"p/{number:04}" for number in range(3_500)]
    service.locked = {"p/0007", "p/1500"}
    service.listed = by_offsets(service, keys)
    _, told = mover.run("rm", "-r", "--yes", "s3://b/p/", code=1)
    assert sorted(service.changed) == [key for key in keys if key not in service.locked]
    assert [told.count(key) for key in sorted(service.locked)] == [1, 1]


def test_a_server_that_deletes_nothing_is_told(service, mover):
    keys = [f"p/{number:04}" for number in range(2_500)]

    def listed(query):
        start = int(query.get("continuation-token", 0))
        more = f"<NextContinuationToken>{start + 1_000}</NextContinuationToken>"
        more = f"<IsTruncated>true</IsTruncated>{more}" if start < 2_000 else ""
        return keys[start : start + 1_000], more

    service.listed = listed
    _, told = mover.run("rm", "-r", "--yes", "s3://b/p/", code=1, timeout=60)
    assert "as many names as before begin with p/" in told


def test_pages_of_the_same_names_have_an_end_though_each_asks_for_another(service, mover):
    asked = []

    def listed(query):
        asked.append(query)
        element = "NextKeyMarker" if "versions" in query else "NextContinuationToken"
        more = f"<{element}>p/{len(asked)}</{element}>"
        return ["p/b", "p/a"], f"<IsTruncated>true</IsTruncated>{more}"

    service.listed = listed
    for command in (
        ("ls", "-r", "s3://b/p/"),
        ("ls", "--versions", "s3://b/p/"),
        ("rm", "-r", "--versions", "--yes", "s3://b/p/"),
    ):
        _, told = mover.run(*command, code=1, timeout=60)
        assert "1,000 parts of a list, one behind the other, that name only what it had" in told


def test_versions_are_listed_again_until_none_is_left(service, mover):
    # The list is cut off behind each third name, and one more comes while they are deleted.
    keys = ["p/0", "p/1", "p/2", "p/3", "p/4", "p/5", "p/6"]

    def listed(_):
        if "p/4" in service.changed and "p/late" not in keys:
            keys.append("p/late")
        return [key for key in keys if key not in service.changed][:3], ""

    service.listed = listed
    service.locked = {"p/0"}
    _, told = mover.run("rm", "-r", "--versions", "--yes", "s3://b/p/", code=1)
    assert sorted(service.changed) == keys[1:]
    assert told.count("p/0") == 1 and "1 failed, 7 went well" in told


def test_versions_that_stay_though_they_are_called_deleted_are_told(service, mover):
    service.listed = lambda _: (["p/a", "p/b"], "")
    _, told = mover.run("rm", "-r", "--versions", "--yes", "s3://b/p/", code=1, timeout=30)
    assert "2 versions are listed whose names begin with p/, after all that was listed" in told
