"""What a backup program does that makes its backups immutable: it locks, prolongs, tries, waits."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from harness.clients import drain, refused
from harness.content import MIB, content

BUCKET = "immutable"
PARTS = 3


@pytest.fixture
def repository(s3):
    s3.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    yield BUCKET
    drain(s3, BUCKET)


def soon(seconds):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)


def checked(s3):
    """What such a program asks of a bucket before it uses it."""
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    lock = s3.get_object_lock_configuration(Bucket=BUCKET)["ObjectLockConfiguration"]
    # A default retention would lock what the program means to delete: it locks each object itself.
    assert lock == {"ObjectLockEnabled": "Enabled"}


def stored(s3, until):
    """Uploads blocks, each locked as it is written, with the checksum that S3 wants then."""
    blocks = {}
    for number in range(PARTS):
        where = {"Bucket": BUCKET, "Key": f"Repository/blocks/{number:08}"}
        answer = s3.put_object(
            **where,
            Body=content(MIB, number),
            ChecksumAlgorithm="SHA256",
            ObjectLockMode="COMPLIANCE",
            ObjectLockRetainUntilDate=until,
        )
        blocks[number] = where | {"VersionId": answer["VersionId"]}
    return blocks


def kept_until(s3, block):
    retention = s3.get_object_retention(**block)["Retention"]
    assert retention["Mode"] == "COMPLIANCE"
    return retention["RetainUntilDate"]


def prolong(s3, block, until, mode="COMPLIANCE"):
    retention = {"Mode": mode, "RetainUntilDate": until}
    s3.put_object_retention(**block, Retention=retention)


def test_a_backup_that_is_immutable(s3, repository):
    checked(s3)
    # Far enough apart that a slow machine still finds the longer one locked when the first ends.
    first, longer = soon(6), soon(16)
    blocks = stored(s3, first)
    assert {kept_until(s3, block) for block in blocks.values()} == {first}

    # Another backup needs the block still: its lock is prolonged, the same again is no error.
    prolong(s3, blocks[0], longer)
    prolong(s3, blocks[0], longer)
    assert kept_until(s3, blocks[0]) == longer

    # Nothing shortens it, changes its mode or deletes it, whatever is asked for.
    for until, mode in ((first, "COMPLIANCE"), (longer, "GOVERNANCE")):
        for bypass in (False, True):
            retention = {"Mode": mode, "RetainUntilDate": until}
            with refused("AccessDenied", 403):
                s3.put_object_retention(
                    **blocks[0], Retention=retention, BypassGovernanceRetention=bypass
                )
    for block in blocks.values():
        for bypass in (False, True):
            with refused("AccessDenied", 403):
                s3.delete_object(**block, BypassGovernanceRetention=bypass)
    objects = [{"Key": b["Key"], "VersionId": b["VersionId"]} for b in blocks.values()]
    told = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects})
    assert {row["Code"] for row in told["Errors"]} == {"AccessDenied"}
    assert len(told["Errors"]) == PARTS and "Deleted" not in told

    # Who deletes without naming a version hides the block, and it comes back.
    marker = s3.delete_object(Bucket=BUCKET, Key=blocks[1]["Key"])
    assert marker["DeleteMarker"]
    s3.put_object(Bucket=BUCKET, Key=blocks[2]["Key"], Body=b"scrambled by an intruder")
    for number, block in blocks.items():
        assert s3.get_object(**block)["Body"].read() == content(MIB, number)
    s3.delete_object(Bucket=BUCKET, Key=blocks[1]["Key"], VersionId=marker["VersionId"])
    assert (
        s3.head_object(Bucket=BUCKET, Key=blocks[1]["Key"])["VersionId"] == blocks[1]["VersionId"]
    )

    # When its time is over, and not before, a block goes.
    time.sleep(max(0, (first - datetime.now(UTC)).total_seconds()) + 1.5)
    s3.delete_object(**blocks[1])
    with refused("AccessDenied", 403):
        s3.delete_object(**blocks[0])
    time.sleep(max(0, (longer - datetime.now(UTC)).total_seconds()) + 1.5)
    for number in (0, 2):
        s3.delete_object(**blocks[number])
    for block in blocks.values():
        with refused("NoSuchVersion", 404):
            s3.get_object(**block)
