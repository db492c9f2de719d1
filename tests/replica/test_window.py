"""Sealed copies: earlier moments, what falls out of the window, and what is lost here or there."""

import shutil
import subprocess
import time
from datetime import UTC, datetime

import pytest

from harness.clients import s3_client
from harness.content import content
from harness.raw import get_admin
from harness.sealed_copies import (
    BUCKET,
    SIZES,
    blobs_in,
    caught_up,
    check,
    check_sound,
    enable_first,
    files_in,
    keys_of,
    put,
    reached,
    replica,
    restore,
    restored,
    served,
    status,
    url_of,
    verify,
)
from harness.server import BINARY, coffer

SMALL_BLOB = 20_000


def moment():
    """As restore takes it. What comes after this call is of a later second."""
    text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    time.sleep(0.05)
    return text


def back(away, copy):
    """A disk that is mounted again. What was put there just as it went is below it."""
    shutil.rmtree(copy, ignore_errors=True)
    away.rename(copy)


def until(condition, seconds=30):
    end = time.time() + seconds
    while not (found := condition()):
        assert time.time() < end, "it took too long"
        time.sleep(0.1)
    return found


def test_each_moment_that_is_kept_is_restored_and_then_served(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--keep", "30d")
    assert status(server)["keep_seconds"] == 30 * 86_400
    before = moment()
    time.sleep(1.1)
    put(server, ["small-1", "middle-1", "middle-2"])
    caught_up(server)
    first = moment()
    s3 = s3_client(server)
    s3.delete_object(Bucket=BUCKET, Key="middle-1")
    s3.put_object(Bucket=BUCKET, Key="small-1", Body=b"another")
    s3.create_bucket(Bucket="later")
    caught_up(server)
    second = moment()
    # The sweep of a start notes down what was deleted; that of the next one removes none of it.
    server.restart()
    until(lambda: files_in(copy / "gone"))
    server.restart()
    put(server, ["middle-3"])
    told = caught_up(server)
    assert told["gaps"] == [], told
    assert told["from"] <= first
    keys = keys_of(server, tmp_path / "keys")

    def at(when, name):
        data = tmp_path / name
        shutil.copytree(keys, data)
        return data, restored(url_of(copy), data, "--at", when, "--head", told["head"])

    data, events = at(first, "of-first")
    assert events[-1]["as_of"] <= first and events[-1]["bucket_count"] == 1, events
    with served(tmp_path / "second", data) as second_server:
        enable_first(second_server)
        check(second_server, ["small-1", "middle-1", "middle-2"])
        assert [b["Name"] for b in s3_client(second_server).list_buckets()["Buckets"]] == [BUCKET]
    data, events = at(second, "of-second")
    assert events[-1]["bucket_count"] == 2 and events[-1]["blob_count"] == 1, events
    check_sound(data)
    data = tmp_path / "of-before"
    shutil.copytree(keys, data)
    error = restore(url_of(copy), data, "--at", "2026-01-01", expect=1)
    assert "nothing of that moment" in error and before[:10] in error, error


def test_what_leaves_the_window_is_removed_though_the_server_is_killed_meanwhile(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--keep", "2s")
    s3 = s3_client(server)
    for number in range(400):
        body = content(SMALL_BLOB, f"{number}")
        s3.put_object(Bucket=BUCKET, Key=f"gone-{number}", Body=body)
    put(server, ["middle-1", "small-1"])
    caught_up(server)
    names = [{"Key": f"gone-{number}"} for number in range(400)]
    s3.delete_objects(Bucket=BUCKET, Delete={"Objects": names})
    assert len(blobs_in(copy / "blobs")) == 401
    kills = 0

    def is_removed():
        nonlocal kills
        left = len(blobs_in(copy / "blobs"))
        if kills < 3 and left < 401 - 60 * kills:
            server.kill()
            kills += 1
            keys = keys_of(server, tmp_path / f"keys-{kills}")
            restore(url_of(copy), keys)
            check_sound(keys)
            server.start()
        return left == 1

    until(is_removed, seconds=90)
    assert kills > 0, "it was removed too fast to be killed meanwhile"
    assert verify(server)[-1]["damage_count"] == 0
    until(lambda: not files_in(copy / "gone"))
    # Heads and pieces go as well.
    until(lambda: len(files_in(copy / "heads")) < 12)
    assert len(files_in(copy / "files")) < 40


def test_a_restore_that_is_killed_goes_on(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    s3 = s3_client(server)
    for number in range(300):
        s3.put_object(Bucket=BUCKET, Key=f"{number}", Body=content(SMALL_BLOB, f"{number}"))
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    command = [BINARY, "restore", "--from", url_of(copy), "--data", keys, "--json"]
    kills = 0
    for blob_count in [1, 60, 150]:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            until(lambda count=blob_count: len(blobs_in(keys / "buckets")) >= count)
            process.kill()
        kills += process.returncode == -9
        if process.returncode != -9:
            break
        checked = coffer("verify", "--data", keys, text=True)
        assert checked.returncode != 0, "an incomplete restore is not called whole"
    assert kills > 0
    done = coffer("restore", "--from", url_of(copy), "--data", keys, text=True)
    # It may have been done before it was killed; then it is not begun again, and all is there.
    assert done.returncode == 0 or "it holds more than a keystore" in done.stderr, done.stderr
    assert len(blobs_in(keys / "buckets")) == 300
    assert check_sound(keys)["checked_count"] == 300


def test_single_buckets_are_restored_and_others_are_refused(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    s3 = s3_client(server)
    s3.create_bucket(Bucket="other")
    put(server, ["middle-1", "small-1"])
    put(server, ["middle-7"], bucket="other")
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    assert "no bucket" in restore(url_of(copy), keys, "--bucket", "absent", expect=1)
    done = restore(url_of(copy), keys, "--bucket", BUCKET)
    assert (done["bucket_count"], done["left_out_count"], done["blob_count"]) == (1, 1, 1), done
    listed = coffer("offline", "ls", BUCKET, "--data", keys, text=True)
    assert "middle-1" in listed.stdout, listed
    listed = coffer("offline", "ls", "--data", keys, text=True).stdout.splitlines()
    assert [line for line in listed if line.endswith("other  (not restored)")], listed
    assert [line for line in listed if line.endswith(BUCKET)], listed
    # That it is older than its keystore may be told; what was left out is no damage.
    checked = coffer("verify", "--data", keys, text=True)
    assert "not restored, and not looked at: bucket other" in checked.stderr, checked
    assert "other: " not in checked.stdout, checked
    with served(tmp_path / "second", keys) as second:
        check(second, ["middle-1", "small-1"])
        s3 = s3_client(second)
        assert {b["Name"] for b in s3.list_buckets()["Buckets"]} == {BUCKET, "other"}
        with pytest.raises(s3.exceptions.ClientError) as refused:
            s3.get_object(Bucket="other", Key="middle-7")
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
        # It is no damage once the folder is a server's either, whether that runs or not.
        told = "not restored, and not looked at: bucket other"
        for _ in range(2):
            checked = coffer("verify", "--data", keys, text=True)
            assert checked.returncode == 4 and told in checked.stderr, checked
            assert "all sound" in checked.stdout and "other: " not in checked.stdout, checked
            second.stop()


def test_a_blob_that_the_copy_lacks_is_named_and_all_else_is_restored(server, tmp_path):
    copy = tmp_path / "copy"
    put(server, ["middle-1", "middle-2", "small-1"])
    replica(server, "add", "far", url_of(copy))
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    first, second = sorted(blobs_in(copy / "blobs"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    events = restored(url_of(copy), keys, expect=3)
    missing = [event for event in events if event["event"] == "missing"]
    assert {event["name"] for event in missing} == {"middle-1", "middle-2"}, missing
    assert all(event["bucket"] == BUCKET for event in missing)
    assert any(first.name in event["what"] for event in missing), missing
    assert events[-1]["missing_count"] == 2
    with served(tmp_path / "second", keys) as server:
        body = s3_client(server).get_object(Bucket=BUCKET, Key="small-1")["Body"].read()
        assert body == content(SIZES["small"], "small-1")


def test_what_verify_finds_is_put_again_by_the_running_server(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["middle-1", "middle-2"])
    caught_up(server)
    first, second = sorted(blobs_in(copy / "blobs"))
    first.unlink()
    damaged = bytearray(second.read_bytes())
    damaged[1000] ^= 1
    second.write_bytes(damaged)
    [piece, *_] = sorted((copy / "files").rglob("*-*/*"))[-1:]
    piece.unlink()
    assert verify(server, expect=1)[-1]["damage_count"] == 3
    caught_up(server)
    assert verify(server)[-1]["damage_count"] == 0
    segment = max((copy / "buckets").rglob("*-*/*-*"))
    segment.write_bytes(segment.read_bytes()[:-1])
    verify(server, expect=1)
    caught_up(server)
    assert verify(server)[-1]["damage_count"] == 0


def test_the_copys_blob_stays_where_the_servers_was_lost(server, tmp_path):
    """It may be the last. Its object was not deleted."""
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--keep", "0s")
    put(server, ["middle-1", "middle-2"])
    caught_up(server)
    blobs_in(server.data / "buckets")[0].unlink()
    # A start sweeps, and again some seconds later.
    server.restart()
    time.sleep(12)
    assert len(blobs_in(copy / "blobs")) == 2
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    assert restore(url_of(copy), keys)["missing_count"] == 0


def test_a_copy_of_which_nothing_changes_notices_that_it_is_gone(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    copy.rename(tmp_path / "away")
    told = reached(server, "failing")
    assert told["problem"], told
    _, page = get_admin(server, "/metrics")
    assert 'coffer_replica_following{replica="far"} 0' in page
    back(tmp_path / "away", copy)
    reached(server, "following", seconds=60)


def test_a_time_in_which_the_copy_was_away_is_named(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    copy.rename(tmp_path / "away")
    put(server, ["small-2"])
    between = moment()
    time.sleep(6)
    back(tmp_path / "away", copy)
    told = caught_up(server, seconds=60)
    [gap] = told["gaps"]
    assert gap["from"] < between < gap["to"], (gap, between)
    keys = keys_of(server, tmp_path / "restored")
    events = restored(url_of(copy), keys, "--at", between)
    assert [event["event"] for event in events] == ["gap", "done"], events
    assert events[0]["from"] == gap["from"]
    with served(tmp_path / "second", keys) as second:
        enable_first(second)
        check(second, ["small-1"])
