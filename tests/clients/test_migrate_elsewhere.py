"""coffer migrate from a server of others: moto, which plays AWS's S3."""

import datetime
import json
import os
import socket
import subprocess
import sys
import time

import boto3
import pytest

from harness.clients import REGION
from harness.content import MIB, content
from harness.migration import Migrator
from harness.server import clean_environment, free_port


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    port = free_port()
    log = tmp_path_factory.mktemp("moto") / "log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=clean_environment())
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


KEY = ("AKIAIOSFODNN7EXAMPLE", "a secret of others")


@pytest.fixture(scope="module")
def theirs(endpoint):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY[0],
        aws_secret_access_key=KEY[1],
    )


@pytest.fixture
def migrator(server, endpoint, tmp_path):
    return Migrator(server, tmp_path / "home", endpoint=endpoint, credentials=KEY)


def test_a_whole_server(migrator, theirs, s3):
    theirs.create_bucket(Bucket="plain")
    theirs.create_bucket(Bucket="versioned")
    enabled = {"Status": "Enabled"}
    theirs.put_bucket_versioning(Bucket="versioned", VersioningConfiguration=enabled)
    bodies = {"a": b"a", "ü/ +%": b"odd", "folder/": b"", "large": content(20 * MIB)}
    for key, body in bodies.items():
        theirs.put_object(Bucket="plain", Key=key, Body=body, Metadata={"from": "elsewhere"})
    theirs.put_object(Bucket="plain", Key="tagged", Body=b"t", Tagging="a=1")
    for number in range(3):
        theirs.put_object(Bucket="versioned", Key="k", Body=f"{number}".encode())
    theirs.delete_object(Bucket="versioned", Key="k")
    theirs.put_object(Bucket="versioned", Key="l", Body=b"l")
    run = migrator.migrate()
    assert run.failed == {}
    assert run.counts("plain") == (5, 0, 0)
    assert run.counts("versioned") == (5, 0, 0)
    for key, body in bodies.items():
        got = s3.get_object(Bucket="plain", Key=key)
        assert (got["Body"].read(), got["Metadata"]) == (body, {"from": "elsewhere"})
    assert s3.get_object_tagging(Bucket="plain", Key="tagged")["TagSet"] == [
        {"Key": "a", "Value": "1"}
    ]
    # Entity tags that are MD5s stay what they were.
    there = theirs.head_object(Bucket="plain", Key="a")["ETag"]
    assert s3.head_object(Bucket="plain", Key="a")["ETag"] == there
    versions = s3.list_object_versions(Bucket="versioned", Prefix="k")
    newest_first = [row["VersionId"] for row in versions["Versions"]]
    bodies = [
        s3.get_object(Bucket="versioned", Key="k", VersionId=version)["Body"].read()
        for version in newest_first
    ]
    assert bodies == [b"2", b"1", b"0"]
    assert versions["DeleteMarkers"][0]["IsLatest"]
    again = migrator.migrate()
    assert [again.counts(bucket)[0] for bucket in ("plain", "versioned")] == [0, 0]
    assert migrator.migrate("--check").failed == {}


def test_locks(migrator, theirs, s3):
    theirs.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    until += datetime.timedelta(days=3)
    theirs.put_object(
        Bucket="locked",
        Key="k",
        Body=b"k",
        ObjectLockMode="GOVERNANCE",
        ObjectLockRetainUntilDate=until,
        ObjectLockLegalHoldStatus="ON",
    )
    migrator.migrate("--bucket", "locked")
    head = s3.head_object(Bucket="locked", Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", "ON")
    assert head["ObjectLockRetainUntilDate"] == until


def test_settings_of_accounts_there_are_named(migrator, theirs, s3):
    theirs.create_bucket(Bucket="ruled", ACL="public-read")
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:user/ann"},
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::ruled/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    theirs.put_bucket_policy(Bucket="ruled", Policy=json.dumps(policy))
    theirs.put_object(Bucket="ruled", Key="k", Body=b"k")
    run = migrator.migrate("--bucket", "ruled", code=1)
    assert run.counts("ruled") == (1, 0, 2)
    told = {what.rsplit(": ")[-1]: event["message"] for what, event in run.failed.items()}
    assert "arn:aws:iam::123456789012:user/ann" in told["policy"]
    assert "--without acl" in told["acl"]
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket="ruled")
    migrator.migrate("--bucket", "ruled", "--without", "policy,acl")


