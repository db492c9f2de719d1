"""Locks and tags in policies: who may set them, for how long, and who is told of them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from harness import raw
from harness.clients import refused
from harness.policies import arn, put, statement, user

MODE = "x-amz-object-lock-mode"
HOLD = "x-amz-object-lock-legal-hold"


def soon(**delta):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**delta)


def governed(until):
    return {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}


HELD = {"ObjectLockLegalHoldStatus": "ON"}
_count = iter(range(1, 1000))


@pytest.fixture
def lockable(ann):
    name = f"lockable-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    yield name
    ann.delete_bucket_policy(Bucket=name)
    for page in ann.get_paginator("list_object_versions").paginate(Bucket=name):
        for row in page.get("Versions", []):
            where = {"Bucket": name, "Key": row["Key"], "VersionId": row["VersionId"]}
            ann.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
            ann.delete_object(**where, BypassGovernanceRetention=True)


def locks_told(answer):
    """What a GET or HEAD tells of locks."""
    names = ("ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")
    return {name for name in names if name in answer}


MODE_AND_DATE = {"ObjectLockMode", "ObjectLockRetainUntilDate"}
ALL_OF_IT = MODE_AND_DATE | {"ObjectLockLegalHoldStatus"}


def test_readers_are_told_of_locks_as_the_policy_lets_them(ann, guest, lockable, account):
    until = soon(days=1)
    made = ann.put_object(Bucket=lockable, Key="a", Body=b"a", **governed(until), **HELD)
    version = {"VersionId": made["VersionId"]}
    where = {"Bucket": lockable, "Key": "a"}
    reader = user(account, "guest")
    for more, told in [
        ([], set()),
        (["s3:GetObjectRetention"], MODE_AND_DATE),
        (["s3:GetObjectLegalHold"], {"ObjectLockLegalHoldStatus"}),
        (["s3:GetObjectRetention", "s3:GetObjectLegalHold"], ALL_OF_IT),
    ]:
        reading = ["s3:GetObject", "s3:GetObjectVersion", *more]
        put(ann, lockable, statement("Allow", reader, reading, arn(lockable, "*")))
        for call in (guest.get_object, guest.head_object):
            assert locks_told(call(**where)) == told, more
            assert locks_told(call(**where, **version)) == told, more
        assert locks_told(ann.head_object(**where)) == ALL_OF_IT, "its owner"
        for action, asking in [
            ("s3:GetObjectRetention", guest.get_object_retention),
            ("s3:GetObjectLegalHold", guest.get_object_legal_hold),
        ]:
            if action in more:
                asking(**where)
            else:
                with refused("AccessDenied", 403):
                    asking(**where)


def test_a_deny_hides_locks_and_without_a_policy_readers_see_them(ann, bob, lockable, account):
    ann.put_object(Bucket=lockable, Key="a", Body=b"a", **governed(soon(days=1)), **HELD)
    where = {"Bucket": lockable, "Key": "a"}
    assert locks_told(bob.get_object(**where)) == ALL_OF_IT
    hidden = ["s3:GetObjectRetention"]
    put(
        ann,
        lockable,
        statement("Deny", user(account, "bob"), hidden, arn(lockable, "*")),
    )
    for call in (bob.get_object, bob.head_object):
        assert locks_told(call(**where)) == {"ObjectLockLegalHoldStatus"}


def writes(client, bucket, options):
    """Each way to make an object with these options."""

    def in_parts():
        made = client.create_multipart_upload(Bucket=bucket, Key="new", **options)
        client.abort_multipart_upload(Bucket=bucket, Key="new", UploadId=made["UploadId"])

    source = {"Bucket": bucket, "Key": "source"}
    copying = {"TaggingDirective": "REPLACE"} if "Tagging" in options else {}
    return {
        "PutObject": lambda: client.put_object(Bucket=bucket, Key="new", Body=b"x", **options),
        "CopyObject": lambda: client.copy_object(
            Bucket=bucket, Key="new", CopySource=source, **copying, **options
        ),
        "CreateMultipartUpload": in_parts,
    }


@pytest.mark.parametrize(
    ("action", "options"),
    [
        ("s3:PutObjectRetention", governed(soon(days=1))),
        ("s3:PutObjectLegalHold", HELD),
        ("s3:PutObjectTagging", {"Tagging": "colour=red"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_headers_that_lock_or_tag_need_their_own_permission(
    ann, guest, lockable, account, action, options
):
    ann.put_object(Bucket=lockable, Key="source", Body=b"x")
    writer = user(account, "guest")
    plain = ["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"]
    put(ann, lockable, statement("Allow", writer, plain, arn(lockable, "*")))
    for name, write in writes(guest, lockable, options).items():
        with refused("AccessDenied", 403):
            write()
        writes(guest, lockable, {})[name]()
    put(ann, lockable, statement("Allow", writer, [*plain, action], arn(lockable, "*")))
    for write in writes(guest, lockable, options).values():
        write()


def century_policy(ann, bucket, account, key="s3:object-lock-remaining-retention-days"):
    """The guest may write and lock there, for 30 days at most."""
    allowed = ["s3:PutObject", "s3:GetObject", "s3:PutObjectRetention", "s3:AbortMultipartUpload"]
    locking = ["s3:PutObject", "s3:PutObjectRetention"]
    limit = {"NumericGreaterThan": {key: "30"}}
    put(
        ann,
        bucket,
        statement("Allow", user(account, "guest"), allowed, arn(bucket, "*")),
        statement("Deny", "*", locking, arn(bucket, "*"), Condition=limit),
    )


def test_no_writer_locks_for_longer_than_the_policy_lets_it(ann, guest, lockable, account):
    ann.put_object(Bucket=lockable, Key="source", Body=b"x")
    century_policy(ann, lockable, account)
    for days, is_let in [(29, True), (31, False), (3000, False)]:
        for mode in ("GOVERNANCE",) if is_let else ("GOVERNANCE", "COMPLIANCE"):
            lock = {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": soon(days=days)}
            for write in writes(guest, lockable, lock).values():
                if is_let:
                    write()
                else:
                    with refused("AccessDenied", 403):
                        write()
    guest.put_object(Bucket=lockable, Key="new", Body=b"x")
    where = {"Bucket": lockable, "Key": "new"}
    for days in (31, 3000):
        longer = {"Mode": "COMPLIANCE", "RetainUntilDate": soon(days=days)}
        with refused("AccessDenied", 403):
            guest.put_object_retention(**where, Retention=longer)
    short = {"Mode": "GOVERNANCE", "RetainUntilDate": soon(days=29)}
    guest.put_object_retention(**where, Retention=short)


@pytest.mark.parametrize(
    "written", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dt%H:%M:%S.123456z", "%Y-%m-%dT%H:%M:%S+00:00"]
)
def test_no_way_to_write_the_date_gets_past_the_policy(server, ann, lockable, account, written):
    """What the operation reads as a date and a condition doesn't would lock for a century."""
    put(
        ann,
        lockable,
        statement(
            "Deny",
            "*",
            ["s3:PutObject", "s3:PutObjectRetention"],
            arn(lockable, "*"),
            Condition={
                "NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "30"},
            },
        ),
    )
    for days, status in [(9, 200), (3000, 403)]:
        until = (datetime.now(UTC) + timedelta(days=days)).strftime(written)
        headers = {MODE: "GOVERNANCE", "x-amz-object-lock-retain-until-date": until}
        headers |= raw.md5_of(b"x")
        told = raw.send(server, "PUT", f"/{lockable}/k", headers=headers, body=b"x")
        assert told[0] in (status, 400), (until, told)
        body = (
            f"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>{until}</RetainUntilDate>"
            "</Retention>"
        ).encode()
        ann.put_object(Bucket=lockable, Key="b", Body=b"x")
        path = f"/{lockable}/b"
        told = raw.send(server, "PUT", path, query="retention=", body=body)
        assert told[0] in (status, 400), (until, told)


