"""A place for a copy that becomes full goes on as soon as what belongs there fits again."""

import time

import pytest

from harness.clients import s3_client
from harness.content import MIB, content
from harness.disks import needs_mount, small_disk
from harness.sealed_copies import BUCKET, blobs_in, caught_up, reached, replica, url_of


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_what_no_head_names_is_removed_when_there_is_no_room(server, tmp_path):
    s3 = s3_client(server)
    keys = [f"big-{number:02}" for number in range(20)]
    with small_disk(tmp_path, 40 * MIB) as disk:
        copy = disk / "copy"
        replica(server, "add", "far", url_of(copy), "--keep", "0s")
        caught_up(server)
        for key in keys:
            s3.put_object(Bucket=BUCKET, Key=key, Body=content(3 * MIB, key))
        reached(server, "failing")
        time.sleep(2)
        assert blobs_in(copy / "blobs")
        named = {"Objects": [{"Key": key} for key in keys]}
        s3.delete_objects(Bucket=BUCKET, Delete=named)
        s3.put_object(Bucket=BUCKET, Key="small", Body=b"small")
        # A round is tried again within half a minute.
        caught_up(server, seconds=90)
        for number in range(4):
            body = content(4 * MIB, str(number))
            s3.put_object(Bucket=BUCKET, Key=f"new-{number}", Body=body)
        caught_up(server, seconds=90)
        replica(server, "remove", "far")
        server.stop()
