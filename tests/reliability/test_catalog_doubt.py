"""Commits to a bucket's catalog whose sync fails: what can't be undone, and what is asked of locks
and tags, goes by nothing that may be over."""

import time

import pytest
from botocore.exceptions import ClientError

from harness.administration import ask, run
from harness.clients import s3_client
from harness.content import KIB, content
from harness.faults import FailingSync
from harness.server import coffer

BUCKET = "doubted"
LOG = "catalog.db-wal"
ON = {"Status": "ON"}
RED = {"TagSet": [{"Key": "color", "Value": "red"}]}
#: Within which a quota counts what is there again.
COUNTED_SECONDS = 5


@pytest.fixture
def failing(tmp_path, monkeypatch):
    return FailingSync(tmp_path, monkeypatch)


@pytest.fixture
def server(own_server, failing):
    return own_server().start()


@pytest.fixture
def s3(server):
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    return s3


def status(ask_for):
    """What is answered to what is refused."""
    with pytest.raises(ClientError) as caught:
        ask_for()
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_locks_tags_and_lists_are_not_told_while_they_are_in_doubt(server, s3, failing):
    kept = {"Bucket": BUCKET, "Key": "kept"}
    s3.put_object(**kept, Body=b"x")
    failing.fail(LOG)
    assert status(lambda: s3.put_object_legal_hold(**kept, LegalHold=ON)) == 500
    readings = [
        lambda: s3.get_object_legal_hold(**kept),
        lambda: s3.get_object_retention(**kept),
        lambda: s3.get_object_tagging(**kept),
        lambda: s3.get_object_acl(**kept),
        lambda: s3.get_bucket_tagging(Bucket=BUCKET),
    ]
    assert [status(reading) for reading in readings] == [503] * len(readings)
    assert s3.get_object(**kept)["Body"].read() == b"x"
    failing.heal()
    assert s3.get_object_legal_hold(**kept)["LegalHold"] == ON, "the log had it"
    assert s3.get_object_tagging(**kept)["TagSet"] == []
    s3.put_object_tagging(**kept, Tagging=RED)
    server.kill()
    server.start()
    s3 = s3_client(server)
    assert s3.get_object_legal_hold(**kept)["LegalHold"] == ON
    assert s3.get_object_tagging(**kept)["TagSet"] == RED["TagSet"]


def test_what_headers_tell_of_a_lock_is_right_soon_after_the_disk_is_well(s3, failing):
    kept = {"Bucket": BUCKET, "Key": "kept"}
    s3.put_object(**kept, Body=b"x")
    failing.fail(LOG)
    assert status(lambda: s3.put_object_legal_hold(**kept, LegalHold=ON)) == 500
    failing.heal()
    until = time.monotonic() + COUNTED_SECONDS
    while s3.head_object(**kept).get("ObjectLockLegalHoldStatus") != "ON":
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_lock_in_doubt_keeps_from_an_erase(server, s3, failing):
    """The locks of a bucket are counted before it is erased."""
    kept = {"Bucket": BUCKET, "Key": "kept"}
    s3.put_object(**kept, Body=b"x")
    failing.fail(LOG)
    assert status(lambda: s3.put_object_legal_hold(**kept, LegalHold=ON)) == 500
    assert "hold" in run(server, "bucket", "erase", BUCKET, "--yes", expect=1)
    failing.heal()
    assert s3.get_object_legal_hold(**kept)["LegalHold"] == ON
    assert "hold" in run(server, "bucket", "erase", BUCKET, "--yes", expect=1)
    s3.put_object_legal_hold(**kept, LegalHold={"Status": "OFF"})
    run(server, "bucket", "erase", BUCKET, "--yes")


def test_what_is_in_doubt_can_be_read_after_a_rotation(server, failing):
    """None of its keys was found there, for it did not show."""
    s3 = s3_client(server)
    s3.create_bucket(Bucket="rotated")
    # What is this short has no key of its own.
    s3.put_object(Bucket="rotated", Key="before", Body=b"x")
    body = content(100 * KIB, "rotated")
    failing.fail(LOG)
    assert status(lambda: s3.put_object(Bucket="rotated", Key="perhaps", Body=body)) == 500
    # It follows the rotation to its end.
    coffer("--data", server.data, "bucket", "rotate", "rotated")
    failing.heal()
    for is_started_again in (False, True):
        if is_started_again:
            server.kill()
            server.start()
            s3 = s3_client(server)
        s3.put_object(Bucket="rotated", Key="other", Body=b"x")
        assert s3.get_object(Bucket="rotated", Key="perhaps")["Body"].read() == body


