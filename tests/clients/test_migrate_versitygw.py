"""coffer migrate from versitygw: a gateway of others that keeps objects as files of a folder."""

import datetime
import json
import os
import socket
import subprocess
import time

import boto3
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

from harness.clients import REGION
from harness.content import MIB, content
from harness.migration import Migrator
from harness.server import ROOT, clean_environment, free_port

PROGRAM = ROOT / "target/clients/versitygw"
KEY = ("AKIAGATEWAY", "a secret of the gateway")

pytestmark = pytest.mark.sdks


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is missing: scripts/install-test-sdks conformance")
    folder = tmp_path_factory.mktemp("gateway")
    for name in ("objects", "versions"):
        (folder / name).mkdir()
    port = free_port()
    command = [PROGRAM, "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"]
    command += ["posix", "--versioning-dir", folder / "versions", folder / "objects"]
    keys = {"ROOT_ACCESS_KEY": KEY[0], "ROOT_SECRET_KEY": KEY[1]}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, cwd=folder, env=clean_environment() | keys
        )
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


@pytest.fixture(scope="module")
def theirs(endpoint):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY[0],
        aws_secret_access_key=KEY[1],
        config=Config(s3={"addressing_style": "path"}),
    )


@pytest.fixture
def migrator(server, endpoint, tmp_path):
    return Migrator(server, tmp_path / "home", endpoint=endpoint, credentials=KEY)


def test_objects_come_with_what_they_have(migrator, theirs, s3, tmp_path):
    theirs.create_bucket(Bucket="plain")
    bodies = {
        "a": b"a",
        "ü/ +%&": b"odd",
        "folder/": b"",
        "empty": b"",
        "deep/er/x": b"x" * 100_000,
    }
    said = {
        "CacheControl": "no-cache",
        "ContentDisposition": "attachment",
        "ContentEncoding": "gzip",
        "ContentLanguage": "de",
        "ContentType": "a/b",
        "Metadata": {"from": "elsewhere", "mtime": "1700000000.5"},
    }
    for key, body in bodies.items():
        theirs.put_object(Bucket="plain", Key=key, Body=body, **said)
    theirs.put_object(Bucket="plain", Key="tagged", Body=b"t", Tagging="a=1&b%20=%C3%BC")
    large = tmp_path / "large"
    large.write_bytes(content(20 * MIB))
    in_parts = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB)
    theirs.upload_file(str(large), "plain", "large", Config=in_parts)
    run = migrator.migrate("--bucket", "plain")
    assert run.failed == {}
    assert run.counts("plain") == (7, 0, 0)
    for key, body in bodies.items():
        got = s3.get_object(Bucket="plain", Key=key)
        assert got["Body"].read() == body
        # Of a folder the gateway keeps metadata alone.
        kept = said if not key.endswith("/") else {"Metadata": said["Metadata"]}
        assert {name: got[name] for name in kept} == kept
        assert got["ETag"] == theirs.head_object(Bucket="plain", Key=key)["ETag"]
    assert s3.get_object(Bucket="plain", Key="large")["Body"].read() == large.read_bytes()
    tags = s3.get_object_tagging(Bucket="plain", Key="tagged")["TagSet"]
    assert sorted((tag["Key"], tag["Value"]) for tag in tags) == [("a", "1"), ("b ", "ü")]
    assert migrator.migrate("--bucket", "plain").counts("plain") == (0, 7, 0)
    theirs.put_object(Bucket="plain", Key="a", Body=b"changed")
    theirs.delete_object(Bucket="plain", Key="empty")
    run = migrator.migrate("--bucket", "plain", "--delete")
    assert (run.counts("plain")[0], run.buckets["plain"]["deleted"]) == (1, 1)
    assert migrator.migrate("--bucket", "plain", "--check").failed == {}
    names = {row["Key"] for row in s3.list_objects_v2(Bucket="plain")["Contents"]}
    assert "empty" not in names


