"""`coffer backup` of a server at work: the copy fits together, whatever happens meanwhile."""

import contextlib
import json
import shutil
import subprocess
import threading
import time

import pytest

from harness.administration import ask, client_of, make_subject, refused, run
from harness.auditing import export
from harness.clients import s3_client
from harness.content import KIB, MIB, content
from harness.disks import needs_mount, small_disk
from harness.server import BINARY, Server, StartError, clean_environment, coffer

BUCKET = "notes"


def back_up(server, folder, expect=0):
    """Makes a backup, and returns the last event of its report."""
    done = coffer("backup", folder, "--data", server.data, "--json")
    assert done.returncode == expect, (done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def verify(copy, server, expect=0):
    """Verifies a copy with the root key that the server has now."""
    source = f"file:{server.data}/root.key"
    done = coffer("verify", "--data", copy, "--root-key", source, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    damage = [event for event in events if event["event"] == "damage"]
    assert done.returncode == expect, (damage[:5], done.stderr)
    return damage if expect else events[-1]


def restored(own_server, server, copy, name="restored"):
    """A server on a copy of the copy, with the root key that was kept apart."""
    data = server.folder / name
    shutil.copytree(copy, data)
    shutil.copy(server.data / "root.key", data / "root.key")
    return own_server(data=data)


def accept(server):
    server.arguments.append("--accept-rollback")
    server.start()
    server.arguments.remove("--accept-rollback")
    return server


class Load:
    """Writers, deleters and readers on a bucket. What is acknowledged is remembered."""

    def __init__(self, server, threads=3):
        self.server = server
        self.credentials = server.credentials()
        self.stored = {}
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(threads)]

    def work(self, number):
        s3 = s3_client(self.server, credentials=self.credentials)
        with contextlib.suppress(Exception):
            for index in range(100_000):
                if self.is_over.is_set():
                    return
                name, size = f"load-{number}-{index}", (2 * KIB, 40 * KIB, 600 * KIB)[index % 3]
                s3.put_object(Bucket=BUCKET, Key=name, Body=content(size, name))
                self.stored[name] = size
                if index % 2:
                    gone = f"load-{number}-{index - 1}"
                    del self.stored[gone]
                    s3.delete_object(Bucket=BUCKET, Key=gone)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def filled(own_server):
    """A server with objects of all kinds."""
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    for index in range(12):
        for size in (1_000, 50_000, 300_000):
            name = f"kept-{size}-{index}"
            s3.put_object(Bucket=BUCKET, Key=name, Body=content(size, name))
    return server


def check_kept(s3):
    for index in range(12):
        for size in (1_000, 50_000, 300_000):
            name = f"kept-{size}-{index}"
            body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            assert body == content(size, name), name


def test_a_copy_under_load_verifies_and_is_served(filled, own_server, tmp_path):
    server, folder = filled, tmp_path / "backup"
    with Load(server) as load:
        time.sleep(2)
        counted = []
        for _ in range(3):
            before = dict(load.stored)
            told = back_up(server, folder)
            counted.append((told["copied_count"], told["blob_count"]))
            time.sleep(0.5)
    assert told["folder"] == str(folder / "copy") and told["bucket_count"] == 1
    assert counted[2][0] < counted[2][1], "what the copy before has is not copied again"
    done = verify(folder / "copy", server)
    assert done["checked_count"] >= 36
    for name in ("root.key", "credentials"):
        assert not (folder / "copy" / name).exists(), "keys stay apart"
    copy = accept(restored(own_server, server, folder / "copy"))
    s3 = s3_client(copy, credentials=server.credentials())
    check_kept(s3)
    lost = [name for name in before if name in load.stored and not is_stored(s3, name, before)]
    assert lost == [], "it was acknowledged before the backup began, and not deleted since"
    assert coffer("verify", "--data", copy.data).returncode == 0
    assert coffer("audit", "verify", "--data", copy.data).returncode == 0


def test_a_copy_without_its_root_key_is_read_with_one_that_lies_elsewhere(filled, tmp_path):
    server, folder = filled, tmp_path / "backup"
    back_up(server, folder)
    place = ("--data", folder / "copy", "--root-key", f"file:{server.data}/root.key")
    sound = coffer("audit", "verify", *place)
    assert sound.returncode == 0, sound.stderr
    shown = coffer("audit", "show", "--act", "bucket.create", *place)
    assert shown.returncode == 0 and b"bucket.create" in shown.stdout, shown
    listed = coffer("offline", "ls", BUCKET, *place)
    assert listed.returncode == 0 and b"kept-1000-0" in listed.stdout, listed
    lacking = coffer("offline", "ls", "--data", folder / "copy")
    assert lacking.returncode == 1, lacking


def is_stored(s3, name, sizes):
    body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    return body == content(sizes[name], name)


def test_the_second_copy_copies_what_is_new_and_drops_what_is_gone(filled, tmp_path):
    server, folder = filled, tmp_path / "backup"
    first = back_up(server, folder)
    assert first["copied_count"] == first["blob_count"] == 24
    again = back_up(server, folder)
    assert (again["copied_count"], again["copied_bytes"], again["blob_count"]) == (0, 0, 24)
    s3 = s3_client(server)
    s3.put_object(Bucket=BUCKET, Key="new", Body=content(MIB))
    s3.delete_object(Bucket=BUCKET, Key="kept-300000-0")
    third = back_up(server, folder)
    assert third["copied_count"] == 1 and third["blob_count"] == 24
    assert MIB < third["copied_bytes"] < MIB + 64 * KIB
    blobs = [path for path in folder.glob("copy/buckets/*/blobs/*/*") if path.is_file()]
    assert len(blobs) == 24 and sorted(path.name for path in folder.iterdir()) == ["copy", "lock"]
    verify(folder / "copy", server)
    shown = ask(server, "bucket", "list")
    assert len(shown) == 1
    acts = export(server, "--act", "storage.backup")
    assert [record["outcome"] for record in acts] == ["begun", "done"] * 3


def test_a_copy_is_served_on_purpose_only(filled, own_server, tmp_path):
    server, folder = filled, tmp_path / "backup"
    back_up(server, folder)
    copy = restored(own_server, server, folder / "copy")
    with pytest.raises(StartError) as failed:
        copy.start()
    assert "this is a copy of a server as of 20" in failed.value.log
    assert "--accept-rollback" in failed.value.log
    accept(copy)
    shown = run(copy, "audit", "show", "--act", "rollback.accept", "--json")
    assert '"backup.json"' in shown
    copy.restart()
    check_kept(s3_client(copy, credentials=server.credentials()))


def test_disabled_access_keys_stay_so_under_the_newer_keystore(filled, own_server, tmp_path):
    """All is of the copy but the keystore, which knows that acts are lacking."""
    server, folder = filled, tmp_path / "backup"
    client_of(server, "eve", "default..default")
    make_subject(server, "ann", "default..default")
    back_up(server, folder)
    run(server, "subject", "disable", "eve")
    server.stop()
    alone = restored(own_server, server, folder / "copy", "alone")
    accept(alone)
    assert not any(subject["disabled"] for subject in ask(alone, "subject", "list"))
    alone.stop()
    newer = restored(own_server, server, folder / "copy", "newer")
    shutil.copy(server.data / "keystore", newer.data / "keystore")
    accept(newer)
    assert all(subject["disabled"] for subject in ask(newer, "subject", "list"))
    assert "ALL ACCESS KEYS ARE DISABLED" in newer.log()
    key = server.credentials()[0]
    run(newer, "subject", "enable", "first")
    # It may have been its access key that was disabled since.
    assert [one["state"] for one in ask(newer, "subject", "key", "list", key)] == ["disabled"]
    run(newer, "subject", "key", "enable", key)
    check_kept(s3_client(newer, credentials=server.credentials()))


def test_an_erase_meanwhile_and_after(filled, own_server, tmp_path):
    server, folder = filled, tmp_path / "backup"
    run(server, "level", "create", "gone", "--rank", "0", "--same-label")
    run(server, "bucket", "create", "doomed", "--level", "gone")
    s3 = client_of(server, "ann", "gone..gone")
    for index in range(40):
        s3.put_object(Bucket="doomed", Key=f"{index}", Body=content(300_000, index))
    told = back_up(server, folder)
    assert told["bucket_count"] == 2
    begun = threading.Thread(target=lambda: back_up(server, folder))
    shutil.rmtree(folder)
    begun.start()
    time.sleep(0.1)
    run(server, "level", "erase", "gone", "--yes")
    begun.join()
    # Whichever came first: the next one opens with the key that there is, without what is gone.
    told = back_up(server, folder)
    assert told["bucket_count"] == 1
    assert len(list((folder / "copy/buckets").iterdir())) == 1
    verify(folder / "copy", server)


@pytest.mark.parametrize("moment", [0.05, 0.2, 0.4, 0.7])
def test_kill_9_in_the_middle_leaves_the_copy_before_or_the_new_one(filled, moment, tmp_path):
    server, folder = filled, tmp_path / "backup"
    back_up(server, folder)
    s3 = s3_client(server)
    for index in range(30):
        s3.put_object(Bucket=BUCKET, Key=f"more-{index}", Body=content(400_000, index))
    command = [BINARY, "backup", folder, "--data", server.data]
    asking = subprocess.Popen(
        [str(word) for word in command], env=clean_environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(moment)
    server.kill()
    asking.wait(timeout=30)
    verify(folder / "copy", server)
    if (folder / "unfinished/keystore").exists():
        source = f"file:{server.data}/root.key"
        opened = coffer("verify", "--data", folder / "unfinished", "--root-key", source)
        # Or it was complete, and without its name.
        assert opened.returncode == 0 or b"did not complete" in opened.stderr
    server.start()
    told = back_up(server, folder)
    assert told["blob_count"] == 54
    assert verify(folder / "copy", server)["checked_count"] == 66
    assert not (folder / "unfinished").exists()


def test_a_folder_that_can_t_be_taken_is_refused(filled, own_server, tmp_path):
    server = filled
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "thesis.tex").write_text("x")
    assert "holds no backup" in refused(server, "backup", thesis)
    assert "can't lie within it" in refused(server, "backup", server.data / "backup")
    assert not (server.data / "backup").exists(), "nothing was changed"
    assert "cannot make" in refused(server, "backup", tmp_path / "no/such")
    other = own_server(data=tmp_path / "other").start()
    back_up(other, tmp_path / "backup")
    assert "of another server" in refused(server, "backup", tmp_path / "backup")
    remote = ask(server, "subject", "create", "sue", "--clearance", "default", "--roles",
                 "system-administrator")  # fmt: skip
    assert remote["access_key_id"]


def tree(folder):
    """Every file below a folder, with its size and when it was changed."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("name", ["unfinished", "copy", "previous", "blob.new", "lock"])
def test_links_in_the_folder_lead_nowhere(filled, tmp_path, name):
    folder = tmp_path / "backup"
    folder.mkdir(mode=0o700)
    others = tmp_path / "others"
    (others / "buckets").mkdir(parents=True)
    (others / "buckets/valuable").write_text("of another program")
    before = tree(others)
    for target in (filled.data, filled.data / "buckets", others, tmp_path / "absent"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        assert "is a link" in refused(filled, "backup", folder)
    assert tree(others) == before
    assert not (tmp_path / "absent").exists()
    assert not (filled.data / "backup.json").exists()
    s3_client(filled).put_object(Bucket=BUCKET, Key="after", Body=b"served as before")


def test_a_folder_that_others_may_change_is_refused(filled, tmp_path):
    open_to_all = tmp_path / "open"
    (open_to_all / "inner").mkdir(parents=True, mode=0o700)
    open_to_all.chmod(0o777)
    for folder in (open_to_all, open_to_all / "inner"):
        assert "changed by others" in refused(filled, "backup", folder)
    open_to_all.chmod(0o700)
    back_up(filled, open_to_all / "inner")


def test_a_folder_of_another_program_is_not_taken_for_an_unfinished_copy(filled, tmp_path):
    valuable = tmp_path / "backup/unfinished/buckets/valuable"
    valuable.parent.mkdir(parents=True)
    (tmp_path / "backup").chmod(0o700)
    valuable.write_text("of another program")
    assert "no copy that was begun" in refused(filled, "backup", tmp_path / "backup")
    assert valuable.read_text() == "of another program"


@pytest.mark.parametrize("of", ["keystore", "audit"])
def test_verify_tells_damage_of_the_keystore_and_the_audit_log(filled, tmp_path, of):
    back_up(filled, tmp_path / "backup")
    copy = tmp_path / "backup/copy"
    path = copy / "keystore" if of == "keystore" else min((copy / "audit").glob("*.log"))
    with path.open("r+b") as damaged:
        damaged.truncate(path.stat().st_size // 2)
    assert any(event["what"].startswith(of) for event in verify(copy, filled, expect=1))


def test_a_newer_root_key_is_not_to_be_replaced_for_an_older_copy(filled, tmp_path):
    back_up(filled, tmp_path / "backup")
    time.sleep(0.01)
    run(filled, "keystore", "rotate")
    source = f"file:{filled.data}/root.key"
    done = coffer("verify", "--data", tmp_path / "backup/copy", "--root-key", source)
    assert done.returncode == 2
    assert b"root key of its day" in done.stderr and b"age --decrypt" not in done.stderr


@pytest.mark.skipif(needs_mount, reason="only root may mount a small file system")
def test_a_full_disk_leaves_the_copy_before(filled, tmp_path):
    server = filled
    with small_disk(tmp_path, 24 * MIB) as disk:
        back_up(server, disk)
        s3 = s3_client(server)
        for index in range(8):
            s3.put_object(Bucket=BUCKET, Key=f"large-{index}", Body=content(4 * MIB, index))
        told = refused(server, "backup", disk)
        assert "no room is left in" in told and str(disk) in told
        assert verify(disk / "copy", server)["checked_count"] == 36
        for index in range(6):
            s3.delete_object(Bucket=BUCKET, Key=f"large-{index}")
        assert back_up(server, disk)["blob_count"] == 26
        verify(disk / "copy", server)


def copy_live(server, to):
    """What an operator does who does not know better."""
    subprocess.run(["cp", "-a", server.data, to], check=False, capture_output=True, timeout=120)


def test_a_live_cp_is_told_as_no_consistent_copy(filled, own_server, tmp_path):
    server, data = filled, tmp_path / "cp"
    with Load(server):
        time.sleep(1)
        copy_live(server, data)
        # What `cp` meets under load differs from time to time; this is what it always may.
        blobs = sorted(path for path in data.glob("buckets/*/blobs/*/*") if path.is_file())
        blobs[0].unlink()
        with blobs[1].open("r+b") as file:
            file.truncate(100)
    done = coffer("verify", "--data", data, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    damage = [event for event in events if event["event"] == "damage"]
    assert done.returncode == 1 and len(damage) == 1, damage
    assert "no consistent copy" in damage[0]["what"] and "coffer backup" in damage[0]["what"]
    copy = own_server(data=data)
    with pytest.raises(StartError) as failed:
        copy.start()
    assert "is no consistent copy" in failed.value.log and "coffer backup" in failed.value.log
    accept(copy)
    copy.restart()


def test_a_cp_of_a_folder_at_rest_is_served_as_it_is(filled, own_server, tmp_path):
    server = filled
    for end in ("kill", "stop"):
        getattr(server, end)()
        copy_live(server, tmp_path / end)
        copy = own_server(data=tmp_path / end).start()
        check_kept(s3_client(copy, credentials=server.credentials()))
        copy.stop()
        assert (tmp_path / end / "lock").read_text() == ""
        server.start()
    assert isinstance(server, Server)
