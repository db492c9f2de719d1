"""Where object locks and an erase meet: the rule that docs/OPERATING.md states."""

import json
import shutil
import time
from datetime import UTC, datetime, timedelta

import pytest

from harness.age import IDENTITY, RECIPIENT
from harness.clients import refused, s3_client
from harness.custodian import WAITS, ask, ask_as, run, subject
from harness.server import coffer


def soon(**delta):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**delta)


@pytest.fixture
def server(own_server):
    return own_server().start()


@pytest.fixture
def s3(server):
    return s3_client(server)


def make(server, s3, level, *options, default=None):
    """A level with a bucket of its own whose objects can be locked."""
    ask(server, "level", "create", level, "--rank", "0", "--same-label", *options)
    bucket = f"{level}-bucket"
    ask(server, "bucket", "create", bucket, "--level", level)
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    lock = {"ObjectLockEnabled": "Enabled"}
    if default:
        lock["Rule"] = {"DefaultRetention": default}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=lock)
    return bucket


def put(s3, bucket, key="a", mode=None, until=None, **options):
    if mode:
        options |= {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": until}
    version = s3.put_object(Bucket=bucket, Key=key, Body=b"kept", **options)["VersionId"]
    return {"Bucket": bucket, "Key": key, "VersionId": version}


def erase(server, what, name, expect=0):
    done = coffer("--data", server.data, what, "erase", name, "--yes", "--json")
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == expect, said
    return said


def test_compliance_keeps_from_an_erase_until_it_ends(server, s3):
    bucket = make(server, s3, "kept")
    until = soon(days=3)
    where = put(s3, bucket, mode="COMPLIANCE", until=until)
    put(s3, bucket, key="free")
    for what, name in (("level", "kept"), ("bucket", bucket)):
        said = erase(server, what, name, expect=1)
        assert f"bucket {bucket} are locked: 1 at most" in said, "what is there was counted"
        assert until.strftime("%Y-%m-%dT%H:%M:%S") in said and "at the latest" in said
    assert s3.get_object(**where)["Body"].read() == b"kept", "nothing was cut off"
    server.restart()
    erase(server, "level", "kept", expect=1)
    lines = run(server, "audit", "show", "--last", 40, "--json").splitlines()
    tried = [json.loads(line) for line in lines]
    tried = [record for record in tried if record["act"] == "level.erase"]
    assert tried and all(record["outcome"] == "failed" for record in tried)


def test_what_has_ended_keeps_from_nothing(server, s3):
    bucket = make(server, s3, "short")
    put(s3, bucket, mode="COMPLIANCE", until=soon(seconds=2))
    erase(server, "level", "short", expect=1)
    time.sleep(2.5)
    erase(server, "level", "short")
    with refused("NoSuchBucket", 404):
        s3.list_objects_v2(Bucket=bucket)


def test_a_hold_keeps_from_an_erase_until_it_is_taken_off(server, s3):
    bucket = make(server, s3, "held")
    where = put(s3, bucket, ObjectLockLegalHoldStatus="ON")
    said = erase(server, "bucket", bucket, expect=1)
    assert "legal hold, which lasts until it is taken off" in said
    s3.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    erase(server, "bucket", bucket)


def test_governance_gives_way_to_two_people(server, s3):
    bucket = make(server, s3, "governed", default={"Mode": "GOVERNANCE", "Days": 9})
    put(s3, bucket)
    second = subject(server, "second", roles=("key-custodian",))
    said = coffer("--data", server.data, "level", "erase", "governed", "--yes", "--json")
    assert said.returncode == WAITS, said.stderr.decode()
    [request] = ask(server, "request", "list")
    assert request["approvals"] == 2, "though the level asks for one"
    done = ask_as(server, second, "request", "approve", request["id"], "--yes", "--json")
    receipt = done.get("receipt", done)
    [sentence] = [text for text in receipt["verification"] if "locks" in text]
    assert "locks were overridden: of 1 objects at most, by governance, until" in sentence
    assert len(receipt["performed_by"]) == 2


def test_an_erase_wins_where_the_level_says_so_from_the_first_day(server, s3):
    bucket = make(server, s3, "breaking", "--erase-breaks-locks")
    levels = {level["name"]: level for level in ask(server, "level", "list")}
    assert levels["breaking"]["erase_breaks_locks"] and not levels["default"]["erase_breaks_locks"]
    put(s3, bucket, mode="COMPLIANCE", until=soon(days=3), ObjectLockLegalHoldStatus="ON")
    told = ask(server, "level", "erase", "breaking", "--yes")
    receipt = told.get("receipt", told)
    [sentence] = [text for text in receipt["verification"] if "locks" in text]
    assert "an erase wins over object locks; locks were overridden" in sentence
    assert "legal holds" in sentence and "at the latest" in sentence


def test_a_receipt_says_that_no_lock_stood(server, s3):
    make(server, s3, "free")
    told = ask(server, "level", "erase", "free", "--yes")
    receipt = told.get("receipt", told)
    assert any(
        "keep from an erase in this level; no lock stood" in text
        for text in receipt["verification"]
    )


def test_the_bound_stands_over_a_kill(server, s3):
    bucket = make(server, s3, "bound", default={"Mode": "COMPLIANCE", "Days": 2})
    for number in range(3):
        put(s3, bucket, key=str(number))
    server.kill()
    server.start()
    said = erase(server, "level", "bound", expect=1)
    assert "locked: 3 at most" in said
    s3 = s3_client(server)
    put(s3, bucket, key="more")
    assert "locked: 4 at most" in erase(server, "level", "bound", expect=1)


def test_an_approval_is_judged_by_what_is_locked_then(server, s3):
    ask(server, "level", "create", "careful", "--rank", "0", "--same-label", "--approvals", "2")
    ask(server, "bucket", "create", "careful-bucket", "--level", "careful")
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket="careful-bucket", VersioningConfiguration=enabled)
    lock = {"ObjectLockEnabled": "Enabled"}
    s3.put_object_lock_configuration(Bucket="careful-bucket", ObjectLockConfiguration=lock)
    second = subject(server, "second", roles=("key-custodian",))
    assert erase(server, "level", "careful", expect=WAITS)
    where = put(s3, "careful-bucket", ObjectLockLegalHoldStatus="ON")
    s3.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    [request] = ask(server, "request", "list")
    ask_as(server, second, "request", "approve", request["id"], "--yes", "--json")
    assert "careful" not in [level["name"] for level in ask(server, "level", "list")]


