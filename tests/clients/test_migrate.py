"""coffer migrate from a server with versions and locks: another coffer."""

import hashlib
import json
import signal
import time

import pytest

from harness.administration import ask
from harness.content import MIB, content
from harness.mover import wait_for_lines

LARGE_BYTES = 40 * MIB + 12_345


@pytest.fixture
def bucket(old, request):
    """A bucket of the source, of a name that nothing else has."""
    name = request.node.name.replace("_", "-")[-60:].strip("-")
    old.create_bucket(Bucket=name)
    return name


def keep_versions(s3, bucket, status="Enabled"):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def history(s3, bucket):
    """What is under each name, the oldest first: digests, and None for delete markers."""
    found = {}
    # One a page: what a client makes of a page tells versions and markers apart, and no order.
    pages = s3.get_paginator("list_object_versions")
    for page in pages.paginate(Bucket=bucket, PaginationConfig={"PageSize": 1}):
        for row in page.get("Versions", []):
            named = {"Bucket": bucket, "Key": row["Key"], "VersionId": row["VersionId"]}
            body = hashlib.sha256(s3.get_object(**named)["Body"].read()).hexdigest()
            found.setdefault(row["Key"], []).insert(0, body)
        for row in page.get("DeleteMarkers", []):
            found.setdefault(row["Key"], []).insert(0, None)
    return found


def test_objects_come_with_all_that_they_are_and_come_once(migrator, old, s3, bucket):
    bodies = {
        "a//b": b"two slashes",
        "folder/": b"",
        "ü/日本 +%&?#": b"odd",
        "a/../b": b"dots",
        "new\nline": b"line",
        "empty": b"",
        "large": content(LARGE_BYTES),
        "one part": content(16 * MIB),
    }
    for key, body in bodies.items():
        old.put_object(Bucket=bucket, Key=key, Body=body)
    old.put_object(
        Bucket=bucket,
        Key="dressed",
        Body=b"dressed",
        ContentType="video/mp4",
        CacheControl="no-store",
        ContentDisposition="attachment",
        ContentLanguage="de",
        WebsiteRedirectLocation="/elsewhere",
        Metadata={"colour": "blue", "mtime": "1600000000.5"},
        Tagging="year=2026&a%20b=%C3%BC",
    )
    run = migrator.migrate("--bucket", bucket)
    assert run.counts(bucket) == (len(bodies) + 1, 0, 0)
    assert run.buckets[bucket]["proven"] == len(bodies) + 1
    for key, body in bodies.items():
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body, key
    head = s3.head_object(Bucket=bucket, Key="dressed")
    assert (head["ContentType"], head["CacheControl"]) == ("video/mp4", "no-store")
    assert (head["ContentDisposition"], head["ContentLanguage"]) == ("attachment", "de")
    assert head["WebsiteRedirectLocation"] == "/elsewhere"
    assert head["Metadata"] == {"colour": "blue", "mtime": "1600000000.5"}
    tags = s3.get_object_tagging(Bucket=bucket, Key="dressed")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"year": "2026", "a b": "ü"}
    by_key = {line["key"]: line for line in run.versions}
    assert set(by_key) == {*bodies, "dressed"}
    for key, line in by_key.items():
        told = old.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        assert line["outcome"] == "moved"
        if "ChecksumCRC64NVME" in told:
            assert line["checksum"] == "CRC64NVME " + told["ChecksumCRC64NVME"]
            assert line["proof"] == "both-tell"
    again = migrator.migrate("--bucket", bucket)
    assert again.counts(bucket) == (0, len(bodies) + 1, 0)
    assert {line["proof"] for line in again.versions} == {"recorded"}
    checked = migrator.migrate("--bucket", bucket, "--check")
    assert checked.counts(bucket) == (0, len(bodies) + 1, 0)


