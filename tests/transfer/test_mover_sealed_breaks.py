"""Why a sealed get of several pieces failed, and what it leaves."""

import os
import signal

import pytest

from harness import sealed
from harness.content import MIB, write_file
from harness.disks import needs_mount, small_disk
from harness.mover import Mover, wait_for_lines

PIECES = ("--transfer", "sealed", "--jobs", "4")
"""Several at once: as one of them fails, the others receive."""


@pytest.fixture
def mover(serving, tmp_path):
    return Mover(serving, tmp_path / "home")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_file(tmp_path_factory.mktemp("source") / "source", 160 * MIB)


@pytest.mark.skipif(needs_mount, reason="only root may mount")
def test_a_full_disk_is_told(mover, source, tmp_path):
    mover.run("put", source, "s3://open/full")
    with small_disk(tmp_path, 24 * MIB) as disk:
        for _ in range(3):
            _, told = mover.run("get", "s3://open/full", disk / "x", *PIECES, code=1)
            assert "No space left" in told
            assert "make room" in told
            for left in disk.glob(".x*"):
                left.unlink()


def test_a_chunk_that_does_not_open_is_told(own_server, source, tmp_path):
    server = own_server().start()
    sealed.make_bucket(server, "open")
    mover = Mover(server, tmp_path / "home")
    mover.run("put", source, "s3://open/x", "--transfer", "tls")
    # Each piece of it has one: the first fails while the others come.
    for blob in server.blob_files():
        with blob.open("r+b") as file:
            size = blob.stat().st_size
            for at in range(min(MIB, size // 2), size, 4 * MIB):
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 1]))
    for _ in range(3):
        _, told = mover.run("get", "s3://open/x", "x", *PIECES, code=1)
        assert "or the server's disk has damaged it" in told


@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_object_that_changes_meanwhile_is_told_and_nothing_stays(
    mover, client, source, is_replaced
):
    mover.run("put", source, "s3://open/x")
    process = mover.start("get", "s3://open/x", "x", *PIECES)
    wait_for_lines(lambda: mover.home / ".x.coffer-journal", 2, process)
    process.send_signal(signal.SIGSTOP)
    if is_replaced:
        client.put_object(Bucket="open", Key="x", Body=b"other")
    else:
        client.delete_object(Bucket="open", Key="x")
    process.send_signal(signal.SIGCONT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    expected = b"was replaced while it was fetched" if is_replaced else b"NoSuchKey"
    assert expected in told
    assert [name for name in os.listdir(mover.home) if "x" in name.split(".")] == []


def test_a_server_that_is_killed_is_told(own_server, source, tmp_path):
    server = own_server().start()
    sealed.make_bucket(server, "open")
    mover = Mover(server, tmp_path / "home")
    mover.run("put", source, "s3://open/x")
    process = mover.start("get", "s3://open/x", "x", *PIECES, "--retries", "0")
    wait_for_lines(lambda: mover.home / ".x.coffer-journal", 2, process)
    process.send_signal(signal.SIGSTOP)
    server.kill()
    process.send_signal(signal.SIGCONT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert b"broke" in told or b"cannot be reached" in told
    # It goes on from there.
    server.start()
    assert mover.done("get", "s3://open/x", "x")["kept_bytes"] > 0
