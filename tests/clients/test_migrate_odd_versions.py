"""coffer migrate from a service that lists versions in an odd way, by halves, or not at all."""

import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.migration import Migrator
from harness.mover import answering, wait_for_lines

MIB = 1 << 20
# Name, version id, content; None is a delete marker. Of each name, the newest first.
ROWS = [("a", "4", None), ("a", "1", b"a1"), ("b", "3", b"b3"), ("b", "2", b"b2")]


class Source(BaseHTTPRequestHandler):
    """Has the versions of `rows` in each bucket, and lists them as `listed` has them."""

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
            self.answer_object(key, query.get("versionId", [None])[0], query)
        elif "versioning" in query:
            status = f"<Status>{self.server.status}</Status>" if self.server.status else ""
            self.answer(200, f"<VersioningConfiguration>{status}</VersioningConfiguration>")
        elif "versions" in query:
            self.answer_versions(query["prefix"][0], query.get("key-marker", [""])[0])
        elif "list-type" in query:
            current = {row[0]: row for row in reversed(self.server.rows)}
            rows = [
                f'<Contents><Key>{key}</Key><Size>{len(body)}</Size><ETag>"e{id}"</ETag></Contents>'
                for key, id, body in current.values()
                if body is not None
            ]
            self.answer(200, f"<ListBucketResult>{''.join(rows)}</ListBucketResult>")
        elif query:
            self.answer(501, "<Error><Code>NotImplemented</Code></Error>")
        else:
            self.answer(200, "")

    def answer_versions(self, prefix, behind):
        if self.server.refused:
            self.answer(405, "<Error><Code>MethodNotAllowed</Code></Error>")
            return
        rows, more = self.server.rows, ""
        if not prefix and self.server.listed is not None:
            rows, more = self.server.listed
        if behind:
            rows, more = [row for row in rows if row[0] > behind], ""
        newest = {key: id for key, id, _ in reversed(self.server.rows)}
        text = ""
        for key, id, body in rows:
            if not key.startswith(prefix):
                continue
            kind = "DeleteMarker" if body is None else "Version"
            size = "" if body is None else f'<Size>{len(body)}</Size><ETag>"e{id}"</ETag>'
            latest = "true" if newest[key] == id else "false"
            time = f"2026-01-01T00:00:0{id[-1]}Z"
            text += (
                f"<{kind}><Key>{key}</Key><VersionId>{id}</VersionId><IsLatest>{latest}</IsLatest>"
                f"<LastModified>{time}</LastModified>{size}</{kind}>"
            )
        self.answer(200, f"<ListVersionsResult>{text}{more}</ListVersionsResult>")

    def answer_object(self, key, wanted, query):
        rows = [row for row in self.server.rows if row[0] == key and wanted in (None, row[1])]
        if "tagging" in query:
            self.answer(501, "<Error><Code>NotImplemented</Code></Error>")
        elif key == self.server.unreadable:
            self.answer(403, "<Error><Code>AccessDenied</Code></Error>")
        elif not rows or rows[0][2] is None:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")
        else:
            self.answer_bytes(rows[0])

    def answer_bytes(self, row):
        _, id, body = row
        headers = {
            "etag": f'"e{id}"',
            "x-amz-version-id": id,
            "content-type": "binary/octet-stream",
        }
        asked = self.headers.get("range")
        if asked is None or self.command == "HEAD":
            self.answer(200, body, headers)
            return
        start, end = asked.split("=")[1].split("-")
        if int(start) >= 16 * MIB:
            self.server.goes_on.wait(60)
        end = min(int(end), len(body) - 1)
        headers["content-range"] = f"bytes {start}-{end}/{len(body)}"
        self.answer(206, body[int(start) : end + 1], headers)

    def answer(self, status, body, headers=None):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def source():
    state = {
        "rows": ROWS,
        "listed": None,
        "refused": False,
        "status": "Enabled",
        "unreadable": None,
        "goes_on": threading.Event(),
    }
    state["goes_on"].set()
    with answering(Source, **state) as source:
        yield source
        source.goes_on.set()


def moves_from(source, server, folder, bucket):
    endpoint = f"http://127.0.0.1:{source.server_port}"
    migrator = Migrator(server, folder / "home", endpoint=endpoint, credentials=("id", "secret"))
    migrator.source = f"{endpoint}/{bucket}"
    return migrator


def versions(s3, bucket):
    """The names of all that there is, the newest of each first; of a marker, with its kind."""
    answer = s3.list_object_versions(Bucket=bucket)
    markers = answer.get("DeleteMarkers", [])
    rows = [(row["Key"], row["IsLatest"], "version") for row in answer.get("Versions", [])]
    return sorted(rows + [(row["Key"], row["IsLatest"], "marker") for row in markers])


ALL = [
    ("a", False, "version"),
    ("a", True, "marker"),
    ("b", False, "version"),
    ("b", True, "version"),
]


@pytest.mark.parametrize("status", ["Enabled", ""])
def test_versions_stay_where_their_list_is_refused(server, s3, tmp_path, source, status):
    bucket = f"list-refused{'-and-unsaid' if not status else ''}"
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    assert versions(s3, bucket) == ALL
    source.refused, source.status = True, status
    run = migrator.migrate("--delete", code=1)
    assert "versions_not_listed" in run.codes()
    assert versions(s3, bucket) == ALL