@pytest.mark.parametrize(
    ("condition", "denied", "allowed"),
    [
        (
            {"StringEquals": {"s3:object-lock-mode": "COMPLIANCE"}},
            {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": soon(days=1)},
            governed(soon(days=1)),
        ),
        (
            {"DateGreaterThan": {"s3:object-lock-retain-until-date": f"{soon(days=9):%Y-%m-%d}"}},
            governed(soon(days=19)),
            governed(soon(days=2)),
        ),
        (
            {"StringEquals": {"s3:object-lock-legal-hold": "ON"}},
            HELD,
            {"ObjectLockLegalHoldStatus": "OFF"},
        ),
    ],
    ids=["mode", "retain-until-date", "legal-hold"],
)
def test_each_lock_key_is_asked_of_headers(ann, lockable, condition, denied, allowed):
    ann.put_object(Bucket=lockable, Key="source", Body=b"x")
    put(
        ann,
        lockable,
        statement("Deny", "*", ["s3:PutObject"], arn(lockable, "*"), Condition=condition),
    )
    for write in writes(ann, lockable, denied).values():
        with refused("AccessDenied", 403):
            write()
    for options in (allowed, {}):
        for write in writes(ann, lockable, options).values():
            write()


def test_lock_keys_are_asked_of_bodies(ann, lockable):
    ann.put_object(Bucket=lockable, Key="a", Body=b"x")
    where = {"Bucket": lockable, "Key": "a"}
    actions = ["s3:PutObjectRetention", "s3:PutObjectLegalHold"]

    def deny(condition):
        put(ann, lockable, statement("Deny", "*", actions, arn(lockable, "*"), Condition=condition))

    deny({"StringEquals": {"s3:object-lock-mode": "COMPLIANCE"}})
    short = soon(hours=1)
    with refused("AccessDenied", 403):
        ann.put_object_retention(
            **where, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": short}
        )
    ann.put_object_retention(**where, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": short})
    deny({"StringEquals": {"s3:object-lock-legal-hold": "ON"}})
    with refused("AccessDenied", 403):
        ann.put_object_legal_hold(**where, LegalHold={"Status": "ON"})
    ann.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    # What takes a retention off says no date: a limit of days does not keep from that.
    deny({"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "30"}})
    ann.put_object_retention(**where, Retention={}, BypassGovernanceRetention=True)
    with refused("NoSuchObjectLockConfiguration", 404) as error:
        ann.get_object_retention(**where)
    assert not re.search("COMPLIANCE", error.message)


def test_a_deletion_of_many_passes_governance_over_only_where_the_policy_lets_it(
    ann, guest, lockable, account
):
    until = soon(days=1)
    made = ann.put_object(Bucket=lockable, Key="a", Body=b"a", **governed(until))
    version = {"Key": "a", "VersionId": made["VersionId"]}
    everywhere = (arn(lockable), arn(lockable, "*"))
    all_of_it = statement("Allow", user(account, "guest"), ["s3:*"], *everywhere)
    bypass = ["s3:BypassGovernanceRetention"]
    denied = statement("Deny", user(account, "guest"), bypass, *everywhere)
    put(ann, lockable, all_of_it, denied)
    many = {"Bucket": lockable, "Delete": {"Objects": [version]}}
    answer = guest.delete_objects(**many, BypassGovernanceRetention=True)
    assert [error["Code"] for error in answer["Errors"]] == ["AccessDenied"]
    ann.head_object(Bucket=lockable, **version)
    put(ann, lockable, all_of_it)
    assert "Errors" not in guest.delete_objects(**many, BypassGovernanceRetention=True)


def test_conditions_of_a_rename_on_the_new_name_take_its_reading(ann, guest, account):
    bucket = f"lockable-{next(_count)}"
    ann.create_bucket(Bucket=bucket)
    etag = ann.put_object(Bucket=bucket, Key="hidden/a", Body=b"hidden")["ETag"]
    ann.put_object(Bucket=bucket, Key="own/a", Body=b"own")
    who = user(account, "guest")
    own = statement("Allow", who, ["s3:*"], arn(bucket), arn(bucket, "own/*"))
    puts = statement("Allow", who, ["s3:PutObject"], arn(bucket, "hidden/*"))
    put(ann, bucket, own, puts)
    rename = {"Bucket": bucket, "Key": "hidden/a", "RenameSource": "own/a"}
    for condition in ({"DestinationIfMatch": etag}, {"DestinationIfNoneMatch": '"other"'}):
        with refused("AccessDenied"):
            guest.rename_object(**rename, **condition)
    with refused("PreconditionFailed"):
        guest.rename_object(**rename, DestinationIfNoneMatch="*")
    ann.delete_bucket_policy(Bucket=bucket)
