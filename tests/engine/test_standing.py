"""What gateways say of how they stand: that the store is away, and which of them serves."""

import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.administration import ask
from harness.engines import answered, client
from harness.server import coffer

BUCKET = "notes"


def refusal(call):
    with pytest.raises(ClientError) as caught:
        call()
    told = caught.value.response
    return told["ResponseMetadata"]["HTTPStatusCode"], told["ResponseMetadata"]["HTTPHeaders"]


def not_ready(gateway):
    status, told = raw.get_admin(gateway, "/health/ready")
    assert status == 503
    assert "the store of the engine is away" in told


def test_a_gateway_says_that_it_waits_for_the_store(store, first):
    s3 = client(first, first.credentials(), read_timeout=60)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="before", Body=b"before")
    store.kill()
    # What waits when the lease ends is answered: it is in doubt.
    status, headers = refusal(lambda: s3.put_object(Bucket=BUCKET, Key="doubtful", Body=b"1"))
    assert (status, headers["retry-after"]) == (503, "1")
    answered(lambda: not_ready(first), 30)
    for _ in range(5):
        assert raw.get_admin(first, "/health/live") == (200, "live\n")
        assert raw.get_admin(first, "/metrics")[0] == 200
        not_ready(first)
        for asked in (
            lambda: s3.get_object(Bucket=BUCKET, Key="before"),
            lambda: s3.list_buckets(),
            lambda: s3.put_object(Bucket=BUCKET, Key="refused", Body=b"1"),
        ):
            status, headers = refusal(asked)
            assert (status, headers["retry-after"]) == (503, "1")
        time.sleep(1)
    store.start()
    _, got = answered(lambda: s3.get_object(Bucket=BUCKET, Key="before"), 40)
    assert got["Body"].read() == b"before"
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="after", Body=b"after"), 40)
    assert raw.get_admin(first, "/health/ready")[0] == 200


def test_one_that_follows_names_the_one_that_serves(first, second):
    serves = f"the gateway at 127.0.0.1:{first.gateway_port} serves"
    answered(lambda: told_by(second, serves), 30)
    done = coffer("replica", "status", "engine", "--data", second.data, text=True)
    assert done.returncode == 1 and f"{serves}, and is to be asked" in done.stderr, done
    # It has a log to follow, and is not without one.
    assert "this gateway follows, " in done.stderr and "no copy" not in done.stderr, done
    assert coffer("replica", "status", "engine", "--data", first.data).returncode == 0


def test_one_that_follows_is_not_ready_while_the_store_is_away(store, first, second):
    s3 = client(second, first.credentials())
    answered(lambda: s3.list_buckets(), 30)
    assert raw.get_admin(second, "/health/ready")[0] == 200
    store.kill()

    def told_why():
        status, told = raw.get_admin(second, "/health/ready")
        assert status == 503 and "not known which one serves" in told, told

    answered(told_why, 30)

    def refused():
        # Until its time to answer reads is over, it does.
        try:
            s3.list_buckets()
        except ClientError as error:
            return error.response["ResponseMetadata"]["HTTPStatusCode"]
        raise AssertionError("it still answers")

    assert answered(refused, 30)[1] == 503
    assert raw.get_admin(second, "/health/live") == (200, "live\n")
    store.start()
    answered(lambda: s3.list_buckets(), 60)
    answered(lambda: told_by(second, "ready\n"), 60)


def test_administration_is_told_by_the_one_that_serves_alone(first, second):
    """What one that follows has may be old, and lack what was acknowledged."""
    answered(lambda: told_by(second, "serves"), 30)
    for name, command in [
        ("level", "list"),
        ("subject", "list"),
        ("bucket", "list"),
        ("audit", "show"),
        ("audit", "verify"),
        ("receipt", "list"),
        ("request", "list"),
    ]:
        done = coffer(name, command, "--data", second.data, text=True)
        # Of a verification 1 would say that something is wrong.
        assert done.returncode == (2 if command == "verify" else 1) and done.stdout == "", done
        assert f"127.0.0.1:{first.gateway_port} serves" in done.stderr, done
        assert coffer(name, command, "--data", first.data).returncode == 0, name
    check = ("replica", "verify", "engine", "--data")
    done = coffer(*check, second.data, text=True)
    assert done.returncode == 1 and "no copy" not in done.stderr, done
    assert f"127.0.0.1:{first.gateway_port} serves" in done.stderr, done
    assert coffer(*check, first.data).returncode == 0
    done = coffer("level", "create", "x", "--rank", "3", "--data", second.data, text=True)
    assert done.returncode == 1 and "follows" in done.stderr, done


def test_changes_are_refused_by_one_that_follows_whatever_its_state_has(first, second):
    """It may lack what they are about: that it has none of it tells nothing."""
    answered(lambda: told_by(second, "serves"), 30)
    for command in [
        ("bucket", "create", "new", "--level", "unknown"),
        ("bucket", "delete", "unknown"),
        ("bucket", "erase", "unknown", "--yes"),
        ("bucket", "rotate", "unknown"),
        ("bucket", "end-uploads", "unknown"),
        ("quota", "set", "bucket", "unknown", "--objects", "1"),
        ("subject", "disable", "unknown"),
        ("subject", "delete", "unknown", "--yes"),
        ("level", "rotate", "unknown"),
        ("level", "erase", "unknown", "--yes"),
    ]:
        done = coffer(*command, "--data", second.data, text=True)
        assert done.returncode == 1 and "there is no" not in done.stderr, done
        assert f"127.0.0.1:{first.gateway_port} serves" in done.stderr, done
        assert "it changes nothing" in done.stderr, done
    done = coffer("bucket", "erase", "unknown", "--yes", "--data", first.data, text=True)
    assert "there is no bucket unknown" in done.stderr, done


def test_gateways_say_what_is_to_be_kept_of_an_engine(first, second):
    kept = "the passphrase or the token that the gateways share"
    assert any(kept in line for line in first.output), first.output
    assert not any("root.key" in line for line in first.output), first.output
    for gateway in (first, second):
        told = ask(gateway, "keystore", "status")["keep_apart"]
        assert kept in told and "--identity" in told and "root.key" not in told, told


def test_a_gateway_that_follows_calls_itself_no_standby(second):
    status, told = raw.get_admin(second, "/health/ready")
    assert status == 200 and "behind the engine's log" in told and "standby" not in told, told
    assert "this gateway follows the engine's log" in second.log()
    assert "a standby: it serves" not in second.log()


def told_by(gateway, what):
    assert what in raw.get_admin(gateway, "/health/ready")[1]
