"""coffer put where the client's disk is full, or the server's: nothing is left of it."""

import contextlib
import os
import time

import pytest

from harness.clients import s3_client
from harness.content import MIB, write_file
from harness.disks import free_bytes, needs_mount, small_disk
from harness.mover import Mover

pytestmark = pytest.mark.skipif(needs_mount, reason="only root may mount a small file system")


def fill(folder):
    """Leaves no room, also none that a file system finds when it has written all out."""
    with open(folder / "filler", "wb", buffering=0) as filler:
        for piece_bytes in (4096, 4096, 1024, 1, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(bytes(piece_bytes))
            os.fsync(filler.fileno())


def nothing_of(s3, bucket):
    stored = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    return stored + s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_no_room_to_note_an_upload(server, s3, bucket, tmp_path):
    mover = Mover(server, tmp_path / "home")
    source = write_file(tmp_path / "source", 40 * MIB)
    with small_disk(tmp_path) as disk:
        journals = disk / "coffer/uploads"
        journals.mkdir(parents=True)
        fill(disk)
        mover.environment |= {"XDG_STATE_HOME": str(disk)}
        _, told = mover.run("put", source, f"s3://{bucket}/x", code=1)
        assert "No space left" in told and "make room" in told
        assert list(journals.iterdir()) == []
        assert nothing_of(s3, bucket)
        (disk / "filler").unlink()
        mover.run("put", source, f"s3://{bucket}/x")


def test_no_room_for_the_notes_of_a_folder_is_told(server, s3, bucket, tmp_path):
    mover, tree = Mover(server, tmp_path / "home"), tmp_path / "tree"
    tree.mkdir()
    write_file(tree / "x", 1000)
    put = ("put", "-r", tree, f"s3://{bucket}/")
    with small_disk(tmp_path) as disk:
        (disk / "coffer/folders").mkdir(parents=True)
        fill(disk)
        mover.environment |= {"XDG_STATE_HOME": str(disk)}
        _, told = mover.run(*put)
        assert told.count("No space left") == 1
        assert "what is moved from here on goes again after a break" in told
        events = mover.events(*put)
        [note] = [event["message"] for event in events if event["event"] == "note"]
        assert "No space left" in note
        (disk / "filler").unlink()
        assert "No space left" not in mover.run(*put)[1]
    assert s3.get_object(Bucket=bucket, Key="x")["ContentLength"] == 1000


@pytest.mark.parametrize("size", [12 * MIB, 100 * MIB])
def test_no_room_to_store_it(own_server, tmp_path, size):
    source = write_file(tmp_path / "source", size)
    with small_disk(tmp_path) as disk:
        server = own_server(data=disk / "data").start()
        try:
            s3 = s3_client(server)
            s3.create_bucket(Bucket="full")
            # Of a file in parts some are stored before there is no room.
            room = 8 * MIB if size < 16 * MIB else 40 * MIB
            (disk / "filler").write_bytes(bytes(max(0, free_bytes(disk) - room)))
            mover = Mover(server, tmp_path / "home")
            _, told = mover.run("put", source, "s3://full/x", "--jobs", "1", code=1)
            assert "StorageFull" in told
            assert nothing_of(s3, "full")
            assert mover.journals() == []
            # What is removed goes right behind the answer.
            end = time.monotonic() + 10
            while server.blob_files() and time.monotonic() < end:
                time.sleep(0.05)
            assert server.blob_files() == []
        finally:
            server.close()
