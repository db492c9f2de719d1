"""A standby whose disk is full: it serves what it had, and follows when the newest state fits."""

import signal

import pytest

from harness.age import IDENTITY
from harness.clients import s3_client
from harness.content import MIB, content
from harness.disks import needs_mount, small_disk
from harness.sealed_copies import BUCKET, caught_up, check, put, restore, url_of
from harness.server import StartError
from harness.standbys import (
    add_copy,
    has,
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
