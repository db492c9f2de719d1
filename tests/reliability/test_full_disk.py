"""A full disk: a clear error, reads go on, and writes do when there is space again."""

import contextlib
import os
import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.clients import refused, s3_client
from harness.content import MIB, PART_MIN_BYTES, content
from harness.disks import free_bytes, needs_mount, small_disk
from harness.server import StartError

pytestmark = pytest.mark.skipif(needs_mount, reason="only root may mount a small file system")

BUCKET = "full"
FILLER_BYTES = 16 * MIB


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path) as mounted:
        (mounted / "filler").write_bytes(bytes(FILLER_BYTES))
        yield mounted


@pytest.fixture
def server(disk, own_server):
    running = own_server(data=disk / "data").start()
    s3_client(running).create_bucket(Bucket=BUCKET)
    yield running
    running.close()


def fill(s3, size_bytes, prefix, most=5000):
    """Stores objects until the server refuses one; returns names, and what it said."""
    stored = []
    with refused() as error:
        for index in range(most):
            name = f"{prefix}-{index}"
            s3.put_object(Bucket=BUCKET, Key=name, Body=content(size_bytes, name))
            stored.append((name, size_bytes))
    return stored, error


def fill_to_the_brim(s3):
    stored = []
    for size_bytes in (MIB, 100_000, 10_000, 1_000):
        names, error = fill(s3, size_bytes, f"{size_bytes}")
        stored += names
        assert (error.code, error.status) == ("StorageFull", 507), error.response
        assert "full" in error.message
    return stored


def check(s3, stored):
    for name, size_bytes in stored:
        body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        assert body == content(size_bytes, name), name
    listed = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        listed += [row["Key"] for row in page.get("Contents", [])]
    assert sorted(listed) == sorted(name for name, _ in stored)


def take_the_rest(disk):
    with contextlib.suppress(OSError), (disk / "brim").open("wb") as brim:
        while True:
            brim.write(bytes(4096))
            brim.flush()


def make_space(disk):
    (disk / "filler").unlink()


def test_full_and_then_not(server, disk):
    s3 = s3_client(server)
    stored = fill_to_the_brim(s3)
    assert len(stored) > 20
    check(s3, stored)
    assert raw.metric(server, "coffer_storage_full_total") >= 4
    assert raw.get_admin(server, "/health/live")[0] == 200
    # What was refused left nothing behind.
    assert len(server.blob_files()) == sum(size > 16384 for _, size in stored)
    make_space(disk)
    for size_bytes in (1_000, MIB):
        name = f"after-{size_bytes}"
        s3.put_object(Bucket=BUCKET, Key=name, Body=content(size_bytes, name))
        stored.append((name, size_bytes))
    check(s3, stored)
    server.restart()
    check(s3_client(server), stored)


def test_parts_on_a_full_disk(server, disk):
    s3 = s3_client(server)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    where = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload}
    parts = []
    with refused("StorageFull", 507):
        for number in range(1, 20):
            body = content(PART_MIN_BYTES, number)
            part = s3.upload_part(**where, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": part["ETag"]})
    assert 1 < len(parts) < 10
    make_space(disk)
    body = content(PART_MIN_BYTES, len(parts) + 1)
    part = s3.upload_part(**where, PartNumber=len(parts) + 1, Body=body)
    parts.append({"PartNumber": len(parts) + 1, "ETag": part["ETag"]})
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    expected = b"".join(content(PART_MIN_BYTES, n) for n in range(1, len(parts) + 1))
    assert s3.get_object(Bucket=BUCKET, Key="parts")["Body"].read() == expected


def test_deleting_makes_space(server, disk):
    """With no space but for what the catalog keeps ready, deleting must still be possible."""
    s3 = s3_client(server)
    stored, _ = fill(s3, MIB, "big")
    before = free_bytes(disk)
    for name, _ in stored[:5]:
        s3.delete_object(Bucket=BUCKET, Key=name)
    # Space comes back right behind the answers; the server takes some of it at once, to keep room
    # for the next deletions.
    end = time.monotonic() + 5
    while free_bytes(disk) - before < 3 * MIB and time.monotonic() < end:
        time.sleep(0.05)
    assert free_bytes(disk) - before >= 3 * MIB
    s3.put_object(Bucket=BUCKET, Key="big-again", Body=content(MIB, "big-again"))
    check(s3, [*stored[5:], ("big-again", MIB)])


def test_a_full_disk_at_the_start(server, disk):
    """After a kill a start needs room for copies of the logs that were left, and says how much. The
    room that the server itself leaves is enough."""
    s3 = s3_client(server)
    stored = fill_to_the_brim(s3)
    server.kill()
    take_the_rest(disk)
    for _ in range(2):
        no_room = r"log of .*/system\.db durable.* [0-9]+ bytes must be free"
        with pytest.raises(StartError, match=no_room):
            server.start()
    (disk / "brim").unlink()
    server.start()
    check(s3_client(server), stored)
    with refused("StorageFull", 507):
        s3_client(server).put_object(Bucket=BUCKET, Key="no", Body=bytes(MIB))
    make_space(disk)
    s3_client(server).put_object(Bucket=BUCKET, Key="yes", Body=content(MIB, "yes"))
    check(s3_client(server), [*stored, ("yes", MIB)])


@pytest.mark.parametrize("block_bytes", [1024, 4096])
def test_a_start_with_next_to_no_room(own_server, tmp_path, block_bytes):
    """It ends with what is lacking and where, or serves: never by a signal or a number alone."""
    with small_disk(tmp_path, 64 * MIB, "-b", block_bytes) as disk:
        server = own_server(data=disk / "data").start()
        s3 = s3_client(server)
        for bucket in (BUCKET, "other"):
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key="a", Body=b"a")
        server.stop()
        outcomes = set()
        for free_kib in (0, 4, 8, 16, 24, 32, 40, 48, 64, 96, 128, 256):
            leave(disk, free_kib * 1024)
            before = len(server.log())
            try:
                server.start()
            except StartError as error:
                told = error.log[before:]
                assert error.code == 1, (free_kib, error.code, told)
                assert "full" in told or "room" in told, (free_kib, told)
                assert str(disk) in told and "code" not in told, (free_kib, told)
                outcomes.add("refused")
            else:
                for bucket in (BUCKET, "other"):
                    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"a"
                assert server.stop() == 0
                outcomes.add("served")
        assert "served" in outcomes
        (disk / "rest").unlink()
        server.start()
        s3.put_object(Bucket=BUCKET, Key="b", Body=b"b")
        server.close()


