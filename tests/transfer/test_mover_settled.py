"""What a server says is settled: it is told at once, and nothing is asked for again."""

import time
from http.server import BaseHTTPRequestHandler

import pytest

from harness.clients import s3_client
from harness.migration import Migrator
from harness.mover import Mover, answering
from harness.sealed_copies import BUCKET, caught_up, made, put, reached, replica, status, url_of
from harness.server import Server
from harness.standbys import add_copy, promote, serves_writes, standby_of, started, within

#: Sooner than a second attempt would be refused, of writes that wait for a second each.
AT_ONCE_SECONDS = 20
VERSIONED = {"Status": "Enabled"}
DONE = b"<Error><Code>InternalError</Code><Message>This was done, but</Message></Error>"


@pytest.fixture
def server(tmp_path):
    with Server(made(tmp_path / "first")) as server:
        s3_client(server).create_bucket(Bucket=BUCKET)
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        yield server


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def told_at_once(mover, *arguments):
    """What a command says that ends at its first answer, and says nothing of another attempt."""
    began = time.monotonic()
    _, told = mover.run(*arguments, code=1)
    assert time.monotonic() - began < AT_ONCE_SECONDS, told
    assert "again in" not in told and told.count("the server answered") == 1, told
    return told


def versions(server, prefix):
    listed = s3_client(server).list_object_versions(Bucket=BUCKET, Prefix=prefix)
    return len(listed.get("Versions", [])), len(listed.get("DeleteMarkers", []))


def test_what_is_stored_and_in_doubt_is_stored_once(server, mover, tmp_path):
    s3 = s3_client(server)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=VERSIONED)
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy), "--sync", "--sync-wait", "1s")
    within(lambda: status(server)["sync"]["since"], 60)
    put(server, ["small-1"])
    file = mover.home / "file"
    file.write_bytes(b"x" * 900)
    copy.rename(away)
    copy.write_text("no folder")
    place = f"s3://{BUCKET}"
    for asked, name, expected in (
        (("put", file, f"{place}/put"), "put", (1, 0)),
        (("cp", f"{place}/small-1", f"{place}/copied"), "copied", (1, 0)),
        (("rm", f"{place}/small-1"), "small-1", (1, 1)),
    ):
        told = told_at_once(mover, *asked)
        assert "stored here and not yet" in told and "in doubt" in told, told
        assert versions(server, name) == expected, asked
    migrator = Migrator(server, tmp_path / "migrator")
    source = made(tmp_path / "source")
    (source / "moved").write_bytes(b"moved")
    run = migrator.migrate(place, source=source, code=1)
    [failed] = [one for one in run.failed.values() if "in doubt" in one["message"]]
    assert "stored here and not yet" in failed["message"]
    assert versions(server, "moved") == (1, 0)
    copy.unlink()
    away.rename(copy)
    reached(server, "following")
    mover.run("put", file, f"{place}/after")


class Completing(BaseHTTPRequestHandler):
    """Takes uploads in parts, and stores what they become, in doubt. What goes as one piece is
    done, though it answers an error."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body=b"", status=200, **headers):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.answer(status=getattr(self.server, "head", 404))

    def do_PUT(self):
        if "uploadId" not in self.path:
            self.server.completions.append(self.path)
            self.answer(DONE, 500, x_coffer_outcome="done")
            return
        self.answer(etag='"part"')

    def do_DELETE(self):
        self.server.completions.append(self.path)
        self.answer(DONE, 500, x_coffer_outcome="done")

    def do_POST(self):
        if self.path.endswith("?uploads="):
            begun = b"<InitiateMultipartUploadResult><UploadId>u</UploadId>"
            self.answer(begun + b"</InitiateMultipartUploadResult>")
            return
        self.server.completions.append(self.path)
        told = b"<Error><Code>ServiceUnavailable</Code><Message>stored, in doubt</Message></Error>"
        self.answer(told, 503, x_coffer_outcome="in-doubt")


def test_the_end_of_an_upload_that_is_in_doubt_is_asked_for_once(tmp_path):
    completions = []
    with answering(Completing, completions=completions) as service:
        mover = Mover.elsewhere(service, tmp_path / "home")
        file = mover.home / "file"
        file.write_bytes(bytes(17 << 20))
        assert "stored, in doubt" in told_at_once(mover, "put", file, "s3://b/file")
    assert len(completions) == 1


def test_what_is_done_though_it_is_an_error_is_asked_for_once(tmp_path):
    asked = []
    with answering(Completing, completions=asked) as service:
        mover = Mover.elsewhere(service, tmp_path / "home")
        (mover.home / "file").write_bytes(b"file")
        assert "This was done, but" in told_at_once(mover, "put", "file", "s3://b/file")
        service.head = 200
        assert "This was done, but" in told_at_once(mover, "rm", "s3://b/file")
    assert len(asked) == 2, asked


@pytest.fixture
def followed(server, tmp_path):
    add_copy(server, url_of(tmp_path / "copy"))
    put(server, ["small-1"])
    caught_up(server)
    standby = standby_of(url_of(tmp_path / "copy"), tmp_path / "second", tmp_path / "credentials")
    started(standby)
    yield standby
    standby.close()


def test_a_standby_and_a_fenced_server_say_at_once_that_they_take_nothing(
    server, mover, followed, tmp_path
):
    files = made(tmp_path / "files")
    for name in "abc":
        (files / name).write_text(name)
    of_standby = Mover(followed, tmp_path / "of-standby")
    place = f"s3://{BUCKET}/"
    for asked in (("put", files / "a", place), ("put", "-r", files, place)):
        assert "this server is a standby" in told_at_once(of_standby, *asked)
    server.stop()
    server.arguments += ["--fenced-by", "far"]
    server.start()
    # Until its copy was asked, it takes nothing either, and that passes.
    mover.run("put", files / "a", place)
    promote(followed)
    serves_writes(followed)
    within(lambda: not ready(server))
    for asked in (
        ("put", files / "b", place),
        ("put", "-r", files, place),
        ("rm", f"{place}small-1"),
        ("cp", f"{place}small-1", f"{place}copied"),
    ):
        assert "This server is fenced off" in told_at_once(mover, *asked)


def ready(server):
    """Whether a server takes writes, as it says itself."""
    client = s3_client(server)
    try:
        client.put_object(Bucket=BUCKET, Key="probe", Body=b"x")
    except client.exceptions.ClientError as error:
        headers = error.response["ResponseMetadata"]["HTTPHeaders"]
        return headers.get("x-coffer-outcome") != "refused"
    return True
