"""Data folders: one server each, and no guesses about what is not understood."""

import contextlib
import hashlib
import shutil
import time
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from harness.administration import make_subject, run
from harness.clients import s3_client
from harness.server import Server, StartError, coffer

SLOT_BYTES = 4 << 20


def refusal(server):
    with pytest.raises(StartError) as caught:
        server.start()
    assert "panicked" not in caught.value.log
    assert caught.value.code not in (0, "no ready line")
    return caught.value.log


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_a_second_server_is_refused_without_the_lock_file_as_well(own_server):
    first = own_server("first").start()
    second = own_server("second", data=first.data)
    (first.data / "lock").unlink()
    logs = {path: path.stat().st_ino for path in first.data.rglob("*-wal")}
    assert logs
    for _ in range(2):
        assert "in use by another coffer server; stop it first" in refusal(second)
    assert logs == {path: path.stat().st_ino for path in first.data.rglob("*-wal")}
    make_subject(first, "after", "default", "--roles", "data-user")
    first.kill()
    first.start()
    assert "after" in run(first, "subject", "list")


def test_a_second_server_is_refused(own_server):
    first = own_server("first").start()
    s3_client(first).create_bucket(Bucket="mine")
    second = own_server("second", data=first.data)
    log = refusal(second)
    assert str(first.data) in log and ("in use" in log or "another" in log or "running" in log)
    assert s3_client(first).list_buckets()["Buckets"]
    # A server that was killed leaves nothing that keeps the next one out.
    first.kill()
    second.start()
    assert second.stop() == 0


def test_a_foreign_folder_is_refused_and_left_alone(own_server):
    server = own_server("foreign")
    (server.data / "inner").mkdir(parents=True)
    (server.data / "thesis.txt").write_text("years of work")
    before = contents(server.data)
    log = refusal(server)
    assert str(server.data) in log
    assert contents(server.data) == before


def test_an_empty_folder_is_taken(own_server):
    server = own_server("empty")
    server.data.mkdir()
    server.start()


def test_a_file_is_no_folder(own_server):
    server = own_server("file")
    server.data.write_text("not a folder")
    assert str(server.data) in refusal(server)
    assert server.data.read_text() == "not a folder"


def newer_keystore(data):
    """Both copies say format 2, with checksums that fit (docs/FORMAT.md)."""
    path = data / "keystore"
    whole = bytearray(path.read_bytes())
    for start in (0, SLOT_BYTES):
        sealed_bytes = int.from_bytes(whole[start + 36 : start + 40], "big")
        end = start + 40 + sealed_bytes
        whole[start + 8 : start + 12] = (2).to_bytes(4, "big")
        whole[end : end + 32] = hashlib.sha256(whole[start:end]).digest()
    path.write_bytes(whole)


def test_a_newer_keystore_is_refused(own_server):
    server = own_server("newer").start()
    server.stop()
    newer_keystore(server.data)
    before = contents(server.data)
    log = refusal(server)
    assert "newer" in log and "2" in log
    assert contents(server.data)["keystore"] == before["keystore"]


@pytest.mark.parametrize("lost", ["keystore", "root.key", "system.db"])
def test_a_lost_file_is_not_made_anew(own_server, lost):
    """A new key in place of a lost one would make the data unreadable for good."""
    server = own_server("lost").start()
    s3_client(server).create_bucket(Bucket="mine")
    server.stop()
    kept = server.data / lost
    aside = server.folder / "aside"
    kept.rename(aside)
    log = refusal(server)
    assert lost.split(".")[0] in log
    assert not kept.exists()
    shutil.copy2(aside, kept)
    server.start()
    assert [b["Name"] for b in s3_client(server).list_buckets()["Buckets"]] == ["mine"]


def test_a_root_key_that_others_can_read_is_refused(own_server):
    server = own_server("open").start()
    server.stop()
    (server.data / "root.key").chmod(0o644)
    log = refusal(server)
    assert "root.key" in log and "600" in log


def test_modes_of_files(own_server):
    server = own_server("modes").start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=bytes(100_000))
    for path in server.data.rglob("*"):
        mode = path.stat().st_mode & 0o777
        if path == server.ca:
            continue
        assert mode & 0o077 == 0, f"{path} has mode {mode:o}"
    for name in ("credentials", "root.key"):
        assert (server.data / name).stat().st_mode & 0o777 == 0o600


def test_offline_refuses_a_foreign_folder(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    done = coffer("offline", "ls", "--data", tmp_path)
    assert done.returncode != 0 and done.stdout == b""
    assert len(list(tmp_path.iterdir())) == 1


def test_a_copied_folder_serves_elsewhere(own_server):
    server = own_server("here").start()
    s3_client(server).create_bucket(Bucket="mine")
    server.stop()
    moved = Server(server.folder, data=server.folder / "there")
    shutil.move(server.data, moved.data)
    with moved:
        assert s3_client(moved).list_buckets()["Buckets"][0]["Name"] == "mine"


def test_a_server_ends_when_another_folder_takes_the_name_of_its_own(own_server):
    """It would go on by path, in the folder of the server that is started there."""
    old = own_server("old").start()
    s3_client(old).create_bucket(Bucket="mine")
    s3_client(old).put_object(Bucket="mine", Key="a", Body=b"kept")
    kept = old.folder / "kept"
    shutil.move(old.data, kept)
    time.sleep(2)
    assert old.process.poll() is None, "nothing else is there"
    for name in ("new", "again"):
        (old.folder / name).mkdir()
    with Server(old.folder / "new", data=old.data) as new:
        assert old.process.wait(5) == 1
        assert "another one has its name" in old.log()
        old.process = None
        s3_client(new).create_bucket(Bucket="other")
        assert s3_client(new).list_buckets()["Buckets"][0]["Name"] == "other"
    with Server(old.folder / "again", data=kept) as again:
        read = s3_client(again).get_object(Bucket="mine", Key="a")["Body"].read()
        assert read == b"kept"


def no_sockets(folder, names):
    return [name for name in names if (Path(folder) / name).is_socket()]


def stamps(folder):
    """What any step in a folder would change."""
    paths = [folder, *folder.rglob("*")]
    return {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in paths}


@pytest.mark.parametrize("act", ["bucket", "object", "read"])
def test_nothing_is_touched_in_a_folder_that_took_the_name(own_server, act):
    """Not even before the server has noticed that by itself."""
    old = own_server("old").start()
    s3 = s3_client(old)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=bytes(100_000))
    restored = old.folder / "restored"
    shutil.copytree(old.data, restored, ignore=no_sockets)
    acts = {
        "bucket": lambda: s3.create_bucket(Bucket="other"),
        "object": lambda: s3.put_object(Bucket="mine", Key="b", Body=bytes(100_000)),
        "read": lambda: s3.get_object(Bucket="mine", Key="a")["Body"].read(),
    }
    kept = old.folder / "kept"
    old.data.rename(kept)
    restored.rename(old.data)
    before = stamps(old.data)
    # The server ends meanwhile, or refuses.
    with contextlib.suppress(BotoCoreError, ClientError):
        acts[act]()
    assert old.process.wait(5) == 1
    assert "another one has its name" in old.log()
    assert "ROLLBACK" not in old.log()
    old.process = None
    assert stamps(old.data) == before
    assert not list(old.data.rglob("catalog.in-doubt"))
    (old.folder / "again").mkdir()
    with Server(old.folder / "again", data=kept) as again:
        read = s3_client(again).get_object(Bucket="mine", Key="a")["Body"].read()
        assert read == bytes(100_000)
