"""An engine as its users meet it: gateways over a store, of which any may die."""

import hashlib
import json
import shutil
import signal
import subprocess
import threading
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

from harness.administration import run
from harness.auditing import eventually, export
from harness.content import KIB, MIB, content
from harness.engines import REPLACED_SECONDS, Gateway, answered, client, url_at
from harness.sealed_copies import files_in
from harness.server import BINARY, StartError, coffer

BUCKET = "notes"
SIZES = {"small": 900, "middle": 300 * KIB, "large": 9 * MIB}


def lease(store):
    s3 = client(store, store.credentials())
    return s3.get_object(Bucket="log", Key="engine/lease.json")["Body"].read()


def put(s3, name):
    s3.put_object(Bucket=BUCKET, Key=name, Body=content(SIZES[name.split("-")[0]], name))


def check(s3, name):
    body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    assert body == content(SIZES[name.split("-")[0]], name), name


def test_any_gateway_answers_and_one_that_dies_is_replaced(first, second):
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    for name in SIZES:
        put(here, f"{name}-1")
        check(there, f"{name}-1")
        put(there, f"{name}-2")
        check(here, f"{name}-2")
    ranged = there.get_object(Bucket=BUCKET, Key="large-1", Range="bytes=8000000-8000009")
    assert ranged["Body"].read() == content(SIZES["large"], "large-1")[8000000:8000010]
    with pytest.raises(ClientError, match="NoSuchKey"):
        there.get_object(Bucket=BUCKET, Key="none")
    first.kill()
    took, _ = answered(lambda: put(there, "small-3"))
    assert took < REPLACED_SECONDS
    names = {f"{name}-{number}" for name in SIZES for number in (1, 2)} | {"small-3"}
    listed = there.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert {item["Key"] for item in listed} == names
    for name in names:
        check(there, name)
    # The one that died comes back, believes nothing of its folder, and forwards.
    first.start()
    check(client(first, key), "small-3")
    put(client(first, key), "small-4")
    check(there, "small-4")


def test_nothing_that_matters_is_on_a_machine(tmp_path, store, first):
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket=BUCKET)
    for name in SIZES:
        put(s3, name)
    first.kill()
    shutil.rmtree(first.data)
    with Gateway(tmp_path / "elsewhere", url_at(store)) as other:
        s3 = client(other, key)
        answered(lambda: check(s3, "small"))
        for name in SIZES:
            check(s3, name)


def test_each_takeover_is_recorded(first, second):
    assert export(first, "--act", "engine.take-over") == []
    first.stop()
    _, [taken] = answered(lambda: takeovers(second), 30)
    assert taken["details"]["gateway"] == f"127.0.0.1:{second.gateway_port}"
    assert int(taken["details"]["head"]) > 1


def takeovers(gateway):
    found = export(gateway, "--act", "engine.take-over")
    assert found
    return found