def test_an_older_database_that_is_gone_on_from_forgets_no_lock(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    bucket = make(server, s3, "kept")
    server.stop()
    older = {path.name: path.read_bytes() for path in server.data.glob("system.db*")}
    server.start()
    s3 = s3_client(server)
    put(s3, bucket, mode="COMPLIANCE", until=soon(days=30))
    server.stop()
    for path in server.data.glob("system.db*"):
        path.unlink()
    for name, data in older.items():
        (server.data / name).write_bytes(data)
    server.arguments = [*server.arguments, "--accept-rollback"]
    server.start()
    assert "locked: 1 at most" in erase(server, "bucket", bucket, expect=1)
    assert "locked: 1 at most" in erase(server, "level", "kept", expect=1)


def test_who_may_only_write_can_not_have_a_lock_or_a_rule_destroy(server, s3):
    bucket = make(server, s3, "guarded")
    where = put(s3, bucket, ObjectLockLegalHoldStatus="ON")
    writer = ask(
        server, "subject", "create", "w", "--clearance", "default..default",
        "--grant", f"{bucket}=write",
    )  # fmt: skip
    credentials = (writer["access_key_id"], writer["secret_access_key"])
    writing = s3_client(server, credentials=credentials)
    writing.put_object(Bucket=bucket, Key="own", Body=b"own")
    with refused("AccessDenied", 403):
        writing.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    kept = {"Mode": "COMPLIANCE", "RetainUntilDate": soon(days=9)}
    with refused("AccessDenied", 403):
        writing.put_object_retention(**where, Retention=kept)
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    with refused("AccessDenied", 403):
        writing.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [rule]}
        )
    with refused("AccessDenied", 403):
        writing.delete_bucket_lifecycle(Bucket=bucket)


def test_an_approval_that_locks_refuse_leaves_the_request_as_it_was(server, s3):
    bucket = make(server, s3, "careful", "--approvals", "2")
    first, second = (subject(server, name, roles=("key-custodian",)) for name in ("ann", "bob"))
    erase(server, "level", "careful", expect=WAITS)
    [asked] = ask(server, "request", "list")
    where = put(s3, bucket, ObjectLockLegalHoldStatus="ON")
    approve = ("request", "approve", asked["id"], "--yes", "--json")
    for who in (first, second):
        said = ask_as(server, who, *approve, expect=1)
        assert "legal hold" in said
        assert ask(server, "request", "list") == [asked], "nobody has approved it"
    server.restart()
    assert ask(server, "request", "list") == [asked]
    s3_client(server).put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    receipt = ask_as(server, first, *approve)
    assert receipt["erased"]["level"]["name"] == "careful"
    assert ask(server, "request", "list") == []


def test_a_refusal_counts_each_kind_of_lock(server, s3):
    bucket = make(server, s3, "mixed")
    until, later = soon(days=3), soon(days=9)
    put(s3, bucket, key="a", mode="COMPLIANCE", until=until)
    put(s3, bucket, key="b", mode="COMPLIANCE", until=until, ObjectLockLegalHoldStatus="ON")
    put(s3, bucket, key="c", mode="GOVERNANCE", until=later)
    put(s3, bucket, key="d", mode="COMPLIANCE", until=soon(seconds=1))
    put(s3, bucket, key="e")
    time.sleep(1.5)
    moment = "%Y-%m-%dT%H:%M:%S.000Z"
    told = (
        f"objects in the bucket {bucket} are locked: 2 at most, 2 for compliance until "
        f"{until.strftime(moment)} at the latest, 1 by a legal hold, which lasts until it is taken "
        "off; nothing is erased before that ends, for the level was not made with "
        f"--erase-breaks-locks (1 for governance until {later.strftime(moment)} at the latest "
        "would give way to two people)"
    )
    assert told in erase(server, "bucket", bucket, expect=1)
    assert told in erase(server, "level", "mixed", expect=1)


