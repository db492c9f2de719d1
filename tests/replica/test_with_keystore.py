"""Copies that the keystore goes along with: an export of every level, which erases reach."""

import itertools
import json
import subprocess
import time

import pytest

from harness.administration import ask, from_afar, make_subject, run
from harness.age import IDENTITY, RECIPIENT, opened
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    check_sound,
    files_in,
    made,
    put,
    replica,
    restore,
    restored,
    served,
    status,
    url_of,
    verify,
)
from harness.server import BINARY, coffer

BOTH = "system-administrator,key-custodian"


@pytest.fixture
def identity(tmp_path):
    path = tmp_path / "identity"
    path.write_text(f"# for tests\n{IDENTITY}\n")
    return path


def keystores_in(copy):
    return sorted(files_in(copy / "keystores"))


def until(told, seconds=30):
    """Waits until something is told, and returns it."""
    end = time.time() + seconds
    while not (found := told()):
        assert time.time() < end
        time.sleep(0.2)
    return found


def taken(server):
    """Waits until the copy has the keystore as it is."""

    def found():
        told = status(server)["keystore"]
        return told["generation"] == told["current_generation"] and told

    caught_up(server)
    return until(found)


def erase(server, bucket=BUCKET):
    done = coffer("bucket", "erase", bucket, "--data", server.data, "--yes", "--json", text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def verified(server, receipt):
    """As its reader does, without the server."""
    key = coffer("receipt", "key", "--data", server.data, text=True).stdout.strip()
    path = server.data.parent / "receipt.json"
    path.write_text(json.dumps(receipt))
    done = coffer("receipt", "verify", path, "--key", key, text=True)
    assert done.returncode == 0, done
    return receipt


def test_a_lost_server_comes_back_with_an_identity_alone(server, tmp_path, identity):
    """Levels and buckets that were made after the copy was, as well."""
    copy = tmp_path / "copy"
    put(server, ["small-1", "middle-1"])
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    run(server, "level", "create", "secret", "--rank", "2")
    run(server, "bucket", "create", "later", "--level", "secret")
    put(server, ["middle-2"])
    told = taken(server)
    assert told["recipients"] == [RECIPIENT] and told["left_out"] == [], told
    assert len(keystores_in(copy)) == 1
    exports = {level["name"]: level["export_count"] for level in ask(server, "level", "list")}
    assert exports == {"default": 1, "secret": 1}, "each is counted once, however often it goes"
    assert verify(server)[-1]["damage_count"] == 0
    root = (server.data / "root.key").read_text().split()[-1].encode()
    [keystore] = keystores_in(copy)
    assert root.hex().encode() not in opened(keystore.read_text()).hex().encode()
    server.kill()
    keys = tmp_path / "restored"
    error = restore(url_of(copy), keys, expect=1)
    assert "--identity" in error and not keys.exists(), error
    done = restore(url_of(copy), keys, "--identity", identity)
    assert done["bucket_count"] == 2 and done["blob_count"] == 2, done
    with served(tmp_path / "second", keys) as second:
        check(second, ["small-1", "middle-1", "middle-2"])
        put(second, ["middle-3"])


def test_without_recipients_the_root_key_opens_it(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore")
    put(server, ["middle-1"])
    assert taken(server)["recipients"] == []
    server.kill()
    keys = made(tmp_path / "restored")
    keys.chmod(0o700)
    error = restore(url_of(copy), keys, expect=1)
    assert "root key" in error, error
    assert not (keys / "keystore").exists(), "what does not open is not left"
    (keys / "root.key").write_bytes((server.data / "root.key").read_bytes())
    (keys / "root.key").chmod(0o600)
    assert restore(url_of(copy), keys)["blob_count"] == 1
    with served(tmp_path / "second", keys) as second:
        check(second, ["middle-1"])


def test_an_erase_is_acknowledged_when_the_copy_has_the_new_keystore(server, tmp_path, identity):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    s3_client(server).create_bucket(Bucket="doomed")
    put(server, ["middle-1"])
    put(server, ["middle-2"], bucket="doomed")
    taken(server)
    [before] = keystores_in(copy)
    receipt, _ = erase(server, "doomed")
    [after] = keystores_in(copy)
    assert after.name > before.name
    [told] = verified(server, receipt)["copies"]
    assert told["keystore"]["state"] == "taken", told
    assert told["keystore"]["generation"] >= receipt["erased"]["keystore_generation"]
    assert told["keystore"]["recipients"] == [RECIPIENT] and RECIPIENT in told["holds"]
    # At once, before the next round: the bucket's catalog and blobs are there, and open no more.
    server.kill()
    done = coffer(
        "restore", "--from", url_of(copy), "--data", tmp_path / "restored",
        "--identity", identity, "--json", text=True,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["bucket_count"] == 1, events
    # Unless the next round was faster, and the copy has nothing of it any more.
    has_no_key = any(event["event"] == "nokey" for event in events)
    assert done.returncode == (4 if has_no_key else 0), done


def test_a_restore_without_keys_of_buckets_says_so_and_ends_with_4(server, tmp_path, identity):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    run(server, "level", "create", "kept", "--rank", "0", "--same-label", "--no-export")
    run(server, "bucket", "create", "vault", "--level", "kept")
    s3_client(server).put_object(Bucket="vault", Key="gold", Body=b"gold")
    put(server, ["middle-1"])
    assert taken(server)["left_out"] == ["kept"]
    [vault] = [told["id"] for told in ask(server, "bucket", "list") if told["name"] == "vault"]
    server.kill()
    for options, code in [([], 4), (["--accept-missing-keys"], 0)]:
        data, words = tmp_path / f"restored-{code}", ["--identity", identity, *options]
        events = restored(url_of(copy), data, *words, expect=code)
        assert {"event": "nokey", "bucket": vault} in events, events
        assert events[-1]["bucket_count"] == 1 and events[-1]["missing_count"] == 0, events
    with served(tmp_path / "second", data) as second:
        check(second, ["middle-1"])
        words = ("backup", tmp_path / "backup", "--data", second.data)
        done = coffer(*words, "--json", text=True)
        assert done.returncode == 4, (done.stdout, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert {"event": "leftout", "bucket": "vault"} in events, events
        assert events[-1]["bucket_count"] == 1 and events[-1]["left_out_count"] == 1, events


def test_a_copy_that_is_away_at_an_erase_is_pending_until_it_has_it(server, tmp_path, identity):
    """Told in the answer and on the receipt, over a restart; and when it was done, by a receipt
    that was signed again."""
    copy, away = tmp_path / "copy", tmp_path / "away"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, ["middle-1"])
    taken(server)
    [before] = keystores_in(copy)
    copy.rename(away)
    made(copy)
    receipt, answered = erase(server)
    assert "PENDING: copy far" in answered, answered
    assert f"`coffer receipt show {receipt['id']}`" in answered, answered
    [told] = verified(server, receipt)["copies"]
    assert told["keystore"]["state"] == "pending" and "PENDING" in told["holds"], told
    assert told["keystore"]["generation"] < receipt["erased"]["keystore_generation"]
    assert not files_in(copy), "nothing is put where no copy is"
    assert status(server)["keystore"]["pending_erase_count"] == 1
    server.kill()
    server.start()
    shown = ask(server, "receipt", "show", receipt["id"])
    assert shown == receipt
    copy.rmdir()
    away.rename(copy)
    assert before.exists()

    def settled():
        shown = ask(server, "receipt", "show", receipt["id"])
        return shown["copies"][0]["keystore"]["state"] == "taken" and shown

    assert any(line.startswith("folders of standbys") for line in receipt["remaining"])
    shown = verified(server, until(settled, seconds=60))
    assert shown["signed_again_at"] > shown["erased_at"] and "PENDING" not in str(shown)
    assert shown["copies"][0]["keystore"]["taken_at"] > shown["erased_at"]
    for name in ("id", "erased", "performed_by", "erased_at", "last_audit_record", "remaining"):
        assert shown[name] == receipt[name], name
    assert not before.exists(), "the keystore with the keys is gone from the copy"
    assert status(server)["keystore"]["pending_erase_count"] == 0
    until(lambda: "replica.keystore" in run(server, "audit", "show", "--last", "10"))
    done = coffer("receipt", "show", receipt["id"], "--data", server.data, text=True)
    assert "signed again" in done.stdout, done.stdout


def test_it_takes_the_most_approvals_and_what_asks_for_more_later_stays_out(server, tmp_path):
    copy = tmp_path / "copy"
    run(server, "level", "create", "guarded", "--rank", "1", "--approvals", "2")
    ada = make_subject(server, "ada", "default..guarded", "--roles", BOTH)
    options = ["--with-keystore", "--recipient", RECIPIENT, "--json"]
    done = coffer("replica", "add", "far", url_of(copy), *options, "--data", server.data, text=True)
    assert done.returncode == 3, done
    asked = json.loads(done.stdout)
    assert asked["wants"] == "replica.add-with-keystore" and asked["approvals"] == 2, asked
    assert asked["to"] == url_of(copy) and asked["recipients"] == [RECIPIENT], asked
    assert asked["replica"] == "far" and not copy.exists(), asked
    approve = ["request", "approve", asked["id"]]
    done = from_afar(server, ada, *approve, folder=tmp_path)
    assert done.returncode == 0, done
    run(server, "level", "create", "three", "--rank", "2", "--approvals", "3")
    run(server, "level", "create", "kept", "--rank", "3", "--no-export")
    run(server, "level", "create", "two", "--rank", "4", "--approvals", "2")
    assert sorted(taken(server)["left_out"]) == ["kept", "three"]
    exports = {level["name"]: level["export_count"] for level in ask(server, "level", "list")}
    assert exports == {"default": 1, "guarded": 1, "two": 1, "three": 0, "kept": 0}, exports


def test_who_may_not_and_where_a_level_forbids_it(server, tmp_path):
    url = "s3://copies/of-this?endpoint=https://127.0.0.1:1"
    add = ["replica", "add", "far", url, "--with-keystore"]
    for role in ("system-administrator", "key-custodian"):
        someone = make_subject(server, role, "default", "--roles", role)
        done = from_afar(server, someone, *add, folder=tmp_path)
        assert done.returncode == 1 and b"denied" in done.stderr.lower(), done
    afar = make_subject(server, "both", "default", "--roles", BOTH)
    folder = ["replica", "add", "far", url_of(tmp_path / "copy"), "--with-keystore"]
    done = from_afar(server, afar, *folder, folder=tmp_path)
    assert done.returncode == 2 and b"at the socket" in done.stderr, done
    wrong = [*folder, "--recipient", "age1nobody"]
    done = coffer(*wrong, "--data", server.data, text=True)
    assert done.returncode == 2 and "recipient" in done.stderr, done
    run(server, "level", "create", "kept", "--rank", "1", "--no-export")
    error = replica(server, *folder[1:], expect=1)
    assert "an export of every level" in error and "kept" in error, error
    assert not (tmp_path / "copy").exists()


def changed_keystore(server, tmp_path):
    """A copy that has taken a second keystore; where the first was, and what it was."""
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, ["small-1"])
    taken(server)
    [old] = keystores_in(copy)
    kept = old.read_bytes()
    run(server, "level", "create", "secret", "--rank", "2")
    taken(server)
    return copy, old, kept


def test_one_that_is_lost_altered_or_withheld_is_found_out(server, tmp_path, identity):
    copy, old, kept = changed_keystore(server, tmp_path)

    def damaged():
        # Each time: the server looks by itself, too, and the keystore may change meanwhile.
        for path in keystores_in(copy):
            path.write_bytes(b"?" * 500)
        events = verify(server, expect=None)
        return [event["what"] for event in events if event["event"] == "damage"]

    assert "keystores/" in until(damaged)[0]
    until(lambda: verify(server, expect=None)[-1]["damage_count"] == 0)
    # Without a verification as well.
    told = "missing or damaged in its store: it is put again"
    until(lambda: keystores_in(copy)[-1].write_bytes(b"?" * 500) and told in server.log())
    until(lambda: verify(server, expect=None)[-1]["damage_count"] == 0)
    until(lambda: len(keystores_in(copy)) == 1)
    server.kill()
    [new] = keystores_in(copy)
    whole = new.read_bytes()
    new.unlink()
    old.write_bytes(kept)
    data = tmp_path / "restored"
    error = restore(url_of(copy), data, "--identity", identity, expect=1)
    assert "withholds it" in error, error
    assert not (data / "keystore").exists() and not (data / "root.key").exists()
    # Nor when it is asked for again; and what an interrupted restore left is made whole.
    error = restore(url_of(copy), data, "--identity", identity, expect=1)
    assert "withholds it" in error, error
    old.unlink()
    new.write_bytes(whole)
    head = "1:" + "0" * 64
    restore(url_of(copy), data, "--identity", identity, "--head", head, expect=1)
    assert not (data / "keystore").exists() and not (data / "root.key").exists()


def test_an_older_keystore_under_a_newer_name_is_refused(server, tmp_path, identity):
    """It may hold keys that were destroyed since."""
    copy, old, kept = changed_keystore(server, tmp_path)
    server.kill()
    [new] = keystores_in(copy)
    whole = new.read_bytes()
    data = tmp_path / "restored"
    # Beside the newest, and in its place.
    for path in (new.with_name("00000099-000000000999"), new):
        path.write_bytes(kept)
        error = restore(url_of(copy), data, "--identity", identity, expect=1)
        assert f"keystores/{path.name}" in error, error
        assert "another generation than its name says" in error, error
        assert not (data / "keystore").exists() and not (data / "root.key").exists()
        if path != new:
            path.unlink()
    # Under the name of its own generation, in an epoch to come.
    beside = new.with_name(f"00000099-{old.name.split('-')[1]}")
    beside.write_bytes(kept)
    new.write_bytes(whole)
    error = restore(url_of(copy), data, "--identity", identity, expect=1)
    assert "withholds it" in error, error
    beside.unlink()
    restore(url_of(copy), data, "--identity", identity)


def test_a_restore_that_was_killed_goes_on(server, tmp_path, identity):
    """Wherever it was: nothing of it is there yet, a part, or all."""
    copy, data = tmp_path / "copy", tmp_path / "restored"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, ["small-1", "middle-1", "large-1"])
    taken(server)
    server.kill()
    words = ["restore", "--from", url_of(copy), "--data", data, "--identity", identity]
    for milliseconds in range(5, 65, 5):
        process = subprocess.Popen(
            [BINARY, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(milliseconds / 1_000)
        process.kill()
        process.wait()
    done = coffer(*words, text=True)
    # It may have been done before it was killed; then it is not begun again, and all is there.
    assert done.returncode == 0 or "it holds more than a keystore" in done.stderr, done.stderr
    assert not (data / "keystore.fetched").exists()
    assert check_sound(data)["checked_count"] == 3


def test_what_a_copy_took_before_an_older_keystore_was_put_back_counts_no_more(server, tmp_path):
    """The generations that follow have the numbers of others that the copy took."""
    copy, away = tmp_path / "copy", tmp_path / "away"
    s3_client(server).create_bucket(Bucket="doomed")
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    kept = taken(server)["generation"]
    apart = (server.data / "keystore").read_bytes()
    numbers = itertools.count()

    def far_ahead():
        run(server, "subject", "create", f"s{next(numbers)}", "--clearance", "default")
        return taken(server)["generation"] > kept + 4

    until(far_ahead, seconds=60)
    server.kill()
    (server.data / "keystore").write_bytes(apart)
    copy.rename(away)
    server.start()
    assert status(server)["keystore"]["current_generation"] < kept + 4
    receipt, answered = erase(server, "doomed")
    assert "PENDING: copy far" in answered, answered
    [told] = verified(server, receipt)["copies"]
    assert told["keystore"]["state"] == "pending", told
    away.rename(copy)

    def settled():
        shown = ask(server, "receipt", "show", receipt["id"])
        return shown["copies"][0]["keystore"]["state"] == "taken" and shown

    shown = verified(server, until(settled, seconds=60))
    assert shown["copies"][0]["keystore"]["taken_at"] > shown["erased_at"]
