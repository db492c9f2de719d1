"""Copies in folders that others can write to, and what ended puts leave in them."""

import json
import os
import time

from harness.administration import ask, refused, run
from harness.age import RECIPIENT
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    files_in,
    keys_of,
    made,
    put,
    reached,
    replica,
    restore,
    status,
    url_of,
    verify,
)
from harness.server import coffer


def test_a_link_in_the_folder_costs_nothing_but_the_copy(server, tmp_path):
    """Not in another folder, and not in the server's own: the sweep removes whole buckets."""
    copy, victim = tmp_path / "copy", made(tmp_path / "victim")
    (victim / "kept").write_text("kept")
    replica(server, "add", "far", url_of(copy), "--keep", "0s")
    put(server, ["middle-1"])
    caught_up(server)
    links = {"0" * 32: victim, "1" * 32: server.data / "buckets"}
    for name, to in links.items():
        (copy / "blobs" / name).symlink_to(to)
    told = reached(server, "failing")
    assert "is a link" in told["problem"] and "blobs/" in told["problem"], told
    # A bucket that is gone is removed from the copy with the next sweep.
    s3_client(server).create_bucket(Bucket="gone")
    run(server, "bucket", "erase", "gone", "--yes")
    before = sorted(os.walk(server.data / "buckets"))
    time.sleep(7)
    assert (victim / "kept").exists()
    assert sorted(os.walk(server.data / "buckets")) == before
    for name in links:
        (copy / "blobs" / name).unlink()
    reached(server, "following")


def test_a_copy_that_is_given_up_while_an_erase_is_pending_is_not_said_to_be_tried(
    server, tmp_path
):
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, ["middle-1"])
    caught_up(server)
    copy.rename(away)
    made(copy)
    done = coffer("bucket", "erase", BUCKET, "--data", server.data, "--yes", "--json", text=True)
    assert "PENDING" in done.stderr, done
    assert status(server)["keystore"]["pending_erase_count"] == 1
    run(server, "replica", "remove", "far")
    receipt = ask(server, "receipt", "show", json.loads(done.stdout)["id"])
    [told] = receipt["copies"]
    assert told["keystore"]["state"] == "left" and "PENDING" not in str(receipt), receipt
    assert receipt["signed_again_at"] > receipt["erased_at"]


def test_a_place_that_is_none_is_told_in_plain_words(server, tmp_path):
    told = refused(server, "replica", "add", "far", str(tmp_path / "copy"))
    assert "a folder is file:///FOLDER" in told, told
    told = refused(server, "replica", "add", "far", url_of(tmp_path / "absent/copy"))
    assert "make that first, or mount its disk" in told, told
    absent, data = url_of(tmp_path / "absent"), tmp_path / "restored"
    done = coffer("restore", "--from", absent, "--data", data, text=True)
    assert done.returncode == 1 and "there is no such folder" in done.stderr, done


def until(is_so, seconds=40):
    end = time.time() + seconds
    while not is_so():
        assert time.time() < end
        time.sleep(0.2)


def until_there(path):
    until(path.exists)
    return path.read_bytes()


def test_a_copy_that_lost_its_record_is_given_it_again(server, tmp_path):
    """Without it there is nothing to restore from, whatever else is there."""
    record = tmp_path / "copy" / "copy.json"
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    put(server, ["small-1"])
    caught_up(server)
    before = record.read_bytes()
    record.unlink()
    assert until_there(record) == before
    # By the next start as well.
    server.kill()
    record.unlink()
    server.start()
    assert until_there(record) == before
    put(server, ["small-2"])
    caught_up(server)
    assert verify(server)[-1]["damage_count"] == 0
    # Where another's lies there, it stays.
    other = before.replace(json.loads(before)["copy"].encode(), b"1" * 32)
    record.write_bytes(other)
    told = reached(server, "stopped")
    assert "is of copy " + "1" * 32 in told["problem"], told
    assert record.read_bytes() == other


def test_a_copy_whose_record_was_altered_is_damaged(server, tmp_path):
    copy = tmp_path / "copy"
    record = copy / "copy.json"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    before = record.read_bytes()
    record.write_bytes(before.replace(json.loads(before)["keystore"].encode(), b"2" * 32))
    events = verify(server, expect=1)
    [told] = [event["what"] for event in events if event["event"] == "damage"]
    assert "copy.json" in told and "2" * 32 in told and "Remove it" in told, told
    # What is sealed counts, where its id is right.
    assert restore(url_of(copy), keys_of(server, tmp_path / "restored"))["missing_count"] == 0
    # As it says.
    record.unlink()
    assert until_there(record) == before
    # One that says nothing is no other's.
    record.write_bytes(b"{}")
    until(lambda: record.read_bytes() == before)
    caught_up(server, seconds=60)
    assert verify(server)[-1]["damage_count"] == 0


def test_a_copy_that_can_not_be_added_changes_nothing_there(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    replica(server, "remove", "far")
    (copy / "copy.json").unlink()
    before = {path: path.read_bytes() for path in files_in(copy)}
    told = replica(server, "add", "again", url_of(copy), expect=1)
    assert "a copy in this place already" in told
    assert {path: path.read_bytes() for path in files_in(copy)} == before


def test_a_copy_inside_another_is_refused(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    for inside in (copy / "keystores", copy / "new" / "deeper"):
        told = replica(server, "add", "again", url_of(inside), expect=2)
        assert "inside another" in told and not (copy / "new").exists(), told
    replica(server, "add", "again", url_of(tmp_path / "beside"))


def test_what_a_copy_had_before_a_start_is_not_called_never(server, tmp_path):
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy))
    put(server, ["middle-1"])
    assert caught_up(server)["was_complete"] is True
    server.stop()
    copy.rename(away)
    server.start()
    told = reached(server, "failing")
    assert (told["as_of"], told["from"], told["was_complete"]) == (None, None, None), told
    shown = coffer("replica", "status", "far", "--data", server.data, text=True).stdout
    assert shown.count("not known") == 3 and "never" not in shown, shown
    away.rename(copy)
    assert caught_up(server)["was_complete"] is True


def test_a_restore_says_what_is_in_the_place(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--keep", "30d")
    put(server, ["middle-1"])
    caught_up(server)
    server.kill()
    keys, new = keys_of(server, tmp_path / "keys"), tmp_path / "new"
    # As a mount point is without its disk.
    empty = url_of(made(tmp_path / "empty"))
    for data in (keys, new):
        said = restore(empty, data, expect=1)
        assert "no copy in this place" in said and "disk mounted?" in said, said
        assert "keystore" not in said and not new.exists(), said
    said = restore(url_of(copy), keys, "--at", "2020-01-01T00:00:00Z", expect=1)
    assert "keeps 30 days of what was before" in said, said
    record = copy / "copy.json"
    told = json.loads(record.read_text())
    record.write_text(json.dumps({**told, "copy": "00" * 16}))
    said = restore(url_of(copy), keys, expect=1)
    assert "copy.json in this place says that the copy is 0000" in said, said
    record.write_text(json.dumps(told))
    restore(url_of(copy), keys)
