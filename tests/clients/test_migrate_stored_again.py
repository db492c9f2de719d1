"""coffer migrate to a bucket without versions, in which a client stores the same bytes again."""

import base64
import hashlib
import time

import pytest

BODY = b"the same bytes"
MD5 = base64.b64encode(hashlib.md5(BODY).digest()).decode()
#: Times of answers have whole seconds, and clocks of one service may differ by two.
LATER_SECONDS = 4


def store(server, bucket, key, by):
    """Stores it with its MD5, which has the entity tag name the bytes."""
    server.put_object(Bucket=bucket, Key=key, Body=BODY, ContentMD5=MD5, Metadata={"by": by})


def by(server, bucket, key):
    return server.head_object(Bucket=bucket, Key=key)["Metadata"]["by"]


@pytest.mark.parametrize("status", ["never", "suspended"])
def test_the_same_bytes_stored_again_are_their_owners(migrator, old, s3, status):
    bucket = f"stored-again-{status}"
    old.create_bucket(Bucket=bucket)
    s3.create_bucket(Bucket=bucket)
    if status == "suspended":
        for state in ("Enabled", "Suspended"):
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": state})
    keys = ("changed", "gone", "left", "same")
    for key in keys:
        store(old, bucket, key, "source")
    only = ("--bucket", bucket)
    assert migrator.migrate(*only).counts(bucket) == (4, 0, 0)
    assert migrator.migrate(*only).counts(bucket) == (0, 4, 0)
    time.sleep(LATER_SECONDS)
    for key in ("changed", "gone"):
        store(s3, bucket, key, "client")
    store(s3, bucket, "same", "source")
    old.put_object(Bucket=bucket, Key="changed", Body=b"changed at the source")
    for key in ("gone", "left"):
        old.delete_object(Bucket=bucket, Key=key)
    for words in (["--dry-run", "--delete"], ["--delete"], ["--delete"]):
        run = migrator.migrate(*only, *words, code=1)
        assert run.codes() == ["occupied"], words
        kinds = {line["key"]: line["outcome"] for line in run.versions if line["key"] != "changed"}
        assert kinds["gone"] == "only-at-target", words
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [
        "changed",
        "gone",
        "same",
    ]
    assert by(s3, bucket, "changed") == by(s3, bucket, "gone") == "client"
    migrator.migrate(*only, "--overwrite")
    assert s3.get_object(Bucket=bucket, Key="changed")["Body"].read() == b"changed at the source"
