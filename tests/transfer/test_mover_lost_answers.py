"""coffer put, cp and rm where the answer to a request is lost that did what was asked."""

import signal
import struct
import time

import pytest

from harness.content import MIB, digest, write_file
from harness.faults import library
from harness.mover import Mover
from harness.watching import Watching, one_of

#: More than the clocks of client and server may differ, for an object to be older than a commit.
OLDER_SECONDS = 3.1

#: The server says itself that it does not know whether it did what was asked.
DOUBT = b"HTTP/1.1 500 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture
def mover(serving, tmp_path):
    return Mover(serving, tmp_path / "home")


@pytest.fixture
def through(serving, mover):
    """Has a mover's requests go through what loses answers."""

    def through(number, method="PUT", beginning="/open/"):
        between = Watching(serving)
        between.loses = one_of(number, method, beginning)
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        return between

    return through


@pytest.fixture(scope="module", autouse=True)
def versions(client):
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="open", VersioningConfiguration=enabled)


def the_version(client, key):
    """The only version of an object."""
    [version] = client.list_object_versions(Bucket="open", Prefix=key)["Versions"]
    return version["VersionId"]


@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("size", [100, 3 * MIB])
def test_an_object_whose_answer_is_lost_is_looked_at(
    mover, through, client, tmp_path, size, retries
):
    source, key = write_file(tmp_path / "source", size), f"tls-{size}-{retries}"
    with through(1) as between:
        # What is told in another form is known again: no ASCII, and a name with two values.
        metadata = ("of=now", "title=für", "with=one", "with=two")
        told = [word for one in metadata for word in ("--metadata", one)]
        options = (*told, "--transfer", "tls", "--retries", retries)
        put = mover.done("put", source, f"s3://open/{key}", *options)
        assert len(between.lost) == 1
    assert (put["transfer"], put["verified"]) == ("http", True)
    assert put["version_id"] == the_version(client, key)


@pytest.mark.parametrize("retries", [0, 3])
def test_a_completion_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path, retries):
    source, key = write_file(tmp_path / "source", 40 * MIB), f"parts-{retries}"
    with through(1, "POST", f"/open/{key}?uploadId=") as between:
        options = ("--transfer", "tls", "--retries", retries)
        put = mover.done("put", source, f"s3://open/{key}", *options)
        assert len(between.lost) == 1
    assert put["verified"] is True
    assert put["version_id"] == the_version(client, key)
    assert mover.journals() == []


def test_a_completion_is_found_by_the_same_command_later(mover, serving, client, tmp_path):
    """Nothing more was heard of the server after it had completed the upload."""
    source, bytes_put = write_file(tmp_path / "source", 40 * MIB), 40 * MIB
    put = ("put", source, "s3://open/later", "--transfer", "tls")
    direct = mover.environment["AWS_ENDPOINT_URL"]
    with Watching(serving) as between:
        between.loses = one_of(1, "POST", "/open/later?uploadId=")

        def breaks(method, path):
            if between.lost:
                raise OSError

        between.before = breaks
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        mover.run(*put, "--retries", 0, code=1)
        assert len(between.lost) == len(mover.journals()) == 1
        between.before, between.loses = (lambda *_: None), (lambda *_: False)
        done = mover.done(*put)
    assert (done["kept_bytes"], done["verified"]) == (bytes_put, True)
    assert done["version_id"] == the_version(client, "later")
    assert mover.journals() == []
    # Once more is another version.
    mover.environment |= {"AWS_ENDPOINT_URL": direct}
    assert mover.done(*put)["kept_bytes"] == 0
    assert len(client.list_object_versions(Bucket="open", Prefix="later")["Versions"]) == 2


def killed(mover, between, put, key, is_late):
    """Runs a command to the first request that stores an object, and kills it there: as that comes,
    or when it was answered."""
    started = []

    def kills(method, path):
        if method != "PUT" or not path.startswith(f"/open/{key}"):
            return False
        while not started:
            time.sleep(0.01)
        started[0].kill()
        return True

    def kills_before(method, path):
        if kills(method, path):
            raise OSError

    if is_late:
        between.loses = kills
    else:
        between.before = kills_before
    started.append(mover.start(*put))
    assert started[0].wait(60) == -signal.SIGKILL
    between.before, between.loses = (lambda *_: None), (lambda *_: False)


