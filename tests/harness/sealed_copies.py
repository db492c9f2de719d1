"""Sealed copies as their users meet them: the command line, and a server on a restored folder."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from harness.administration import run
from harness.clients import s3_client
from harness.content import KIB, MIB, content
from harness.server import Server, StartError, coffer

BUCKET = "notes"
#: Inline, a blob, and one that is put in parts.
SIZES = {"small": 900, "middle": 300 * KIB, "large": 9 * MIB}


def replica(server, *arguments, expect=0):
    done = coffer("replica", *arguments, "--data", server.data, "--json", text=True)
    assert done.returncode == expect, (done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stderr


def status(server, name="far"):
    done = coffer("replica", "status", name, "--data", server.data, "--json", text=True)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    is_well = told["state"] == "following" and told["problem"] is None
    assert done.returncode == (0 if is_well else 1), done
    return told


def caught_up(server, name="far", seconds=30):
    """Waits until all that was acknowledged before this call is in the copy."""
    asked = time.time()
    end = asked + seconds
    while True:
        # Before it is asked: on a busy machine the answer takes a while to come.
        now = time.time()
        told = status(server, name)
        if told["as_of"] and now - told["lag_seconds"] > asked:
            return told
        assert time.time() < end, told
        time.sleep(0.2)


def reached(server, state, seconds=30):
    end = time.time() + seconds
    while (told := status(server))["state"] != state:
        assert time.time() < end, told
        time.sleep(0.2)
    return told


def files_in(folder):
    """All files in it. Folders may go while it looks."""
    return [Path(parent) / name for parent, _, names in os.walk(folder) for name in names]


def blobs_in(folder):
    found = files_in(folder)
    return [path for path in found if "blobs" in path.parts and ".db" not in path.name]


def verify(server, name="far", expect=0):
    done = coffer("replica", "verify", name, "--data", server.data, "--json", text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert expect is None or done.returncode == expect, (events[-3:], done.stderr)
    return events


def put(server, names, bucket=BUCKET):
    s3 = s3_client(server)
    for name in names:
        s3.put_object(Bucket=bucket, Key=name, Body=content(SIZES[name.split("-")[0]], name))


def made(folder):
    folder.mkdir(exist_ok=True)
    return folder


def keys_of(server, folder):
    """What is kept apart: the keystore, and what opens it."""
    folder.mkdir(mode=0o700)
    for name in ("keystore", "root.key"):
        shutil.copy(server.data / name, folder / name)
    return folder


def restored(url, data, *arguments, expect=0):
    """All that a restore tells."""
    done = coffer("restore", "--from", url, "--data", data, "--json", *arguments, text=True)
    assert done.returncode == expect, (done.stdout[-2000:], done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def restore(url, data, *arguments, expect=0):
    """The last that it tells, or why it failed."""
    done = coffer("restore", "--from", url, "--data", data, "--json", *arguments, text=True)
    assert done.returncode == expect, (done.stdout[-2000:], done.stderr)
    return json.loads(done.stdout.splitlines()[-1]) if expect == 0 else done.stderr


def check(server, names, bucket=BUCKET):
    """Byte for byte, and nothing else."""
    s3 = s3_client(server)
    listed = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    assert [item["Key"] for item in listed] == sorted(names)
    for name in names:
        body = s3.get_object(Bucket=bucket, Key=name)["Body"].read()
        assert body == content(SIZES[name.split("-")[0]], name), name


def url_of(folder):
    return f"file://{folder}"


def check_sound(data):
    """All of a restored folder opens, and what it holds. That it is older than its keystore knows
    is told, too."""
    done = coffer("verify", "--data", data, "--json", text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    damage = [event for event in events if event["event"] == "damage"]
    assert not damage, damage
    assert events[-1]["event"] == "done", done.stderr
    assert events[-1]["damage_count"] == 0, events[-1]
    return events[-1]


def enable_first(server):
    """Under a keystore that is newer than system.db, nothing tells which were disabled since."""
    run(server, "subject", "enable", "first")
    run(server, "subject", "key", "enable", server.credentials()[0])


def served(own, data):
    """A server on a restored folder, which takes a word for the rollback."""
    with pytest.raises(StartError, match="--accept-rollback"):
        Server(made(own), data=data).start()
    server = Server(own, data=data, arguments=["--accept-rollback"])
    server.credentials_path.write_text((own.parent / "credentials").read_text())
    return server


def restore_and_check(server, copy, folder, names, size_bytes):
    """Ends the server; what is restored of its copy has these objects of this length, and no
    others."""
    keys = keys_of(server, folder / "restored")
    server.kill()
    restore(url_of(copy), keys)
    with served(folder / "second", keys) as second:
        s3 = s3_client(second)
        listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        assert [item["Key"] for item in listed] == sorted(names)
        for name in names:
            body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            assert body == content(size_bytes, name), name
