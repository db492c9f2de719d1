"""Changes of settings whose sync fails: they may have happened, and are treated so."""

import http.client
import statistics
import threading
import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.administration import ask, make_subject, run
from harness.clients import s3_client
from harness.faults import FailingSync, HangingSync
from harness.server import coffer

LOG = "system.db-wal"
SETTLED_SECONDS = 20
# Three for each thread that the server has for what waits for a disk.
READERS = 400


@pytest.fixture
def failing(tmp_path, monkeypatch):
    return FailingSync(tmp_path, monkeypatch)


def names(s3):
    return sorted(row["Name"] for row in s3.list_buckets()["Buckets"])


def is_put(s3, bucket, key):
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=b"acknowledged")
    except ClientError:
        return False
    return True


def status(ask_for):
    """What is answered to what is refused."""
    with pytest.raises(ClientError) as caught:
        ask_for()
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


def settle(server):
    """Waits until administration works again."""
    until = time.monotonic() + SETTLED_SECONDS
    while coffer("--data", server.data, "receipt", "list").returncode != 0:
        assert time.monotonic() < until, server.log()
        time.sleep(0.2)


def test_a_deletion_whose_sync_fails_once_is_told_as_it_turned_out(own_server, failing):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="doomed")
    failing.fail(LOG, 1)
    # It stands, which is found out before the answer.
    s3.delete_bucket(Bucket="doomed")
    assert names(s3) == []
    server.kill()
    server.start()
    assert names(s3_client(server)) == []


def test_nothing_is_acknowledged_in_a_bucket_whose_deletion_is_in_doubt(own_server, failing):
    server = own_server().start()
    s3 = s3_client(server)
    for bucket in ("doomed", "other"):
        s3.create_bucket(Bucket=bucket)
    failing.fail(LOG)
    with pytest.raises(ClientError) as caught:
        s3.delete_bucket(Bucket="doomed")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert "in doubt" in caught.value.response["Error"]["Message"]
    # In doubt is not no: nothing says that it is not there, nor that it is.
    for ask_for in (
        lambda: s3.put_object(Bucket="doomed", Key="a", Body=b"x"),
        lambda: s3.get_object(Bucket="doomed", Key="a"),
        lambda: s3.head_bucket(Bucket="doomed"),
        s3.list_buckets,
    ):
        assert status(ask_for) == 503
    put = [key for key in ("a", "b") if is_put(s3, "doomed", key)]
    with pytest.raises(ClientError):
        s3.create_bucket(Bucket="third")
    assert is_put(s3, "other", "kept"), "other buckets go on"
    failing.heal()
    settle(server)
    there = names(s3)
    put += [key for key in ("c",) if is_put(s3, "doomed", key)]
    server.kill()
    server.start()
    s3 = s3_client(server)
    assert names(s3) == there and "other" in there
    for key in put:
        assert s3.get_object(Bucket="doomed", Key=key)["Body"].read() == b"acknowledged"
    assert s3.get_object(Bucket="other", Key="kept")["Body"].read() == b"acknowledged"


def test_what_is_set_of_versions_is_not_told_while_that_is_in_doubt(own_server, failing):
    """What failed is in the log, and a start finds it there: it was not undone."""
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="before", Body=b"x")
    failing.fail("catalog.db-wal")
    enabled = {"Bucket": "kept", "VersioningConfiguration": {"Status": "Enabled"}}
    assert status(lambda: s3.put_bucket_versioning(**enabled)) == 500
    assert status(lambda: s3.get_bucket_versioning(Bucket="kept")) == 503
    assert s3.get_object(Bucket="kept", Key="before")["Body"].read() == b"x"
    failing.heal()
    told = s3.get_bucket_versioning(Bucket="kept").get("Status")
    server.kill()
    server.start()
    assert s3_client(server).get_bucket_versioning(Bucket="kept").get("Status") == told


