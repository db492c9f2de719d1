"""Rotations and copies: older keys go when a copy that has the keystore does not need them any
more, and with them what earlier moments had under them."""

import subprocess
import time
from datetime import UTC, datetime

import pytest

from harness import policies
from harness.administration import ask, run
from harness.age import IDENTITY, RECIPIENT
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check_sound,
    keys_of,
    made,
    put,
    replica,
    restore,
    restored,
    status,
    url_of,
    verify,
)
from harness.server import BINARY, Server, coffer

NAMES = ["middle-1", "middle-2", "small-1"]


@pytest.fixture
def identity(tmp_path):
    path = tmp_path / "identity"
    path.write_text(f"# for tests\n{IDENTITY}\n")
    return path


@pytest.fixture
def store(tmp_path):
    with Server(made(tmp_path / "store")) as other:
        s3_client(other).create_bucket(Bucket="copies")
        yield other


def until(told, seconds=60):
    end = time.time() + seconds
    while not (found := told()):
        assert time.time() < end
        time.sleep(0.2)
    return found


def taken(server):
    """Waits until the copy has the keystore as it is."""

    def found():
        told = status(server)["keystore"]
        return told["generation"] == told["current_generation"]

    caught_up(server)
    until(found)


def rotating(server):
    """A rotation that is followed until it says that it waits for the copy."""
    words = [BINARY, "level", "rotate", "default", "--data", str(server.data)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = process.stderr.readline()
    assert "waits for copies" in told and "far" in told, (told, process.poll())
    assert rotating_buckets(server) == 1
    return process


def rotating_buckets(server):
    return ask(server, "keystore", "status")["rotating_bucket_count"]


def done(process):
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, (out, error)


def test_a_copy_whose_store_goes_away_in_a_rotation_is_read(server, tmp_path, store, identity):
    """It takes the keystore, and no catalog after it."""
    url = (
        f"s3://copies/of-first?endpoint={store.endpoint}&ca={store.ca}"
        f"&credentials={store.credentials_path}"
    )
    replica(server, "add", "far", url, "--with-keystore", "--recipient", RECIPIENT)
    put(server, NAMES)
    taken(server)
    at, catalogs = s3_client(store), policies.arn("copies", "of-first/buckets/*")
    policies.put(at, "copies", policies.statement("Deny", "*", ["s3:PutObject"], catalogs))
    process = rotating(server)
    # Were the server lost now, this is what there is.
    lost = tmp_path / "lost"
    assert restore(url, lost, "--identity", identity)["missing_count"] == 0
    assert check_sound(lost)["checked_count"] == len(NAMES)
    at.delete_bucket_policy(Bucket="copies")
    done(process)
    assert rotating_buckets(server) == 0
    told = status(server)["keystore"]
    assert told["generation"] == told["current_generation"], "it ends when the copy has it"
    server.kill()
    later = tmp_path / "later"
    assert restore(url, later, "--identity", identity)["missing_count"] == 0
    assert check_sound(later)["checked_count"] == len(NAMES)


def test_a_rotation_waits_over_a_restart_and_for_no_copy_that_is_removed(server, tmp_path):
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, NAMES)
    taken(server)
    copy.rename(away)
    made(copy)
    process = rotating(server)
    server.kill()
    process.communicate(timeout=60)
    server.start()
    time.sleep(3)
    assert rotating_buckets(server) == 1
    # Neither backups nor erases wait for that.
    run(server, "backup", tmp_path / "backup")
    s3_client(server).create_bucket(Bucket="doomed")
    run(server, "bucket", "erase", "doomed", "--yes")
    assert rotating_buckets(server) == 1
    run(server, "replica", "remove", "far")
    until(lambda: rotating_buckets(server) == 0)
    for name in NAMES:
        assert s3_client(server).get_object(Bucket=BUCKET, Key=name)["Body"].read()


def test_a_restore_tells_what_a_rotation_has_taken_of_earlier_moments(server, tmp_path, identity):
    """Of a copy that has the keystore, and of one that is apart from it."""
    with_keystore, apart = tmp_path / "copy", tmp_path / "apart"
    options = ["--keep", "30d", "--with-keystore", "--recipient", RECIPIENT]
    replica(server, "add", "far", url_of(with_keystore), *options)
    replica(server, "add", "plain", url_of(apart), "--keep", "30d")
    put(server, NAMES)
    caught_up(server)
    caught_up(server, "plain")
    before = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    time.sleep(1.5)
    s3_client(server).delete_object(Bucket=BUCKET, Key="middle-1")
    run(server, "level", "rotate", "default")
    taken(server)
    caught_up(server, "plain")
    keys = keys_of(server, tmp_path / "second")
    for url, data, words in (
        (url_of(with_keystore), tmp_path / "restored", ["--identity", identity]),
        (url_of(apart), keys, []),
    ):
        events = restored(url, data, "--at", before, *words, expect=3)
        [told] = [event for event in events if event["event"] == "rotated"]
        assert told == {"event": "rotated", "bucket": BUCKET, "key_count": 2}, told
        assert events[-1]["missing_count"] == 0, events[-1]
        small = coffer("offline", "cat", BUCKET, "small-1", "--data", data)
        assert small.returncode == 0 and len(small.stdout) == 900, small.stderr
        large = coffer("offline", "cat", BUCKET, "middle-1", "--data", data)
        assert large.returncode != 0, "its key is destroyed"
    # The newest state is whole.
    newest = keys_of(server, tmp_path / "newest")
    assert "rotated" not in {event["event"] for event in restored(url_of(apart), newest)}


def test_a_check_right_after_a_rotation_calls_no_sound_copy_damaged(server, tmp_path):
    """The key that it had is destroyed before the copy has what was wrapped anew."""
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    put(server, NAMES)
    caught_up(server)
    for _ in range(5):
        run(server, "level", "rotate", "default")
        events = verify(server)
        assert {event["event"] for event in events} == {"progress", "done"}, events
        done = events[-1]
        assert (done["blob_count"], done["damage_count"], done["behind_count"]) == (2, 0, 0), done


def test_a_check_tells_a_copy_that_is_behind_a_rotation_from_a_damaged_one(server, tmp_path, store):
    url = (
        f"s3://copies/of-first?endpoint={store.endpoint}&ca={store.ca}"
        f"&credentials={store.credentials_path}"
    )
    replica(server, "add", "far", url)
    put(server, NAMES)
    caught_up(server)
    at, all_of_it = s3_client(store), policies.arn("copies", "of-first/*")
    policies.put(at, "copies", policies.statement("Deny", "*", ["s3:PutObject"], all_of_it))
    run(server, "level", "rotate", "default")
    events = verify(server, expect=1)
    [note] = [event["what"] for event in events if event["event"] == "note"]
    assert note.startswith("BEHIND: ") and "2 blobs can't be opened" in note, note
    assert (events[-1]["damage_count"], events[-1]["behind_count"]) == (0, 2), events[-1]
    listed = at.list_objects_v2(Bucket="copies", Prefix="of-first/blobs/")
    blob = listed["Contents"][0]["Key"]
    at.delete_object(Bucket="copies", Key=blob)
    events = verify(server, expect=1)
    [damage] = [event["what"] for event in events if event["event"] == "damage"]
    assert blob.removeprefix("of-first/") in damage and events[-1]["damage_count"] == 1, damage
    at.delete_bucket_policy(Bucket="copies")
    caught_up(server)
    until(lambda: verify(server, expect=None)[-1]["damage_count"] == 0)
    assert verify(server)[-1]["behind_count"] == 0
