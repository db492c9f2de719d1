"""coffer migrate beside what others set at the target: settings, tags and legal holds stay."""

import datetime
import json

import pytest

LASTING = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 3650}}


def configured(**rule):
    return {"ObjectLockEnabled": "Enabled", **({"Rule": rule["rule"]} if rule else {})}


def cors(origin):
    return {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": [origin]}]}


def lifecycle(name, days):
    rule = {"ID": name, "Status": "Enabled", "Filter": {"Prefix": "tmp/"}}
    return {"Rules": [rule | {"Expiration": {"Days": days}}]}


def denial(bucket, action, below=""):
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": f"arn:aws:s3:::{bucket}/{below}*",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def is_held(s3, bucket, key="k"):
    return s3.head_object(Bucket=bucket, Key=key).get("ObjectLockLegalHoldStatus") == "ON"


def tags(s3, bucket, key="k"):
    told = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in told}


def tag(s3, bucket, **tags):
    tags = [{"Key": key, "Value": value} for key, value in tags.items()]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": tags})


def hold(s3, bucket, status, key="k"):
    s3.put_object_legal_hold(Bucket=bucket, Key=key, LegalHold={"Status": status})


def retain(s3, bucket, days, mode="GOVERNANCE"):
    """What is kept from then on."""
    until = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    retention = {"Mode": mode, "RetainUntilDate": until + datetime.timedelta(days=days)}
    s3.put_object_retention(Bucket=bucket, Key="k", Retention=retention)
    return retention


def retention(s3, bucket):
    return s3.get_object_retention(Bucket=bucket, Key="k")["Retention"]


def test_a_default_retention_set_here_stays(migrator, old, s3):
    bucket = "retention-set-here"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    migrator.migrate("--bucket", bucket)

    def set_there(server, **rule):
        server.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration=configured(**rule)
        )

    def stands():
        return s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]

    set_there(s3, rule=LASTING)
    for words in (["--dry-run"], [], ["--overwrite"]):
        run = migrator.migrate("--bucket", bucket, *words, code=1)
        assert [what.rsplit(": ")[-1] for what in run.failed] == ["lock"], words
        assert stands() == configured(rule=LASTING), words
    short = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    set_there(old, rule=short)
    run = migrator.migrate("--bucket", bucket, code=1)
    assert run.codes() == ["occupied"]
    assert stands() == configured(rule=LASTING)
    # Asked for, another rule takes its place; that one goes with its source's.
    migrator.migrate("--bucket", bucket, "--overwrite")
    assert stands() == configured(rule=short)
    set_there(old)
    migrator.migrate("--bucket", bucket)
    assert stands() == configured()


