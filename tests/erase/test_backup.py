"""What has to be kept apart: told whenever it changes, backed up for age, and told when stale."""

import json
import os
import time

import pytest

from harness import age
from harness.administration import ask, refused, run
from harness.clients import s3_client
from harness.custodian import WAITS, ask_as, subject
from harness.server import StartError, coffer

STALE = "has changed: copies of it from before do not open the data any more"


@pytest.fixture
def server(own_server):
    running = own_server().start()
    s3 = s3_client(running)
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="object", Body=b"stays")
    return running


def back_up(server, *words):
    return run(server, "keystore", "backup", "--recipient", age.RECIPIENT, *words)


def test_every_act_that_makes_copies_of_the_root_key_stale_says_so(server):
    def does(*words):
        """Says what it did, and whether it said that copies are stale."""
        copy = (server.data / "root.key").read_bytes()
        done = coffer("--data", server.data, *words)
        assert done.returncode == 0, done.stderr.decode()
        changed = (server.data / "root.key").read_bytes() != copy
        said = STALE in (done.stdout + done.stderr).decode()
        assert "root.key" in (done.stdout + done.stderr).decode() or not said
        return changed, said, done

    for flag in [[], ["--json"]]:
        for name in ["one", "other"]:
            run(server, "level", "create", name, "--rank", "1", "--same-label")
            run(server, "bucket", "create", f"of-{name}", "--level", name)
        quiet = [("level", "list"), ("bucket", "create", "new"), ("bucket", "delete", "new")]
        for words in quiet:
            assert does(*words, *flag)[:2] == (False, False), words
        loud = [
            ("bucket", "rotate", "of-one"),
            ("level", "rotate", "one"),
            ("keystore", "rotate"),
            ("bucket", "erase", "of-one", "--yes"),
            ("level", "erase", "one", "--yes"),
            ("level", "erase", "other", "--yes"),
        ]
        for words in loud:
            changed, said, done = does(*words, *flag)
            assert (changed, said) == (True, True), (words, done)
            if "--json" in flag:
                told = json.loads(done.stdout)
                # A receipt is signed: what is not of it stands elsewhere.
                assert ("keep_apart" in told) == ("erase" not in words)


def test_a_move_into_the_keyring_says_that_a_reboot_ends_all(server, tmp_path):
    name = f"keyring:coffer-test-{os.getpid()}-{time.monotonic_ns()}"
    run(server, "keystore", "move", "--to", f"file:{tmp_path}/elsewhere.key")
    moved = coffer("--data", server.data, "keystore", "move", "--to", name)
    if moved.returncode != 0 and b"keyring" in moved.stderr:
        pytest.skip("no keyring here: " + moved.stderr.decode())
    assert "a reboot destroys it, and with it all data" in moved.stdout.decode()
    assert "do not open the data any more" in moved.stdout.decode()
    assert "reboot" in ask(server, "keystore", "status")["keep_apart"]
    run(server, "keystore", "move", "--to", "file")


def test_a_backup_opens_the_folder_of_a_lost_root_key(server, tmp_path):
    assert "backup" not in ask(server, "keystore", "status")
    out = tmp_path / "root-key.age"
    told = json.loads(back_up(server, "--output", out, "--json"))
    assert told["file"] == str(out) and out.stat().st_mode & 0o777 == 0o600
    status = ask(server, "keystore", "status")["backup"]
    assert status["opens"] and status["recipients"] == [age.RECIPIENT]
    assert "opens the keystore as it is" in run(server, "keystore", "status")
    root = age.opened(out.read_text())
    assert root == (server.data / "root.key").read_bytes()
    # It goes on opening after what does not change the root key.
    run(server, "level", "create", "later", "--rank", "1", "--same-label")
    assert ask(server, "keystore", "status")["backup"]["opens"]
    server.stop()
    (server.data / "root.key").unlink()
    (server.data / "root.key").write_bytes(age.opened(out.read_text()))
    (server.data / "root.key").chmod(0o600)
    server.start()
    assert s3_client(server).get_object(Bucket="kept", Key="object")["Body"].read() == b"stays"


