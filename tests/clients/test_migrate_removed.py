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
