"""Sealed copies under load: how far behind they are, and what an outage of the target costs."""

import concurrent.futures
import shutil
import time

from harness.clients import s3_client
from harness.content import MIB
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    put,
    reached,
    replica,
    status,
    url_of,
    verify,
)

WRITERS = 100
SECONDS = 6
#: What is promised where the target keeps up.
LAG_SECONDS = 5


def write(server, seconds, writers=WRITERS):
    """Small objects by many writers, for so long. How many there were."""
    clients = [s3_client(server) for _ in range(8)]
    end = time.time() + seconds

    def one(number):
        count = 0
        while time.time() < end:
            clients[number % len(clients)].put_object(
                Bucket=BUCKET, Key=f"{number}/{count}", Body=b"x" * 1_000
            )
            count += 1
        return count

    pool = concurrent.futures.ThreadPoolExecutor(writers)
    return pool, [pool.submit(one, number) for number in range(writers)]


def test_a_copy_keeps_up_with_a_hundred_writers(server, tmp_path, record_property):
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    pool, writing = write(server, SECONDS)
    lags = []
    while not all(one.done() for one in writing):
        lags.append(status(server)["lag_seconds"])
        time.sleep(0.2)
    pool.shutdown()
    count = sum(one.result() for one in writing)
    record_property("objects", count)
    record_property("lag_seconds_max", max(lags))
    print(f"{count} objects in {SECONDS} s, lag at most {max(lags):.1f} s")
    assert count >= WRITERS
    assert max(lags) <= LAG_SECONDS, lags
    told = caught_up(server)
    assert told["gaps"] == [], told
    assert verify(server)[-1]["damage_count"] == 0


def test_an_outage_costs_neither_memory_nor_room_and_is_named(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    pool, writing = write(server, 1)
    pool.shutdown()
    caught_up(server)
    copy.rename(tmp_path / "away")
    reached(server, "failing")
    resident = server.resident_bytes()
    pool, writing = write(server, SECONDS)
    pool.shutdown()
    count = sum(one.result() for one in writing)
    grown = server.resident_bytes() - resident
    room = sum(f.stat().st_size for f in server.data.glob("copies*/**/*") if f.is_file())
    print(f"{count} objects meanwhile: {grown / MIB:.1f} MiB more memory, {room} bytes beside")
    assert grown < 48 * MIB
    assert room < 4 * MIB
    shutil.rmtree(copy, ignore_errors=True)
    (tmp_path / "away").rename(copy)
    told = caught_up(server, seconds=60)
    [gap] = told["gaps"]
    assert gap["from"] < gap["to"]
    assert verify(server)[-1]["damage_count"] == 0


def test_after_a_restart_the_lag_counts_from_what_was_put_last(server, tmp_path):
    copy, away = tmp_path / "copy", tmp_path / "away"
    began = time.time()
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    time.sleep(6)
    put(server, ["small-2"])
    caught_up(server)
    put_at = time.time()
    server.kill()
    # It can't be asked.
    copy.rename(away)
    copy.write_text("no folder")
    server.start()
    told = status(server)
    since_put, since_made = time.time() - put_at, time.time() - began
    assert told["as_of"] is None and told["was_complete"] is None, told
    assert told["lag_seconds"] < min(since_put + 3, since_made - 3), told