def test_a_backup_of_a_key_that_is_in_no_file_brings_the_folder_back(server, tmp_path):
    elsewhere = tmp_path / "elsewhere.key"
    run(server, "keystore", "move", "--to", f"file:{elsewhere}")
    text = back_up(server)
    server.stop()
    elsewhere.unlink()
    (server.data / "keystore.source").unlink()
    (server.data / "root.key").write_bytes(age.opened(text))
    (server.data / "root.key").chmod(0o600)
    server.start()
    assert s3_client(server).get_object(Bucket="kept", Key="object")["Body"].read() == b"stays"


def test_a_stale_backup_is_told_and_a_start_with_it_says_what_to_do(server):
    root = age.opened(back_up(server))
    run(server, "keystore", "rotate")
    assert ask(server, "keystore", "status")["backup"]["opens"] is False
    assert "STALE" in run(server, "keystore", "status")
    server.stop()
    path = server.data / "root.key"
    kept = path.read_bytes()
    path.write_bytes(root)
    three_days_ago = time.time() - 3 * 86_400 - 60
    os.utime(path, (three_days_ago, three_days_ago))
    before = (server.data / "keystore").read_bytes()
    with pytest.raises(StartError) as failed:
        server.start()
    said = failed.value.log.strip().splitlines()[-1]
    for part in [str(path), str(server.data / "keystore"), "3 days later", "put the newest copy"]:
        assert part in said, said
    assert "age --decrypt" in said and said.count("error: ") == 1
    assert (server.data / "keystore").read_bytes() == before
    path.write_bytes(kept)
    server.start()
    back_up(server)
    assert ask(server, "keystore", "status")["backup"]["opens"] is True


def test_a_backup_is_an_export_of_every_level(server, tmp_path):
    """Counted before it is given out, on receipts, audited, and refused where one level is."""
    run(server, "level", "create", "other", "--rank", "1", "--same-label")
    back_up(server)
    counts = {one["name"]: one["export_count"] for one in ask(server, "level", "list")}
    assert counts == {"default": 1, "other": 1}
    receipt = ask(server, "level", "erase", "other", "--yes")
    assert receipt["erased"]["level"]["exports"] == 1
    records = [json.loads(line) for line in run(server, "audit", "export").splitlines()]
    [begun, done] = [one for one in records if one["act"] == "keystore.backup"]
    assert (begun["outcome"], done["outcome"]) == ("begun", "done")
    assert begun["details"]["to"] == age.RECIPIENT
    for words in [
        ["--recipient", "age1nothing"],
        ["--recipient", age.RECIPIENT, "--output", "/x/y"],
    ]:
        said = coffer("--data", server.data, "keystore", "backup", *words)
        assert said.returncode in (1, 2) and said.stdout == b"", said
    run(server, "level", "create", "sealed", "--rank", "1", "--same-label", "--no-export")
    out = tmp_path / "none.age"
    said = refused(server, "keystore", "backup", "--recipient", age.RECIPIENT, "--output", out)
    assert "sealed" in said and "level sealed forbids" in said and not out.exists()
    counts = {one["name"]: one["export_count"] for one in ask(server, "level", "list")}
    assert counts == {"default": 1, "sealed": 0}


def test_a_backup_takes_as_many_custodians_as_any_level(server, tmp_path):
    run(server, "level", "create", "guarded", "--rank", "0", "--same-label", "--approvals", "2")
    ada, grace = (subject(server, name, roles=("key-custodian",)) for name in ("ada", "grace"))
    out = tmp_path / "root-key.age"
    wanted = ("keystore", "backup", "--recipient", age.RECIPIENT, "--output", out)
    request = ask_as(server, ada, *wanted, "--json", expect=WAITS)
    assert (request["wants"], request["recipients"]) == ("keystore.backup", [age.RECIPIENT])
    assert not out.exists() and "backup" not in ask(server, "keystore", "status")
    ask_as(server, grace, "request", "approve", request["id"], "--out", out, "--json")
    assert age.opened(out.read_text()) == (server.data / "root.key").read_bytes()
    assert ask(server, "keystore", "status")["backup"]["opens"]