@pytest.mark.parametrize("transfer", ["sealed", "tls"])
def test_a_small_file_is_found_by_the_same_command_after_a_kill(
    serving, mover, client, tmp_path, transfer
):
    source, key = write_file(tmp_path / "source", MIB), f"once-{transfer}"
    put = ("put", source, f"s3://open/{key}", "--transfer", transfer)
    with Watching(serving) as between:
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        killed(mover, between, put, key, is_late=True)
        done = mover.done(*put)
        assert (done["kept_bytes"], done["verified"]) == (MIB, True)
        assert done["version_id"] == the_version(client, key)
        # Once more is another version.
        assert mover.done(*put)["kept_bytes"] == 0
    assert len(client.list_object_versions(Bucket="open", Prefix=key)["Versions"]) == 2


@pytest.mark.parametrize("what", ["older", "described"])
def test_after_a_kill_nothing_else_counts_as_stored(serving, mover, client, tmp_path, what):
    """What was to store the file never came to the server: the same bytes that were there before,
    or are described otherwise."""
    source, key = write_file(tmp_path / "source", MIB), f"unlike-{what}"
    put = ("put", source, f"s3://open/{key}")
    if what == "older":
        mover.run(*put)
        time.sleep(OLDER_SECONDS)
    with Watching(serving) as between:
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        killed(mover, between, put, key, is_late=False)
        if what == "described":
            client.put_object(Bucket="open", Key=key, Body=source.read_bytes())
        assert mover.done(*put)["kept_bytes"] == 0
    assert len(client.list_object_versions(Bucket="open", Prefix=key)["Versions"]) == 2


@pytest.mark.parametrize("way", ["file", "folder"])
def test_what_was_called_doubtful_is_stored_again_after_a_kill(
    serving, mover, client, tmp_path, way
):
    """It is there, and may not be kept."""
    tree, place = tmp_path / "tree", f"doubtful-{way}/"
    tree.mkdir()
    source = write_file(tree / "x", MIB)
    what = ("-r", tree) if way == "folder" else (source,)
    put = ("put", *what, f"s3://open/{place}", "--transfer", "tls")
    started, asked = [], []

    def kills_the_second(method, path):
        if method == "PUT" and path.startswith(f"/open/{place}"):
            asked.append(path)
            if len(asked) == 2:
                while not started:
                    time.sleep(0.01)
                started[0].kill()
                raise OSError

    def doubts(method, path):
        return DOUBT if method == "PUT" and len(asked) == 1 else None

    with Watching(serving) as between:
        between.before, between.answers = kills_the_second, doubts
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        started.append(mover.start(*put))
        assert started[0].wait(60) == -signal.SIGKILL
        between.before, between.answers = (lambda *_: None), (lambda *_: None)
        the_version(client, place)
        assert mover.done(*put)["kept_bytes"] == 0
    assert len(client.list_object_versions(Bucket="open", Prefix=place)["Versions"]) == 2


def test_a_copy_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path):
    source = write_file(tmp_path / "source", MIB)
    mover.run("put", source, "s3://open/original", "--metadata", "of=now")
    with through(1, "PUT", "/open/copied") as between:
        copy = mover.done("cp", "s3://open/original", "s3://open/copied")
        assert len(between.lost) == 1
    assert copy["verified"] is True
    assert copy["version_id"] == the_version(client, "copied")


def markers(client, prefix):
    return client.list_object_versions(Bucket="open", Prefix=prefix).get("DeleteMarkers", [])


@pytest.mark.parametrize("retries", [0, 3])
def test_a_deletion_whose_answer_is_lost_leaves_one_marker(mover, through, client, retries):
    key = f"removed-{retries}"
    client.put_object(Bucket="open", Key=key, Body=b"x")
    with through(1, "DELETE") as between:
        mover.run("rm", f"s3://open/{key}", "--retries", retries)
        assert len(between.lost) == 1
    assert len(markers(client, key)) == 1


def test_a_deletion_that_never_came_is_asked_for_again(serving, mover, client):
    client.put_object(Bucket="open", Key="unremoved", Body=b"x")
    seen = []

    def breaks_once(method, path):
        if method == "DELETE" and not seen:
            seen.append(path)
            raise OSError

    with Watching(serving) as between:
        between.before = breaks_once
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        mover.run("rm", "s3://open/unremoved")
    assert len(seen) == len(markers(client, "unremoved")) == 1


