"""coffer migrate from a service whose list of a bucket comes out of order."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.migration import Migrator

BUCKET = "comes-out-of-order"
KEPT = {"a", "b", "c"}


def listed(keys, following):
    rows = [f'<Contents><Key>{key}</Key><Size>1</Size><ETag>"e"</ETag></Contents>' for key in keys]
    more = following and (
        f"<IsTruncated>true</IsTruncated><NextContinuationToken>{following}</NextContinuationToken>"
    )
    return f"<ListBucketResult>{''.join(rows)}{more or ''}</ListBucketResult>"


class Source:
    """Has objects of one byte in one bucket, and lists them by pages as it is told to."""

    def __init__(self):
        self.pages = [sorted(KEPT)]
        source = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                is_there = any(
                    self.path == f"/{BUCKET}/{key}" for page in source.pages for key in page
                )
                self.answer(200 if is_there else 404, b"x")

            def do_GET(self):
                path = urlsplit(self.path)
                query = parse_qs(path.query, keep_blank_values=True)
                if "list-type" in query:
                    page = int(query.get("continuation-token", ["0"])[0])
                    last = page + 1 == len(source.pages)
                    text = listed(source.pages[page], "" if last else str(page + 1))
                    self.answer(200, text.encode())
                elif path.path == "/":
                    bucket = f"<Bucket><Name>{BUCKET}</Name></Bucket>"
                    text = f"<ListAllMyBucketsResult><Buckets>{bucket}</Buckets>"
                    self.answer(200, f"{text}</ListAllMyBucketsResult>".encode())
                elif path.path.count("/") == 2 and not query:
                    self.answer(200, b"x")
                else:
                    code = "<Error><Code>NotImplemented</Code></Error>"
                    self.answer(501, code.encode())

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("etag", '"e"')
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        self.listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.listening.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.listening.server_port}"


@pytest.fixture
def source():
    source = Source()
    threading.Thread(target=source.listening.serve_forever, daemon=True).start()
    yield source
    source.listening.shutdown()
    source.listening.server_close()


def names(s3, bucket):
    return {row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def test_what_comes_late_is_not_deleted_before(server, source, s3, tmp_path):
    migrator = Migrator(
        server, tmp_path / "home", endpoint=source.endpoint, credentials=("id", "secret")
    )
    only = ("--bucket", BUCKET, "--retries", "0")
    migrator.migrate(*only)
    assert names(s3, BUCKET) == KEPT
    # In the order of its pages, `b` seems to be gone.
    source.pages = [["a", "c"], ["b"]]
    for words in (["--dry-run"], []):
        run = migrator.migrate(*only, "--delete", *words, code=1)
        assert names(s3, BUCKET) == KEPT
        outcomes = [line["outcome"] for line in run.versions if line["key"] == "b"]
        assert (outcomes, run.buckets[BUCKET]["deleted"]) == (["gone"], 0), words
        [told] = run.failed.values()
        assert "order" in told["message"]
    source.pages = [["a"], ["c"]]
    run = migrator.migrate(*only, "--delete", "--dry-run")
    assert names(s3, BUCKET) == KEPT
    assert [line["outcome"] for line in run.versions if line["key"] == "b"] == ["would-delete"]
    run = migrator.migrate(*only, "--delete")
    assert names(s3, BUCKET) == {"a", "c"}
    assert run.buckets[BUCKET]["deleted"] == 1
    assert not list((migrator.home / "coffer/migrations").glob("*.leaving"))
