"""Keys lie in memory that is locked and left out of core dumps, and nowhere else."""

import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

from harness import raw
from harness import server as harness_server
from harness.clients import s3_client
from harness.content import MIB
from harness.custodian import run
from harness.keys import keys_of
from harness.memory import places_of, read, regions

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root reads a server's memory")

SMALL, LARGE = b"small" * 100, b"large" * MIB


def use(server):
    """What uses every kind of key: of the system, of levels, buckets, catalogs and blobs."""
    s3 = s3_client(server)
    for bucket in ("one", "two"):
        s3.create_bucket(Bucket=bucket)
        for name, body in (("small", SMALL), ("large", LARGE)):
            s3.put_object(Bucket=bucket, Key=name, Body=body)
            assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == body
        assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2


def search(pid, keys):
    """Where keys are: within protected memory, and outside of it."""
    inside, outside = [], []
    searched_bytes = 0
    for region in regions(pid):
        data = read(pid, region)
        searched_bytes += len(data)
        found = inside if region.is_protected else outside
        found += [(region.name or "unnamed", *place) for place in places_of(keys, data)]
    assert searched_bytes > 10 * MIB, "the memory was not looked at"
    return inside, outside


def test_keys_are_in_locked_memory_only(own_server):
    server = own_server().start()
    use(server)
    time.sleep(1)
    keys = keys_of(server.data)
    assert len(keys) == 3 + 1 + 2 + 2
    inside, outside = search(server.pid, keys)
    assert outside == []
    held = {name for _, name, *_ in inside}
    assert {"root", "bucket 0", "bucket 1"} <= held, "the search finds keys where they must be"
    assert raw.metric(server, "coffer_key_memory_locked_bytes") > 0
    assert raw.metric(server, "coffer_key_memory_unlocked_bytes") == 0


def test_erased_keys_are_nowhere(own_server):
    """Not in locked memory either: they are zeroized before the erase is acknowledged."""
    server = own_server().start()
    use(server)
    run(server, "level", "create", "doomed", "--rank", "0", "--same-label")
    run(server, "bucket", "create", "three", "--level", "doomed")
    s3 = s3_client(server)
    for name, body in (("small", SMALL), ("large", LARGE)):
        s3.put_object(Bucket="three", Key=name, Body=body)
        assert s3.get_object(Bucket="three", Key=name)["Body"].read() == body
    before = keys_of(server.data)
    inside, outside = search(server.pid, before)
    assert outside == [] and {"root", "bucket 2"} <= {name for _, name, *_ in inside}
    run(server, "level", "erase", "doomed", "--yes")
    kept = set(keys_of(server.data).values())
    erased = {name: key for name, key in before.items() if key not in kept}
    assert {name.split(" ")[0] for name in erased} == {"root", "level", "bucket", "catalog"}
    assert search(server.pid, erased) == ([], [])


def test_a_passphrase_is_forgotten_when_it_has_opened_the_root_key(
    own_server, tmp_path, monkeypatch
):
    passphrase = b"lantern-gravel-uncle-seventeen-otters"
    (tmp_path / "coffer-passphrase").write_bytes(passphrase)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    server = own_server(arguments=["--root-key", "passphrase"]).start()
    server.restart()
    use(server)
    assert not (server.data / "root.key").exists()
    time.sleep(1)
    assert search(server.pid, {"passphrase": passphrase}) == ([], [])


def test_the_search_finds_a_key_in_ordinary_memory(own_server):
    """The same search on a process that holds a key without care: this one."""
    server = own_server().start()
    keys = keys_of(server.data)
    _, outside = search(os.getpid(), keys)
    assert {name for _, name, *_ in outside} == set(keys)


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore, of the package gdb, is missing")
def test_no_key_is_in_a_forced_core(own_server, tmp_path):
    server = own_server().start()
    use(server)
    time.sleep(1)
    forced = subprocess.run(
        ["gcore", "-o", tmp_path / "core", str(server.pid)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    (core,) = tmp_path.glob("core.*")
    image = core.read_bytes()
    core.unlink()
    assert server.credentials()[0].encode() in image, f"no memory in it: {forced.stderr}"
    assert places_of(keys_of(server.data), image) == []


def test_a_crash_leaves_no_core(own_server):
    server = own_server().start()
    assert resource.prlimit(server.pid, resource.RLIMIT_CORE) == (0, 0)
    os.kill(server.pid, signal.SIGABRT)
    ended = os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    assert ended.si_code == os.CLD_KILLED, "and not CLD_DUMPED"
    assert list(server.folder.glob("core*")) == []


def test_a_server_that_may_lock_nothing_says_so_and_works(own_server, tmp_path, monkeypatch):
    wrapper = tmp_path / "coffer"
    wrapper.write_text(
        "#!/bin/sh\nexec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "
        f'prlimit --memlock=0:0 {harness_server.BINARY} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(harness_server, "BINARY", wrapper)
    server = own_server().start()
    use(server)
    assert server.log().count("refused to lock the memory of keys") == 1
    assert "LimitMEMLOCK" in server.log()
    assert raw.metric(server, "coffer_key_memory_locked_bytes") == 0
    assert raw.metric(server, "coffer_key_memory_unlocked_bytes") > 0
    assert server.stop() == 0
