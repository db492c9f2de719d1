"""coffer migrate, and what keeps objects from being deleted."""

import datetime
import time

import pytest

from harness.content import MIB, content
from harness.migration import Migrator
from harness.watching import Watching


def rule(days):
    retention = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": days}}
    return {"ObjectLockEnabled": "Enabled", "Rule": retention}


def test_locks_come_along(migrator, old, s3):
    bucket = "locks-come-along"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 300}}
    configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    old.put_object(Bucket=bucket, Key="free", Body=b"no lock")
    old.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)
    until = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    until += datetime.timedelta(days=2)
    old.put_object(
        Bucket=bucket,
        Key="kept",
        Body=b"kept",
        ObjectLockMode="COMPLIANCE",
        ObjectLockRetainUntilDate=until,
    )
    old.put_object(Bucket=bucket, Key="held", Body=b"held", ObjectLockLegalHoldStatus="ON")
    for _ in range(2):
        migrator.migrate("--bucket", bucket)
        assert "ObjectLockMode" not in s3.head_object(Bucket=bucket, Key="free")
        kept = s3.head_object(Bucket=bucket, Key="kept")
        assert kept["ObjectLockMode"] == "COMPLIANCE"
        assert kept["ObjectLockRetainUntilDate"] == until
        held = s3.head_object(Bucket=bucket, Key="held")
        assert held["ObjectLockLegalHoldStatus"] == "ON"
        before = old.head_object(Bucket=bucket, Key="held")
        assert held["ObjectLockRetainUntilDate"] == before["ObjectLockRetainUntilDate"]
        told = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
        assert told == configuration
        old.put_object(Bucket=bucket, Key="later", Body=b"later")
    assert migrator.migrate("--bucket", bucket, "--check", code=1).codes() == ["absent"]
    assert migrator.migrate("--bucket", bucket).counts(bucket)[0] == 1
    assert migrator.migrate("--bucket", bucket, "--check").counts(bucket)[2] == 0


def test_tags_and_locks_that_change_later(migrator, old, s3):
    bucket = "tags-and-locks-later"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    until += datetime.timedelta(days=2)
    for key in ("tagged", "untagged", "locked", "held", "freed"):
        hold = {"ObjectLockLegalHoldStatus": "ON"} if key == "freed" else {}
        tagging = {"Tagging": "old=1"} if key == "untagged" else {}
        old.put_object(Bucket=bucket, Key=key, Body=key.encode(), **hold, **tagging)
    migrator.migrate("--bucket", bucket)
    tags = [{"Key": "a", "Value": "b c"}]
    old.put_object_tagging(Bucket=bucket, Key="tagged", Tagging={"TagSet": tags})
    old.delete_object_tagging(Bucket=bucket, Key="untagged")
    retention = {"Mode": "GOVERNANCE", "RetainUntilDate": until}
    old.put_object_retention(Bucket=bucket, Key="locked", Retention=retention)
    old.put_object_legal_hold(Bucket=bucket, Key="held", LegalHold={"Status": "ON"})
    old.put_object_legal_hold(Bucket=bucket, Key="freed", LegalHold={"Status": "OFF"})
    assert migrator.migrate("--bucket", bucket, "--check", code=1).codes() == ["differs"] * 5
    assert migrator.migrate("--bucket", bucket, "--tags-and-locks").counts(bucket) == (0, 5, 0)
    assert migrator.migrate("--bucket", bucket, "--check").failed == {}
    assert s3.get_object_tagging(Bucket=bucket, Key="tagged")["TagSet"] == tags
    assert s3.get_object_tagging(Bucket=bucket, Key="untagged")["TagSet"] == []
    assert s3.get_object_retention(Bucket=bucket, Key="locked")["Retention"] == retention


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_while_the_lock_is_prepared(server, origin, old, s3, tmp_path, number, arrives):
    """The retention for new objects is taken off, and put on when all has come: one of both was
    on its way."""
    bucket = f"killed-at-the-lock-{number}-{arrives}".lower()
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)

    def set_there(days):
        old.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=rule(days))

    writes = []

    def kills(method, path):
        if method == "PUT" and "object-lock" in path:
            writes.append(path)
            if len(writes) == number:
                killed.kill()
                return True
        return False

    def refuses(method, path):
        if kills(method, path):
            raise ConnectionError("the request does not arrive")

    only = ("--bucket", bucket)
    with Watching(server) as between:
        migrator = Migrator(server, tmp_path / "home", source=origin)
        migrator.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        old.put_object(Bucket=bucket, Key="first", Body=b"first")
        set_there(100)
        migrator.migrate(*only)
        set_there(200)
        between.before = between.before if arrives else refuses
        between.loses = kills if arrives else between.loses
        killed = migrator.start("migrate", migrator.source, *only, *migrator.options)
        killed.wait(60)
        assert (killed.returncode, len(writes)) == (-9, number)
        between.before = lambda method, path: None
        between.loses = lambda method, path: False
        set_there(300)
        old.put_object(Bucket=bucket, Key="later", Body=b"later")
        assert migrator.migrate(*only).failed == {}
    told = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
    assert told == rule(300)


def test_what_changes_while_an_upload_waits_comes_with_it(migrator, old, s3):
    """An upload has its tags and locks from its beginning: with others it begins anew."""
    bucket, key = "locks-change-in-between", "large"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key=key, Body=content(96 * MIB), Tagging="t=old")
    only = ("--bucket", bucket)
    command = ["migrate", migrator.source, *only, "--jobs", "2", *migrator.options]
    killed = migrator.start(*command)
    end = time.monotonic() + 60
    while time.monotonic() < end and killed.poll() is None:
        ledgers = migrator.ledgers()
        if ledgers and b'"line":"part"' in ledgers[0].read_bytes():
            break
        time.sleep(0.002)
    killed.kill()
    killed.communicate()
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)
    [upload] = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    until = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    retention = {"Mode": "GOVERNANCE", "RetainUntilDate": until + datetime.timedelta(days=2)}
    tags = [{"Key": "t", "Value": "new"}]
    of_key = {"Bucket": bucket, "Key": key}
    old.put_object_legal_hold(**of_key, LegalHold={"Status": "ON"})
    old.put_object_retention(**of_key, Retention=retention)
    old.put_object_tagging(**of_key, Tagging={"TagSet": tags})
    assert migrator.migrate(*only).counts(bucket) == (1, 0, 0)
    assert s3.get_object_legal_hold(**of_key)["LegalHold"]["Status"] == "ON"
    assert s3.get_object_retention(**of_key)["Retention"] == retention
    assert s3.get_object_tagging(**of_key)["TagSet"] == tags
    left = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    assert upload["UploadId"] not in [it["UploadId"] for it in left]
    assert migrator.migrate(*only, "--check").failed == {}
