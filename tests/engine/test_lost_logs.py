"""What becomes of a gateway when its store shows no log any more, another one, or a copy of one."""

import contextlib
import json
import time

import pytest

from harness.clients import s3_client
from harness.engines import Gateway, answered, client, url_at
from harness.server import StartError, coffer
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


def another_log(tmp_path, store):
    """Another engine is begun where the log was."""
    empty(store)
    with Gateway(tmp_path / "three", url_at(store)) as third:
        fresh = client(third, third.credentials())
        answered(lambda: fresh.create_bucket(Bucket="new"), 30)
        third.stop()


def test_a_cache_that_noted_nothing_of_its_log_takes_no_other(tmp_path, store, first):
    written(first)
    first.stop()
    before = held(first)
    another_log(tmp_path, store)
    path = first.data / "engine.json"
    mark = json.loads(path.read_text())
    del mark["record"]
    # As an earlier version left it; as one does that can't be read; and where it is lost.
    for text in (json.dumps(mark), "{}", None):
        path.unlink() if text is None else path.write_text(text)
        with pytest.raises(StartError, match="is of another engine|is damaged|holds something"):
            first.start(20)
        assert held(first) == before, text
        assert read_offline(first), text


def test_a_copy_of_a_log_is_not_gone_on_with_while_a_gateway_serves_by_the_log(
    tmp_path, store, first
):
    key = written(first)
    at = s3_client(store)
    for page in at.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/"):
        for item in page["Contents"]:
            body = at.get_object(Bucket="log", Key=item["Key"])["Body"].read()
            copied = item["Key"].replace("engine/", "copied/", 1)
            at.put_object(Bucket="log", Key=copied, Body=body)
    with Gateway(tmp_path / "copy", url_at(store, "copied")) as copy:
        within(lambda: copy.process.poll() is not None, 20)
        assert copy.kill() == 1
        assert "has a copy of its log" in copy.log(), copy.log()
        client(first, key).put_object(Bucket="notes", Key="later", Body=b"x")
        # Where none serves by the log itself, its copy is a log as any other.
        first.stop()
        copy.start()
        s3 = client(copy, key)
        answered(lambda: s3.put_object(Bucket="notes", Key="here", Body=b"x"), 30)
        names = [item["Key"] for item in s3.list_objects_v2(Bucket="notes")["Contents"]]
        assert names == ["here", "small", "x"]


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


def test_a_gateway_that_runs_ends_where_its_log_is_another(store, first):
    """No time mends that; it says why, as a start does that is refused."""
    written(first)
    before = kept(first)
    at = s3_client(store)
    record = at.get_object(**RECORD)["Body"].read()
    other = json.loads(record)
    other["copy"] = other["copy"][::-1]
    assert other["copy"] != json.loads(record)["copy"]
    at.put_object(**RECORD, Body=json.dumps(other).encode())
    within(lambda: first.process.poll() is not None, 60)
    assert first.process.returncode == 1, first.log()
    last = first.log().strip().splitlines()[-1]
    assert last.startswith("error: ") and "is of copy" in last, last
    assert {path for path in before if path in kept(first)} == before
    at.put_object(**RECORD, Body=record)
    first.stop()
    first.start()


def lost(store, *parts):
    """Loses these parts of what the store holds of the engine; what they were."""
    at, were = s3_client(store), {}
    for page in at.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/"):
        for key in (item["Key"] for item in page.get("Contents", [])):
            if key.split("/")[1] in parts:
                were[key] = at.get_object(Bucket="log", Key=key)["Body"].read()
                at.delete_object(Bucket="log", Key=key)
    assert were, parts
    return were


def put_again(store, were):
    for key, body in were.items():
        s3_client(store).put_object(Bucket="log", Key=key, Body=body)


def written(gateway):
    """Has a gateway hold something; the access key that reads it."""
    key = gateway.credentials()
    s3 = client(gateway, key)
    s3.create_bucket(Bucket="notes")
    s3.put_object(Bucket="notes", Key="x", Body=b"acknowledged" * 10_000)
    s3.put_object(Bucket="notes", Key="small", Body=b"acknowledged")
    return key


def held(gateway):
    """What is in a folder of the log, byte for byte."""
    assert not (gateway.data / "before").exists()
    return {path: path.read_bytes() for path in kept(gateway)}


def read_offline(gateway):
    read = coffer("offline", "cat", "notes", "small", "--data", gateway.data)
    return read.returncode == 0 and read.stdout == b"acknowledged"


def test_a_start_that_takes_no_state_of_the_log_leaves_the_cache_as_it_was(store, first):
    key = written(first)
    first.stop()
    before = held(first)
    assert read_offline(first)
    for parts in (["keystores"], ["heads"], ["files"], ["buckets"]):
        were = lost(store, *parts)
        first.log_path.write_text("")
        with pytest.raises(StartError):
            first.start(20)
        assert "what this folder held before is kept" in first.log(), first.log()
        assert held(first) == before, parts
        assert read_offline(first), parts
        put_again(store, were)
    first.start()
    s3 = client(first, key)
    _, found = answered(lambda: s3.get_object(Bucket="notes", Key="x")["Body"].read(), 30)
    assert found == b"acknowledged" * 10_000
    assert not (first.data / "before").exists()


def test_a_log_without_its_keystore_is_told_as_such_and_not_as_a_copy(store, first):
    key = written(first)
    first.stop()
    were = lost(store, "keystores")
    first.log_path.write_text("")
    with pytest.raises(StartError, match="the store lost the object below `keystores/`") as told:
        first.start(20)
    assert "replica add" not in str(told.value)
    put_again(store, were)
    first.start()
    answered(lambda: client(first, key).head_bucket(Bucket="notes"), 30)


def test_another_log_without_copy_json_leaves_the_cache_as_it_was(tmp_path, store, first):
    written(first)
    own = s3_client(store).get_object(**RECORD)["Body"].read()
    first.stop()
    before = held(first)
    another_log(tmp_path, store)
    for record in (b"{}", own, None):
        if record is None:
            s3_client(store).delete_object(**RECORD)
        else:
            s3_client(store).put_object(**RECORD, Body=record)
        with pytest.raises(StartError):
            first.start(20)
        assert held(first) == before, record
        assert read_offline(first), record


def test_a_gateway_that_runs_keeps_its_cache_where_its_log_lost_parts(store, first):
    key = written(first)
    before = kept(first)
    first.pause()
    were = lost(store, "keystores", "files")
    time.sleep(18)  # Its lease ends meanwhile.
    first.go_on()
    within(lambda: "what this folder held before is kept" in first.log(), 60)
    time.sleep(6)  # It tries again meanwhile, and says so once a minute.
    assert first.process.poll() is None, "what the store lost may be put back"
    for said in ("takes no part now", "held before is kept", "follows the engine's log"):
        assert first.log().count(said) == 1, first.log()
    first.kill()
    # It was ended at any moment: the next start puts back what it was taking.
    with pytest.raises(StartError):
        first.start(20)
    assert {path for path in before if path in kept(first)} == before
    assert read_offline(first)
    put_again(store, were)
    first.start()
    answered(lambda: client(first, key).get_object(Bucket="notes", Key="x"), 30)
