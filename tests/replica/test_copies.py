"""Sealed copies: kept up on a folder or on another coffer, and restored after the first is lost."""

import json
import shutil
import time
from pathlib import Path

from harness.administration import ask, from_afar, make_subject, refused, run
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    blobs_in,
    caught_up,
    check,
    files_in,
    keys_of,
    made,
    put,
    reached,
    replica,
    restore,
    served,
    status,
    url_of,
    verify,
)
from harness.server import Server, coffer


def until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_lost_disk_is_restored_from_a_folder(server, tmp_path):
    """With what was there before the copy was made, what came, went and was replaced since; by
    kill -9, and after starts between."""
    copy = tmp_path / "copy"
    put(server, ["small-1", "middle-1", "large-1", "middle-gone"])
    replica(server, "add", "far", url_of(copy))
    assert [told["name"] for told in replica(server, "list")] == ["far"]
    caught_up(server)
    put(server, ["small-2", "middle-2"])
    s3 = s3_client(server)
    s3.delete_object(Bucket=BUCKET, Key="middle-gone")
    caught_up(server)
    server.kill()
    server.start()
    put(server, ["small-3", "middle-3"])
    s3_client(server).create_bucket(Bucket="later")
    put(server, ["small-9"], bucket="later")
    caught_up(server)
    events = verify(server)
    assert events[-1]["event"] == "done" and events[-1]["blob_count"] == 4, events[-1]
    keys = keys_of(server, tmp_path / "restored")
    # What the check was recorded as is held by the keystore.
    told = caught_up(server)
    (tmp_path / "credentials").write_text(server.credentials_path.read_text())
    server.kill()
    shutil.rmtree(server.data)
    # As a restore leaves it that was ended while it wrote its mark.
    (keys / "backup.json.new").write_text("{")
    done = restore(url_of(copy), keys, "--head", told["head"])
    assert not (keys / "backup.json.new").exists()
    assert done["bucket_count"] == 2 and done["blob_count"] == 4, done
    checked = coffer("verify", "--data", keys, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with served(tmp_path / "second", keys) as second:
        names = ["small-1", "middle-1", "large-1", "small-2", "middle-2", "small-3", "middle-3"]
        check(second, names)
        check(second, ["small-9"], bucket="later")
        put(second, ["middle-4"])


def test_nothing_readable_lies_in_a_copy_and_no_key(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    needle = b"a needle that is in no copy"
    s3_client(server).put_object(Bucket=BUCKET, Key="needle-name", Body=needle * 4_000)
    caught_up(server)
    keys = [(server.data / "root.key").read_text().split()[-1].encode()]
    keystore = (server.data / "keystore").read_bytes()[:4_096]
    for path in copy.rglob("*"):
        if path.is_file():
            found = path.read_bytes()
            for secret in (needle, b"needle-name", keystore[64:], *keys, BUCKET.encode()):
                assert secret not in found, path


def test_an_outage_is_caught_up(server, tmp_path):
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    copy.rename(away)
    copy.write_text("no folder")
    put(server, ["small-2", "middle-2", "large-2"])
    end = time.time() + 20
    while status(server)["state"] != "failing":
        assert time.time() < end
        time.sleep(0.2)
    assert status(server)["lag_seconds"] > 0
    metrics = f"{server.admin_endpoint}/metrics"
    assert metrics
    copy.unlink()
    away.rename(copy)
    caught_up(server, seconds=60)
    assert status(server)["state"] == "following"
    assert verify(server)[-1]["damage_count"] == 0


def test_a_store_that_alters_or_rolls_back_is_found_out(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1", "middle-1"])
    # What a round that is under way has put, no head names yet.
    there, end = None, time.time() + 60
    while there != (now := sorted(files_in(copy))):
        assert time.time() < end, "the copy goes on being written though nothing is stored"
        there = now
        told = caught_up(server)
        time.sleep(1.5)
    server.stop()
    keys = keys_of(server, tmp_path / "keys")

    def refused(expected):
        data = tmp_path / "data"
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(keys, data)
        error = restore(url_of(copy), data, "--head", told["head"], expect=1)
        assert expected in error, error

    # A server that stops may put one more, of what it noted since.
    heads = {int(path.name): path for path in (copy / "heads").rglob("0*/0*")}
    number = int(told["head"].split(":")[0])
    for later in heads.keys() - range(number + 1):
        heads[later].unlink()
    segment = max((copy / "buckets").rglob("*-*"))
    head = heads[number]
    for path, damage, expected in [
        (segment, lambda found: found[:-1] + bytes([found[-1] ^ 1]), segment.name),
        (segment, None, "lacks"),
        (head, lambda found: found[:70] + b"?" + found[71:], head.name),
        (head, None, "was put back"),
    ]:
        whole = path.read_bytes()
        path.unlink()
        if damage:
            path.write_bytes(damage(whole))
        refused(expected)
        path.write_bytes(whole)
    # The server finds it at its next start, and says so.
    head.unlink()
    server.start()
    end = time.time() + 20
    while status(server)["state"] != "stopped":
        assert time.time() < end
        time.sleep(0.2)
    assert "was put back" in status(server)["problem"]


def test_a_copy_on_another_coffer(server, tmp_path):
    """Over S3, with its certificate and an access key in a file, through an outage of it."""
    with Server(made(tmp_path / "other")) as other:
        s3_client(other).create_bucket(Bucket="copies")
        url = (
            f"s3://copies/of-first?endpoint={other.endpoint}&ca={other.ca}"
            f"&credentials={other.credentials_path}"
        )
        replica(server, "add", "far", url)
        put(server, ["small-1", "middle-1", "large-1"])
        told = caught_up(server, seconds=60)
        other.kill()
        put(server, ["small-2", "middle-2"])
        other.start()
        url = url.replace(url.split("endpoint=")[1].split("&")[0], other.endpoint)
        told = caught_up(server, seconds=60)
        assert verify(server)[-1]["damage_count"] == 0
        keys = keys_of(server, tmp_path / "restored")
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        server.kill()
        done = restore(url, keys, "--head", told["head"])
        assert done["blob_count"] == 3, done
        with served(tmp_path / "second", keys) as second:
            check(second, ["small-1", "middle-1", "large-1", "small-2", "middle-2"])


def test_the_state_of_all_copies_is_shown_without_a_name(server, tmp_path):
    assert "`coffer replica add` begins one" in refused(server, "replica", "status")
    assert 'no copy "far"' in refused(server, "replica", "status", "far")
    for name in ("far", "near"):
        replica(server, "add", name, url_of(tmp_path / name))
    told = run(server, "replica", "status")
    heads = [line.split() for line in told.splitlines() if line.startswith("name ")]
    assert [words[-1] for words in heads] == ["far", "near"], told
    assert [copy["name"] for copy in ask(server, "replica", "status")] == ["far", "near"]


def test_a_restore_says_what_its_time_is_of(server, tmp_path):
    put(server, ["small-1"])
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    server.kill()
    done = coffer("restore", "--from", url_of(tmp_path / "copy"), "--data", keys, text=True)
    assert done.returncode == 0, done
    assert ", when its last change was made: 1 buckets" in done.stdout, done


def replica_receipts(server):
    """All receipts, each verified as its reader does, without the server."""
    told = json.loads(coffer("receipt", "list", "--data", server.data, "--json", text=True).stdout)
    key = coffer("receipt", "key", "--data", server.data, text=True).stdout.strip()
    receipts = []
    for entry in told:
        shown = coffer("receipt", "show", entry["id"], "--data", server.data, "--json", text=True)
        path = server.data.parent / "receipt.json"
        path.write_text(shown.stdout)
        verified = coffer("receipt", "verify", path, "--key", key, text=True)
        assert verified.returncode == 0 and "copy: far" in verified.stdout, verified
        receipts.append(json.loads(shown.stdout))
    return receipts


def test_a_copy_that_ended_before_it_was_made_is_on_no_receipt(server, tmp_path):
    def given_up(name):
        replica(server, "add", name, url_of(tmp_path / name))
        replica(server, "remove", name)

    def erased(what, name):
        receipt = ask(server, what, "erase", name, "--yes")
        passed = [told for told in receipt["verification"] if "not listed: " in told]
        return [copy["name"] for copy in receipt["copies"]], passed

    given_up("one")
    run(server, "level", "create", "secret", "--rank", "2")
    s3_client(server).create_bucket(Bucket="later")
    given_up("two")
    run(server, "level", "create", "hidden", "--rank", "3")
    names, [told] = erased("level", "hidden")
    assert names == [] and told.endswith("not listed: 2"), (names, told)
    for what, name in [("bucket", "later"), ("level", "secret")]:
        names, [told] = erased(what, name)
        assert names == ["two"] and told.endswith("not listed: 1"), (names, told)
    # What was there while they were kept up may be there still.
    assert erased("bucket", BUCKET) == (["one", "two"], [])


def test_an_erased_bucket_is_removed_from_copies(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "old", url_of(tmp_path / "old"))
    replica(server, "remove", "old")
    replica(server, "add", "far", url_of(copy))
    put(server, ["middle-1"])
    caught_up(server)
    assert list((copy / "blobs").iterdir())
    erased = coffer("bucket", "erase", BUCKET, "--data", server.data, "--yes", text=True)
    assert erased.returncode == 0, erased.stderr
    [told] = replica_receipts(server)
    assert [copy["name"] for copy in told["copies"]] == ["old", "far"], told["copies"]
    old, far = told["copies"]
    assert old["removed_at"] and far["removed_at"] is None
    assert "no keystore" in far["holds"] and far["keep_seconds"] == 7 * 86_400
    assert far["url"] == url_of(copy)
    caught_up(server)
    end = time.time() + 20
    folders = [copy / "blobs", copy / "buckets"]
    while any(path.is_file() for folder in folders for path in folder.rglob("*")):
        assert time.time() < end
        time.sleep(0.2)


def test_what_can_not_be_added_says_why(server, tmp_path):
    for name, url, told in [
        ("far", "ftp://host/x", "must begin with file://, s3://, az:// or gs://"),
        ("far", "s3://id:secret@bucket/x", "credentials in it"),
        ("far", "file:///no/such/folder/at/all", "no place for a copy"),
        ("No Name", url_of(tmp_path / "copy"), "no name for a copy"),
    ]:
        assert told in replica(server, "add", name, url, expect=1)
    replica(server, "add", "far", url_of(tmp_path / "copy"))
    again = replica(server, "add", "again", url_of(tmp_path / "copy"), expect=1)
    assert "a copy in this place already" in again
    assert "already" in replica(server, "add", "far", url_of(tmp_path / "other"), expect=1)
    replica(server, "remove", "far")
    assert replica(server, "list") == []
    assert "no copy" in replica(server, "status", "far", expect=1)
    assert Path(tmp_path / "copy" / "copy.json").exists(), "what is there stays"


def test_a_folder_that_is_gone_meanwhile_is_found_at_the_next_change(server, tmp_path):
    """As a disk that is not mounted any more: what is left is an empty folder."""
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    copy.rename(tmp_path / "away")
    made(copy)
    put(server, ["small-2", "middle-2"])
    told = reached(server, "failing")
    assert any(what in told["problem"] for what in ("disk mounted", "copy.json")), told
    assert list(copy.iterdir()) == [], "nothing is put where the disk was"
    # What was put there meanwhile, before that was found, is put again when the disk is back.
    shutil.rmtree(copy)
    (tmp_path / "away").rename(copy)
    caught_up(server, seconds=60)
    assert verify(server)[-1]["damage_count"] == 0


def test_blobs_that_are_missing_here_or_there_are_told_or_put_again(server, tmp_path):
    copy = tmp_path / "copy"
    put(server, ["middle-1"])
    [gone] = blobs_in(server.data / "buckets")
    put(server, ["middle-2"])
    gone.unlink()
    replica(server, "add", "far", url_of(copy))
    told = reached(server, "failing")
    assert told["problem"].startswith("1 blobs that catalogs name are missing"), told
    s3_client(server).delete_object(Bucket=BUCKET, Key="middle-1")
    reached(server, "following")
    # One that the copy lost, in a bucket that does not change.
    server.kill()
    [lost] = blobs_in(copy / "blobs")
    whole = lost.read_bytes()
    lost.unlink()
    server.start()
    caught_up(server)
    assert lost.read_bytes() == whole
    assert verify(server)[-1]["damage_count"] == 0


def flipped(body, at):
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def test_a_bad_disk_here_replaces_nothing_in_a_copy(server, tmp_path):
    """Neither a blob that is put at once nor one in parts."""
    copy = tmp_path / "copy"
    put(server, ["middle-1", "large-2"])
    replica(server, "add", "far", url_of(copy))
    caught_up(server)
    here = {path.read_bytes(): path for path in blobs_in(server.data / "buckets")}
    there = {path: path.read_bytes() for path in blobs_in(copy / "blobs")}
    assert set(here) == set(there.values())
    for path, whole in there.items():
        path.write_bytes(flipped(whole, len(whole) - 1))
        here[whole].write_bytes(flipped(whole, 100_000))
    assert verify(server, expect=None)[-1]["damage_count"] == 2
    until(lambda: server.log().count("a blob is not put again") == 2)
    for path, whole in there.items():
        assert path.read_bytes() == flipped(whole, len(whole) - 1)
        here[whole].write_bytes(whole)
    assert verify(server, expect=None)[-1]["damage_count"] == 2
    until(lambda: all(path.read_bytes() == whole for path, whole in there.items()))
    assert verify(server)[-1]["damage_count"] == 0


def test_a_copy_that_was_never_complete_is_not_called_sound(server, tmp_path):
    copy = made(tmp_path / "copy")
    put(server, ["middle-1"])
    (copy / "blobs").write_text("no folder")
    replica(server, "add", "far", url_of(copy))
    reached(server, "failing")
    done = coffer("replica", "verify", "far", "--data", server.data, text=True)
    assert done.returncode == 1 and "nothing complete" in done.stderr, done
    for names in (["far"], []):
        done = coffer("replica", "status", *names, "--data", server.data, text=True)
        assert done.returncode == 1 and "never complete" in done.stdout, done
    assert status(server)["was_complete"] is False


def test_places_that_are_taken_at_the_machine_and_outside_the_data_folder(server, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(server.data)
    inside = [server.data / "copy", server.data / "a" / "b", link / "copy"]
    for folder in [*inside, server.data, server.data.parent]:
        assert "data folder" in replica(server, "add", "far", url_of(folder), expect=2), folder
    assert not (server.data / "copy").exists()
    afar = make_subject(server, "far-off", "default", "--roles", "system-administrator")
    copy = tmp_path / "copy"
    for url in [url_of(copy), "s3://b/p?ca=/etc/passwd", "s3://b/p?credentials=/etc/passwd"]:
        done = from_afar(server, afar, "replica", "add", "far", url, folder=tmp_path)
        assert done.returncode == 2 and b"at the socket" in done.stderr, done
    assert not copy.exists()
