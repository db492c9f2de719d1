"""coffer migrate from services whose lists have the versions of a name in another order than S3's,
and from ones that do not say what their versioning is."""

import re
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.clients import s3_client
from harness.migration import Migrator
from harness.mover import answering
from harness.server import Server

PAGE = (404, "<html><body>not found</body></html>")
NOT_IMPLEMENTED = (501, "<Error><Code>NotImplemented</Code></Error>")


class Source(BaseHTTPRequestHandler):
    """Lists the rows of `pages`, which `row` makes; answers to ?versioning by `versioning`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urlsplit(self.path)
        query = parse_qs(path.query, keep_blank_values=True)
        _, _, key = path.path[1:].partition("/")
        if key:
            self.answer_object(key, query)
        elif "versioning" in query:
            self.answer(*self.server.versioning)
        elif "versions" in query:
            self.answer_versions(query)
        elif query:
            self.answer(*NOT_IMPLEMENTED)
        else:
            self.answer(200, "")

    def answer_object(self, key, query):
        wanted = query.get("versionId", [None])[0]
        rows = [row for page in self.server.pages for row in page]
        bodies = [body for name, id, body, *_ in rows if name == key and wanted in (None, id)]
        if "tagging" in query:
            self.answer(*NOT_IMPLEMENTED)
        elif not bodies or bodies[0] is None:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")
        else:
            self.answer(200, bodies[0], f'"e{wanted}"')

    def answer_versions(self, query):
        pages, prefix = self.server.pages, query["prefix"][0]
        at = int(query.get("version-id-marker", ["0"])[0])
        text = ""
        for key, id, body, seconds, latest in pages[at]:
            if not key.startswith(prefix):
                continue
            kind = "DeleteMarker" if body is None else "Version"
            size = "" if body is None else f'<Size>{len(body)}</Size><ETag>"e{id}"</ETag>'
            told = "" if latest is None else f"<IsLatest>{str(latest).lower()}</IsLatest>"
            time = f"2026-01-01T00:00:{seconds:02}.000Z"
            text += (
                f"<{kind}><Key>{key}</Key><VersionId>{id}</VersionId>{told}"
                f"<LastModified>{time}</LastModified>{size}</{kind}>"
            )
        if at + 1 < len(pages):
            text += (
                f"<IsTruncated>true</IsTruncated><NextKeyMarker>{pages[at][-1][0]}</NextKeyMarker>"
                f"<NextVersionIdMarker>{at + 1}</NextVersionIdMarker>"
            )
        self.answer(200, f"<ListVersionsResult>{text}</ListVersionsResult>")

    def answer(self, status, body, etag=None):
        body = body.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if etag:
            self.send_header("etag", etag)
            self.send_header("content-type", "binary/octet-stream")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def said(status):
    status = status and f"<Status>{status}</Status>"
    return (200, f"<VersioningConfiguration>{status}</VersioningConfiguration>")


@pytest.fixture
def source():
    with answering(Source, pages=[], versioning=said("Enabled")) as source:
        yield source


def moves_from(source, server, folder, bucket):
    endpoint = f"http://127.0.0.1:{source.server_port}"
    migrator = Migrator(server, folder / "home", endpoint=endpoint, credentials=("id", "secret"))
    migrator.source = f"{endpoint}/{bucket}"
    return migrator


def row(word):
    """`b/v3*` is version 3 of the third second of `b`, and called the newest; `m3` a marker of `a`,
    `v3?` one of which that is not told, `v3@9` one of the ninth second."""
    key, _, word = word.rpartition("/")
    kind, id, seconds, star = re.fullmatch(r"([vm])(\d+)(?:@(\d+))?([*?]?)", word).groups()
    body = None if kind == "m" else id
    latest = None if star == "?" else star == "*"
    return (key or "a", id, body, int(seconds or id), latest)


def pages(words):
    return [[row(word) for word in page.split()] for page in words.split("|")]


def listed(s3, bucket, key="a"):
    """What the target has of a name, in the order of its list: contents, and None of a marker."""
    found = []

    def keep(response_dict, **_):
        found.append(response_dict["body"].decode())

    s3.meta.events.register_first("before-parse.s3.ListObjectVersions", keep, unique_id="keep")
    try:
        s3.list_object_versions(Bucket=bucket, Prefix=key)
    finally:
        s3.meta.events.unregister("before-parse.s3.ListObjectVersions", unique_id="keep")
    rows = re.findall(r"<(Version|DeleteMarker)>.*?<VersionId>(.*?)</VersionId>", found[0])
    return [
        s3.get_object(Bucket=bucket, Key=key, VersionId=id)["Body"].read().decode()
        if kind == "Version"
        else None
        for kind, id in rows
    ]


@pytest.mark.parametrize(
    ("bucket", "words", "expected"),
    [
        ("begun-before", "v4@40* v1@10 v2@20 m0@1", ["4", "1", "2", None]),
        # The first life was ahead of the time.
        ("clock-put-back", "v4* v3 v2 v1@31 m0@30", ["4", "3", "2", "1", None]),
        ("marker-leads-the-rest", "v3 v1 | m4* m2", [None, "3", None, "1"]),
        ("names-begin-anew", "a/v4* a/v2 b/v9* a/m3 a/m1", ["4", None, "2", None]),
        ("between-each-other", "v4@1* m3@5 v2@9 m1@2", ["4", None, "2", None]),
    ],
)
def test_versions_come_in_their_order(server, s3, tmp_path, source, bucket, words, expected):
    source.pages = pages(words)
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    assert listed(s3, bucket) == expected
    migrator.migrate("--check")


def test_the_list_of_a_coffer_counts_as_it_is(server, s3, tmp_path, set_clock):
    bucket = "clock-put-back-at-a-coffer"
    folder = tmp_path / "old"
    folder.mkdir()
    with Server(folder) as old:
        theirs = s3_client(old)
        theirs.create_bucket(Bucket=bucket)
        enabled = {"Status": "Enabled"}
        theirs.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
        set_clock(100)
        theirs.delete_object(Bucket=bucket, Key="a")
        for ahead, body in ((0, b"2"), (200, b"3")):
            set_clock(ahead)
            theirs.put_object(Bucket=bucket, Key="a", Body=body)
        migrator = Migrator(server, tmp_path / "home", source=old)
        migrator.migrate("--bucket", bucket)
        migrator.migrate("--bucket", bucket, "--check")
    assert listed(s3, bucket) == ["3", "2", None]


@pytest.mark.parametrize(
    ("bucket", "words"),
    [
        ("markers-behind", "v4* v2 | m3 m1"),
        ("markers-on-the-next-page", "v4* | v2 m3 m1"),
        ("markers-before", "m4* m2 v3 v1"),
        ("markers-before-and-paged", "m4* m2 | v3 v1"),
        ("of-the-same-second", "v3@5* v1@5 m2@5"),
        ("newest-left-out", "v3 v1"),
        ("only-an-old-one", "v3"),
        ("two-newest", "v3* v2*"),
        ("none-told", "v1? v2? v3?"),
    ],
)
def test_what_has_no_order_is_named_and_left(server, s3, tmp_path, source, bucket, words):
    source.pages = pages(words)
    source.pages[-1].append(row("z/v9*"))
    migrator = moves_from(source, server, tmp_path, bucket)
    for mode in ([], ["--delete"], ["--dry-run"], ["--check"]):
        run = migrator.migrate(*mode, code=1)
        [(what, told)] = run.failed.items()
        assert what.endswith("/a") and told["code"] == "disorder", mode
        assert listed(s3, bucket) == [], mode
        assert listed(s3, bucket, "z") == ["9"], "the rest comes"
    assert [line["key"] for line in run.versions if line["outcome"] == "missing"] == ["a"]


def test_nothing_is_deleted_of_a_name_without_an_order(server, s3, tmp_path, source):
    bucket = "order-is-lost"
    source.pages = pages("v3* v2 v1")
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    source.pages = pages("v2 v1")
    run = migrator.migrate("--delete", code=1)
    assert run.codes() == ["disorder"]
    assert listed(s3, bucket) == ["3", "2", "1"]


def test_one_version_of_which_nothing_is_told_comes(server, s3, tmp_path, source):
    bucket = "one-untold"
    source.pages = pages("v3?")
    moves_from(source, server, tmp_path, bucket).migrate()
    assert listed(s3, bucket) == ["3"]


def test_runs_and_plans_tell_another_order_as_check_does(server, s3, tmp_path, source):
    bucket = "was-in-another-order"
    source.pages = pages("v3* v1 v2")
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    source.pages = pages("v4* v3 v2 v1")
    for words in (["--dry-run"], ["--delete"], [], ["--check"]):
        run = migrator.migrate(*words, code=1)
        assert run.codes().count("differs") == 1, words
    # What is newer comes all the same.
    assert listed(s3, bucket) == ["4", "3", "1", "2"]


@pytest.mark.parametrize(("bucket", "answer"), [("page", PAGE), ("no-such", NOT_IMPLEMENTED)])
def test_a_source_with_ids_has_to_say_its_versioning(server, s3, tmp_path, source, bucket, answer):
    bucket = f"versioning-unsaid-{bucket}"
    source.pages = pages("v2* | b/v1*")
    source.versioning = answer
    migrator = moves_from(source, server, tmp_path, bucket)
    for mode in ([], ["--check"]):
        assert "versioning_not_told" in migrator.migrate(*mode, code=1).codes()
    source.versioning = said("Enabled")
    migrator.migrate()
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    # Nor is it taken for one without versions later.
    source.pages = pages("v3* v2 | b/v1*")
    migrator.migrate()
    for left in ("v2* | b/v1*", ""):
        source.versioning, source.pages = answer, pages(left)
        run = migrator.migrate("--delete", "--delete-all", code=1)
        assert "versioning_not_told" in run.codes()
        assert listed(s3, bucket) == ["3", "2"]
    source.versioning, source.pages = said("Enabled"), pages("v2* | b/v1*")
    migrator.migrate("--delete")
    assert listed(s3, bucket) == ["2"]


def test_versions_that_are_gone_go_where_versioning_is_said_to_be_off(server, s3, tmp_path, source):
    bucket = "versioning-said-off"
    source.pages = pages("v3* v2")
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    source.versioning, source.pages = said(""), pages("v2*")
    migrator.migrate("--delete")
    assert listed(s3, bucket) == ["2"]


def test_check_compares_versioning(server, s3, tmp_path, source):
    bucket = "versioning-compared"
    source.pages = pages("v2*")
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    migrator.migrate("--check")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    run = migrator.migrate("--check", code=1)
    [(what, told)] = run.failed.items()
    assert what.endswith(": versioning") and told["code"] == "differs"
