"""A standby whose disk is full: it serves what it had, and follows when the newest state fits; and
an original that has no room to note its fence."""

import contextlib
import os
import signal

import pytest

from harness import raw
from harness.age import IDENTITY
from harness.clients import s3_client
from harness.content import MIB, content
from harness.disks import needs_mount, small_disk
from harness.sealed_copies import BUCKET, caught_up, check, made, put, restore, status, url_of
from harness.server import Server, StartError
from harness.standbys import (
    add_copy,
    has,
    promote,
    serves_writes,
    standby_of,
    standby_status,
    started,
    within,
)

pytestmark = pytest.mark.skipif(needs_mount, reason="mounts a small file system")

BEFORE = ["small-3", "middle-1"]
#: More than the disk has room for.
KEYS = [f"big-{number:02}" for number in range(14)]


def is_failing(standby):
    def told():
        status = standby_status(standby)
        return status["state"] == "failing" and "no room" in status["problem"]

    return told


def test_what_it_fetched_for_a_state_that_is_not_needed_goes(server, tmp_path):
    copy = url_of(tmp_path / "copy")
    add_copy(server, copy)
    put(server, BEFORE)
    caught_up(server)
    with small_disk(tmp_path, 90 * MIB) as disk:
        standby = standby_of(copy, tmp_path / "second", tmp_path / "credentials")
        standby.data = disk / "data"
        try:
            started(standby)
            within(has(standby, BEFORE, BUCKET))
            s3 = s3_client(server)
            # It meets all of them at once: of those before there is room for some.
            standby.process.send_signal(signal.SIGSTOP)
            for key in KEYS:
                s3.put_object(Bucket=BUCKET, Key=key, Body=content(7 * MIB, key))
            caught_up(server, seconds=60)
            standby.process.send_signal(signal.SIGCONT)
            within(is_failing(standby), 60)
            # Also what was not read before it was full.
            check(standby, BEFORE)
            for key in KEYS:
                s3.delete_object(Bucket=BUCKET, Key=key)
            put(server, ["small-7", "middle-7"])
            within(has(standby, [*BEFORE, "small-7", "middle-7"], BUCKET), 60)
            check(standby, [*BEFORE, "small-7", "middle-7"])
            assert standby_status(standby)["state"] == "following"
        finally:
            standby.close()


def test_a_restore_and_a_start_say_which_disk_is_full(server, tmp_path):
    copy = url_of(tmp_path / "copy")
    add_copy(server, copy)
    put(server, ["large-1", "large-2"])
    caught_up(server)
    identity = tmp_path / "identity"
    identity.write_text(f"{IDENTITY}\n")
    with small_disk(tmp_path, 16 * MIB) as disk:
        data = disk / "data"
        error = restore(copy, data, "--identity", identity, expect=1)
        assert "no room is left on the disk" in error and str(data) in error, error
        standby = standby_of(copy, tmp_path / "second", tmp_path / "credentials")
        standby.data = disk / "other"
        try:
            with pytest.raises(StartError) as refused:
                standby.start()
            log = refused.value.log
            assert "no room is left on the disk" in log and str(standby.data) in log, log
        finally:
            standby.close()


def fill(disk):
    """Leaves no room at all on it."""
    path = disk / "filling"
    with path.open("wb", buffering=0) as file:
        for length in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * length)
        os.fsync(file.fileno())
    return path


def test_a_promotion_says_which_disk_is_full_and_how_the_original_stands(server, tmp_path):
    copy = url_of(tmp_path / "copy")
    add_copy(server, copy)
    put(server, BEFORE)
    caught_up(server)
    with small_disk(tmp_path) as disk:
        standby = standby_of(copy, tmp_path / "second", tmp_path / "credentials")
        standby.data = disk / "data"
        try:
            started(standby)
            within(has(standby, BEFORE, BUCKET))
            filling = fill(disk)
            error = promote(standby, expect=1)
            assert f"disk that {standby.data} is on is full" in error, error
            assert "The original goes on as it was" in error, error
            filling.unlink()
            promote(standby)
            serves_writes(standby)
        finally:
            standby.close()


@contextlib.contextmanager
def fenced_on_a_full_disk(tmp_path):
    """A server that a promotion has fenced off, and can't note it; what fills its disk, and the
    arguments without `--fenced-by`."""
    copy = url_of(tmp_path / "copy")
    with small_disk(tmp_path) as disk:
        server = Server(made(tmp_path / "first"), data=disk / "data").start()
        standby = standby_of(copy, tmp_path / "second", server.credentials_path)
        try:
            s3_client(server).create_bucket(Bucket=BUCKET)
            put(server, BEFORE)
            add_copy(server, copy)
            caught_up(server)
            server.stop()
            own, server.arguments = server.arguments, [*server.arguments, "--fenced-by", "far"]
            server.start()
            started(standby)
            within(has(standby, BEFORE, BUCKET))
            filling = fill(disk)
            promote(standby)
            serves_writes(standby)
            within(lambda: "not noted" in raw.get_admin(server, "/health/ready")[1])
            assert "after another start" not in server.log()
            yield server, filling, own
        finally:
            server.close()
            standby.close()


def stays_fenced(server, arguments):
    server.arguments = arguments
    with pytest.raises(StartError, match="(?s)fenced off by its copy.*--end-fence"):
        server.start()


def test_a_fence_that_could_not_be_noted_is_noted_as_soon_as_there_is_room(tmp_path):
    with fenced_on_a_full_disk(tmp_path) as (server, filling, own):
        within(lambda: "could not be noted" in (status(server)["problem"] or ""))
        filling.unlink()
        within(lambda: "after another start" in server.log())
        assert "not noted" not in raw.get_admin(server, "/health/ready")[1]
        assert "could not be noted" not in status(server)["problem"]
        server.kill()
        stays_fenced(server, own)


def test_a_fence_that_could_not_be_noted_is_noted_at_the_stop(tmp_path):
    with fenced_on_a_full_disk(tmp_path) as (server, filling, own):
        # No second passes, after which it would be tried anyhow.
        filling.unlink()
        server.stop()
        assert "after another start" in server.log()
        stays_fenced(server, own)


def test_a_fence_that_can_not_be_noted_at_the_stop_either_is_told(tmp_path):
    with fenced_on_a_full_disk(tmp_path) as (server, _, _):
        before = server.log().count("could not be noted: a start without")
        server.stop()
        assert server.log().count("could not be noted: a start without") == before + 1
