"""What becomes of an owner that stood still while the newest of its log was lost."""

import contextlib
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from harness.clients import s3_client
from harness.engines import Gateway, answered, client, url_at
from harness.standbys import within

#: What acknowledged it is with the newest heads.
LOST = {"Bucket": "notes", "Key": "acknowledged"}


def heads(store):
    listed = s3_client(store).list_objects_v2(Bucket="log", Prefix="engine/heads/")
    return {item["Key"] for item in listed["Contents"]}


def lose_the_newest(store, first):
    """The owner stands still from now on, and its store lost what it acknowledged last; the access
    key of the engine."""
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket="notes")
    s3.put_object(Bucket="notes", Key="before", Body=b"before")
    time.sleep(12)  # A head has all of that, and the keystore knows no more.
    before = heads(store)
    for _ in range(3):
        s3.put_object(**LOST, Body=b"acknowledged")
    first.pause()
    lost = heads(store) - before
    assert len(lost) >= 3, lost
    for name in lost:
        s3_client(store).delete_object(Bucket="log", Key=name)
    return key


def refuses(gateway, key):
    """It says why, and answers nothing by that log."""
    within(lambda: "ROLLBACK: the engine's store" in gateway.log(), 60)
    for _ in range(8):
        with pytest.raises((BotoCoreError, ClientError)):
            client(gateway, key, read_timeout=2).list_objects_v2(Bucket="notes")
        time.sleep(1)
    assert gateway.process.poll() is None, "what the store lost may be put back"
    assert gateway.log().count("ROLLBACK") == 1, "once a minute"
    assert "what this folder held before is kept" in gateway.log()


def test_it_refuses_a_log_in_which_another_went_on_in_place_of_what_it_wrote(
    tmp_path, store, first
):
    key = lose_the_newest(store, first)
    with Gateway(tmp_path / "two", url_at(store)) as second:
        s3 = client(second, key)
        # By numbers alone nothing would be missing.
        for number in range(20):
            name = f"later-{number}"
            answered(lambda n=name: s3.put_object(Bucket="notes", Key=n, Body=b"x"), 30)
        first.go_on()
        refuses(first, key)
        names = [item["Key"] for item in s3.list_objects_v2(Bucket="notes")["Contents"]]
        assert "before" in names and LOST["Key"] not in names
        # A start knows no more of it: so it is gone on from what is there, on purpose.
        first.stop()
        first.start()
        there = client(first, key)
        _, found = answered(lambda: there.list_objects_v2(Bucket="notes"), 30)
        assert [item["Key"] for item in found["Contents"]] == names


def test_it_takes_no_shorter_log_over_and_serves_when_what_was_lost_is_back(store, first):
    at, were = s3_client(store), {}
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket="notes")
    time.sleep(12)
    before = heads(store)
    s3.put_object(**LOST, Body=b"acknowledged")
    first.pause()
    for name in heads(store) - before:
        were[name] = at.get_object(Bucket="log", Key=name)["Body"].read()
        at.delete_object(Bucket="log", Key=name)
    assert were
    time.sleep(6)  # Its lease ends meanwhile.
    first.go_on()
    refuses(first, key)
    assert heads(store) == before, "it wrote nothing behind a gap"
    for name, body in were.items():
        at.put_object(Bucket="log", Key=name, Body=body)
    with contextlib.suppress(BotoCoreError, ClientError):
        s3.head_bucket(Bucket="notes")
    _, found = answered(lambda: s3.get_object(**LOST)["Body"].read(), 60)
    assert found == b"acknowledged"
