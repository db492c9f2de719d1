"""What lifecycle rules end, on servers whose days last seconds."""

import contextlib
import datetime
import threading
import time

import pytest

from harness.auditing import ask, export
from harness.clients import drain, s3_client
from harness.content import PART_MIN_BYTES
from harness.lifecycle import put, rule, set_rules
from harness.raw import metric
from harness.server import Server

DAY_SECONDS = 2
DAYS = {"Expiration": {"Days": 1}}
TAG = {"Key": "k", "Value": "v"}
NONCURRENT = "NoncurrentVersionExpiration"
ABORT = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A server whose days last two seconds."""
    folder = tmp_path_factory.mktemp("quick")
    text = f"lifecycle-day-seconds = {DAY_SECONDS}\nabort-uploads-after-days = 3\n"
    with Server(folder, config=text) as running:
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


@pytest.fixture
def fast(quick):
    return s3_client(quick)


@pytest.fixture
def ruled(fast, request):
    name = "r-" + str(abs(hash(request.node.name)) % 10**9)
    fast.create_bucket(Bucket=name)
    yield name
    with contextlib.suppress(fast.exceptions.ClientError):
        fast.delete_bucket_lifecycle(Bucket=name)
    drain(fast, name)


def keys(s3, bucket):
    return {row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def versions(s3, bucket):
    page = s3.list_object_versions(Bucket=bucket)
    found = [(row["Key"], row["VersionId"], "v") for row in page.get("Versions", [])]
    return found + [(row["Key"], row["VersionId"], "m") for row in page.get("DeleteMarkers", [])]


def until(happened, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError(what)


def enable(s3, bucket, status="Enabled"):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def test_objects_end_after_days(fast, quick, ruled):
    put(fast, ruled, "in/small", "in/large", "out")
    put(fast, ruled, "in/blob", body=bytes(100_000))
    put(fast, ruled, "in/kept", Tagging="k=w")
    put(fast, ruled, "in/tagged", Tagging="k=v&l=m")
    before = len(quick.blob_files())
    set_rules(
        fast,
        ruled,
        rule("size", {"And": {"Prefix": "in/", "ObjectSizeGreaterThan": 50_000}}, **DAYS),
        rule("tag", {"Tag": TAG}, **DAYS),
    )
    left = {"in/small", "in/large", "out", "in/kept"}
    until(lambda: keys(fast, ruled) == left, "what the rules are for ends")
    until(lambda: len(quick.blob_files()) == before - 1, "its blob goes")
    time.sleep(2 * DAY_SECONDS)
    assert keys(fast, ruled) == left


def test_by_date_what_comes_later_ends_too(fast, ruled):
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    put(fast, ruled, "a")
    set_rules(fast, ruled, rule(Expiration={"Date": past}))
    until(lambda: not keys(fast, ruled), "an old object ends")
    put(fast, ruled, "b")
    until(lambda: not keys(fast, ruled), "a new one ends as well")


def test_where_versions_are_kept_a_marker_hides_what_ends(fast, ruled):
    enable(fast, ruled)
    kept = put(fast, ruled, "a")[0]["VersionId"]
    set_rules(fast, ruled, rule(**DAYS))
    until(lambda: not keys(fast, ruled), "the object is hidden")
    time.sleep(2 * DAY_SECONDS)
    found = versions(fast, ruled)
    assert [(key, kind) for key, _, kind in found] == [("a", "v"), ("a", "m")], "one marker, once"
    assert found[0][1] == kept
    assert fast.get_object(Bucket=ruled, Key="a", VersionId=kept)["Body"].read() == b"a"
    set_rules(fast, ruled, rule(**{NONCURRENT: {"NoncurrentDays": 1}}))
    until(lambda: [kind for *_, kind in versions(fast, ruled)] == ["m"], "the version ends")
    set_rules(fast, ruled, rule(Expiration={"ExpiredObjectDeleteMarker": True}))
    until(lambda: not versions(fast, ruled), "the marker ends")


def test_where_versions_are_suspended_a_null_marker_is_made(fast, ruled):
    enable(fast, ruled)
    old = put(fast, ruled, "a")[0]["VersionId"]
    enable(fast, ruled, "Suspended")
    put(fast, ruled, "a")
    set_rules(fast, ruled, rule(**DAYS))
    until(lambda: not keys(fast, ruled), "the null version ends")
    assert set(versions(fast, ruled)) == {("a", old, "v"), ("a", "null", "m")}


def test_the_newest_of_older_versions_stay(fast, ruled):
    enable(fast, ruled)
    made = [put(fast, ruled, "a")[0]["VersionId"] for _ in range(6)]
    noncurrent = {"NoncurrentDays": 1, "NewerNoncurrentVersions": 2}
    set_rules(fast, ruled, rule(**{NONCURRENT: noncurrent}))
    left = {("a", version, "v") for version in made[-3:]}
    until(lambda: set(versions(fast, ruled)) == left, "all but three end")
    time.sleep(2 * DAY_SECONDS)
    assert set(versions(fast, ruled)) == left


def test_all_that_is_due_of_one_name_ends_on_one_day(fast, quick, ruled):
    enable(fast, ruled)
    put(fast, ruled, *["a"] * 12, *["b"] * 2)
    old = {NONCURRENT: {"NoncurrentDays": 1}}
    both = rule("both", {"Prefix": "b"}, **old, **DAYS)
    set_rules(fast, ruled, rule("old", {"Prefix": "a"}, **old), both)

    def done(name):
        rows = [row["details"] for row in runs(quick, ruled) if row["outcome"] == "done"]
        return [row for row in rows if row["rule"] == name]

    def removed():
        return sum(int(row["removed"]) for row in done("old"))

    until(lambda: removed() == 11, "all but the newest end")
    assert len(done("old")) <= 3, "a midnight or two may have passed while they were made"
    until(lambda: done("both"), "the newest is hidden")
    first = done("both")[0]
    assert (first["removed"], first["hidden"]) == ("1", "1"), "and what was behind it is gone"


def test_uploads_end_by_rules_and_without_any(fast, quick, ruled):
    def begin(name):
        upload = fast.create_multipart_upload(Bucket=ruled, Key=name)["UploadId"]
        fast.upload_part(
            Bucket=ruled, Key=name, UploadId=upload, PartNumber=1, Body=bytes(PART_MIN_BYTES)
        )
        return name

    def under_way():
        page = fast.list_multipart_uploads(Bucket=ruled).get("Uploads", [])
        return {row["Key"] for row in page}

    names = {begin("a/1"), begin("a/2"), begin("b")}
    # In force, it is the bucket's word on uploads, and the server's setting is silent.
    set_rules(fast, ruled, rule(where={"Prefix": "a/"}, **ABORT))
    assert under_way() <= names
    until(lambda: under_way() == {"b"}, "those of the rule end")
    time.sleep(5 * DAY_SECONDS)
    assert under_way() == {"b"}
    fast.delete_bucket_lifecycle(Bucket=ruled)
    until(lambda: not under_way(), "the last ends by the setting")
    acts = [row for row in export(quick) if row.get("details", {}).get("bucket") == ruled]
    ended = [row for row in acts if row["act"] == "upload.end"]
    assert [row["outcome"] for row in ended] == ["begun", "done"]
    assert ended[1]["details"]["count"] == "1" and ended[1]["actor"] == "server"


def test_rules_removed_before_they_act_do_nothing(fast, ruled):
    put(fast, ruled, "a")
    for _ in range(5):
        set_rules(fast, ruled, rule(Expiration={"Days": 2}))
        time.sleep(DAY_SECONDS / 4)
        set_rules(fast, ruled, rule(Expiration={"Days": 1000}))
    time.sleep(3 * DAY_SECONDS)
    assert keys(fast, ruled) == {"a"}
    set_rules(fast, ruled, rule(**DAYS) | {"Status": "Disabled"})
    time.sleep(3 * DAY_SECONDS)
    assert keys(fast, ruled) == {"a"}


def test_what_ended_is_counted_and_recorded_without_names(fast, quick, ruled):
    put(fast, ruled, "secret-1", "secret-2", "secret-3")
    set_rules(fast, ruled, rule("the rule", **DAYS))
    until(lambda: not keys(fast, ruled), "all end")
    until(lambda: len(runs(quick, ruled)) >= 2, "it is recorded")
    begun, *done = runs(quick, ruled)
    assert begun["outcome"] == "begun" and begun["actor"] == "server"
    assert all(row["details"]["rule"] == "the rule" for row in [begun, *done])
    removed = sum(int(row["details"].get("removed", 0)) for row in done)
    assert removed == 3, done
    assert "secret-" not in str(done)
    assert metric(quick, "coffer_lifecycle_removed_total") >= 3


def runs(server, bucket):
    rows = [row for row in export(server) if row["act"] == "lifecycle.run"]
    return [row for row in rows if row["details"]["bucket"] == bucket]


def test_what_is_written_meanwhile_stays(fast, ruled):
    """Writers go on while their objects' predecessors end: what was just put is there."""
    stop, lost, rounds = threading.Event(), [], []
    past = {"Expiration": {"Days": 1}}
    set_rules(fast, ruled, rule(where={"Tag": TAG}, **past))

    def write(number):
        while not stop.is_set():
            name = f"{number}"
            fast.put_object(Bucket=ruled, Key=name, Body=b"old", Tagging="k=v")
            time.sleep(0.01)
            fast.put_object(Bucket=ruled, Key=name, Body=b"new")
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                if name not in keys(fast, ruled):
                    lost.append(name)
                time.sleep(0.05)
            rounds.append(name)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(5 * DAY_SECONDS)
    stop.set()
    for writer in writers:
        writer.join()
    assert rounds and not lost


