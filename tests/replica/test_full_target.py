"""A place for a copy that has become full: the copy goes on as soon as what belongs there fits."""

import os
import time

import pytest

from harness.administration import run
from harness.clients import s3_client
from harness.content import KIB, MIB, content
from harness.disks import free_bytes, needs_mount, small_disk
from harness.sealed_copies import (
    BUCKET,
    blobs_in,
    caught_up,
    files_in,
    made,
    reached,
    replica,
    restore_and_check,
    url_of,
)
from harness.server import Server

pytestmark = pytest.mark.skipif(needs_mount, reason="mounts a small file system")

KEYS = [f"big-{number:02}" for number in range(20)]
NEW = [f"new-{number}" for number in range(4)]


def put_all(s3, keys, size_bytes=3 * MIB, bucket=BUCKET):
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=content(size_bytes, key))


def delete_all(s3, keys):
    named = {"Objects": [{"Key": key} for key in keys]}
    s3.delete_objects(Bucket=BUCKET, Delete=named)


def taken(disk, leave_bytes):
    """A file of another's that leaves so much room."""
    path = disk / "ballast"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(disk) - leave_bytes)
    return path


def put_to_be_copied(s3):
    """Fits only if nothing else is there. A round is tried again within half a minute."""
    put_all(s3, NEW, 4 * MIB)


def test_what_no_head_names_any_more_makes_room_for_what_is_new(server, tmp_path):
    s3 = s3_client(server)
    with small_disk(tmp_path, 40 * MIB) as disk:
        replica(server, "add", "far", url_of(disk / "copy"), "--keep", "0s")
        caught_up(server)
        put_all(s3, KEYS)
        reached(server, "failing")
        delete_all(s3, KEYS)
        s3.put_object(Bucket=BUCKET, Key="small", Body=b"small")
        caught_up(server, seconds=120)
        put_to_be_copied(s3)
        caught_up(server, seconds=120)
        delete_all(s3, ["small"])
        caught_up(server, seconds=60)
        restore_and_check(server, disk / "copy", tmp_path, NEW, 4 * MIB)


def test_what_failed_rounds_put_goes_within_the_window(server, tmp_path):
    s3 = s3_client(server)
    with small_disk(tmp_path, 40 * MIB) as disk:
        copy = disk / "copy"
        replica(server, "add", "far", url_of(copy), "--keep", "7d")
        caught_up(server)
        # So that all of it is new to one round, of which a part fits.
        ballast = taken(disk, MIB)
        put_all(s3, KEYS)
        reached(server, "failing")
        ballast.unlink()
        end = time.time() + 60
        while len(blobs_in(copy / "blobs")) < 6:
            assert time.time() < end, files_in(copy)
            time.sleep(0.2)
        time.sleep(2)
        delete_all(s3, KEYS)
        s3.put_object(Bucket=BUCKET, Key="small", Body=b"small")
        caught_up(server, seconds=120)
        put_to_be_copied(s3)
        caught_up(server, seconds=120)
        delete_all(s3, ["small"])
        caught_up(server, seconds=60)
        restore_and_check(server, copy, tmp_path, NEW, 4 * MIB)


def test_a_bucket_that_was_erased_makes_room(server, tmp_path):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="other")
    with small_disk(tmp_path, 40 * MIB) as disk:
        replica(server, "add", "far", url_of(disk / "copy"), "--keep", "7d")
        put_all(s3, KEYS[:5], bucket="other")
        caught_up(server)
        taken(disk, 2 * MIB)
        put_all(s3, KEYS[:3])
        reached(server, "failing")
        run(server, "bucket", "erase", "other", "--yes")
        caught_up(server, seconds=120)
        restore_and_check(server, disk / "copy", tmp_path, KEYS[:3], 3 * MIB)


def test_what_a_start_left_goes_where_there_is_no_room_to_begin(server, tmp_path):
    s3 = s3_client(server)
    with small_disk(tmp_path, 40 * MIB) as disk:
        copy = disk / "copy"
        replica(server, "add", "far", url_of(copy))
        put_all(s3, KEYS[:1])
        caught_up(server)
        server.stop()
        # A piece that no head names, of the start that is over; and nothing else fits.
        pieces = [path for path in files_in(copy / "files") if "#" not in path.name]
        epoch = max(path.name for path in pieces).split("-")[0]
        left = copy / "files" / f"{epoch}-000000999" / f"{epoch}-000000999999"
        left.parent.mkdir()
        left.write_bytes(content(2 * MIB, "left"))
        taken(disk, 64 * KIB)
        with (disk / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError, match="space"):
            while True:
                rest.write(bytes(KIB))
        server.start()
        put_all(s3_client(server), ["small"], KIB)
        caught_up(server, seconds=90)
        assert not left.exists()
        server.stop()


def test_a_store_that_answers_that_it_is_full_gets_room_too(server, tmp_path):
    s3 = s3_client(server)
    with small_disk(tmp_path, 64 * MIB) as disk, Server(made(disk / "other")) as other:
        s3_client(other).create_bucket(Bucket="copies")
        url = (
            f"s3://copies/of-first?endpoint={other.endpoint}&ca={other.ca}"
            f"&credentials={other.credentials_path}"
        )
        replica(server, "add", "far", url, "--keep", "0s")
        caught_up(server)
        put_all(s3, [*KEYS, *NEW])
        reached(server, "failing", seconds=90)
        delete_all(s3, [*KEYS, *NEW])
        s3.put_object(Bucket=BUCKET, Key="small", Body=b"small")
        caught_up(server, seconds=180)
        put_all(s3, NEW, 8 * MIB)
        caught_up(server, seconds=180)
        replica(server, "remove", "far")
