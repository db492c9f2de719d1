"""coffer migrate of a bucket into a part of itself, which another address hides."""

import base64
import hashlib
import time

import pytest

from harness.migration import Migrator

PREFIX = "p/"
BODY = b"the same"
MD5 = base64.b64encode(hashlib.md5(BODY).digest()).decode()


@pytest.mark.parametrize("status", ["never", "enabled"])
def test_a_bucket_does_not_come_into_itself(server, s3, tmp_path, status):
    bucket = f"into-itself-{status}"
    s3.create_bucket(Bucket=bucket)
    if status == "enabled":
        setting = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=setting)
    for key in ("a", "z"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    migrator = Migrator(server, tmp_path / "home", source=server)
    migrator.source = f"https://localhost:{server.port}/{bucket}"
    there = f"s3://{bucket}/{PREFIX}"
    migrator.migrate(there)
    for words in (["--dry-run"], [], ["--check"]):
        run = migrator.migrate(there, *words, code=1)
        assert run.codes() == ["into_itself"], words
        [told] = run.failed.values()
        assert told["message"].startswith("a bucket can't be moved into itself"), words
    keys = {row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    assert keys == {"a", "z", "p/a", "p/z"}


def test_a_bucket_of_its_name_elsewhere_has_the_same_below_the_prefix(migrator, old, s3):
    bucket = "not-into-itself"
    old.create_bucket(Bucket=bucket)
    for key in ("a", "p/a"):
        # With its MD5, the entity tag names the bytes at both sides.
        old.put_object(Bucket=bucket, Key=key, Body=BODY, ContentMD5=MD5)
    # Times of objects are told in whole seconds.
    time.sleep(1.1)
    options = {"source": f"{migrator.source}/{bucket}"}
    for moved, there in ((2, 0), (0, 2)):
        run = migrator.migrate(f"s3://{bucket}/{PREFIX}", **options)
        assert run.counts(bucket) == (moved, there, 0)
    keys = {row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    assert keys == {"p/a", "p/p/a"}
