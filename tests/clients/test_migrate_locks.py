"""coffer migrate, and what keeps objects from being deleted."""

import datetime


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