def test_settings_changed_here_stay(migrator, old, s3):
    bucket = "settings-changed-here"
    names = {"policy", "lifecycle", "cors", "ownership", "encryption", "tags"}

    def set_all(server, origin, days, action, owner, algorithm):
        server.put_bucket_cors(Bucket=bucket, CORSConfiguration=cors(origin))
        rules = lifecycle(f"after-{days}", days)
        server.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=rules)
        server.put_bucket_policy(Bucket=bucket, Policy=denial(bucket, action))
        controls = {"Rules": [{"ObjectOwnership": owner}]}
        server.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=controls)
        by_default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}
        server.put_bucket_encryption(
            Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [by_default]}
        )
        team = {"TagSet": [{"Key": "team", "Value": origin}]}
        server.put_bucket_tagging(Bucket=bucket, Tagging=team)

    def stand():
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        policy = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
        controls = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
        of_encryption = s3.get_bucket_encryption(Bucket=bucket)
        [rule] = of_encryption["ServerSideEncryptionConfiguration"]["Rules"]
        return (
            s3.get_bucket_cors(Bucket=bucket)["CORSRules"][0]["AllowedOrigins"],
            rules[0]["ID"],
            policy["Statement"][0]["Action"],
            controls["Rules"][0]["ObjectOwnership"],
            rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
            s3.get_bucket_tagging(Bucket=bucket)["TagSet"][0]["Value"],
        )

    def named(run):
        assert set(run.codes()) <= {"occupied"}
        return {what.rsplit(": ")[-1] for what in run.failed}

    old.create_bucket(Bucket=bucket)
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    first = ("https://old", 1, "s3:PutObject", "ObjectWriter", "aws:kms")
    set_all(old, *first)
    migrator.migrate("--bucket", bucket)
    came = stand()
    assert came[:4] == (["https://old"], "after-1", "s3:PutObject", "ObjectWriter")
    # What came goes on as at the source.
    set_all(old, "https://next", 2, "s3:PutObjectAcl", "BucketOwnerPreferred", "AES256")
    migrator.migrate("--bucket", bucket)
    assert stand()[:4] == (["https://next"], "after-2", "s3:PutObjectAcl", "BucketOwnerPreferred")
    set_all(s3, "https://here", 3650, "s3:DeleteObject", "BucketOwnerEnforced", "aws:kms")
    here = stand()
    for words in (["--dry-run"], [], ["--delete"]):
        run = migrator.migrate("--bucket", bucket, *words, code=1)
        assert named(run) == names, words
        assert stand() == here, words
    # What was removed here is not brought again.
    s3.delete_bucket_cors(Bucket=bucket)
    assert named(migrator.migrate("--bucket", bucket, code=1)) == names
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchCORSConfiguration"):
        s3.get_bucket_cors(Bucket=bucket)
    migrator.migrate("--bucket", bucket, "--overwrite")
    assert stand()[:4] == (["https://next"], "after-2", "s3:PutObjectAcl", "BucketOwnerPreferred")
    migrator.migrate("--bucket", bucket, "--check")


def test_blocks_of_the_public_that_were_set_here_stay(migrator, old, s3):
    bucket = "blocks-set-here"
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    blocks = dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )
    for server in (old, s3):
        server.create_bucket(Bucket=bucket)
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=blocks)
    old.delete_public_access_block(Bucket=bucket)
    old.put_bucket_policy(Bucket=bucket, Policy=policy)
    run = migrator.migrate("--bucket", bucket, code=1)
    assert {what.rsplit(": ")[-1] for what in run.failed} == {"policy", "public-access-block"}
    told = s3.get_public_access_block(Bucket=bucket)
    assert told["PublicAccessBlockConfiguration"] == blocks


def test_versioning_that_was_changed_here_stays(migrator, old, s3):
    bucket = "versioning-set-here"
    old.create_bucket(Bucket=bucket)

    def versioning(server, status=None):
        if status:
            configuration = {"Status": status}
            server.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=configuration)
        return server.get_bucket_versioning(Bucket=bucket)["Status"]

    versioning(old, "Enabled")
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    versioning(old, "Suspended")
    for _ in range(2):
        migrator.migrate("--bucket", bucket)
        assert versioning(s3) == "Suspended"
    versioning(s3, "Enabled")
    run = migrator.migrate("--bucket", bucket, code=1)
    assert (run.codes(), versioning(s3)) == (["occupied"], "Enabled")
    migrator.migrate("--bucket", bucket, "--overwrite")
    assert versioning(s3) == "Suspended"


def test_holds_and_tags_that_were_set_here_stay(migrator, old, s3):
    bucket = "held-and-tagged-here"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"1")
    migrator.migrate("--bucket", bucket)
    hold(s3, bucket, "ON")
    tag(s3, bucket, case="7")
    old.put_object(Bucket=bucket, Key="k", Body=b"2")
    run = migrator.migrate("--bucket", bucket, "--tags-and-locks", code=1)
    # What is set of one version is in no other's way.
    assert run.counts(bucket) == (1, 0, 1)
    first = s3.list_object_versions(Bucket=bucket)["Versions"][-1]["VersionId"]
    of_first = {"Bucket": bucket, "Key": "k", "VersionId": first}
    for words in (["--tags-and-locks"], ["--tags-and-locks", "--overwrite"]):
        [code] = migrator.migrate("--bucket", bucket, *words, code=1).codes()
        assert code == "held_at_target"
        assert s3.get_object_legal_hold(**of_first)["LegalHold"]["Status"] == "ON"
    # Tags are replaced where that is said, holds are not.
    assert s3.get_object_tagging(**of_first)["TagSet"] == []