def test_versions_come_in_their_order(migrator, theirs, s3):
    theirs.create_bucket(Bucket="versioned")
    enabled = {"Status": "Enabled"}
    theirs.put_object(Bucket="versioned", Key="k", Body=b"before")
    theirs.put_bucket_versioning(Bucket="versioned", VersioningConfiguration=enabled)
    for number in range(3):
        theirs.put_object(Bucket="versioned", Key="k", Body=f"{number}".encode())
    theirs.delete_object(Bucket="versioned", Key="k")
    theirs.put_object(Bucket="versioned", Key="k", Body=b"last")
    theirs.put_object(Bucket="versioned", Key="gone", Body=b"g")
    theirs.delete_object(Bucket="versioned", Key="gone")
    run = migrator.migrate("--bucket", "versioned")
    assert run.failed == {}
    assert run.counts("versioned") == (8, 0, 0)
    assert s3.get_bucket_versioning(Bucket="versioned")["Status"] == "Enabled"

    def told(client):
        listed = client.list_object_versions(Bucket="versioned")
        bodies = [
            (
                row["Key"],
                client.get_object(Bucket="versioned", Key=row["Key"], VersionId=row["VersionId"])[
                    "Body"
                ].read(),
                row["IsLatest"],
            )
            for row in listed["Versions"]
        ]
        markers = [(row["Key"], row["IsLatest"]) for row in listed["DeleteMarkers"]]
        return bodies, markers

    assert told(s3) == told(theirs)
    assert migrator.migrate("--bucket", "versioned").counts("versioned") == (0, 8, 0)
    assert migrator.migrate("--bucket", "versioned", "--check").failed == {}


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
    theirs.put_object(Bucket="locked", Key="free", Body=b"f")
    held = content(17 * MIB)
    theirs.put_object(Bucket="locked", Key="held", Body=held, ObjectLockLegalHoldStatus="ON")
    kept = {"ObjectLockEnabled": "Enabled"}
    kept["Rule"] = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 7}}
    theirs.put_object_lock_configuration(Bucket="locked", ObjectLockConfiguration=kept)
    run = migrator.migrate("--bucket", "locked")
    assert run.failed == {}
    head = s3.head_object(Bucket="locked", Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", "ON")
    assert head["ObjectLockRetainUntilDate"] == until
    assert "ObjectLockMode" not in s3.head_object(Bucket="locked", Key="free")
    head = s3.head_object(Bucket="locked", Key="held")
    assert (head["ObjectLockLegalHoldStatus"], "ObjectLockMode" in head) == ("ON", False)
    set_there = s3.get_object_lock_configuration(Bucket="locked")["ObjectLockConfiguration"]
    assert set_there == kept
    assert migrator.migrate("--bucket", "locked", "--check").failed == {}


def test_settings_come_or_are_named(migrator, theirs, s3):
    theirs.create_bucket(Bucket="set")
    theirs.put_object(Bucket="set", Key="k", Body=b"k")
    tags = [{"Key": "a", "Value": "1"}]
    theirs.put_bucket_tagging(Bucket="set", Tagging={"TagSet": tags})
    cors = {"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"]}
    theirs.put_bucket_cors(Bucket="set", CORSConfiguration={"CORSRules": [cors]})
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": "arn:aws:s3:::set/kept/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    theirs.put_bucket_policy(Bucket="set", Policy=json.dumps(policy))
    run = migrator.migrate("--bucket", "set")
    assert run.failed == {}
    assert s3.get_bucket_tagging(Bucket="set")["TagSet"] == tags
    [rule] = s3.get_bucket_cors(Bucket="set")["CORSRules"]
    assert {name: rule[name] for name in cors} == cors
    assert json.loads(s3.get_bucket_policy(Bucket="set")["Policy"])["Statement"] == [statement]
    assert migrator.migrate("--bucket", "set", "--check").failed == {}


def test_a_policy_that_lets_all_in_is_named(migrator, theirs, s3):
    """A new bucket of the target blocks those: to let the world in is said there."""
    theirs.create_bucket(Bucket="public")
    theirs.put_object(Bucket="public", Key="k", Body=b"k")
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::public/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    theirs.put_bucket_policy(Bucket="public", Policy=json.dumps(policy))
    run = migrator.migrate("--bucket", "public", code=1)
    assert run.counts("public") == (1, 0, 1)
    [(what, failed)] = run.failed.items()
    assert what.endswith(": policy") and "BlockPublicPolicy" in failed["message"]
    opened = {"BlockPublicPolicy": False, "RestrictPublicBuckets": False}
    s3.put_public_access_block(Bucket="public", PublicAccessBlockConfiguration=opened)
    assert migrator.migrate("--bucket", "public").failed == {}
    there = json.loads(s3.get_bucket_policy(Bucket="public")["Policy"])
    assert there["Statement"] == [statement]


def test_accounts_of_theirs_are_named(migrator, theirs, s3):
    """Its principals are access keys: one of the same name here is another."""
    theirs.create_bucket(Bucket="shared", ObjectOwnership="BucketOwnerPreferred")
    theirs.put_object(Bucket="shared", Key="k", Body=b"k")
    theirs.put_bucket_acl(Bucket="shared", ACL="public-read")
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": [KEY[0]]},
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::shared/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    theirs.put_bucket_policy(Bucket="shared", Policy=json.dumps(policy))
    run = migrator.migrate("--bucket", "shared", code=1)
    told = {what.rsplit(": ")[-1]: event["message"] for what, event in run.failed.items()}
    assert set(told) == {"policy", "acl"}
    assert KEY[0] in told["policy"]
    assert run.counts("shared") == (1, 0, 2)
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket="shared")
    left = ("--bucket", "shared", "--without", "policy,acl")
    assert migrator.migrate(*left).counts("shared") == (0, 1, 0)


def test_files_that_the_gateway_never_wrote(migrator, theirs, endpoint, s3, tmp_path_factory):
    """It serves them as objects, with nothing known of them."""
    theirs.create_bucket(Bucket="found")
    [root] = {path.resolve() for path in tmp_path_factory.getbasetemp().glob("gateway*/objects")}
    (root / "found/by-hand").write_bytes(b"by hand")
    os.utime(root / "found/by-hand", (1_700_000_000, 1_700_000_000))
    run = migrator.migrate("--bucket", "found")
    assert run.failed == {}
    assert s3.get_object(Bucket="found", Key="by-hand")["Body"].read() == b"by hand"
    assert migrator.migrate("--bucket", "found").counts("found") == (0, 1, 0)
