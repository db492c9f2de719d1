"""From a server to an engine and back: which of the two goes on with the log is never in doubt."""

import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.age import RECIPIENT
from harness.clients import s3_client
from harness.content import KIB, content
from harness.engines import Gateway, answered, client, url_at
from harness.sealed_copies import caught_up, made, put, reached, replica, status
from harness.server import Server
from harness.standbys import has, promote, serves_writes, standby_of, started, within

BUCKET = "notes"
NAMES = ["middle-1", "small-1"]


def listed(s3):
    return sorted(item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"])


@pytest.fixture
def original(tmp_path, store):
    """A server, all of which is in a copy on the store."""
    with Server(made(tmp_path / "original")) as server:
        s3_client(server).create_bucket(Bucket=BUCKET)
        put(server, NAMES)
        with_keystore = ["--with-keystore", "--recipient", RECIPIENT]
        replica(server, "add", "far", url_at(store), *with_keystore)
        caught_up(server)
        yield server


def test_a_server_that_became_an_engine_takes_nothing_back(tmp_path, store, original):
    key = original.credentials()
    original.stop()
    names = [f"by-engine-{number:02}" for number in range(8)]
    with Gateway(tmp_path / "one", url_at(store)) as first:
        s3 = client(first, key)
        answered(lambda: s3.put_object(Bucket=BUCKET, Key=names[0], Body=content(500)))
        for number, name in enumerate(names):
            s3.put_object(Bucket=BUCKET, Key=name, Body=content(30 * KIB if number % 2 else 500))
        # As after a restart of its machine.
        original.start()
        told = reached(original, "stopped")
        assert "log of an engine" in told["problem"], told
        s3.put_object(Bucket=BUCKET, Key="later", Body=b"x")
        assert listed(s3) == sorted([*NAMES, *names, "later"])
        first.stop()
        # Nor where no gateway runs.
        original.kill()
        original.start()
        assert "log of an engine" in reached(original, "stopped")["problem"]
        first.start()
        answered(lambda: listed(s3), 30)
        assert listed(s3) == sorted([*NAMES, *names, "later"])
        body = s3.get_object(Bucket=BUCKET, Key="by-engine-01")["Body"].read()
        assert body == content(30 * KIB)


def test_an_original_that_the_copy_fences_off_changes_nothing(tmp_path, store, original):
    key = original.credentials()
    original.stop()
    original.arguments += ["--fenced-by", "far"]
    original.start()
    within(lambda: status(original)["state"] == "following")
    # It should have been stopped before.
    with Gateway(tmp_path / "one", url_at(store)) as first:
        s3 = client(first, key)
        answered(lambda: s3.put_object(Bucket=BUCKET, Key="by-engine", Body=b"x"), 30)
        reached(original, "stopped")
        with pytest.raises(ClientError, match="fenced off"):
            s3_client(original).put_object(Bucket=BUCKET, Key="by-original", Body=b"x")
        answered(lambda: listed(s3), 30)
        assert listed(s3) == sorted([*NAMES, "by-engine"])


def test_a_promoted_standby_of_the_log_ends_the_engine(tmp_path, store):
    with Gateway(tmp_path / "one", url_at(store)) as first:
        key = first.credentials()
        s3 = client(first, key)
        s3.create_bucket(Bucket=BUCKET)
        for name in NAMES:
            s3.put_object(Bucket=BUCKET, Key=name, Body=content(30 * KIB, name))
        server = standby_of(url_at(store), tmp_path / "two", first.credentials_path)
        server.first_credentials = f"[default]\naws_access_key_id = {key[0]}\n"
        server.first_credentials += f"aws_secret_access_key = {key[1]}\n"
        try:
            started(server)
            within(has(server, NAMES, BUCKET))
            first.stop()
            promote(server)
            serves_writes(server)
            s3_client(server).put_object(Bucket=BUCKET, Key="after", Body=b"x")
            # A gateway that is started again, by mistake, serves nothing.
            first.start()
            within(lambda: "was promoted by head" in first.log())
            with Gateway(tmp_path / "three", url_at(store)) as third:
                for gateway in (first, third):
                    told_that_it_has_ended(gateway, client(gateway, key))
                assert first.log().count("was promoted by head") < 4, first.log()
                time.sleep(3)
                told = first.log() + third.log()
                assert told.count("could not be taken over") < 4, told
            assert listed(s3_client(server)) == sorted([*NAMES, "after"])
        finally:
            server.close()


def told_that_it_has_ended(gateway, s3):
    """Who watches a gateway of an engine that has ended is told, and so are clients."""
    within(lambda: "has ended" in raw.get_admin(gateway, "/health/ready")[1])
    status, text = raw.get_admin(gateway, "/health/ready")
    assert status == 503 and "not ready: this engine has ended: a standby" in text, text
    assert "serves\n" not in text, text
    assert raw.get_admin(gateway, "/health/live")[0] == 200
    assert raw.metric(gateway, "coffer_ready") == 0
    with pytest.raises(ClientError, match="this engine has ended: a standby") as refused:
        s3.put_object(Bucket=BUCKET, Key="by-engine", Body=b"x")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