def test_after_kill_9_it_goes_on(tmp_path):
    text = "lifecycle-day-seconds = 3\n"
    with Server(tmp_path, config=text) as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket="bucket")
        enable(s3, "bucket")
        for number in range(120):
            put(s3, "bucket", f"{number % 3}-{number}", body=bytes(20_000 if number % 2 else 10))
        rules = [rule("0", {"Prefix": "0-"}, **DAYS), rule("1", {"Prefix": "1-"}, **DAYS)]
        noncurrent = {"NoncurrentDays": 1}
        rules.append(rule("old", **{NONCURRENT: noncurrent}))
        set_rules(s3, "bucket", *rules)
        kept = {name for name in keys(s3, "bucket") if name.startswith("2-")}
        for _ in range(4):
            time.sleep(2)
            server.kill()
            server.start()
            s3 = s3_client(server)
            assert keys(s3, "bucket") >= kept
        until(lambda: keys(s3, "bucket") == kept, "what is due ends")
        until(
            lambda: {kind for key, _, kind in versions(s3, "bucket") if key[0] != "2"} == {"m"},
            "all",
        )
        for name in kept:
            s3.get_object(Bucket="bucket", Key=name)["Body"].read()


def test_a_locked_version_stays_until_its_lock_has_ended(fast):
    fast.create_bucket(Bucket="r-locked", ObjectLockEnabledForBucket=True)
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=9)
    locked = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": soon}
    kept = fast.put_object(Bucket="r-locked", Key="a", Body=b"kept", **locked)["VersionId"]
    free = fast.put_object(Bucket="r-locked", Key="b", Body=b"free")["VersionId"]
    for key in "ab":
        fast.delete_object(Bucket="r-locked", Key=key)
    ends = {NONCURRENT: {"NoncurrentDays": 1}, "Expiration": {"ExpiredObjectDeleteMarker": True}}
    set_rules(fast, "r-locked", rule("all", **ends))

    def gone(version):
        return version not in {row[1] for row in versions(fast, "r-locked")}

    until(lambda: gone(free), "what is free goes")
    assert not gone(kept), "what is locked stays"
    until(lambda: not versions(fast, "r-locked"), "what was locked goes, and the markers")
    assert datetime.datetime.now(datetime.UTC) > soon
    fast.delete_bucket(Bucket="r-locked")


