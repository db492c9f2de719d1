"""coffer migrate from a service whose list of a bucket ends in an odd way, and of a folder in which
its own notes are."""

from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.migration import Migrator
from harness.mover import Mover, answering

KEPT = {"a", "b", "c"}


class Source(BaseHTTPRequestHandler):
    """Has objects of one byte in one bucket, in two pages if `odd` says so."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(200, "x")

    def do_GET(self):
        path = urlsplit(self.path)
        query = parse_qs(path.query, keep_blank_values=True)
        if "list-type" in query:
            first, rest = ("a", "bc") if self.server.odd else ("abc", "")
            goes_on = "continuation-token" in query
            rows = [
                f'<Contents><Key>{key}</Key><Size>1</Size><ETag>"e"</ETag></Contents>'
                for key in (rest if goes_on else first)
            ]
            more = "" if goes_on else self.server.odd
            self.answer(200, f"<ListBucketResult>{''.join(rows)}{more}</ListBucketResult>")
        elif path.path.count("/") == 2 and not query:
            self.answer(200, "x")
        else:
            self.answer(501, "<Error><Code>NotImplemented</Code></Error>")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"e"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


def names(s3, bucket):
    return {row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


TOKEN = "<NextContinuationToken>t</NextContinuationToken>"


@pytest.mark.parametrize(
    ("bucket", "odd", "code"),
    [
        ("goes-on-by-a-number", "<IsTruncated>1</IsTruncated>", 0),
        ("goes-on-in-capitals", "<IsTruncated>TRUE</IsTruncated>", 0),
        ("ends-and-goes-on", "", 0),
        ("may-go-on", "<IsTruncated>?</IsTruncated>", 1),
    ],
)
def test_nothing_is_deleted_by_half_a_list(server, s3, tmp_path, bucket, odd, code):
    with answering(Source, odd="") as source:
        endpoint = f"http://127.0.0.1:{source.server_port}"
        migrator = Migrator(
            server, tmp_path / "home", endpoint=endpoint, credentials=("id", "secret")
        )
        address = f"{endpoint}/{bucket}"
        migrator.migrate("--retries", "0", source=address)
        assert names(s3, bucket) == KEPT
        source.odd = f"{odd}{TOKEN}"
        migrator.migrate("--delete", "--retries", "0", source=address, code=code)
        assert names(s3, bucket) == KEPT


def test_notes_of_migrations_are_left_out_of_the_folder_they_are_in(server, s3, tmp_path):
    mover = Mover(server, tmp_path / "home")
    (mover.home / "docs").mkdir()
    (mover.home / "docs/file").write_bytes(b"file")
    s3.create_bucket(Bucket="with-own-notes")
    for _ in range(2):
        _, told = mover.run("migrate", mover.home, "s3://with-own-notes/home/", "--delete")
        assert "coffer/migrations: what is noted of migrations" in told
        assert "home/docs/file" in names(s3, "with-own-notes")
        assert not any("migrations" in name for name in names(s3, "with-own-notes"))