def test_that_it_waits_says_why_it_takes_two(server, s3):
    bucket = make(server, s3, "governed", default={"Mode": "GOVERNANCE", "Days": 9})
    put(s3, bucket)
    said = erase(server, "bucket", bucket, expect=WAITS)
    why = "locked for governance, so an erase takes 2 people, though the level asks for 1"
    assert why in said
    [request] = ask(server, "request", "list")
    assert why in request["because"] and request["approvals"] == 2
    careful = make(server, s3, "careful", "--approvals", "2")
    erase(server, "bucket", careful, expect=WAITS)
    [own] = [one for one in ask(server, "request", "list") if one["bucket"] == careful]
    assert "because" not in own


def overridden(server, what, name):
    told = ask(server, what, "erase", name, "--yes")
    receipt = told.get("receipt", told)
    [sentence] = [text for text in receipt["verification"] if "locks" in text]
    return sentence


def test_a_receipt_tells_the_last_end_of_all_that_was_overridden(server, s3):
    bucket = make(server, s3, "breaking", "--erase-breaks-locks")
    later = soon(days=300)
    put(s3, bucket, key="c", mode="COMPLIANCE", until=soon(days=3))
    put(s3, bucket, key="g", mode="GOVERNANCE", until=later)

    def is_told(sentence):
        until = datetime.fromisoformat(sentence.split(", until ")[1].split(" at the latest")[0])
        return later <= until <= later + timedelta(days=2)

    sentence = overridden(server, "bucket", bucket)
    assert is_told(sentence) and "hold" not in sentence, sentence
    for name in ("one", "two"):
        ask(server, "bucket", "create", name, "--level", "breaking")
        enabled = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=enabled)
        lock = {"ObjectLockEnabled": "Enabled"}
        s3.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration=lock)
    put(s3, "one", mode="COMPLIANCE", until=later)
    put(s3, "two", ObjectLockLegalHoldStatus="ON")
    sentence = overridden(server, "level", "breaking")
    assert is_told(sentence) and "a legal hold has no end" in sentence, sentence


@pytest.mark.parametrize("options", [(), ("--erase-breaks-locks",)])
def test_a_bucket_that_waits_for_its_name_keeps_its_level(own_server, tmp_path, options):
    here, there = own_server("here").start(), own_server("there").start()
    here_s3 = s3_client(here)
    bucket = make(here, here_s3, "moving", *options)
    put(here_s3, bucket, mode="COMPLIANCE", until=soon(days=30))
    exported = tmp_path / "moving.age"
    run(here, "key", "export", "moving", "--to", RECIPIENT, "--out", exported)
    folder = ask(here, "bucket", "show", bucket)["id"]
    here.stop()
    s3_client(there).create_bucket(Bucket=bucket)
    shutil.copytree(here.data / "buckets" / folder, there.data / "buckets" / folder)
    identity = tmp_path / "identity"
    identity.write_text(f"{IDENTITY}\n")
    imported = ask(there, "key", "import", exported, "--identity", identity, "--same-label")
    assert imported["buckets"][0]["state"] == "name-taken"
    if options:
        sentence = overridden(there, "level", "moving")
        assert "buckets that were not in use here, which were 1, was not looked at" in sentence
        return
    said = erase(there, "level", "moving", expect=1)
    assert folder in said and "objects in it are locked" in said
    there.stop()
    away = tmp_path / "away"
    shutil.move(there.data / "buckets" / folder, away)
    there.start()
    assert "its catalog is not here" in erase(there, "level", "moving", expect=1)
    # What else is in the level is erased for itself.
    ask(there, "bucket", "create", "beside", "--level", "moving")
    s3_client(there).put_object(Bucket="beside", Key="a", Body=b"a")
    assert "no lock stood" in overridden(there, "bucket", "beside")
    assert "its catalog is not here" in erase(there, "level", "moving", expect=1)
    ask(there, "quota", "set", "level", "moving", "--buckets", "0")
    late = coffer("--data", there.data, "bucket", "create", "late", "--level", "moving")
    assert late.returncode == 1, late
    ask(there, "quota", "remove", "level", "moving")
    shutil.move(away, there.data / "buckets" / folder)
    ask(there, "key", "adopt", folder, "--as", "found")
    assert "bucket found are locked" in erase(there, "level", "moving", expect=1)