def ask_for_versioning(server, bucket, statuses, is_over):
    """Again and again, over one connection."""
    context, query = raw.tls_context(server), "versioning="
    headers = raw.signed_headers(server, "GET", f"/{bucket}", query=query)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
    while not is_over.is_set():
        connection.request("GET", f"/{bucket}?{query}", headers=headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()


def test_reads_of_what_is_in_doubt_hold_up_no_other_bucket_while_a_disk_hangs(
    own_server, tmp_path, monkeypatch
):
    failing, hanging = FailingSync(tmp_path, monkeypatch), HangingSync(tmp_path, monkeypatch)
    server = own_server(config="[limits]\nrequests = 2048\n").start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="other")
    before = set((server.data / "buckets").iterdir())
    s3.create_bucket(Bucket="doubted")
    [folder] = set((server.data / "buckets").iterdir()) - before
    failing.fail(f"{folder.name}/catalog.db-wal")
    enabled = {"Bucket": "doubted", "VersioningConfiguration": {"Status": "Enabled"}}
    assert status(lambda: s3.put_bucket_versioning(**enabled)) == 500
    hanging.fail(f"{folder.name}/")
    failing.heal()
    statuses, is_over = [], threading.Event()
    asked = (server, "doubted", statuses, is_over)
    readers = [threading.Thread(target=ask_for_versioning, args=asked) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        # Who asks first has the disk find out, and waits for that.
        until = time.monotonic() + SETTLED_SECONDS
        while len(statuses) < READERS:
            assert time.monotonic() < until, len(statuses)
            time.sleep(0.1)
        waits = []
        for number in range(5):
            began = time.monotonic()
            assert is_put(s3, "other", f"b{number}")
            assert s3.get_object(Bucket="other", Key=f"b{number}")["Body"].read()
            assert s3.list_objects_v2(Bucket="other")["KeyCount"] == number + 1
            waits.append(time.monotonic() - began)
        assert statistics.median(waits) < 2, waits
    finally:
        is_over.set()
        hanging.heal()
        for reader in readers:
            reader.join()
    assert set(statuses) <= {200, 503}, set(statuses)
    s3.get_bucket_versioning(Bucket="doubted")


def test_a_lock_that_can_not_be_recorded_is_certainly_not_made(own_server, failing):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="lockable", ObjectLockEnabledForBucket=True)
    free = {"Bucket": "lockable", "Key": "free"}
    s3.put_object(**free, Body=b"x")
    failing.fail(LOG)
    more = {"Bucket": "lockable", "Key": "more"}
    for act in (
        lambda: s3.put_object_legal_hold(**free, LegalHold={"Status": "ON"}),
        lambda: s3.put_object(**more, Body=b"x", ObjectLockLegalHoldStatus="ON"),
    ):
        with pytest.raises(ClientError) as caught:
            act()
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        assert "nothing was done" in caught.value.response["Error"]["Message"]
    failing.heal()
    settle(server)
    assert status(lambda: s3.get_object_legal_hold(**free)) == 404
    assert status(lambda: s3.head_object(**more)) == 404
    s3.put_object_legal_hold(**free, LegalHold={"Status": "ON"})
    assert s3.get_object_legal_hold(**free)["LegalHold"] == {"Status": "ON"}


@pytest.mark.parametrize("act", ["disable", "delete"])
def test_an_access_key_that_may_be_taken_away_does_not_count(own_server, failing, act):
    server = own_server().start()
    keys = make_subject(server, "ann", "default", "--roles", "data-user")
    anns = s3_client(server, credentials=keys)
    anns.create_bucket(Bucket="hers")
    failing.fail(LOG)
    run(server, "subject", act, "ann", expect=1)
    assert status(anns.list_buckets) == 503
    [hers] = [row for row in ask(server, "subject", "list") if row["name"] == "ann"]
    assert hers["disabled"] and hers["in_doubt"], hers
    assert "in doubt" in run(server, "subject", "show", "ann")
    failing.heal()
    settle(server)
    assert not any("in_doubt" in row for row in ask(server, "subject", "list"))
    subjects = {row["name"]: row["disabled"] for row in ask(server, "subject", "list")}
    server.kill()
    server.start()
    assert {row["name"]: row["disabled"] for row in ask(server, "subject", "list")} == subjects
    assert subjects.get("ann", True), "the change stands, for the log had it"


def test_a_bucket_whose_making_is_in_doubt_is_whole_or_not_there(own_server, failing):
    server = own_server().start()
    s3 = s3_client(server)
    failing.fail(LOG)
    with pytest.raises(ClientError):
        s3.create_bucket(Bucket="perhaps")
    assert status(lambda: s3.head_bucket(Bucket="perhaps")) == 503
    assert status(lambda: s3.put_object(Bucket="perhaps", Key="a", Body=b"x")) == 503
    assert status(lambda: s3.head_bucket(Bucket="another")) == 404
    run(server, "bucket", "list", expect=1)
    failing.heal()
    settle(server)
    assert names(s3) == ["perhaps"], "the log had it"
    assert is_put(s3, "perhaps", "a")
    server.kill()
    server.start()
    s3 = s3_client(server)
    assert s3.get_object(Bucket="perhaps", Key="a")["Body"].read() == b"acknowledged"
