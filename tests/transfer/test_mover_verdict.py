"""coffer put with a server that opens later what comes sealed: the verdict is waited for."""

import http.server
import math
import time

import pytest

from harness import raw, sealed
from harness.clients import refused, s3_client
from harness.content import MIB, content, write_file
from harness.faults import library
from harness.mover import Mover, answering
from harness.proxy import Proxy
from harness.server import Server
from harness.watching import Watching


class Always:
    """In place of chance: each connection has the bit flipped that comes after so many bytes."""

    def __init__(self, after):
        self.after = after

    def random(self):
        return 0.0

    def randrange(self, _):
        return 0

    def uniform(self, *_):
        return math.log(self.after)


@pytest.fixture(scope="module")
def altered(tmp_path_factory):
    """A server that opens later, behind a data port that alters a chunk of what goes there."""
    server = Server(tmp_path_factory.mktemp("later"), config='verify = "later"\n')
    with Proxy(server.data_port, flips=1.0) as proxy:
        proxy.random = Always(60_000)
        server.arguments += ["--data-advertise", f"http://127.0.0.1:{proxy.port}"]
        with server:
            sealed.make_bucket(server, "open")
            yield server, proxy


def test_what_is_whole_is_waited_for(own_server, tmp_path):
    server = own_server(config='verify = "later"\n').start()
    sealed.make_bucket(server, "open")
    mover = Mover(server, tmp_path / "home")
    for size in (MIB, 40 * MIB + 1):
        source = write_file(tmp_path / "source", size)
        done = mover.done("put", source, "s3://open/x")
        assert (done["transfer"], done["verified"]) == ("sealed", True)
        assert "stored" not in done
        assert "x-coffer-stored" not in raw.send(server, "HEAD", "/open/x")[1]
    with source.open("rb") as reading:
        assert mover.done("put", "-", "s3://open/stream", stdin=reading)["verified"] is True
    # Small objects go by TLS, and need no verdict.
    small = write_file(tmp_path / "small", 100)
    assert mover.done("put", small, "s3://open/small", "--no-wait")["verified"] is True
    events = mover.events("put", source, "s3://open/x", "--no-wait")
    [done] = [event for event in events if event["event"] == "done"]
    assert (done["stored"], done["verified"]) == ("unverified", False)
    [note] = [event["message"] for event in events if event["event"] == "note"]
    assert note.startswith("s3://open/x is stored, unverified")


@pytest.mark.parametrize(("way", "size"), [("file", MIB), ("file", 20 * MIB), ("folder", 20 * MIB)])
def test_what_was_waited_for_by_a_command_that_was_ended_is_stored_once(
    own_server, tmp_path, way, size
):
    server = own_server(config='verify = "later"\n').start()
    sealed.make_bucket(server, "open")
    client = s3_client(server)
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="open", VersioningConfiguration=enabled)
    mover, tree, started = Mover(server, tmp_path / "home"), tmp_path / "tree", []
    tree.mkdir()
    source = write_file(tree / "x", size)
    put = ("put", *(("-r", tree) if way == "folder" else (source,)), "s3://open/d/")

    def ends(method, path):
        """As it is asked for the verdict."""
        if method == "HEAD" and path.startswith("/open/d/x"):
            while not started:
                time.sleep(0.01)
            started[0].terminate()
            raise OSError

    def versions():
        return len(client.list_object_versions(Bucket="open")["Versions"])

    with Watching(server) as between:
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        between.before = ends
        started.append(mover.start(*put))
        _, told = started[0].communicate(timeout=60)
        assert started[0].returncode == 1
        assert b"the same command goes on" in told
        assert versions() == 1
        between.before = lambda *_: None
        done = mover.done(*put)
        assert (done["kept_bytes"], done["verified"], versions()) == (size, True, 1)
        assert list((mover.home / "coffer/uploads").iterdir()) == []
        # Once more is another version.
        assert (mover.done(*put)["kept_bytes"], versions()) == (0, 2)


@pytest.mark.parametrize("size", [MIB, 20 * MIB])
def test_what_is_found_damaged_is_an_error(altered, tmp_path, size):
    server, proxy = altered
    mover = Mover(server, tmp_path / "home")
    source = write_file(tmp_path / "source", size)
    flips = proxy.flip_count
    _, told = mover.run("put", source, "s3://open/x", code=1)
    assert proxy.flip_count > flips
    assert "found it damaged or not what was sent" in told
    assert "put it again" in told
    with refused("InternalError", 500):
        s3_client(server).get_object(Bucket="open", Key="x")
    _, told = mover.run("put", source, "s3://open/x", "--json", code=1)
    assert '"stored_damaged"' in told
    # Who does not wait does not hear of it.
    assert mover.done("put", source, "s3://open/x", "--no-wait")["stored"] == "unverified"
    done = mover.done("put", source, "s3://open/x", "--transfer", "tls")
    assert (done["verified"], "stored" in done) == (True, False)


