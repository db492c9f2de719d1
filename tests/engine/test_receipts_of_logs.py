"""Which log it is that the receipt of an erase waits for."""

import json

from harness.age import RECIPIENT
from harness.clients import s3_client
from harness.engines import Gateway, answered, client, url_at
from harness.policies import arn, put, statement
from harness.sealed_copies import caught_up, replica
from harness.server import coffer
from harness.standbys import has, promote, serves_writes, standby_of, started, within


def keystores(store, prefix="engine/keystores/"):
    found = s3_client(store).list_objects_v2(Bucket="log", Prefix=prefix)
    return [item["Key"] for item in found.get("Contents", [])]


def pending_erase(store, gateway):
    """Erases a bucket while the store removes nothing: its receipt."""
    s3 = client(gateway, gateway.credentials(), read_timeout=60)
    for bucket in ("doomed", "notes"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="x", Body=b"x")
    put(s3_client(store), "log", statement("Deny", "*", ["s3:DeleteObject"], arn("log", "*")))
    s3.create_bucket(Bucket="later")
    erase = ["bucket", "erase", "doomed", "--yes", "--json", "--data", gateway.data]
    done = coffer(*erase, text=True)
    assert done.returncode == 0 and "PENDING: copy engine" in done.stderr, done
    receipt = json.loads(done.stdout)
    assert any(line.startswith("folders of this engine's") for line in receipt["remaining"])
    return receipt


def copy_told(server, receipt):
    """What the receipt says of the copy now; none, while the server can't tell."""
    shown = coffer("receipt", "show", receipt["id"], "--json", "--data", server.data, text=True)
    return json.loads(shown.stdout)["copies"][0] if shown.returncode == 0 else None


def verify_told(server, receipt, path):
    """Verifies the receipt as it is now, without the server."""
    shown = coffer("receipt", "show", receipt["id"], "--json", "--data", server.data, text=True)
    path.write_text(shown.stdout)
    key = coffer("receipt", "key", "--data", server.data, text=True).stdout.strip()
    verified = coffer("receipt", "verify", path, "--key", key, text=True)
    assert verified.returncode == 0, verified


def state_told(server, receipt):
    told = copy_told(server, receipt)
    return told and told["keystore"]["state"]


def test_a_log_that_is_reached_by_another_url_settles_what_waits_for_it(tmp_path, store, first):
    receipt = pending_erase(store, first)
    key = first.credentials()
    first.stop()
    s3_client(store).delete_bucket_policy(Bucket="log")
    alias = url_at(store).replace("127.0.0.1", "localhost")
    with Gateway(tmp_path / "two", alias) as second:
        s3 = client(second, key)
        answered(lambda: s3.put_object(Bucket="notes", Key="k", Body=b"1"), 30)
        within(lambda: len(keystores(store)) == 1, 60)
        within(lambda: state_told(second, receipt) == "taken", 60)
        (before,) = receipt["copies"]
        told = copy_told(second, receipt)
        for what in ("url", "made_at", "id"):
            assert told[what] == before[what]
        record = s3_client(store).get_object(Bucket="log", Key="engine/copy.json")
        assert told["id"] == json.load(record["Body"])["copy"]
        verify_told(second, receipt, tmp_path / "receipt.json")


def test_another_log_in_the_same_place_settles_nothing(tmp_path, store):
    with Gateway(tmp_path / "one", url_at(store)) as first:
        receipt = pending_erase(store, first)
        key = first.credentials()
        server = standby_of(url_at(store), tmp_path / "two", first.credentials_path)
        started(server)
        within(has(server, ["x"], "notes"))
        first.stop()
        promote(server)
        serves_writes(server)
    # What lies there is moved aside, with its keystores of before the erase.
    at = s3_client(store)
    at.delete_bucket_policy(Bucket="log")
    for page in at.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/"):
        for item in page.get("Contents", []):
            name = item["Key"]
            source = {"Bucket": "log", "Key": name}
            at.copy_object(Bucket="log", Key=f"old-{name}", CopySource=source)
            at.delete_object(Bucket="log", Key=name)
    assert len(keystores(store, "old-engine/keystores/")) > 1
    replica(server, "add", "far", url_at(store), "--with-keystore", "--recipient", RECIPIENT)
    caught_up(server)
    server.close()
    with Gateway(tmp_path / "three", url_at(store)) as third:
        s3 = client(third, key)
        answered(lambda: s3.put_object(Bucket="notes", Key="z", Body=b"1"), 30)
        within(lambda: copy_told(third, receipt) is not None)
        # What it settles, it settles with its first rounds.
        for number in range(5):
            s3.put_object(Bucket="notes", Key=f"z{number}", Body=b"1")
            coffer("replica", "status", "engine", "--data", third.data)
        assert state_told(third, receipt) == "pending"
