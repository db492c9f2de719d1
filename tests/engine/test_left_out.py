"""Buckets that a gateway can't open, and levels that a copy leaves out."""

import time

import pytest

from harness import raw
from harness.administration import run
from harness.age import RECIPIENT
from harness.clients import s3_client
from harness.engines import Gateway, answered, answers_itself, client, url_at
from harness.sealed_copies import caught_up, made, replica, status
from harness.server import Server, StartError


def test_no_engine_begins_on_a_copy_that_leaves_out_a_level(tmp_path, store):
    """Its buckets would be missing, and their names taken."""
    url = url_at(store)
    with Server(made(tmp_path / "first")) as server:
        key = server.credentials()
        replica(server, "add", "far", url, "--with-keystore", "--recipient", RECIPIENT)
        run(server, "level", "create", "kept", "--rank", "0", "--same-label", "--no-export")
        s3 = s3_client(server)
        s3.create_bucket(Bucket="notes")
        s3.put_object(Bucket="notes", Key="before", Body=b"before")
        run(server, "bucket", "create", "vault", "--level", "kept")
        s3.put_object(Bucket="vault", Key="gold", Body=b"gold")
        caught_up(server)
        assert status(server)["keystore"]["left_out"] == ["kept"]
        server.stop()
        for _ in range(2):
            with pytest.raises(StartError) as refused:
                Gateway(tmp_path / "one", url).start()
            told = refused.value.log
            assert refused.value.code == 1, told
            assert "no engine can begin on this copy" in told, told
            assert ", with the buckets vault)" in told and "notes" not in told, told
        # Nothing was begun: the server goes on with its copy. A level without buckets is no loss.
        server.start()
        s3.delete_object(Bucket="vault", Key="gold")
        s3.delete_bucket(Bucket="vault")
        caught_up(server)
        assert status(server)["state"] == "following"
        server.stop()
        with Gateway(tmp_path / "one", url) as gateway:
            s3 = client(gateway, key, read_timeout=60)
            answered(lambda: s3.put_object(Bucket="notes", Key="after", Body=b"after"), 30)
            assert got(s3, "before") == b"before"
            gateway.restart()
            assert answered(lambda: got(s3, "after"), 30)[1] == b"after"


RECORD = b"cofferRE"
#: So many records may be in no head; and more writes than that.
RECORDS_BOUND, WRITES = 1024, 1100


def last_entries(store):
    """The numbers of the last head and of the last record; 0, where there is none."""
    at = client(store, store.credentials())
    pages = at.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/heads/")
    names = [item["Key"] for page in pages for item in page.get("Contents", [])]
    last = {True: 0, False: 0}
    for name in sorted(names, reverse=True):
        body = at.get_object(Bucket="log", Key=name)["Body"].read()
        is_record = body.startswith(RECORD)
        last[is_record] = last[is_record] or int(name[-12:])
        if all(last.values()):
            break
    return last[False], last[True]


def headed(store, seconds=40):
    """Waits for a head behind all that is there; its number."""
    before, end = max(last_entries(store)), time.monotonic() + seconds
    while (head := last_entries(store)[0]) <= before:
        assert time.monotonic() < end, "no head came"
        time.sleep(0.2)
    return head


def test_a_catalog_that_does_not_open_after_a_takeover_loses_nothing(tmp_path, store):
    """What records have of it stays in the log, whatever heads are written meanwhile."""
    names = [f"old-{number}" for number in range(100)]
    with Gateway(tmp_path / "one", url_at(store)) as first:
        key = first.credentials()
        s3 = client(first, key)
        s3.create_bucket(Bucket="notes")
        for name in names:
            s3.put_object(Bucket="notes", Key=name, Body=name.encode() * 100)
        with Gateway(tmp_path / "two", url_at(store)) as second:
            there = client(second, key)
            answers_itself(second, lambda: got(there, "old-99"))
            head = 0
            for attempt in range(5):
                s3.put_object(Bucket="notes", Key="last", Body=b"of a head")
                head = headed(store)
                new = [f"new-{attempt}-{number}" for number in range(5)]
                for name in new:
                    s3.put_object(Bucket="notes", Key=name, Body=name.encode() * 100)
                names += new
                answers_itself(second, lambda name=new[-1]: got(there, name))
                if last_entries(store)[0] == head:
                    break
            [catalog] = (second.data / "buckets").glob("*/catalog.db")
            with catalog.open("r+b") as file:
                file.write(b"\xa5" * catalog.stat().st_size)
            first.kill()
            assert last_entries(store)[0] == head, "what was acknowledged last is in records alone"
            told = answered(lambda: left_out(second), 30)[1]
            assert "can't be opened" in told and f"after {RECORDS_BOUND} records" in told
            page = raw.get_admin(second, "/metrics")[1]
            assert 'coffer_replica_buckets_left_out{replica="engine"} 1' in page
            # Each is answered, by a record or a head.
            there.create_bucket(Bucket="other")
            for number in range(WRITES):
                there.put_object(Bucket="other", Key=f"{number % 100}", Body=b"%d" % number)
            assert last_entries(store)[0] > head + RECORDS_BOUND // 4
    with Gateway(tmp_path / "three", url_at(store)) as third:
        s3 = client(third, key)
        answered(lambda: s3.list_buckets(), 30)
        for name in names:
            assert got(s3, name) == name.encode() * 100, name
        for number in range(WRITES - 100, WRITES):
            assert got(s3, f"{number % 100}", "other") == b"%d" % number
        s3.put_object(Bucket="notes", Key="after", Body=b"z")


def got(s3, name, bucket="notes"):
    return s3.get_object(Bucket=bucket, Key=name)["Body"].read()


def left_out(gateway):
    problem = status(gateway, "engine")["problem"]
    assert problem
    return problem