def test_versions_come_in_their_order(migrator, old, s3, bucket):
    keep_versions(old, bucket)
    for number in range(3):
        old.put_object(Bucket=bucket, Key="k", Body=f"k{number}".encode())
    old.delete_object(Bucket=bucket, Key="k")
    old.put_object(Bucket=bucket, Key="k", Body=b"back")
    old.put_object(Bucket=bucket, Key="gone", Body=b"gone")
    old.delete_object(Bucket=bucket, Key="gone")
    planned = migrator.migrate("--bucket", bucket, "--dry-run")
    assert planned.counts(bucket) == (7, 0, 0)
    assert bucket not in [row["Name"] for row in s3.list_buckets()["Buckets"]]
    run = migrator.migrate("--bucket", bucket)
    assert run.counts(bucket) == (7, 0, 0)
    assert run.buckets[bucket]["markers"] == 2
    assert history(s3, bucket) == history(old, bucket)
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert migrator.migrate("--bucket", bucket).counts(bucket) == (0, 7, 0)
    # What is new comes behind what is there.
    old.put_object(Bucket=bucket, Key="k", Body=b"newest")
    old.put_object(Bucket=bucket, Key="gone", Body=b"not gone")
    assert migrator.migrate("--bucket", bucket).counts(bucket) == (2, 7, 0)
    assert history(s3, bucket) == history(old, bucket)
    # A version that goes at the source is told, and deleted only if that is asked for.
    [first, *_] = [
        row["VersionId"]
        for row in reversed(old.list_object_versions(Bucket=bucket, Prefix="k")["Versions"])
    ]
    old.delete_object(Bucket=bucket, Key="k", VersionId=first)
    run = migrator.migrate("--bucket", bucket)
    assert (run.buckets[bucket]["gone"], run.buckets[bucket]["deleted"]) == (1, 0)
    assert migrator.migrate("--bucket", bucket, "--check", code=1).codes() == ["gone"]
    run = migrator.migrate("--bucket", bucket, "--delete")
    assert (run.buckets[bucket]["gone"], run.buckets[bucket]["deleted"]) == (1, 1)
    assert history(s3, bucket) == history(old, bucket)
    # Without the ledger all of it is recognised.
    [ledger] = migrator.ledgers()
    ledger.unlink()
    run = migrator.migrate("--bucket", bucket)
    assert run.counts(bucket) == (0, 8, 0)
    assert history(s3, bucket) == history(old, bucket)
    # What was there without the ledger's knowing may be another's: it is not deleted.
    old.delete_object(Bucket=bucket, Key="gone", VersionId=newest(old, bucket, "gone"))
    run = migrator.migrate("--bucket", bucket, "--delete")
    assert (run.buckets[bucket]["others"], run.buckets[bucket]["deleted"]) == (1, 0)


def newest(s3, bucket, key):
    return s3.list_object_versions(Bucket=bucket, Prefix=key)["Versions"][0]["VersionId"]


def test_suspended_versions(migrator, old, s3, bucket):
    old.put_object(Bucket=bucket, Key="k", Body=b"before versions")
    keep_versions(old, bucket)
    old.put_object(Bucket=bucket, Key="k", Body=b"a version")
    keep_versions(old, bucket, "Suspended")
    assert migrator.migrate("--bucket", bucket).counts(bucket) == (2, 0, 0)
    assert history(s3, bucket) == history(old, bucket)
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"
    # Now the oldest of them is replaced.
    old.put_object(Bucket=bucket, Key="k", Body=b"the null version anew")
    run = migrator.migrate("--bucket", bucket, "--delete")
    assert run.counts(bucket) == (1, 1, 0)
    assert history(s3, bucket) == history(old, bucket)


def test_settings_come_or_are_named(migrator, old, s3, bucket):
    cors = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"]}]}
    rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}}
    lifecycle = {"Rules": [rule | {"Expiration": {"Days": 9}}]}
    tags = {"TagSet": [{"Key": "team", "Value": "films"}]}
    old.put_bucket_cors(Bucket=bucket, CORSConfiguration=cors)
    old.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=lifecycle)
    old.put_bucket_tagging(Bucket=bucket, Tagging=tags)
    encryption = {
        "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}],
    }
    old.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=encryption)
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteBucket",
        "Resource": f"arn:aws:s3:::{bucket}",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    old.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    migrator.migrate("--bucket", bucket)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == cors["CORSRules"]
    [told] = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert (told["ID"], told["Expiration"]) == ("old", {"Days": 9})
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags["TagSet"]
    told = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    assert told["Rules"][0]["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == policy
    assert migrator.migrate("--bucket", bucket, "--check").failed == {}
    # A public policy comes once nothing blocks it at the source; who owns objects comes along.
    policy["Statement"][0] |= {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    old.delete_public_access_block(Bucket=bucket)
    old.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    preferred = {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]}
    old.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=preferred)
    told = migrator.migrate("--bucket", bucket, "--check", code=1).failed
    told = sorted(what.rsplit(": ")[-1] for what in told)
    assert told == ["ownership", "policy", "public-access-block"]
    run = migrator.migrate("--bucket", bucket, "--without", "public-access-block", code=1)
    [failed] = run.failed.values()
    assert f"delete-public-access-block --bucket {bucket}" in failed["message"]
    assert "this access key" not in failed["message"]
    migrator.migrate("--bucket", bucket)
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == policy
    assert s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"] == preferred
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchPublicAccessBlock"):
        s3.get_public_access_block(Bucket=bucket)
    blocks = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls"), True)
    blocks |= dict.fromkeys(("BlockPublicPolicy", "RestrictPublicBuckets"), False)
    old.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=blocks)
    migrator.migrate("--bucket", bucket)
    told = s3.get_public_access_block(Bucket=bucket)
    assert told["PublicAccessBlockConfiguration"] == blocks
    assert migrator.migrate("--bucket", bucket, "--check").failed == {}
    # The same bucket under another name: its policy would speak of the wrong one.
    other = migrator.source + "/" + bucket
    run = migrator.migrate(f"s3://{bucket[:50]}-2", source=other, code=1)
    assert run.codes() == ["setting"]
    assert migrator.migrate(f"s3://{bucket[:50]}-2", "--without", "policy", source=other)


