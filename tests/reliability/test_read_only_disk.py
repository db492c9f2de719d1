"""A file system that becomes read-only under a running server, as ext4 does after an error."""

import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, content
from harness.disks import needs_mount, small_disk
from harness.server import Server

pytestmark = pytest.mark.skipif(needs_mount, reason="needs to mount")

BUCKET = "kept"
LOCKABLE = "lockable"
READY_SECONDS = 10


def make_read_only(disk):
    """Has the kernel meet an error of the file system, which is mounted to stop writing then."""
    find = ["findmnt", "-n", "-o", "SOURCE", str(disk)]
    device = subprocess.run(find, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["mount", "-o", "remount,errors=remount-ro", str(disk)], check=True)
    Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error").write_text("a test")


def refusal(act):
    with pytest.raises(ClientError) as caught:
        act()
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"].get("Message", "")


def test_it_is_told_and_reads_go_on(tmp_path):
    with small_disk(tmp_path) as disk, Server(tmp_path, data=disk / "data") as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket=BUCKET)
        objects = {"small": content(1_000), "large": content(MIB)}
        for name, body in objects.items():
            s3.put_object(Bucket=BUCKET, Key=name, Body=body)
        status, told = raw.get_admin(server, "/health/ready")
        assert status == 200 and told.startswith("ready\n")
        make_read_only(disk)
        until = time.monotonic() + READY_SECONDS
        while raw.get_admin(server, "/health/ready")[0] == 200:
            assert time.monotonic() < until, "it says that it is ready"
            time.sleep(0.2)
        status, text = raw.get_admin(server, "/health/ready")
        assert status == 503 and "Read-only file system" in text, text
        assert raw.get_admin(server, "/health/live")[0] == 200
        assert raw.metric(server, "coffer_ready") == 0
        for act in (
            lambda: s3.put_object(Bucket=BUCKET, Key="more", Body=content(MIB)),
            lambda: s3.put_object(Bucket=BUCKET, Key="more", Body=b"few"),
            lambda: s3.delete_object(Bucket=BUCKET, Key="small"),
        ):
            status, message = refusal(act)
            assert (status, "read-only" in message) == (503, True), (status, message)
        for name, body in objects.items():
            assert s3.get_object(Bucket=BUCKET, Key=name)["Body"].read() == body
        assert "the data folder can't be written" in server.log()
        assert "the disk takes no writes" in server.log()
        assert "read-only" in server.log()


def test_locks_are_refused_there_and_none_is_made(tmp_path):
    """Not as in doubt: what records that a bucket may hold such a lock was not written either."""
    with small_disk(tmp_path) as disk, Server(tmp_path, data=disk / "data") as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket=LOCKABLE, ObjectLockEnabledForBucket=True)
        for name in ("free", "held"):
            s3.put_object(Bucket=LOCKABLE, Key=name, Body=b"few")
        held = {"Bucket": LOCKABLE, "Key": "held"}
        s3.put_object_legal_hold(**held, LegalHold={"Status": "ON"})
        make_read_only(disk)
        free = {"Bucket": LOCKABLE, "Key": "free"}
        until = datetime.now(UTC) + timedelta(days=1)
        lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
        retention = {"Mode": "COMPLIANCE", "RetainUntilDate": until}
        for act in (
            lambda: s3.put_object_retention(**free, Retention=retention),
            lambda: s3.put_object_legal_hold(**free, LegalHold={"Status": "ON"}),
            lambda: s3.put_object(Bucket=LOCKABLE, Key="more", Body=b"few", **lock),
            lambda: s3.put_object(Bucket=LOCKABLE, Key="more", Body=content(MIB), **lock),
            lambda: s3.put_object_legal_hold(**held, LegalHold={"Status": "OFF"}),
        ):
            for _ in range(2):
                status, message = refusal(act)
                assert (status, "read-only" in message) == (503, True), (status, message)
        for ask in (s3.get_object_retention, s3.get_object_legal_hold):
            assert refusal(lambda ask=ask: ask(**free))[0] == 404
        assert s3.get_object_legal_hold(**held)["LegalHold"] == {"Status": "ON"}
        assert refusal(lambda: s3.get_object(Bucket=LOCKABLE, Key="more"))[0] == 404
        told = s3.list_buckets()["Buckets"]
        assert [row["Name"] for row in told] == [LOCKABLE]
        assert "in doubt" not in server.log()
