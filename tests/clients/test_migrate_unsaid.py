"""coffer migrate from a service that for a while does not say what is set of a bucket."""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.migration import Migrator
from harness.mover import answering

#: A key of the source's state, and what is answered in its place.
ANSWERS = [
    (501, "<Error><Code>NotImplemented</Code></Error>"),
    (405, "<Error><Code>MethodNotAllowed</Code></Error>"),
    (404, "<html>no such page</html>"),
    (404, ""),
    (404, "<Error><Code>NoSuchKey</Code></Error>"),
    (200, "<html>login</html>"),
    (200, "<ListBucketResult/>"),
    (200, "<CORSConfiguration/>"),
]

CORS = (
    "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod>"
    "<AllowedOrigin>https://a.example</AllowedOrigin></CORSRule></CORSConfiguration>"
)

UNSET = {
    "policy": (404, "<Error><Code>NoSuchBucketPolicy</Code></Error>"),
    "cors": (404, "<Error><Code>NoSuchCORSConfiguration</Code></Error>"),
}


class Source(BaseHTTPRequestHandler):
    """Has an object in a bucket, and of settings what its state says."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(200, "x", self.server.headers)

    def do_GET(self):
        path = urlsplit(self.path)
        query = parse_qs(path.query, keep_blank_values=True)
        asked = [name for name in self.server.settings if name in query]
        if asked:
            self.answer(*self.server.settings[asked[0]])
        elif "list-type" in query:
            row = '<Contents><Key>k</Key><Size>1</Size><ETag>"e"</ETag></Contents>'
            self.answer(200, f"<ListBucketResult>{row}</ListBucketResult>")
        elif "versions" in query and self.server.has_ids:
            version = "<Key>k</Key><VersionId>1</VersionId><IsLatest>true</IsLatest>"
            version = f'<Version>{version}<Size>1</Size><ETag>"e"</ETag></Version>'
            self.answer(200, f"<ListVersionsResult>{version}</ListVersionsResult>")
        elif path.path.count("/") == 2 and not query.keys() - {"versionId"}:
            self.answer(200, "x")
        else:
            self.answer(501, "<Error><Code>NotImplemented</Code></Error>")

    def answer(self, status, body, headers=None):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"e"')
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


def migrating(server, tmp_path, source):
    endpoint = f"http://127.0.0.1:{source.server_port}"
    return Migrator(server, tmp_path / "home", endpoint=endpoint, credentials=("id", "secret"))


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_what_is_not_told_is_not_gone(server, s3, tmp_path, number):
    bucket = f"settings-untold-{number}"
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    settings = {"policy": (200, json.dumps(policy)), "cors": (200, CORS)}
    with answering(Source, settings=settings, headers={}, has_ids=False) as source:
        migrator = migrating(server, tmp_path, source)
        options = {"source": f"{migrator.source}/{bucket}"}
        migrator.migrate(**options)
        source.settings = dict.fromkeys(settings, ANSWERS[number])
        for words in ([], ["--delete"]):
            run = migrator.migrate("--retries", "0", *words, code=1, **options)
            named = {what.rsplit(": ")[-1] for what in run.failed}
            assert named == {"policy", "cors"}, words
            told = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
            assert told["Statement"][0]["Action"] == "s3:DeleteObject"
            assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"]
        source.settings = UNSET
        migrator.migrate("--delete", **options)
        with pytest.raises(s3.exceptions.ClientError, match="NoSuchBucketPolicy"):
            s3.get_bucket_policy(Bucket=bucket)
        with pytest.raises(s3.exceptions.ClientError, match="NoSuchCORSConfiguration"):
            s3.get_bucket_cors(Bucket=bucket)


def test_a_service_without_settings_has_none_to_name(server, tmp_path):
    with answering(Source, settings={}, headers={}, has_ids=False) as source:
        migrator = migrating(server, tmp_path, source)
        run = migrator.migrate(source=f"{migrator.source}/without-settings")
        assert run.failed == {}


@pytest.mark.parametrize("has_ids", [False, True])
@pytest.mark.parametrize("number", range(2, 5))
def test_a_lock_that_is_not_told_is_looked_for(server, s3, tmp_path, number, has_ids):
    """A hold that only HEAD tells does not get lost with the lock configuration: of a bucket that
    says that it keeps versions, or, where it does not say so either, lists their ids."""
    bucket = f"lock-untold-{number}-{has_ids}".lower()
    enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    settings = {
        "object-lock": ANSWERS[number - 1],
        "versioning": ANSWERS[number - 1] if has_ids else (200, enabled),
    }
    headers = {"x-amz-object-lock-legal-hold": "ON"}
    with answering(Source, settings=settings, headers=headers, has_ids=has_ids) as source:
        migrator = migrating(server, tmp_path, source)
        run = migrator.migrate(source=f"{migrator.source}/{bucket}", code=1)
        assert run.counts(bucket)[2] == 1
        assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
