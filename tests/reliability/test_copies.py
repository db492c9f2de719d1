"""Copies that are looked at where they lie: on a read-only medium, and with damaged files."""

import json
import shutil
import subprocess

import pytest

from harness.auditing import eventually
from harness.clients import s3_client
from harness.content import MIB, content
from harness.disks import needs_mount, small_disk
from harness.server import coffer

BUCKET = "kept"


@pytest.fixture
def filled(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    for name, size in (("small", 1_000), ("large", MIB)):
        s3.put_object(Bucket=BUCKET, Key=name, Body=content(size, name))
    return server


def verify(data, expect=0, *arguments):
    """Verifies a folder that no server runs on, and returns the events of the report."""
    done = coffer("verify", "--data", data, "--json", *arguments)
    assert done.returncode == expect, (done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(needs_mount, reason="only root may mount a small file system")
@pytest.mark.parametrize("left", ["a backup", "a stopped server's", "a killed server's"])
def test_a_copy_on_a_read_only_medium(filled, tmp_path, left):
    """With or without a log that was left: it is read, and nothing is written."""
    server = filled
    with small_disk(tmp_path) as disk:
        if left == "a backup":
            assert coffer("backup", disk / "to", "--data", server.data).returncode == 0
            copy = disk / "to/copy"
            shutil.copy(server.data / "root.key", copy / "root.key")
        else:
            (server.kill if "killed" in left else server.stop)()
            copy = disk / "copy"
            shutil.copytree(server.data, copy, ignore=shutil.ignore_patterns("admin.sock"))
            has_logs = any(path.stat().st_size for path in copy.rglob("catalog.db-wal"))
            assert has_logs == ("killed" in left)
        (copy / "lock").unlink(missing_ok=True)
        before = contents(copy)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = verify(copy)[-1]
        assert done["checked_count"] == 2 and done["damage_count"] == 0, done
        at = ("--data", copy)
        listed = coffer("offline", "ls", *at, BUCKET)
        assert listed.returncode == 0 and b"large" in listed.stdout, listed
        body = coffer("offline", "cat", *at, BUCKET, "large")
        assert body.stdout == content(MIB, "large"), body.stderr
        assert coffer("audit", "verify", *at).returncode == 0
        if left != "a backup":
            proven = coffer("prove", "--data", copy, "--no-canary")
            assert proven.returncode == 0, proven
        refused = coffer("serve", *at, "--accept-rollback")
        assert refused.returncode == 1 and b"Read-only file system" in refused.stderr, refused
        assert contents(copy) == before
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@pytest.mark.parametrize("name", ["ca.key", "ca.pem", "server.key", "server.pem"])
def test_the_files_of_tls_in_a_copy_are_verified(filled, own_server, tmp_path, name):
    server = filled
    folder = tmp_path / "backup"
    assert coffer("backup", folder, "--data", server.data).returncode == 0
    root_key = ("--root-key", f"file:{server.data}/root.key")
    assert verify(folder / "copy", 0, *root_key)[-1]["damage_count"] == 0
    path = folder / "copy/tls" / name
    sound = path.read_text()
    other = own_server(data=tmp_path / "other").start()
    for text in (sound[:100], "", (other.data / "tls" / name).read_text()):
        path.write_text(text)
        events = verify(folder / "copy", 1, *root_key)
        damage = [event["what"] for event in events if event["event"] == "damage"]
        assert damage and all("tls/" in what for what in damage), damage
        assert events[-1]["damage_count"] == len(damage)
        pair = name.split(".")[0]
        assert any(f"tls/{pair}." in what for what in damage), damage


@pytest.mark.parametrize("of", ["damaged", "another's", "missing"])
def test_an_authority_that_can_t_sign_is_told_at_the_start(own_server, tmp_path, of):
    """Not when the certificate is renewed for the first time, months later."""
    server = own_server().start()
    server.stop()
    key = server.data / "tls/ca.key"
    if of == "another's":
        other = own_server(data=tmp_path / "other").start()
        shutil.copy(other.data / "tls/ca.key", key)
    elif of == "missing":
        key.unlink()
    else:
        text = key.read_text()
        key.write_text(text.replace(text[60:64], "AAAA"))
    before = len(server.log())
    server.start()
    told = eventually(
        lambda: [line for line in server.log()[before:].splitlines() if "can't be renewed" in line]
    )
    assert len(told) == 1 and "tls/ca.key" in told[0], server.log()[before:]
    assert "coffer tls renew-authority" in told[0] and "put back a copy" in told[0], told
    s3_client(server).create_bucket(Bucket=BUCKET)
