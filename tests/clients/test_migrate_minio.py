"""coffer migrate from MinIO, whose users look for a home."""

import datetime
import json
import time

import pytest
from boto3.s3.transfer import TransferConfig

from harness import other_servers
from harness.content import MIB, content
from harness.migration import Migrator
from harness.server import ROOT, free_port

PROGRAM = ROOT / "target/clients/minio"
KEY = ("AKIAMINIO", "a secret of theirs")

pytestmark = pytest.mark.sdks


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is missing: scripts/install-test-sdks minio")
    folder = tmp_path_factory.mktemp("minio")
    port, console = free_port(), free_port()
    command = [PROGRAM, "server", "--address", f"127.0.0.1:{port}"]
    command += ["--console-address", f"127.0.0.1:{console}", folder / "objects"]
    settings = {
        "MINIO_ROOT_USER": KEY[0],
        "MINIO_ROOT_PASSWORD": KEY[1],
        "MINIO_BROWSER": "off",
        "HOME": str(folder),
    }
    with other_servers.running(command, port, folder, settings) as endpoint:
        theirs, end = other_servers.client(endpoint, KEY), time.monotonic() + 30
        while True:
            try:
                theirs.list_buckets()
                break
            except theirs.exceptions.ClientError:
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.2)
        yield endpoint


@pytest.fixture(scope="module")
def theirs(endpoint):
    return other_servers.client(endpoint, KEY)


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
    theirs.put_object(Bucket="plain", Key="tagged", Body=b"t", Tagging="a=1&b%20=c")
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
        assert {name: got[name] for name in said} == said
        assert got["ETag"] == theirs.head_object(Bucket="plain", Key=key)["ETag"]
    assert s3.get_object(Bucket="plain", Key="large")["Body"].read() == large.read_bytes()
    tags = s3.get_object_tagging(Bucket="plain", Key="tagged")["TagSet"]
    assert sorted((tag["Key"], tag["Value"]) for tag in tags) == [("a", "1"), ("b ", "c")]
    assert migrator.migrate("--bucket", "plain").counts("plain") == (0, 7, 0)
    theirs.put_object(Bucket="plain", Key="a", Body=b"changed")
    theirs.delete_object(Bucket="plain", Key="empty")
    run = migrator.migrate("--bucket", "plain", "--delete")
    assert (run.counts("plain")[0], run.buckets["plain"]["deleted"]) == (1, 1)
    assert migrator.migrate("--bucket", "plain", "--check").failed == {}
    names = {row["Key"] for row in s3.list_objects_v2(Bucket="plain")["Contents"]}
    assert "empty" not in names
    assert s3.get_object(Bucket="plain", Key="a")["Body"].read() == b"changed"


def test_versions_come_in_their_order(migrator, theirs, s3):
    theirs.create_bucket(Bucket="versioned")
    enabled = {"Status": "Enabled"}
    theirs.put_object(Bucket="versioned", Key="k", Body=b"before")
    theirs.put_bucket_versioning(Bucket="versioned", VersioningConfiguration=enabled)
    for number in range(3):
        theirs.put_object(
            Bucket="versioned",
            Key="k",
            Body=f"{number}".encode(),
            Metadata={"number": f"{number}"},
            Tagging=f"number={number}",
        )
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
        versions = []
        for row in listed["Versions"]:
            version = {"Key": row["Key"], "VersionId": row["VersionId"]}
            got = client.get_object(Bucket="versioned", **version)
            tags = client.get_object_tagging(Bucket="versioned", **version)["TagSet"]
            versions.append(
                (row["Key"], got["Body"].read(), row["IsLatest"], got["Metadata"], tags)
            )
        markers = [(row["Key"], row["IsLatest"]) for row in listed["DeleteMarkers"]]
        return versions, markers

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
    rule = {
        "ID": "old",
        "Status": "Enabled",
        "Filter": {"Prefix": "log/"},
        "Expiration": {"Days": 30},
    }
    theirs.put_bucket_lifecycle_configuration(
        Bucket="set", LifecycleConfiguration={"Rules": [rule]}
    )
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
    [came] = s3.get_bucket_lifecycle_configuration(Bucket="set")["Rules"]
    assert {name: came[name] for name in rule} == rule
    [there] = json.loads(s3.get_bucket_policy(Bucket="set")["Policy"])["Statement"]
    assert there["Effect"] == "Deny"
    assert "s3:DeleteObject" in there["Action"] and "arn:aws:s3:::set/kept/*" in there["Resource"]
    assert migrator.migrate("--bucket", "set", "--check").failed == {}


def test_a_whole_server_comes(migrator, theirs, s3):
    """All buckets of theirs, without being named; what is there already is looked at."""
    for name in ("all-a", "all-b"):
        theirs.create_bucket(Bucket=name)
        for number in range(25):
            theirs.put_object(Bucket=name, Key=f"{number:02}", Body=f"{name} {number}".encode())
    run = migrator.migrate()
    assert run.failed == {}
    assert run.counts("all-a") == run.counts("all-b") == (25, 0, 0)
    told = {line["outcome"] for line in run.versions}
    assert told <= {"moved", "there"}, told
    names = {bucket["Name"] for bucket in theirs.list_buckets()["Buckets"]}
    assert names <= set(run.buckets)
    got = s3.get_object(Bucket="all-b", Key="07")["Body"].read()
    assert got == b"all-b 7"
    assert migrator.migrate("--check").failed == {}
