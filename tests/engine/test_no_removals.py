"""An engine whose store removes nothing: it goes on, and says what is left."""

import json
import time

from harness.clients import s3_client
from harness.engines import client
from harness.policies import arn, put, statement
from harness.sealed_copies import status
from harness.server import coffer

#: Far below the 20 s after which a write is in doubt.
SOON_SECONDS = 12


def keystores(store):
    found = s3_client(store).list_objects_v2(Bucket="log", Prefix="engine/keystores/")
    return [item["Key"] for item in found.get("Contents", [])]


def removals_are_refused(store):
    put(s3_client(store), "log", statement("Deny", "*", ["s3:DeleteObject"], arn("log", "*")))


def soon(call):
    began = time.monotonic()
    told = call()
    assert time.monotonic() - began < SOON_SECONDS
    return told


def write_and_read(s3, name):
    soon(lambda: s3.create_bucket(Bucket=f"later-{name}"))
    soon(lambda: s3.put_object(Bucket="notes", Key=name, Body=b"after"))
    got = soon(lambda: s3.get_object(Bucket="notes", Key="before"))
    assert got["Body"].read() == b"before"


def until(told, seconds=60):
    end = time.monotonic() + seconds
    while not (found := told()):
        assert time.monotonic() < end
        time.sleep(0.3)
    return found


def test_older_keystores_that_cant_be_removed_hold_up_nothing(store, first):
    s3 = client(first, first.credentials(), read_timeout=60)
    for bucket in ("doomed", "notes"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="doomed", Key="x", Body=b"x")
    s3.put_object(Bucket="notes", Key="before", Body=b"before")
    until(lambda: len(keystores(store)) == 1)
    removals_are_refused(store)
    soon(lambda: s3.create_bucket(Bucket="later"))
    assert len(keystores(store)) >= 2, "the newest lies beside the one before"
    told = status(first, "engine")
    assert told["state"] == "following" and "keystore" in told["problem"], told
    erase = ["bucket", "erase", "doomed", "--yes", "--json", "--data", first.data]
    done = soon(lambda: coffer(*erase, text=True))
    assert done.returncode == 0 and "PENDING: copy engine" in done.stderr, done
    receipt = json.loads(done.stdout)
    assert receipt["copies"][0]["keystore"]["state"] == "pending", receipt
    for name in ("first", "second", "third"):
        write_and_read(s3, name)
    assert status(first, "engine")["keystore"]["pending_erase_count"] == 1

    # Over a start as well: what is to be removed is found where it lies.
    first.kill()
    s3_client(store).delete_bucket_policy(Bucket="log")
    first.start()

    def is_settled():
        # It follows until the lease of before is over, and opens its sockets anew then.
        show = ["receipt", "show", receipt["id"], "--json", "--data", first.data]
        shown = coffer(*show, text=True)
        if shown.returncode != 0:
            told = ("no server runs", "this gateway follows")
            assert any(what in shown.stderr for what in told), shown
            return False
        return json.loads(shown.stdout)["copies"][0]["keystore"]["state"] == "taken"

    until(is_settled)
    until(lambda: len(keystores(store)) == 1)
    until(lambda: status(first, "engine")["problem"] is None)
