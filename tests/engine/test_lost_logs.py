"""What becomes of a gateway's folder when its store shows no log any more, or another one."""

import contextlib

import pytest

from harness.clients import s3_client
from harness.engines import Gateway, answered, client, url_at
from harness.server import StartError
from harness.standbys import within

RECORD = {"Bucket": "log", "Key": "engine/copy.json"}


def empty(store):
    """Loses what the store holds of the engine."""
    at = s3_client(store)
    for page in at.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/"):
        for item in page.get("Contents", []):
            at.delete_object(Bucket="log", Key=item["Key"])


def kept(gateway):
    """The catalogs, keystore and blobs in a folder."""
    files = (path for path in gateway.data.rglob("*") if path.is_file())
    files = (path for path in files if path.suffix not in (".db-wal", ".db-shm"))
    return {path for path in files if path.name == "keystore" or "buckets" in path.parts}


def test_the_last_cache_of_a_lost_log_stays_though_another_engine_begins_there(
    tmp_path, store, first
):
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket="notes")
    s3.put_object(Bucket="notes", Key="x", Body=b"acknowledged" * 10_000)
    before = kept(first)
    assert any(path.name == "keystore" for path in before) and len(before) > 2, before
    empty(store)
    # It looks for its log every few seconds, and writes it no more once it is gone.
    within(lambda: "may be all that is left of it" in first.log(), 60)
    empty(store)
    with Gateway(tmp_path / "three", url_at(store)) as third:
        fresh = client(third, third.credentials())
        answered(lambda: fresh.create_bucket(Bucket="new"), 30)
        within(lambda: "another one was begun there" in first.log(), 60)
        assert kept(first) == before
        first.stop()
        with pytest.raises(StartError, match="take another URL for this one"):
            first.start(20)
        assert kept(first) == before
        assert [it["Name"] for it in fresh.list_buckets()["Buckets"]] == ["new"]


def test_an_altered_id_is_told_as_such_and_not_as_damaged_heads(store, first):
    key = first.credentials()
    client(first, key).create_bucket(Bucket="notes")
    at = s3_client(store)
    record = at.get_object(**RECORD)["Body"].read()
    first.stop()
    start = record.index(b'"copy":"') + len(b'"copy":"')
    digit = b"0" if record[start : start + 1] != b"0" else b"1"
    at.put_object(**RECORD, Body=record[:start] + digit + record[start + 1 :])
    with contextlib.suppress(StartError):
        first.start(20)
    assert "is of copy" in first.log() and "damaged" not in first.log(), first.log()
    first.stop()
    at.put_object(**RECORD, Body=record)
    first.start()
    answered(lambda: client(first, key).head_bucket(Bucket="notes"), 30)
