"""First starts of an engine that were ended before their log was whole."""

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