def test_of_a_folder_what_is_damaged_is_named(altered, tmp_path):
    server, _ = altered
    mover = Mover(server, tmp_path / "home")
    tree = tmp_path / "tree"
    tree.mkdir()
    # The first of a connection is altered, and these follow each other on one.
    for name in ("a", "b", "c"):
        write_file(tree / name, 200_000)
    (tree / "small").write_bytes(content(100))
    events = mover.events("put", "-r", tree, "s3://open/t/", "--jobs", "1", code=1)
    failed = {
        event["what"].rsplit("/")[-1]: event for event in events if event["event"] == "failed"
    }
    done = {event["from"].rsplit("/")[-1] for event in events if event["event"] == "done"}
    assert {event["code"] for event in failed.values()} == {"stored_damaged"}
    assert len(failed) == 1
    assert done | set(failed) == {"a", "b", "c", "small"}
    # It is put again, as the message says.
    events = mover.events("put", "-r", tree, "s3://open/t/", "--jobs", "1", "--transfer", "tls")
    assert not [event for event in events if event["event"] == "failed"]
    [damaged] = failed
    [again] = [
        event
        for event in events
        if event["event"] == "done" and event["from"].endswith(f"/{damaged}")
    ]
    assert (again["kept_bytes"], again["verified"]) == (0, True)
    got = s3_client(server).get_object(Bucket="open", Key=f"t/{damaged}")["Body"].read()
    assert got == (tree / damaged).read_bytes()


class Answers(http.server.BaseHTTPRequestHandler):
    """An S3 service that has stored something, unverified, and answers HEAD as it is told."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(200, {"etag": '"e"', "x-coffer-stored": "unverified"})

    def do_HEAD(self):
        if self.path.count("/") == 1:
            return self.answer(200, {})
        verdicts = self.server.verdicts
        self.server.asked += 1
        status, headers = verdicts.pop(0) if len(verdicts) > 1 else verdicts[0]
        return self.answer(status, {"etag": '"e"', "content-length": "1000"} | headers)

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in ({"content-length": "0"} | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        """Says nothing."""


WAITS = (200, {"x-coffer-stored": "unverified"})
OTHER_SUM = {"x-amz-checksum-crc64nvme": "AAAAAAAAAAA="}


@pytest.fixture
def service():
    """Such a service, which answers as a test says."""
    with answering(Answers, verdicts=[WAITS], asked=0) as service:
        yield service


@pytest.fixture
def mover_there(service, tmp_path):
    return Mover.elsewhere(service, tmp_path)


@pytest.mark.parametrize(
    ("verdicts", "code", "expected"),
    [
        ([WAITS, WAITS, WAITS, WAITS, (200, {})], 0, ""),
        ([WAITS, (200, {"x-coffer-stored": "damaged"})], 1, "found it damaged"),
        ([WAITS, (404, {})], 1, "stored, unverified: the server was to open and compare it, and"),
        ([WAITS, (200, {"etag": '"other"'})], 1, "it was replaced before"),
        ([(403, {})], 1, "it can't be asked: the server answered AccessDenied"),
        ([(200, {"content-length": "999"})], 1, "something else in s3://b/x than was sent"),
        ([(200, OTHER_SUM)], 1, "something else in s3://b/x than was sent"),
        ([(200, {"x-coffer-stored": "Unverified"})], 1, "neither that it has nor that it has not"),
    ],
)
def test_each_verdict(service, mover_there, tmp_path, verdicts, code, expected):
    service.verdicts = list(verdicts)
    source = write_file(tmp_path / "source", 1000)
    _, told = mover_there.run("put", source, "s3://b/x", code=code)
    assert expected in told
    assert service.asked == len(verdicts)
    _, told = mover_there.run("put", source, "s3://b/x", "--no-wait")
    assert "s3://b/x is stored, unverified" in told
    assert service.asked == len(verdicts)


def test_a_verdict_that_does_not_come(service, mover_there, tmp_path):
    """Ten minutes, which pass in some seconds for the client."""
    source = write_file(tmp_path / "source", 1000)
    mover_there.environment |= {
        "LD_PRELOAD": str(library(tmp_path, "clock.c")),
        "CLOCK_TIMES": "200",
    }
    began = time.monotonic()
    out, told = mover_there.run("put", source, "s3://b/x", "--json", code=1)
    assert 2 < time.monotonic() - began < 60
    assert '"unverified"' in told
    assert "it has not after 600 s" in told
    assert b'"done"' not in out
    assert service.asked > 3