def test_clients_trust_all_gateways_by_one_authority(first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    there = client(first, key, endpoint=second.endpoint)
    put(there, "small")
    first.stop()
    answered(lambda: check(there, "small"))
    # And it stays the same over starts.
    first.start()
    check(client(second, key, endpoint=first.endpoint), "small")


def test_a_keystore_that_is_ahead_of_the_log_keeps_none_from_serving(tmp_path, store, first):
    """It goes into the log first: here an owner was killed before the head that goes with it."""
    key, at = first.credentials(), client(store, store.credentials())
    client(first, key).create_bucket(Bucket=BUCKET)
    put(client(first, key), "small-1")
    keystores, heads = in_log(at, "keystores"), in_log(at, "heads")
    run(first, "level", "create", "later", "--rank", "3")
    first.kill()
    for name in sorted(in_log(at, "keystores") - keystores)[1:]:
        at.delete_object(Bucket="log", Key=name)
    for name in in_log(at, "heads") - heads:
        at.delete_object(Bucket="log", Key=name)
    with Gateway(tmp_path / "two", url_at(store)) as second:
        s3 = client(second, key)
        answered(lambda: check(s3, "small-1"), 30)
        put(s3, "small-2")
        assert answered(lambda: takeovers(second))
        assert export(second, "--act", "rollback.accept") == []
        assert "DAMAGED" not in second.log()
        assert "later" in run(second, "level", "list")


def test_a_store_that_lost_what_was_acknowledged_is_found_out(tmp_path, store, first):
    key, at = first.credentials(), client(store, store.credentials())
    client(first, key).create_bucket(Bucket=BUCKET)
    heads = in_log(at, "heads")
    run(first, "level", "create", "later", "--rank", "3")
    keystores = in_log(at, "keystores")
    # The keystore knows of it once a head has it.
    eventually(lambda: in_log(at, "keystores") != keystores, 30)
    first.kill()
    for name in in_log(at, "heads") - heads:
        at.delete_object(Bucket="log", Key=name)
    with Gateway(tmp_path / "two", url_at(store)) as second:
        assert eventually(lambda: "ROLLBACK" in second.log(), 30)
        with pytest.raises((BotoCoreError, ClientError)):
            client(second, key).list_buckets()


def in_log(at, kind):
    listed = at.list_objects_v2(Bucket="log", Prefix=f"engine/{kind}/")
    return {item["Key"] for item in listed["Contents"]}


def test_administration_tells_nothing_that_the_log_does_not_have(store, first):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    store.process.send_signal(signal.SIGSTOP)
    making = subprocess.Popen(
        [BINARY, "bucket", "create", "unsure", "--data", str(first.data)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        done = coffer("bucket", "list", "--data", first.data, text=True)
        assert done.returncode != 0 and "unsure" not in done.stdout, done
    finally:
        store.process.send_signal(signal.SIGCONT)
    making.wait(60)


def test_readers_hear_of_no_deletion_that_the_log_does_not_have(store, first):
    s3 = client(first, first.credentials(), read_timeout=2)
    s3.create_bucket(Bucket=BUCKET)
    store.process.send_signal(signal.SIGSTOP)
    try:
        for call in (s3.delete_bucket, s3.head_bucket):
            with pytest.raises((ReadTimeoutError, ClientError)) as caught:
                call(Bucket=BUCKET)
            told = getattr(caught.value, "response", None)
            assert told is None or told["ResponseMetadata"]["HTTPStatusCode"] == 503, told
    finally:
        store.process.send_signal(signal.SIGCONT)


def test_a_first_start_that_was_killed_is_begun_anew(tmp_path, store):
    """By then the store held a copy's record, and nothing else."""
    record = {"format": 1, "copy": "11" * 16, "keystore": "22" * 16}
    at = client(store, store.credentials())
    at.put_object(Bucket="log", Key="engine/copy.json", Body=json.dumps(record).encode())
    with Gateway(tmp_path / "one", url_at(store)) as gateway:
        client(gateway, gateway.credentials()).create_bucket(Bucket=BUCKET)
    found = at.get_object(Bucket="log", Key="engine/copy.json")["Body"].read()
    assert json.loads(found)["copy"] != record["copy"]


def test_a_gateway_that_is_told_to_stop_gives_its_lease_back(store, first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    assert first.stop() == 0
    took, _ = answered(lambda: put(client(second, key), "small"))
    assert took < REPLACED_SECONDS
    assert b'"is_over":true' not in lease(store)
    second.stop()
    assert b'"is_over":true' in lease(store)


def test_a_gateway_that_was_paused_serves_nothing_stale(first, second):
    key = first.credentials()
    here, there = client(first, key, read_timeout=60), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="x", Body=b"old")
    first.pause()
    answered(lambda: there.put_object(Bucket=BUCKET, Key="x", Body=b"new"))
    told = []

    def ask(act):
        try:
            told.append(act())
        except Exception as error:
            told.append(error)

    asks = [
        lambda: here.get_object(Bucket=BUCKET, Key="x")["Body"].read(),
        lambda: here.put_object(Bucket=BUCKET, Key="y", Body=b"late")["ETag"],
    ]
    threads = [threading.Thread(target=ask, args=(act,)) for act in asks]
    for thread in threads:
        thread.start()
    time.sleep(1)
    first.go_on()
    for thread in threads:
        thread.join()
    assert b"old" not in told
    if any(isinstance(answer, str) for answer in told):
        assert there.get_object(Bucket=BUCKET, Key="y")["Body"].read() == b"late"
    # It goes on as one that follows.
    _, body = answered(lambda: here.get_object(Bucket=BUCKET, Key="x")["Body"].read(), 20)
    assert body == b"new"


def test_what_was_acknowledged_survives_one_gateway_after_the_other(tmp_path, store, first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    gateways, done, stop = [first, second], {}, threading.Event()

    def write(number):
        at = 0
        while not stop.is_set():
            name, body = f"{number}-{at}", f"{number} {at}".encode() * 50
            for gateway in gateways:
                try:
                    client(gateway, key, read_timeout=30).put_object(
                        Bucket=BUCKET, Key=name, Body=body
                    )
                except Exception:
                    continue
                done[name] = hashlib.sha256(body).hexdigest()
                break
            at += 1

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for round_number in range(4):
        time.sleep(4)
        dying = gateways[round_number % 2]
        dying.kill()
        before = len(done)
        other = gateways[1 - round_number % 2]
        answered(lambda other=other: put(client(other, key), f"small-{time.time_ns()}"), 20)
        dying.start()
        assert len(done) >= before
    stop.set()
    for writer in writers:
        writer.join()
    assert len(done) > 20
    s3 = client(first, key)
    for name, digest in done.items():
        body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        assert hashlib.sha256(body).hexdigest() == digest, name


def test_the_store_holds_nothing_readable(store, first):
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket="secret-bucket-name")
    s3.put_object(Bucket="secret-bucket-name", Key="secret-object-name", Body=b"secret words " * 99)
    listed = client(store, store.credentials()).list_objects_v2(Bucket="log")["Contents"]
    at = client(store, store.credentials())
    for item in listed:
        body = at.get_object(Bucket="log", Key=item["Key"])["Body"].read()
        for word in (b"secret-bucket-name", b"secret-object-name", b"secret words"):
            assert word not in body and word.decode() not in item["Key"], item["Key"]


def test_what_can_hold_no_engine_is_refused_and_why(tmp_path, store):
    made = tmp_path / "folder"
    made.mkdir()
    with pytest.raises(StartError, match="can't hold an engine") as told:
        Gateway(tmp_path / "one", f"file://{made}").start()
    assert "for copies" in told.value.log
    assert not [path for path in files_in(made) if path.name != "lock"]
    data = tmp_path / "two" / "data"
    data.mkdir(parents=True)
    (data / "keystore").write_bytes(b"of another")
    with pytest.raises(StartError, match="no cache of an engine"):
        Gateway(tmp_path / "two", url_at(store)).start()
    assert (data / "keystore").read_bytes() == b"of another"
    done = coffer("serve", "--data", tmp_path / "three", "--engine", "s3://log/x", text=True)
    assert done.returncode == 2 and "--identity" in done.stderr


def test_a_cache_is_served_by_a_gateway_alone(first):
    first.stop()
    done = coffer("serve", "--data", first.data, text=True)
    assert done.returncode == 1 and "cache of a gateway" in done.stderr, done


def test_a_cache_outlives_the_log_that_the_store_lost(store, first):
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket=BUCKET)
    put(s3, "large")
    first.kill()
    kept = [path for path in files_in(first.data) if "blobs" in path.parts]
    at = client(store, store.credentials())
    for item in at.list_objects_v2(Bucket="log")["Contents"]:
        at.delete_object(Bucket="log", Key=item["Key"])
    with pytest.raises(StartError, match="all that is left of it"):
        first.start()
    assert kept and all(path.exists() for path in kept)


def test_what_an_engines_log_takes_care_of_is_not_changed(first):
    def replica(*arguments):
        return coffer("replica", *arguments, "--data", first.data, "--json", text=True)

    done = replica("remove", "engine")
    assert done.returncode != 0 and "gateway of an engine" in done.stderr, done
    done = replica("add", "far", f"file://{first.folder}/copy")
    assert done.returncode != 0 and "gateway of an engine" in done.stderr, done
    assert replica("verify", "engine").returncode == 0
    moved = coffer("keystore", "move", "--to", "keyring", "--data", first.data, text=True)
    assert moved.returncode != 0 and "gateway of an engine" in moved.stderr, moved


def test_a_first_start_that_was_killed_before_its_keystore_is_begun_anew(tmp_path, store):
    s3 = client(store, store.credentials())
    record = {"format": 1, "copy": "1" * 32, "keystore": "2" * 32, "is_of_engine": True}
    left = {"copy.json": json.dumps(record).encode(), "heads/000000000/000000000001": b"sealed"}
    for name, body in left.items():
        s3.put_object(Bucket="log", Key=f"engine/{name}", Body=body)
    with Gateway(tmp_path / "one", url_at(store)) as first:
        client(first, first.credentials()).create_bucket(Bucket=BUCKET)
    found = s3.get_object(Bucket="log", Key="engine/copy.json")["Body"].read()
    assert json.loads(found)["copy"] != record["copy"]


def test_a_log_that_has_more_than_its_first_head_is_left_alone(tmp_path, store):
    s3 = client(store, store.credentials())
    record = {"format": 1, "copy": "1" * 32, "keystore": "2" * 32, "is_of_engine": True}
    heads = [f"heads/000000000/00000000000{number}" for number in (1, 2)]
    left = {"copy.json": json.dumps(record).encode(), **dict.fromkeys(heads, b"sealed")}
    for name, body in left.items():
        s3.put_object(Bucket="log", Key=f"engine/{name}", Body=body)
    with pytest.raises(StartError, match="keystore"):
        Gateway(tmp_path / "one", url_at(store)).start()
    for name, body in left.items():
        there = s3.get_object(Bucket="log", Key=f"engine/{name}")["Body"].read()
        assert there == body, name


@pytest.mark.parametrize("at", ["0.0.0.0:9003", "[::]:9003", "gateway1:0"])
def test_an_address_at_which_no_gateway_is_found_is_refused(tmp_path, store, at):
    with pytest.raises(StartError, match="others find nothing there"):
        Gateway(tmp_path / "one", url_at(store), "--gateway-advertise", at).start()


def test_a_gateway_that_listens_everywhere_says_where_it_is_found(tmp_path, store):
    gateway = Gateway(tmp_path / "one", url_at(store))
    here = f"127.0.0.1:{gateway.gateway_port}"
    everywhere = f"0.0.0.0:{gateway.gateway_port}"
    gateway.arguments = [everywhere if word == here else word for word in gateway.arguments]
    with pytest.raises(StartError, match="--gateway-advertise: missing"):
        gateway.start()
    gateway.arguments += ["--gateway-advertise", here]
    with gateway:
        client(gateway, gateway.credentials()).create_bucket(Bucket=BUCKET)


def test_a_lease_that_is_none_is_told(tmp_path, store, first):
    s3, key = client(store, store.credentials()), first.credentials()
    first.stop()
    s3.put_object(Bucket="log", Key="engine/lease.json", Body=b"garbage")
    first.start()
    eventually(lambda: "remove `lease.json`" in first.log())
    s3.delete_object(Bucket="log", Key="engine/lease.json")
    answered(lambda: client(first, key).list_buckets(), 30)