def test_default_encryption_leaves_the_sources_key_behind(migrator, old, s3, server, bucket):
    """Another coffer tells its level as the key; here the bucket lies in another."""
    encryption = {
        "Rules": [
            {
                "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"},
                "BucketKeyEnabled": True,
            }
        ],
    }
    old.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=encryption)
    ask(server, "level", "create", "attic", "--rank", "0", "--same-label")
    for words in ([], ["--check"]):
        run = migrator.migrate("--bucket", bucket, "--level", "attic", *words)
        assert run.failed == {}
    told = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    [rule] = told["Rules"]
    assert rule["BucketKeyEnabled"]
    by_default = rule["ApplyServerSideEncryptionByDefault"]
    assert by_default == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "attic"}


def test_what_changed_in_between_comes_again(migrator, old, s3, bucket):
    for key in ("same", "changed", "deleted"):
        old.put_object(Bucket=bucket, Key=key, Body=key.encode())
    migrator.migrate("--bucket", bucket)
    old.put_object(Bucket=bucket, Key="changed", Body=b"another")
    old.put_object(Bucket=bucket, Key="new", Body=b"new")
    old.delete_object(Bucket=bucket, Key="deleted")
    s3.put_object(Bucket=bucket, Key="theirs", Body=b"theirs")
    run = migrator.migrate("--bucket", bucket)
    assert run.counts(bucket) == (2, 1, 0)
    assert (run.buckets[bucket]["gone"], run.buckets[bucket]["others"]) == (1, 1)
    assert s3.get_object(Bucket=bucket, Key="changed")["Body"].read() == b"another"
    outcomes = {line["key"]: line["outcome"] for line in run.versions}
    assert outcomes["deleted"] == "gone" and outcomes["theirs"] == "only-at-target"
    migrator.migrate("--bucket", bucket, "--delete")
    names = {row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    assert names == {"same", "changed", "new", "theirs"}


def test_what_others_stored_stays(migrator, old, s3, bucket):
    old.put_object(Bucket=bucket, Key="k", Body=b"of the source")
    old.put_object(Bucket=bucket, Key="equal", Body=b"equal")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"of others")
    s3.put_object(Bucket=bucket, Key="equal", Body=b"equal")
    run = migrator.migrate("--bucket", bucket, code=1)
    assert (run.codes(), run.counts(bucket)) == (["occupied"], (0, 1, 1))
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"of others"
    _, told = migrator.run(
        "migrate", migrator.source, "--bucket", bucket, *migrator.options, code=1
    )
    assert "--overwrite" in told
    migrator.migrate("--bucket", bucket, "--overwrite")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"of the source"
    # After the switch, what is written at the target is safe from another run.
    s3.put_object(Bucket=bucket, Key="k", Body=b"after the switch")
    migrator.migrate("--bucket", bucket, code=1)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"after the switch"


def test_check_finds_what_is_other(migrator, old, s3, bucket):
    for key in ("good", "lost", "tags", "meta", "bytes"):
        old.put_object(Bucket=bucket, Key=key, Body=key.encode(), Metadata={"a": "1"})
    migrator.migrate("--bucket", bucket)
    s3.delete_object(Bucket=bucket, Key="lost")
    s3.put_object(Bucket=bucket, Key="bytes", Body=b"other", Metadata={"a": "1"})
    old.put_object_tagging(
        Bucket=bucket, Key="tags", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
    )
    s3.copy_object(
        Bucket=bucket,
        Key="meta",
        CopySource=f"{bucket}/meta",
        Metadata={"a": "2"},
        MetadataDirective="REPLACE",
    )
    run = migrator.migrate("--bucket", bucket, "--check", code=1)
    found = {what.rsplit("/")[-1]: event["code"] for what, event in run.failed.items()}
    assert found == {"lost": "absent", "bytes": "differs", "tags": "differs", "meta": "differs"}
    assert run.counts(bucket) == (0, 1, 4)