def test_what_locks_and_quotas_keep_is_recorded_when_it_changes(fast, quick):
    fast.create_bucket(Bucket="r-kept", ObjectLockEnabledForBucket=True)
    for key in ("a", "b"):
        put(fast, "r-kept", key, ObjectLockLegalHoldStatus="ON")
        put(fast, "r-kept", key)
    set_rules(fast, "r-kept", rule("old", **{NONCURRENT: {"NoncurrentDays": 1}}))

    def locked():
        done = [row["details"] for row in runs(quick, "r-kept") if row["outcome"] == "done"]
        assert all(row["outcome"] == "done" or len(done) > 1 for row in runs(quick, "r-kept"))
        return [row["locked"] for row in done]

    until(locked, "what locks keep is recorded")
    time.sleep(3 * DAY_SECONDS)
    # Their days may end one after the other.
    assert locked() in (["2"], ["1", "2"]), "once, and nothing was begun"
    [kept] = [version for key, version, _ in versions(fast, "r-kept") if key == "a"][1:]
    off = {"Status": "OFF"}
    fast.put_object_legal_hold(Bucket="r-kept", Key="a", VersionId=kept, LegalHold=off)
    until(lambda: len(versions(fast, "r-kept")) == 3, "what is free ends")
    until(lambda: runs(quick, "r-kept")[-1]["details"].get("removed") == "1", "it is recorded")
    assert [row["outcome"] for row in runs(quick, "r-kept")][-2:] == ["begun", "done"]


def test_as_many_delete_markers_are_made_as_a_quota_allows(fast, quick):
    fast.create_bucket(Bucket="r-full")
    enable(fast, "r-full")
    put(fast, "r-full", *"abcdefg")
    ask(quick, "quota", "set", "bucket", "r-full", "--objects", "10")
    set_rules(fast, "r-full", rule("all", **DAYS))
    until(lambda: len(keys(fast, "r-full")) == 4, "three are hidden")
    time.sleep(3 * DAY_SECONDS)
    assert len(keys(fast, "r-full")) == 4
    done = [row["details"] for row in runs(quick, "r-full") if row["outcome"] == "done"]
    assert sum(int(row["hidden"]) for row in done) == 3
    assert done[-1]["refused"] == "4", done
    assert len(runs(quick, "r-full")) <= 4, "and not with each run"
    ask(quick, "quota", "remove", "bucket", "r-full")
    until(lambda: not keys(fast, "r-full"), "the rest follows")