def leave(disk, bytes_left):
    """Takes all room on the disk but so much."""
    rest = disk / "rest"
    rest.unlink(missing_ok=True)
    with rest.open("wb") as file:
        while (more := free_bytes(disk) - bytes_left) > 0:
            try:
                os.posix_fallocate(file.fileno(), file.tell(), more)
            except OSError:
                # What the file system itself needs of it.
                more //= 2
                if more < 1024:
                    break
                continue
            file.seek(more, os.SEEK_CUR)


def test_buckets_on_a_full_disk(server, disk):
    """Made or refused, deleted or refused: never half."""
    s3 = s3_client(server)
    there = {BUCKET, "empty-0", "empty-1"}
    for name in there - {BUCKET}:
        s3.create_bucket(Bucket=name)
    fill_to_the_brim(s3)
    take_the_rest(disk)
    new = {f"new-{number}" for number in range(6)}
    tried = {
        name: succeeds(lambda name=name: s3.create_bucket(Bucket=name)) for name in sorted(new)
    }
    tried["empty-0"] = succeeds(lambda: s3.delete_bucket(Bucket="empty-0"))
    made = {name for name in new if tried[name]}
    assert any(tried[name] is False for name in new), "the disk is not full"
    there |= made
    if tried["empty-0"]:
        there.remove("empty-0")
    in_doubt = {name for name, done in tried.items() if done is None}
    if not in_doubt:
        is_whole(server, there)

    (disk / "brim").unlink()
    make_space(disk)
    # What was in doubt has happened, or it has not.
    listed = settled_list(server)
    assert listed ^ there <= in_doubt
    there, made = listed, listed & new
    is_whole(server, there)
    for name in new - made:
        s3.create_bucket(Bucket=name)
    there |= new
    for name in there & {"empty-0", "empty-1", "new-0"}:
        s3.delete_bucket(Bucket=name)
        there.remove(name)
    is_whole(server, there)
    server.restart()
    is_whole(server, there)
    s3 = s3_client(server)
    for name in there - {BUCKET}:
        s3.put_object(Bucket=name, Key="a", Body=b"a")
        assert s3.get_object(Bucket=name, Key="a")["Body"].read() == b"a"


def succeeds(call):
    """Whether it does; otherwise the server has said clearly why not. `None` where it may have."""
    try:
        call()
    except ClientError as error:
        said = error.response["Error"]
        if "in doubt" in said["Message"]:
            assert said["Code"] in ("InternalError", "ServiceUnavailable"), said
            assert "full" in said["Message"], said
            return None
        assert said["Code"] in ("StorageFull", "ServiceUnavailable"), said
        assert "full" in said["Message"] or "audit log" in said["Message"], said
        return False
    return True


def settled_list(server):
    """The buckets, once it is certain which there are."""
    end = time.monotonic() + 20
    while True:
        try:
            return {row["Name"] for row in s3_client(server).list_buckets()["Buckets"]}
        except ClientError as error:
            assert "in doubt" in error.response["Error"]["Message"], error.response
            assert time.monotonic() < end, server.log()
            time.sleep(0.2)


def is_whole(server, names):
    """There are just these buckets, and no folder of another."""
    listed = {row["Name"] for row in s3_client(server).list_buckets()["Buckets"]}
    assert listed == names
    folders = server.data / "buckets"
    end = time.monotonic() + 5
    while len(list(folders.iterdir())) != len(names) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(list(folders.iterdir())) == len(names)