def test_a_hold_that_came_goes_when_the_source_says_so(migrator, old, s3):
    bucket = "holds-come-and-go"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    for key, status in (("k", "ON"), ("later", "OFF")):
        old.put_object(Bucket=bucket, Key=key, Body=b"k", ObjectLockLegalHoldStatus=status)
    only = ("--bucket", bucket, "--tags-and-locks", "--without", "policy")
    migrator.migrate(*only)
    hold(old, bucket, "ON", "later")
    migrator.migrate(*only)
    assert is_held(s3, bucket) and is_held(s3, bucket, "later")
    # A key that may not see holds is told of none.
    old.put_bucket_policy(Bucket=bucket, Policy=denial(bucket, "s3:GetObjectLegalHold"))
    run = migrator.migrate(*only, code=1)
    assert run.codes() == ["held_at_target"] * 2
    assert is_held(s3, bucket) and is_held(s3, bucket, "later")
    old.delete_bucket_policy(Bucket=bucket)
    for key in ("k", "later"):
        hold(old, bucket, "OFF", key)
    migrator.migrate(*only)
    assert not is_held(s3, bucket) and not is_held(s3, bucket, "later")
    # From now on, holds are this server's.
    hold(s3, bucket, "ON")
    assert migrator.migrate(*only, code=1).codes() == ["held_at_target"]
    assert is_held(s3, bucket)


def test_a_hold_that_was_lifted_at_both_sides_is_this_servers_when_it_is_placed_again(
    migrator, old, s3
):
    bucket = "holds-lifted-at-both"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"k", ObjectLockLegalHoldStatus="ON")
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    assert is_held(s3, bucket)
    for server in (old, s3):
        hold(server, bucket, "OFF")
    assert migrator.migrate(*only).failed == {}
    hold(s3, bucket, "ON")
    for _ in range(2):
        assert migrator.migrate(*only, code=1).codes() == ["held_at_target"]
        assert is_held(s3, bucket)


def test_a_retention_set_here_stays(migrator, old, s3):
    bucket = "retained-here"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    here = retain(s3, bucket, 5)
    assert migrator.migrate(*only).failed == {}
    # Neither a longer one nor one that no one can take off again comes in its place.
    retain(old, bucket, 3650, "COMPLIANCE")
    hold(old, bucket, "ON")
    for words in ([], ["--overwrite"]):
        assert migrator.migrate(*only, *words, code=1).codes() == ["retained_at_target"]
        assert retention(s3, bucket) == here
        # It is in no hold's way.
        assert is_held(s3, bucket)


def test_a_retention_that_came_goes_on_with_the_source_until_it_is_changed_here(migrator, old, s3):
    bucket = "retentions-come-and-go-on"
    old.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    old.put_object(Bucket=bucket, Key="k", Body=b"k")
    came = retain(old, bucket, 2)
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    assert retention(s3, bucket) == came
    for days in (4, 6):
        came = retain(old, bucket, days)
        assert migrator.migrate(*only).failed == {}
        assert retention(s3, bucket) == came
    here = retain(s3, bucket, 30)
    assert migrator.migrate(*only, code=1).codes() == ["retained_at_target"]
    assert retention(s3, bucket) == here


def test_tags_that_came_go_with_the_source(migrator, old, s3):
    bucket = "tags-come-and-go"
    old.create_bucket(Bucket=bucket)
    old.put_object(Bucket=bucket, Key="k", Body=b"k", Tagging="a=1")
    only = ("--bucket", bucket, "--tags-and-locks")
    migrator.migrate(*only)
    for tagged in ({"a": "2"}, {"b": "3"}):
        tag(old, bucket, **tagged)
        migrator.migrate(*only)
        assert tags(s3, bucket) == tagged
    tag(s3, bucket, here="1")
    for words in ([], ["--delete"]):
        assert migrator.migrate(*only, *words, code=1).codes() == ["occupied"]
        assert tags(s3, bucket) == {"here": "1"}
    migrator.migrate(*only, "--overwrite")
    assert tags(s3, bucket) == {"b": "3"}
