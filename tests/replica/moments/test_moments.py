"""What a restore to a moment gives while much is being copied, and where a clock was wrong."""

import shutil
import time
from datetime import UTC, datetime

import pytest

from harness.clients import s3_client
from harness.content import MIB, content
from harness.proxy import Proxy
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    files_in,
    keys_of,
    made,
    put,
    replica,
    restored,
    status,
    url_of,
    verify,
)
from harness.server import Server, coffer

AHEAD_SECONDS = 600
OTHERS = [f"other-{number:02}" for number in range(12)]


def moment():
    """As restore takes it. What comes after this call is of a later one."""
    text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    time.sleep(0.05)
    return text


def names_in(data, bucket=BUCKET):
    done = coffer("offline", "ls", bucket, "--data", data, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split()[-1] for line in done.stdout.splitlines()]


@pytest.fixture
def clocked(tmp_path, set_clock):
    """A server whose clock the test sets."""
    with Server(made(tmp_path / "clocked")) as server:
        s3_client(server).create_bucket(Bucket=BUCKET)
        yield server


def test_a_moment_has_nothing_that_was_changed_after_it(server, tmp_path):
    s3 = s3_client(server)
    for bucket in OTHERS:
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="precious", Body=b"precious")
    with Server(made(tmp_path / "store")) as store, Proxy(store.port) as proxy:
        s3_client(store).create_bucket(Bucket="copies")
        url = (
            f"s3://copies/of-first?endpoint=https://127.0.0.1:{proxy.port}&ca={store.ca}"
            f"&credentials={store.credentials_path}"
        )
        replica(server, "add", "far", url)
        caught_up(server, seconds=60)
        # The next round puts this for some seconds, and takes buckets before it and after.
        proxy.waits_seconds = 0.05
        s3.put_object(Bucket=BUCKET, Key="video", Body=content(4 * MIB, "video"))
        time.sleep(1.5)
        at = moment()
        for bucket in OTHERS:
            s3.delete_object(Bucket=bucket, Key="precious")
        caught_up(server, seconds=90)
        proxy.waits_seconds = 0.0
        after = moment()
        keys = keys_of(server, tmp_path / "keys")
        data = tmp_path / "at"
        shutil.copytree(keys, data)
        events = restored(url, data, "--at", at)
        assert [names_in(data, bucket) for bucket in OTHERS] == [["precious"]] * len(OTHERS)
        done = events[-1]
        assert done["until"] <= at, done
        # What it may lack of the time before is told.
        is_gap = any(event["event"] == "gap" for event in events)
        assert is_gap or done["lacks_from"] < at == done["lacks_to"], events
        events = restored(url, keys, "--at", after)
        assert done["until"] < events[-1]["until"] <= after, events
        assert names_in(keys) == ["video"]
        assert [names_in(keys, bucket) for bucket in OTHERS] == [[]] * len(OTHERS)


def test_a_moment_after_a_clock_was_ahead_is_not_given_without_a_word(clocked, tmp_path, set_clock):
    server, copy = clocked, tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    assert "ahead_seconds" not in caught_up(server)
    before = moment()
    time.sleep(1.1)
    set_clock(AHEAD_SECONDS)
    put(server, ["small-2"])
    caught_up(server)
    set_clock(0)
    put(server, ["small-3"])
    told = caught_up(server)
    assert AHEAD_SECONDS - 120 < told["ahead_seconds"] <= AHEAD_SECONDS, told
    shown = coffer("replica", "status", "far", "--data", server.data, text=True).stdout
    assert "the server's clock was ahead, or is behind" in shown, shown
    events = verify(server)
    assert any(event["event"] == "note" for event in events), events
    between = moment()
    s3_client(server).delete_object(Bucket=BUCKET, Key="small-3")
    put(server, ["small-4"])
    gaps = caught_up(server)["gaps"]
    assert any(gap["from"] <= between < gap["to"] for gap in gaps), gaps
    keys = keys_of(server, tmp_path / "keys")

    def restore_to(name, *words, expect=0):
        data = tmp_path / name
        shutil.copytree(keys, data)
        return data, restored(url_of(copy), data, *words, expect=expect)

    data, events = restore_to("before", "--at", before)
    assert names_in(data) == ["small-1"]
    assert [event["event"] for event in events if event["event"] == "clock"] == []
    # Whether the clock was ahead or is behind is not known: what is given was before in any case.
    data, events = restore_to("between", "--at", between, expect=3)
    assert names_in(data) == ["small-1"]
    [clock] = [event for event in events if event["event"] == "clock"]
    assert clock["from"] <= between < clock["to"] and clock["written"] <= between, clock
    number = clock["head"].split(":")[0]
    data, _ = restore_to("by-number", "--at-head", number)
    assert names_in(data) == ["small-1", "small-2", "small-3"]
    data, _ = restore_to("newest")
    assert names_in(data) == ["small-1", "small-2", "small-4"]


def test_a_window_is_as_long_though_a_clock_was_ahead(clocked, tmp_path, set_clock):
    server, copy = clocked, tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--keep", "20s")
    put(server, ["small-1"])
    caught_up(server)

    def heads():
        return {int(path.name) for path in files_in(copy / "heads") if path.name.isdigit()}

    there = heads()
    set_clock(AHEAD_SECONDS)
    put(server, ["small-2"])
    caught_up(server)
    # What is out of the window is looked for every five seconds: by that clock all would be.
    time.sleep(7)
    assert there <= heads()
    set_clock(0)
    put(server, ["small-3"])
    caught_up(server)
    first = max(heads())
    end = time.time() + 120
    while min(heads()) <= first:
        assert time.time() < end, sorted(heads())
        put(server, [f"small-{int(time.time())}"])
        time.sleep(1)
    caught_up(server)
    assert status(server)["ahead_seconds"] > AHEAD_SECONDS - 240
    assert verify(server)[-1]["damage_count"] == 0