def test_deleted_names_stay_deleted_where_markers_are_listed_last(server, s3, tmp_path, source):
    bucket = "markers-last"
    rows = [("a", "3", b"a3"), ("a", "1", b"a1"), ("a", "4", None), ("a", "2", None)]
    source.rows = sorted(rows, key=lambda row: -int(row[1]))
    source.listed = (rows, "")
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    answer = s3.list_object_versions(Bucket=bucket)
    named = [
        {"Bucket": bucket, "Key": "a", "VersionId": it["VersionId"]} for it in answer["Versions"]
    ]
    bodies = [s3.get_object(**version)["Body"].read() for version in named]
    assert bodies == [b"a3", b"a1"] and len(answer["DeleteMarkers"]) == 2
    migrator.migrate("--check")


def test_the_newest_is_what_is_called_so(server, s3, tmp_path, source):
    bucket = "oldest-first"
    source.rows = [("b", "3", b"b3"), ("b", "2", b"b2")]
    source.listed = (source.rows[::-1], "")
    moves_from(source, server, tmp_path, bucket).migrate()
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"b3"


def test_check_tells_versions_in_another_order(server, s3, tmp_path, source):
    bucket = "another-order"
    source.rows = [("b", "3", b"b3"), ("b", "2", b"b2")]
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    source.rows = source.rows[::-1]
    run = migrator.migrate("--check", code=1)
    assert run.codes() == ["differs"]


GOES_ON = "<IsTruncated>true</IsTruncated><NextKeyMarker>b</NextKeyMarker>"


@pytest.mark.parametrize(
    ("bucket", "listed", "code", "kept"),
    [
        ("cut-within-a-name", (ROWS[:3], ""), 1, "again_at_source"),
        ("cut-before-a-name", (ROWS[2:], ""), 1, "again_at_source"),
        ("goes-on-nowhere", (ROWS[:3], GOES_ON), 1, None),
    ],
)
def test_half_a_list_deletes_no_versions(server, s3, tmp_path, source, bucket, listed, code, kept):
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    source.listed = listed
    run = migrator.migrate("--delete", "--retries", "0", code=code)
    assert versions(s3, bucket) == ALL
    assert kept is None or set(run.codes()) == {kept}
    # What is gone by both lists goes.
    source.listed, source.rows = None, ROWS[:3]
    migrator.migrate("--delete")
    assert versions(s3, bucket) == ALL[:2] + ALL[3:]


def test_what_is_listed_twice_comes_once(server, s3, tmp_path, source):
    bucket = "listed-twice"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    source.status, source.rows = "", [("a", "null", b"a"), ("b", "null", b"b")]
    source.listed = ([row for row in source.rows for _ in range(2)], "")
    migrator = moves_from(source, server, tmp_path, bucket)
    for _ in range(2):
        migrator.migrate()
        assert len(versions(s3, bucket)) == 2


def test_an_upload_stays_while_its_object_is_listed(server, s3, tmp_path, source):
    bucket = "upload-stays"
    source.rows = [("big", "1", bytes(80 * MIB))]
    source.goes_on.clear()
    migrator = moves_from(source, server, tmp_path, bucket)
    process = migrator.start("migrate", migrator.source, "--jobs", "2")

    def with_a_part():
        found = migrator.ledgers()
        return found[0] if found and b'"line":"part"' in found[0].read_bytes() else None

    wait_for_lines(with_a_part, 1, process)
    process.kill()
    process.communicate()
    source.goes_on.set()

    def uploads():
        return s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])

    before = [upload["UploadId"] for upload in uploads()]
    assert len(before) == 1
    source.unreadable = "big"
    migrator.migrate("--retries", "0", code=1)
    assert [upload["UploadId"] for upload in uploads()] == before
    # Of what is gone at the source it is ended.
    source.rows, source.unreadable = ROWS, None
    migrator.migrate()
    assert not uploads()


@pytest.mark.parametrize("words", [["--check"], ["--dry-run", "--delete"]])
def test_a_ledger_that_cannot_be_read_is_told(server, s3, tmp_path, source, words):
    bucket = f"unread-ledger{words[0][:4]}"
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    [ledger] = migrator.ledgers()
    kept = Path(f"{ledger}.kept")
    ledger.rename(kept)
    ledger.symlink_to(ledger)
    run = migrator.migrate(*words, code=1)
    assert "local_file_failed" in run.codes()


def test_what_lies_below_anothers_version_is_deleted_as_planned(server, s3, tmp_path, source):
    bucket = "below-anothers"
    source.status, source.rows = "", [("k", "null", b"ours"), ("z", "null", b"z")]
    migrator = moves_from(source, server, tmp_path, bucket)
    migrator.migrate()
    for status in ("Enabled", "Suspended"):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
        if status == "Enabled":
            s3.put_object(Bucket=bucket, Key="k", Body=b"others")
    source.rows = source.rows[1:]
    run = migrator.migrate("--delete")
    assert run.buckets[bucket]["deleted"] == 1
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"others"
    assert len(versions(s3, bucket)) == 2
    migrator.migrate("--check")
