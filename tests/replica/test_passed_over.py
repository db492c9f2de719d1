"""A bucket that can't be opened keeps nothing else from being copied, and it is told."""

import os

from harness import raw
from harness.administration import ask, refused, run
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    keys_of,
    put,
    replica,
    restore,
    restored,
    served,
    status,
    url_of,
    verify,
)
from harness.server import coffer


def ids(server):
    return {bucket["name"]: bucket["id"] for bucket in ask(server, "bucket", "list")}


def broken(server, bucket):
    """Has a catalog that does not open; how it was."""
    path = server.data / "buckets" / bucket / "catalog.db"
    server.stop()
    good = path.read_bytes()
    path.write_bytes(os.urandom(4096) + good[4096:])
    server.start()
    return path, good


def test_what_can_be_opened_is_copied_and_what_the_copy_had_stays(server, tmp_path):
    s3_client(server).create_bucket(Bucket="other")
    put(server, ["small-1"])
    put(server, ["small-1"], bucket="other")
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    other = ids(server)["other"]
    path, good = broken(server, other)
    put(server, ["small-2"])
    told = caught_up(server)
    assert told["state"] == "following" and other in told["problem"], told
    assert (
        'coffer_replica_buckets_left_out{replica="far"} 1' in raw.get_admin(server, "/metrics")[1]
    )
    events = verify(server, expect=1)
    assert any(other in event.get("what", "") for event in events), events
    done = restore(url_of(tmp_path / "copy"), keys_of(server, tmp_path / "restored"))
    assert done["bucket_count"] == 2, done
    with served(tmp_path / "second", tmp_path / "restored") as second:
        check(second, ["small-1", "small-2"])
        check(second, ["small-1"], bucket="other")
    # It is put back, and copied again.
    server.stop()
    path.write_bytes(good)
    server.start()
    put(server, ["small-3"], bucket="other")
    told = caught_up(server)
    assert told["state"] == "following" and told["problem"] is None, told


def test_writes_of_other_buckets_are_acknowledged(server, tmp_path):
    s3_client(server).create_bucket(Bucket="other")
    put(server, ["small-1"], bucket="other")
    other = ids(server)["other"]
    broken(server, other)
    replica(server, "add", "safe", url_of(tmp_path / "copy"), "--sync", "--sync-wait", "2s")
    caught_up(server, "safe")
    put(server, ["small-1", "small-2"])
    assert status(server, "safe")["sync"]["in_doubt_count"] == 0
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    events = restored(url_of(tmp_path / "copy"), keys, expect=3)
    assert {"event": "notthere", "bucket": "other"} in events
    with served(tmp_path / "second", keys) as second:
        check(second, ["small-1", "small-2"])
    # Nothing is locked in it: it is erased as any other.
    server.start()
    run(server, "bucket", "erase", "other", "--yes")
    put(server, ["small-3"])
    told = caught_up(server, "safe")
    assert told["state"] == "following" and told["problem"] is None, told


def test_a_server_of_which_one_bucket_was_restored_has_copies(server, tmp_path):
    s3_client(server).create_bucket(Bucket="other")
    put(server, ["small-1"])
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    server.stop()
    restore(url_of(tmp_path / "copy"), keys, "--bucket", BUCKET)
    with served(tmp_path / "second", keys) as second:
        run(second, "replica", "add", "new", url_of(tmp_path / "next"))
        put(second, ["small-2"])
        caught_up(second, "new")
        check(second, ["small-1", "small-2"])


def test_a_server_of_which_one_bucket_was_restored_has_backups(server, tmp_path):
    """Unless the backup before has the bucket: it is not given up for one without it."""
    s3_client(server).create_bucket(Bucket="other")
    for bucket in (BUCKET, "other"):
        put(server, ["small-1", "middle-1"], bucket=bucket)
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    keys, apart = (keys_of(server, tmp_path / name) for name in ("restored", "apart"))
    server.stop()
    restore(url_of(tmp_path / "copy"), keys, "--bucket", BUCKET)
    restore(url_of(tmp_path / "copy"), apart, "--bucket", "other")
    backup = tmp_path / "backup"
    with served(tmp_path / "second", keys) as second:
        words = ("backup", backup, "--data", second.data)
        for _ in range(2):
            done = coffer(*words, text=True)
            assert done.returncode == 4 and "passed over bucket other" in done.stdout, done
            assert "1 buckets" in done.stdout, done
        other = ids(second)["other"]
        second.stop()
        (apart / "buckets" / other).rename(keys / "buckets" / other)
        second.start()
        done = coffer(*words, text=True)
        assert done.returncode == 0 and "2 buckets" in done.stdout, done
        second.stop()
        (keys / "buckets" / other).rename(tmp_path / "lost")
        second.start()
        done = coffer(*words, text=True)
        assert done.returncode == 1 and '"other"' in done.stderr, done
        assert "backup/copy/buckets" in done.stderr, done
        second.stop()
        copied = backup / "copy"
        (copied / "root.key").write_bytes((keys / "root.key").read_bytes())
        (copied / "root.key").chmod(0o600)
    with served(tmp_path / "third", copied) as third:
        for bucket in (BUCKET, "other"):
            check(third, ["small-1", "middle-1"], bucket=bucket)


def test_a_bucket_that_was_not_restored_is_held_until_its_folder_is_there(server, tmp_path):
    """Or is erased at once where its level was made so that an erase wins."""
    words = ("--rank", "0", "--same-label", "--erase-breaks-locks")
    run(server, "level", "create", "breaking", *words)
    run(server, "bucket", "create", "third", "--level", "breaking")
    s3_client(server).create_bucket(Bucket="other")
    put(server, ["small-1"])
    for bucket in ("other", "third"):
        put(server, ["small-1", "middle-1"], bucket=bucket)
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    keys, apart = (keys_of(server, tmp_path / name) for name in ("restored", "apart"))
    server.stop()
    restore(url_of(tmp_path / "copy"), keys, "--bucket", BUCKET)
    restore(url_of(tmp_path / "copy"), apart, "--bucket", "other")
    with served(tmp_path / "second", keys) as second:
        told = refused(second, "bucket", "erase", "other", "--yes")
        assert "legal hold" in told and "--erase-breaks-locks" in told, told
        run(second, "bucket", "erase", "third", "--yes")
        other = ids(second)["other"]
        second.stop()
        (apart / "buckets" / other).rename(keys / "buckets" / other)
        second.start()
        check(second, ["small-1", "middle-1"], bucket="other")
        run(second, "bucket", "erase", "other", "--yes")
        assert list(ids(second)) == [BUCKET]
        check(second, ["small-1"])