def test_deleting_many_leaves_one_marker_each_where_an_answer_is_lost(mover, through, client):
    keys = [f"many/{number}" for number in range(5)]
    for key in keys:
        client.put_object(Bucket="open", Key=key, Body=b"x")
    with through(1, "POST", "/open?delete") as between:
        told = mover.events("rm", "-r", "--yes", "s3://open/many/")
        assert len(between.lost) == 1
    removed = [event["what"] for event in told if event["event"] == "deleted"]
    assert sorted(removed) == [f"s3://open/{key}" for key in keys]
    assert sorted(marker["Key"] for marker in markers(client, "many/")) == keys


@pytest.mark.parametrize("retries", [0, 3])
def test_a_commit_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path, retries):
    source = write_file(tmp_path / "source", MIB)
    key = f"small-{retries}"
    with through(1) as between:
        metadata = ("--metadata", "of=now", "--metadata", "title=für")
        put = mover.done("put", source, f"s3://open/{key}", *metadata, "--retries", retries)
        assert len(between.lost) == 1
    assert (put["transfer"], put["verified"]) == ("sealed", True)
    assert put["version_id"] == the_version(client, key)


@pytest.mark.parametrize("transfer", ["sealed", "tls"])
@pytest.mark.parametrize(
    ("before", "seconds"),
    [
        (("--metadata", "of=now"), OLDER_SECONDS),
        (("--metadata", "of=other"), 0),
        (("--metadata", "of=now", "--metadata", "more=than sent"), 0),
        (("--metadata", "of=now", "--content-type", "text/html"), 0),
    ],
    ids=["older", "other", "more", "type"],
)
def test_what_was_there_before_is_not_what_was_sent(
    serving, mover, client, tmp_path, before, seconds, transfer, request
):
    """An object of the same bytes that is older, or is described otherwise, where what was to store
    it never came to the server."""
    source, key = write_file(tmp_path / "source", MIB), f"again-{request.node.callspec.id}"
    mover.run("put", source, f"s3://open/{key}", *before)
    time.sleep(seconds)

    def breaks(method, path):
        if method == "PUT":
            raise OSError

    with Watching(serving) as between:
        between.before = breaks
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        kind = ("--content-type", "text/plain") if "--content-type" in before else ()
        options = ("--metadata", "of=now", *kind, "--retries", 0, "--transfer", transfer)
        mover.run("put", source, f"s3://open/{key}", *options, code=1)
    assert len(client.list_object_versions(Bucket="open", Prefix=key)["Versions"]) == 1


def test_a_clock_that_is_set_meanwhile_makes_nothing_younger(serving, mover, client, tmp_path):
    """The same bytes, stored a while before a request that is lost on its way; ten minutes are
    skipped while it is under way."""
    source = write_file(tmp_path / "source", MIB)
    mover.run("put", source, "s3://open/clock", "--transfer", "tls")
    time.sleep(OLDER_SECONDS)
    ahead = tmp_path / "ahead"
    ahead.write_bytes(bytes(8))
    mover.environment["LD_PRELOAD"] = str(library(tmp_path, "clock.c"))
    mover.environment["CLOCK_AHEAD_FILE"] = str(ahead)

    def jumps_and_breaks(method, path):
        if method == "PUT":
            with ahead.open("r+b") as file:
                file.write(struct.pack("=q", 600))
            raise OSError

    with Watching(serving) as between:
        between.before = jumps_and_breaks
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        options = ("--retries", 0, "--transfer", "tls")
        mover.run("put", source, "s3://open/clock", *options, code=1)
        assert ("HEAD", "/open/clock") in between.requests
    the_version(client, "clock")


@pytest.mark.parametrize("number", [1, 4])
def test_a_part_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path, number):
    source = write_file(tmp_path / "source", 100 * MIB)
    with through(number) as between:
        put = mover.done("put", source, f"s3://open/big-{number}", "--jobs", "1")
        assert len(between.lost) == 1
        mover.run("get", f"s3://open/big-{number}", tmp_path / "back")
    assert (put["transfer"], put["verified"]) == ("sealed", True)
    assert mover.journals() == []
    assert client.list_multipart_uploads(Bucket="open").get("Uploads", []) == []
    assert digest(tmp_path / "back") == digest(source)
