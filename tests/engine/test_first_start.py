"""First starts of an engine that were ended before their log was whole, and starts on one whose
`copy.json` was lost or altered."""

import json
import time

import pytest

from harness import policies
from harness.engines import Gateway, answered, client, url_at
from harness.server import StartError

BUCKET = "notes"
FIRST, SECOND = (f"engine/heads/000000000/00000000000{number}" for number in (1, 2))


def objects(at):
    listed = at.list_objects_v2(Bucket="log", Prefix="engine/")
    return {item["Key"]: item["ETag"] for item in listed["Contents"]}


@pytest.fixture
def killed(tmp_path, store):
    """A gateway that was killed when it had put the keystore, and no head after its first."""
    at = client(store, store.credentials())
    head = policies.arn("log", SECOND)
    policies.put(at, "log", policies.statement("Deny", "*", ["s3:PutObject"], head))
    gateway = Gateway(tmp_path / "one", url_at(store))
    with pytest.raises(StartError, match="no ready line"):
        gateway.start(15)
    at.delete_bucket_policy(Bucket="log")
    left = objects(at)
    assert any("/keystores/" in name for name in left), left
    assert FIRST in left and SECOND not in left
    yield gateway
    gateway.close()


@pytest.mark.parametrize("by", ["itself", "another"])
def test_one_that_has_put_its_keystore_is_gone_on_with(tmp_path, store, killed, by):
    at = client(store, store.credentials())
    record = at.get_object(Bucket="log", Key="engine/copy.json")["Body"].read()
    gateway = killed if by == "itself" else Gateway(tmp_path / "two", url_at(store))
    with gateway:
        s3 = client(gateway, gateway.credentials())
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="x", Body=b"y" * 100_000)
        assert "gone on with" in gateway.log()
        with Gateway(tmp_path / "three", url_at(store)) as other:
            s3 = client(other, gateway.credentials())
            gateway.kill()
            _, found = answered(lambda: s3.get_object(Bucket=BUCKET, Key="x"), 20)
            assert found["Body"].read() == b"y" * 100_000
            s3.put_object(Bucket=BUCKET, Key="x", Body=b"z")
    found = at.get_object(Bucket="log", Key="engine/copy.json")["Body"].read()
    assert found == record


def test_one_that_may_have_held_something_is_left_alone(tmp_path, store, killed):
    """As where a store has lost the heads of an engine."""
    at = client(store, store.credentials())
    segment = "engine/buckets/" + "1" * 32 + "/00000001-000000000/00000001-000000000001"
    at.put_object(Bucket="log", Key=segment, Body=b"sealed")
    left = objects(at)
    with pytest.raises(StartError, match="begun and not complete"):
        Gateway(tmp_path / "two", url_at(store)).start(10)
    del left["engine/lease.json"]
    assert left.items() <= objects(at).items()
    assert SECOND not in objects(at)


RECORD = {"Bucket": "log", "Key": "engine/copy.json"}


def record_there(at, seconds=40):
    end = time.monotonic() + seconds
    while True:
        try:
            return at.get_object(**RECORD)["Body"].read()
        except at.exceptions.NoSuchKey:
            assert time.monotonic() < end, "it was not put again"
            time.sleep(0.2)


def test_a_log_that_lost_its_record_is_given_it_again_and_served_meanwhile(tmp_path, store, first):
    at = client(store, store.credentials())
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket=BUCKET)
    before = record_there(at)
    at.delete_object(**RECORD)
    end = time.monotonic() + 40
    while not any(item.endswith("/copy.json") for item in objects(at)):
        s3.put_object(Bucket=BUCKET, Key="x", Body=b"y")
        assert time.monotonic() < end, first.log()
        time.sleep(0.2)
    assert record_there(at) == before
    s3.put_object(Bucket=BUCKET, Key="x", Body=b"z")
    assert "another server writes" not in first.log()
    assert "copy.json was missing" in first.log()
    # A gateway that begins while it is missing touches nothing, and says what is so.
    first.stop()
    at.delete_object(**RECORD)
    left = objects(at)
    with pytest.raises(StartError, match="copy.json is missing in this place"):
        Gateway(tmp_path / "three", url_at(store)).start()
    del left["engine/lease.json"]
    assert left.items() <= objects(at).items()
    assert "engine/copy.json" not in objects(at)


def test_a_gateway_alone_goes_on_with_a_log_that_lost_its_record(store, first):
    at = client(store, store.credentials())
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    client(first, key).put_object(Bucket=BUCKET, Key="x", Body=b"y")
    before = record_there(at)
    for end in (first.stop, first.kill):
        end()
        at.delete_object(**RECORD)
        first.start(40)
        s3 = client(first, key)
        _, got = answered(lambda s3=s3: s3.get_object(Bucket=BUCKET, Key="x"), 30)
        assert got["Body"].read() == b"y"
        assert record_there(at) == before


def test_who_takes_over_a_log_without_its_record_puts_it_again(store, first, second):
    at = client(store, store.credentials())
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    there = client(second, key)
    answered(lambda: there.put_object(Bucket=BUCKET, Key="x", Body=b"y"))
    before = record_there(at)
    first.kill()
    at.delete_object(**RECORD)
    answered(lambda: there.put_object(Bucket=BUCKET, Key="x", Body=b"z"), 20)
    assert record_there(at) == before


def test_a_log_whose_record_says_another_keystore_is_taken_over(tmp_path, store, first):
    at = client(store, store.credentials())
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="x", Body=b"y")
    first.stop()
    record = json.loads(record_there(at))
    altered = json.dumps({**record, "keystore": "2" * 32}).encode()
    at.put_object(**RECORD, Body=altered)
    with Gateway(tmp_path / "two", url_at(store)) as second:
        there = client(second, key)
        _, found = answered(lambda: there.get_object(Bucket=BUCKET, Key="x"))
        assert found["Body"].read() == b"y"