def test_a_deletion_in_doubt_counts_no_longer_once_that_is_over(server, failing):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="counted")
    run(server, "quota", "set", "bucket", "counted", "--objects", "1")
    s3.put_object(Bucket="counted", Key="a", Body=b"x")
    failing.fail(LOG, 1)
    assert status(lambda: s3.delete_object(Bucket="counted", Key="a")) == 500
    assert status(lambda: s3.head_object(Bucket="counted", Key="a")) == 404, "it stands"
    until = time.monotonic() + COUNTED_SECONDS
    while not is_put(s3, "b"):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert not is_put(s3, "c")


def is_put(s3, key, *, bucket="counted"):
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "QuotaExceeded", error.response
        return False
    return True


def test_what_is_in_doubt_counts_whoever_looks_meanwhile(server, failing):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="counted")
    s3.put_object(Bucket="counted", Key="before", Body=b"x")
    run(server, "quota", "set", "bucket", "counted", "--objects", "2")
    failing.fail(LOG)
    assert status(lambda: s3.put_object(Bucket="counted", Key="a", Body=b"x")) == 500
    # Looks how much is there, where it does not show.
    run(server, "bucket", "list")
    failing.heal()
    assert not is_put(s3, "b")
    assert s3.get_object(Bucket="counted", Key="a")["Body"].read() == b"x"
    s3.delete_object(Bucket="counted", Key="a")
    assert is_put(s3, "b")


@pytest.mark.parametrize("how", ["s3", "command"])
def test_a_bucket_whose_object_is_in_doubt_is_not_deleted(server, s3, failing, how):
    """Its locks would go with it: a lock that may stand holds as one that does."""
    failing.fail(LOG)
    hold = {"ObjectLockLegalHoldStatus": "ON"}
    put = {"Bucket": BUCKET, "Key": "k", "Body": b"x", "ChecksumAlgorithm": "CRC32"}
    assert status(lambda: s3.put_object(**put, **hold)) == 500
    if how == "s3":
        assert status(lambda: s3.delete_bucket(Bucket=BUCKET)) == 503
    else:
        assert "doubt" in run(server, "bucket", "delete", BUCKET, expect=1)
    failing.heal()
    assert status(lambda: s3.delete_bucket(Bucket=BUCKET)) == 409
    assert s3.get_object(Bucket=BUCKET, Key="k")["Body"].read() == b"x", "the log had it"


def test_a_bucket_whose_upload_is_in_doubt_is_not_withdrawn(server, failing):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="begun")
    failing.fail(LOG)
    assert status(lambda: s3.create_multipart_upload(Bucket="begun", Key="k")) == 500
    assert "doubt" in run(server, "bucket", "delete", "begun", expect=1)


def test_a_doubt_ends_by_itself_once_the_disk_is_well(server, failing):
    """Who counts with what a deletion frees does not ask the bucket that it was in."""
    s3 = s3_client(server)
    run(server, "level", "create", "shared", "--rank", "0", "--same-label")
    for bucket in ("freed", "filled"):
        run(server, "bucket", "create", bucket, "--level", "shared")
    s3.put_object(Bucket="freed", Key="a", Body=b"x")
    s3.put_object(Bucket="filled", Key="before", Body=b"x")
    run(server, "quota", "set", "level", "shared", "--objects", "2")
    shown = ask(server, "bucket", "show", "freed")
    failing.fail(f"{shown['id']}/{LOG}")
    assert status(lambda: s3.delete_object(Bucket="freed", Key="a")) == 500
    failing.heal()
    until = time.monotonic() + COUNTED_SECONDS
    while not is_put(s3, "more", bucket="filled"):
        assert time.monotonic() < until
        time.sleep(0.1)
