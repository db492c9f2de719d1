"""coffer migrate where settings of a bucket are removed at the source after they came."""

import json

import pytest
from botocore.exceptions import ClientError

BUCKET = "docs-whose-settings-go"
CORS = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
ANOTHER = {"CORSRules": [{"AllowedMethods": ["PUT"], "AllowedOrigins": ["*"]}]}
RULES = {
    "Rules": [
        {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    ]
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/kept/*",
    },
}


def is_set(ask, **named):
    try:
        ask(Bucket=BUCKET, **named)
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 404
        return False
    return True


def test_what_came_and_is_gone_is_told_and_removed_if_asked(migrator, old, s3):
    old.create_bucket(Bucket=BUCKET)
    old.put_object(Bucket=BUCKET, Key="k", Body=b"k")
    old.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(POLICY))
    old.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration=RULES)
    old.put_bucket_cors(Bucket=BUCKET, CORSConfiguration=CORS)
    only = ("--bucket", BUCKET)
    migrator.migrate(*only)
    # What is changed here is this server's.
    s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration=ANOTHER)
    old.delete_bucket_policy(Bucket=BUCKET)
    old.delete_bucket_lifecycle(Bucket=BUCKET)
    old.delete_bucket_cors(Bucket=BUCKET)
    rules = s3.get_bucket_lifecycle_configuration
    _, told = migrator.run("migrate", migrator.source, *only, *migrator.options)
    for name in ("policy", "lifecycle"):
        assert f"{name} is gone, and s3://{BUCKET} still has it" in told
    assert is_set(s3.get_bucket_policy) and is_set(rules)
    run = migrator.migrate(*only, "--check", code=1)
    assert {what.rsplit(" ")[-1] for what in run.failed} == {"policy", "lifecycle"}
    assert run.codes() == ["differs", "differs"]
    migrator.migrate(*only, "--delete")
    assert not is_set(s3.get_bucket_policy) and not is_set(rules)
    assert s3.get_bucket_cors(Bucket=BUCKET)["CORSRules"] == ANOTHER["CORSRules"]
    migrator.migrate(*only, "--check")


@pytest.mark.parametrize("words", [[], ["--delete"]])
def test_what_was_set_here_alone_stays(migrator, old, s3, words):
    bucket = f"set-here-alone-{len(words)}"
    old.create_bucket(Bucket=bucket)
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    migrator.migrate("--bucket", bucket)
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration=CORS)
    migrator.migrate("--bucket", bucket, *words)
    migrator.migrate("--bucket", bucket, "--check")
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == CORS["CORSRules"]


def test_an_emptied_bucket_is_emptied_if_that_is_said(migrator, old, s3):
    bucket = "emptied-at-the-source"
    old.create_bucket(Bucket=bucket)
    for key in ("a", "b"):
        old.put_object(Bucket=bucket, Key=key, Body=b"x")
    of_bucket = {"source": f"{migrator.source}/{bucket}"}
    migrator.migrate(**of_bucket)
    s3.put_object(Bucket=bucket, Key="theirs", Body=b"theirs")
    for key in ("a", "b"):
        old.delete_object(Bucket=bucket, Key=key)
    run = migrator.migrate("--delete", code=1, **of_bucket)
    assert run.codes() == ["source_empty"]
    # Where the bucket is not there, that is no answer.
    old.delete_bucket(Bucket=bucket)
    run = migrator.migrate("--delete-all", code=1, **of_bucket)
    [failed] = run.failed.values()
    assert failed["code"] == "NoSuchBucket" and "lists the source's buckets" in failed["message"]
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 3
    old.create_bucket(Bucket=bucket)
    run = migrator.migrate("--delete-all", **of_bucket)
    assert run.buckets[bucket]["deleted"] == 2
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["theirs"]


def test_what_another_stored_is_told_with_its_difference(migrator, old, s3):
    bucket = "stored-by-another"
    for server, time in ((old, "1600000000"), (s3, "1700000000")):
        server.create_bucket(Bucket=bucket)
        server.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"mtime": time})
    for words, code in (([], "occupied"), (["--check"], "differs")):
        run = migrator.migrate("--bucket", bucket, *words, code=1)
        assert run.codes() == [code]
        [failed] = run.failed.values()
        assert "x-amz-meta-mtime (its bytes are the same)" in failed["message"], failed
    migrator.migrate("--bucket", bucket, "--overwrite")
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == {"mtime": "1600000000"}


def test_a_wrong_key_of_the_source_is_told_with_its_own_option(migrator):
    migrator.environment["COFFER_SOURCE_ACCESS_KEY_ID"] = "AKIAIOSFODNN7EXAMPLE"
    _, told = migrator.run("migrate", migrator.source, *migrator.options, code=1)
    assert "InvalidAccessKeyId" in told and "--source-profile" in told
    assert " --profile" not in told


@pytest.mark.parametrize("status", [None, "Enabled", "Suspended"])
def test_what_does_not_come_keeps_what_came_before(migrator, old, s3, status):
    """A nightly run deletes what is gone, and can't read one object that has changed."""
    bucket = f"nightly-{status}".lower()
    old.create_bucket(Bucket=bucket)
    if status:
        settings = {"Status": status}
        old.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=settings)
    for key in ("changed", "gone"):
        old.put_object(Bucket=bucket, Key=key, Body=key.encode())
    only = ("--bucket", bucket, "--without", "policy")
    migrator.migrate(*only)
    before = old.head_object(Bucket=bucket, Key="changed").get("VersionId", "null")
    old.put_object(Bucket=bucket, Key="changed", Body=b"newer than before")
    if status == "Enabled":
        old.delete_object(Bucket=bucket, Key="changed", VersionId=before)
    gone = old.head_object(Bucket=bucket, Key="gone").get("VersionId", "null")
    old.delete_object(Bucket=bucket, Key="gone", VersionId=gone)
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["s3:GetObject", "s3:GetObjectVersion"],
        "Resource": f"arn:aws:s3:::{bucket}/changed",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": denial})
    old.put_bucket_policy(Bucket=bucket, Policy=policy)
    run = migrator.migrate(*only, "--delete", code=1)
    assert (run.counts(bucket)[2], run.buckets[bucket]["deleted"]) == (1, 1)
    body = s3.get_object(Bucket=bucket, Key="changed")["Body"].read()
    assert body == b"changed", "it is all that is left of it"
    old.delete_bucket_policy(Bucket=bucket)
    run = migrator.migrate(*only, "--delete")
    assert s3.get_object(Bucket=bucket, Key="changed")["Body"].read() == b"newer than before"
