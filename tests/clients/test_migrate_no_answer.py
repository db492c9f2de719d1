"""coffer migrate, whose changes at the target are made or not while no answer says so: what came is
known for what it is, and what others set since is theirs."""

import json

import pytest

from harness.migration import Migrator
from harness.watching import Watching


@pytest.fixture
def between(server):
    with Watching(server) as between:
        yield between


@pytest.fixture
def migrator(server, origin, between, tmp_path):
    migrator = Migrator(server, tmp_path / "home", source=origin)
    migrator.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
    return migrator


def killed_at(migrator, between, is_meant, *words):
    """Runs it until a request that is meant has been done, and its answer is not there yet."""

    def kills(method, path):
        if is_meant(method, path):
            process.kill()
            return True
        return False

    between.loses = kills
    process = migrator.start("migrate", migrator.source, *words, *migrator.options)
    process.communicate(timeout=60)
    assert (process.returncode, len(between.lost)) == (-9, 1)
    between.loses = lambda method, path: False


def is_held(s3, bucket):
    told = s3.get_object_legal_hold(Bucket=bucket, Key="k")["LegalHold"]
    return told["Status"] == "ON"


def hold(s3, bucket, status):
    s3.put_object_legal_hold(Bucket=bucket, Key="k", LegalHold={"Status": status})


def held_bucket(old, bucket, **tagging):
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"k", ObjectLockLegalHoldStatus="ON", **tagging)


def is_lift(method, path):
    return method == "PUT" and "legal-hold" in path


def test_what_an_object_came_with_goes_with_the_source(migrator, between, old, s3):
    bucket = "killed-at-the-object"
    held_bucket(old, bucket, Tagging="t=1")
    only = ("--bucket", bucket)

    def is_object(method, path):
        return method == "PUT" and path.startswith(f"/{bucket}/k")

    killed_at(migrator, between, is_object, *only)
    assert migrator.migrate(*only).counts(bucket) == (0, 1, 0)
    hold(old, bucket, "OFF")
    tags = [{"Key": "t", "Value": "2"}]
    old.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": tags})
    assert migrator.migrate(*only, "--tags-and-locks").failed == {}
    assert not is_held(s3, bucket)
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == tags


def test_a_hold_that_could_not_be_lifted_is_lifted_later(migrator, between, old, s3):
    bucket = "lift-does-not-arrive"
    held_bucket(old, bucket)
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    hold(old, bucket, "OFF")

    def refuses(method, path):
        if is_lift(method, path):
            raise ConnectionError("the request does not arrive")

    between.before = refuses
    migrator.migrate(*only, "--retries", "1", code=1)
    assert is_held(s3, bucket)
    between.before = lambda method, path: None
    assert migrator.migrate(*only).failed == {}
    assert not is_held(s3, bucket)


def test_a_hold_that_comes_after_a_lift_without_an_answer_stays(migrator, between, old, s3):
    bucket = "lift-is-not-answered"
    held_bucket(old, bucket)
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    hold(old, bucket, "OFF")
    between.loses = is_lift
    assert migrator.migrate(*only, "--retries", "0").failed == {}
    assert not is_held(s3, bucket)
    between.loses = lambda method, path: False
    hold(s3, bucket, "ON")
    assert migrator.migrate(*only, code=1).codes() == ["held_at_target"]
    assert is_held(s3, bucket)


def test_a_hold_that_was_placed_after_a_kill_is_this_servers(migrator, between, old, s3):
    bucket = "killed-at-the-lift"
    held_bucket(old, bucket)
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    hold(old, bucket, "OFF")
    killed_at(migrator, between, is_lift, *only)
    assert not is_held(s3, bucket)
    hold(s3, bucket, "ON")
    run = migrator.migrate(*only, code=1)
    assert run.codes() == ["held_at_target"]
    [told] = run.failed.values()
    assert "no answer" in told["message"]
    assert is_held(s3, bucket)


@pytest.mark.parametrize("looks_again", [False, True])
def test_a_policy_that_came_without_an_answer_goes_with_the_source(
    migrator, between, old, s3, looks_again
):
    bucket = f"killed-at-the-policy-{looks_again}".lower()
    old.create_bucket(Bucket=bucket)
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    old.put_bucket_policy(Bucket=bucket, Policy=policy)
    only = ("--bucket", bucket)

    def is_policy(method, path):
        return method == "PUT" and "?policy" in path

    killed_at(migrator, between, is_policy, *only)
    if looks_again:
        migrator.migrate(*only)
    assert s3.get_bucket_policy(Bucket=bucket)["Policy"]
    old.delete_bucket_policy(Bucket=bucket)
    assert migrator.migrate(*only, "--check", code=1).codes() == ["differs"]
    migrator.migrate(*only, "--delete")
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket=bucket)


def test_a_policy_that_was_refused_and_is_set_here_stays(migrator, old, s3):
    bucket = "refused-and-set-here"
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    names = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
    blocks = dict.fromkeys(names, True)
    for server in (old, s3):
        server.create_bucket(Bucket=bucket)
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=blocks)
    old.delete_public_access_block(Bucket=bucket)
    old.put_bucket_policy(Bucket=bucket, Policy=policy)
    only = ("--bucket", bucket)
    migrator.migrate(*only, code=1)
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_bucket_policy(Bucket=bucket, Policy=policy)
    migrator.migrate(*only)
    old.delete_bucket_policy(Bucket=bucket)
    migrator.migrate(*only, "--delete")
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"] == [statement]