def test_what_cannot_be_read_is_named(migrator, theirs, s3):
    theirs.create_bucket(Bucket="frozen")
    theirs.put_object(Bucket="frozen", Key="cold", Body=b"c", StorageClass="GLACIER")
    theirs.put_object(Bucket="frozen", Key="warm", Body=b"w")
    run = migrator.migrate("--bucket", "frozen", code=1)
    assert run.counts("frozen") == (1, 0, 1)
    assert run.codes() == ["InvalidObjectState"]
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="frozen")["Contents"]] == ["warm"]


def test_profiles_hold_the_keys(migrator, endpoint, theirs, tmp_path):
    theirs.create_bucket(Bucket="by-profile")
    theirs.put_object(Bucket="by-profile", Key="k", Body=b"k")
    for name in [name for name in migrator.environment if name.startswith("COFFER_SOURCE")]:
        del migrator.environment[name]
    folder = migrator.home / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        f"[theirs]\naws_access_key_id = {KEY[0]}\naws_secret_access_key = {KEY[1]}\n"
    )
    os.chmod(folder / "credentials", 0o600)
    run = migrator.migrate("--source-profile", "theirs", "--bucket", "by-profile")
    assert run.counts("by-profile") == (1, 0, 0)


def test_a_profile_without_a_key_is_told_with_what_gives_one(migrator):
    for name in [name for name in migrator.environment if name.startswith("COFFER_SOURCE")]:
        del migrator.environment[name]
    _, told = migrator.run("migrate", migrator.source, "--source-profile", "nowhere", code=1)
    assert "profile nowhere: there is no such profile" in told
    for way in ("--source-profile", "--source-credentials", "COFFER_SOURCE_ACCESS_KEY_ID"):
        assert way in told
    for way in (" AWS_ACCESS_KEY_ID", " --credentials", "--data"):
        assert way not in told


def test_what_was_typed_wrong_of_the_source_is_told_as_such(migrator, tmp_path):
    missing = tmp_path / "missing"
    _, told = migrator.run("migrate", missing, code=1)
    assert f"{missing}: reading the folder failed: there is none of this name" in told
    assert "https://HOST:PORT" in told
    _, told = migrator.run("migrate", tmp_path, "s3://to", "--bucket", "films", code=2)
    assert "goes to the target as a whole" in told and "--bucket" in told
    tls = migrator.environment["AWS_ENDPOINT_URL"]
    _, told = migrator.run("migrate", tls, "--source-ca", missing, code=1)
    assert "with --source-ca" in told and "AWS_CA_BUNDLE" not in told


def test_an_empty_bucket_that_is_not_at_the_target_is_told(migrator, theirs):
    theirs.create_bucket(Bucket="hollow")
    run = migrator.migrate("--check", "--bucket", "hollow", code=1)
    [failed] = run.failed.values()
    assert (failed["code"], failed["message"]) == ("absent", "the bucket is not at the target")
    assert run.counts("hollow") == (0, 0, 1)
    migrator.migrate("--bucket", "hollow")
    assert migrator.migrate("--check", "--bucket", "hollow").failed == {}


def test_settings_are_compared_by_what_they_say(migrator, theirs, s3):
    bucket = "set"
    theirs.create_bucket(Bucket=bucket)
    rules = [
        {
            "ID": name,
            "Filter": {"Prefix": f"{name}/"},
            "Status": "Enabled",
            "Expiration": {"Days": days},
        }
        for name, days in (("short", 1), ("long", 365))
    ]
    theirs.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": rules}
    )
    cors = {
        "AllowedMethods": ["PUT", "GET"],
        "AllowedOrigins": ["https://b.example", "https://a.example"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 10,
    }
    theirs.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [cors]})
    tags = [{"Key": "z", "Value": "1"}, {"Key": "a", "Value": "2"}]
    theirs.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    sealed = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    theirs.put_bucket_encryption(
        Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [sealed]}
    )
    assert migrator.migrate("--bucket", bucket).failed == {}
    assert migrator.migrate("--check", "--bucket", bucket).failed == {}
    # Another number is found, and so is another order of what has an order.
    rules[0]["Expiration"]["Days"] = 2
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
    cors["AllowedMethods"].reverse()
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [cors]})
    run = migrator.migrate("--check", "--bucket", bucket, code=1)
    assert {what.rsplit(": ")[-1] for what in run.failed} == {"lifecycle", "cors"}
    assert set(run.codes()) == {"differs"}