def test_killed_in_the_middle_it_goes_on(migrator, old, s3, bucket):
    keep_versions(old, bucket)
    bodies = {f"small {number:03}": f"{number}".encode() for number in range(60)}
    bodies["a large one"] = content(LARGE_BYTES + 48 * MIB)
    for key, body in bodies.items():
        old.put_object(Bucket=bucket, Key=key, Body=body)
    for round_number in range(4):
        command = ["migrate", migrator.source, "--bucket", bucket, "--jobs", "3"]
        process = migrator.start(*command, *migrator.options)
        lines = 4 + 14 * round_number
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            ledgers = migrator.ledgers()
            if ledgers and ledgers[0].read_bytes().count(b"\n") >= lines:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    [ledger] = migrator.ledgers()
    assert b'"line":"arrived"' in ledger.read_bytes()
    run = migrator.migrate("--bucket", bucket)
    assert run.buckets[bucket]["missing"] == 0
    assert run.buckets[bucket]["there"] > 0
    # Each came once: nothing that had arrived was stored a second time.
    assert history(s3, bucket) == history(old, bucket)
    assert {key: len(found) for key, found in history(s3, bucket).items()} == {
        key: 1 for key in bodies
    }
    # The large one went on where it was: none of its parts went twice.
    lines = [json.loads(line) for line in ledger.read_text().splitlines() if line]
    begun = [line["begun"]["upload_id"] for line in lines if line["line"] == "begun"]
    parts = [line["part"]["number"] for line in lines if line["line"] == "part"]
    assert (len(begun), sorted(parts)) == (1, list(range(1, 7)))
    left = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    assert begun[0] not in [upload["UploadId"] for upload in left]


def test_what_is_replaced_in_the_middle_comes_as_it_is_then(migrator, old, s3, bucket):
    old.put_object(Bucket=bucket, Key="large", Body=content(LARGE_BYTES))
    old.put_object(Bucket=bucket, Key="small", Body=b"small")
    command = ["migrate", migrator.source, "--bucket", bucket, "--jobs", "1"]
    process = migrator.start(*command, *migrator.options)
    wait_for_lines(lambda: next(iter(migrator.ledgers()), None), 3, process)
    process.kill()
    process.communicate()
    assert len(s3.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1
    another = content(LARGE_BYTES, "another")
    old.put_object(Bucket=bucket, Key="large", Body=another)
    assert migrator.migrate("--bucket", bucket).counts(bucket) == (2, 0, 0)
    assert s3.get_object(Bucket=bucket, Key="large")["Body"].read() == another
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_what_cannot_come_is_named_and_the_rest_comes(migrator, old, s3, bucket, origin):
    keep_versions(old, bucket)
    for key in ("bad", "good"):
        old.put_object(Bucket=bucket, Key=key, Body=content(40_000, key))
    known = set(origin.blob_files())
    old.put_object(Bucket=bucket, Key="bad", Body=content(50_000))
    [blob] = set(origin.blob_files()) - known
    old.put_object(Bucket=bucket, Key="bad", Body=b"newer")
    damaged = bytearray(blob.read_bytes())
    damaged[20_000] ^= 1
    blob.write_bytes(damaged)
    run = migrator.migrate("--bucket", bucket, "--retries", "0", code=1)
    # The version behind it waits, so that the order stays what it was.
    assert run.counts(bucket) == (2, 0, 2)
    assert "older_version_missing" in run.codes()
    assert s3.get_object(Bucket=bucket, Key="good")["Body"].read() == content(40_000, "good")
    out, told = migrator.run(
        "migrate", migrator.source, "--bucket", bucket, "--retries", "0", *migrator.options, code=1
    )
    assert b"2 did not come" in out and f"/{bucket}/bad?versionId=" in told
    assert b"versionId" not in out, "it is told once"


def test_mistakes_are_told(migrator, tmp_path):
    for name in ("ID", "SECRET"):
        migrator.environment.pop(f"COFFER_SOURCE_ACCESS_KEY_{name}", None)
    _, told = migrator.run("migrate", migrator.source, *migrator.options, code=2)
    assert "--source-profile" in told and "COFFER_SOURCE_ACCESS_KEY_ID" in told
    _, told = migrator.run("migrate", "https://key:secret@127.0.0.1", code=2)
    assert "not written into addresses" in told
    for source in ("key:topsecret@127.0.0.1", "https:/key:topsecret@127.0.0.1/films"):
        out, told = migrator.run("migrate", source, code=2)
        assert "not written into addresses" in told
        assert "topsecret" not in told and b"topsecret" not in out
    _, told = migrator.run("migrate", tmp_path / "nothing", code=1)
    assert "nothing" in told
