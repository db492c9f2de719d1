"""What the audit log tells of locks, and of deletions that they might have kept from."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.auditing import ask, eventually, export
from harness.clients import refused, s3_client

UNTIL = datetime.now(UTC).replace(microsecond=0) + timedelta(days=9)
TOLD = UNTIL.strftime("%Y-%m-%dT%H:%M:%S.000Z")
GOVERNED = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": UNTIL}


@pytest.fixture
def watched(own_server):
    """A server with a bucket of a level whose objects are watched, and a client."""
    server = own_server().start()
    ask(server, "level", "create", "w", "--rank", 0, "--same-label", "--audit-data")
    ask(server, "bucket", "create", "watched", "--level", "w")
    s3 = s3_client(server)
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket="watched", VersioningConfiguration=enabled)
    lock = {"ObjectLockEnabled": "Enabled"}
    s3.put_object_lock_configuration(Bucket="watched", ObjectLockConfiguration=lock)
    return server, s3


def details(server, act, outcome="begun"):
    """What is told of an act beside bucket and name, in order."""
    rows = export(server, "--act", act, "--outcome", outcome)
    plain = {"bucket", "bucket_id", "object", "object_sealed"}
    told = [row["details"].items() for row in rows]
    return [{name: value for name, value in one if name not in plain} for one in told]


def where(put, key="a"):
    return {"Bucket": "watched", "Key": key, "VersionId": put["VersionId"]}


def test_locks_are_told_with_version_mode_and_end(watched):
    server, s3 = watched
    version = s3.put_object(Bucket="watched", Key="a", Body=b"a", **GOVERNED)
    s3.put_object(Bucket="watched", Key="b", Body=b"b", ObjectLockLegalHoldStatus="ON")
    s3.put_object(Bucket="watched", Key="c", Body=b"c")
    governed = {"retention": "governance", "retain_until": TOLD}
    assert details(server, "object.write") == [governed, {"hold": "on"}, {}]

    later = {"Mode": "COMPLIANCE", "RetainUntilDate": UNTIL}
    s3.put_object_retention(**where(version), Retention=later)
    s3.put_object_legal_hold(Bucket="watched", Key="a", LegalHold={"Status": "ON"})
    s3.put_object_legal_hold(Bucket="watched", Key="a", LegalHold={"Status": "OFF"})
    named = {"version": version["VersionId"]}
    compliance = {"retention": "compliance", "retain_until": TOLD}
    written = [named | compliance, {"hold": "on"}, {"hold": "off"}]
    assert details(server, "lock.write") == written
    # Which version was the newest is told when it is done.
    done = eventually(lambda: details(server, "lock.write", "done")[2:])
    assert done == [named | {"hold": "off"}]


def test_deletions_tell_version_and_what_was_passed_over(watched):
    server, s3 = watched
    governed = s3.put_object(Bucket="watched", Key="a", Body=b"a", **GOVERNED)
    free = s3.put_object(Bucket="watched", Key="b", Body=b"b")
    s3.delete_object(Bucket="watched", Key="b")
    with refused("AccessDenied", 403):
        s3.delete_object(**where(governed))
    s3.delete_object(**where(free, "b"), BypassGovernanceRetention=True)
    s3.delete_objects(
        Bucket="watched",
        Delete={"Objects": [{"Key": "a", "VersionId": governed["VersionId"]}]},
        BypassGovernanceRetention=True,
    )
    [a, b] = ({"version": one["VersionId"]} for one in (governed, free))
    asked = {"bypass_governance": "asked"}
    assert details(server, "object.delete") == [{}, a, b | asked, a | asked]
    # Of the one that nothing kept, nothing was passed over.
    overridden = a | asked | {"overridden": f"governance until {TOLD}"}
    done = eventually(lambda: details(server, "object.delete", "done"))
    assert done == [overridden]
    assert eventually(lambda: details(server, "object.delete", "failed")) == [a]


def test_a_lock_that_is_shortened_tells_what_it_was(watched):
    server, s3 = watched
    version = s3.put_object(Bucket="watched", Key="a", Body=b"a", **GOVERNED)
    s3.put_object_retention(**where(version), Retention={}, BypassGovernanceRetention=True)
    told = {"version": version["VersionId"], "retention": "none", "bypass_governance": "asked"}
    assert details(server, "lock.write") == [told]
    done = eventually(lambda: details(server, "lock.write", "done"))
    assert done == [told | {"overridden": f"governance until {TOLD}"}]
