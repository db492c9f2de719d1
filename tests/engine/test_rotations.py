"""Rotations of an engine: the log never has a keystore without the keys that its catalogs need."""

import subprocess
import time

from harness import policies
from harness.administration import run
from harness.content import KIB, content
from harness.engines import answered, client
from harness.server import BINARY

BUCKET = "notes"


def check(s3, names):
    for name in names:
        body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        assert body == content(200 * KIB, name), name


def test_what_was_stored_is_read_after_the_gateway_that_rotates_is_killed(store, first, second):
    key, names = first.credentials(), [f"large-{number}" for number in range(3)]
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    for name in names:
        here.put_object(Bucket=BUCKET, Key=name, Body=content(200 * KIB, name))
    # The store takes keystores, and nothing of the log behind them.
    at, log = client(store, store.credentials()), policies.arn("log", "engine/heads/*")
    policies.put(at, "log", policies.statement("Deny", "*", ["s3:PutObject"], log))
    words = [BINARY, "level", "rotate", "default", "--data", str(first.data)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    assert process.poll() != 0, "it is not done before the log has it"
    first.kill()
    process.wait(timeout=60)
    at.delete_bucket_policy(Bucket="log")
    answered(lambda: there.list_buckets(), 30)
    check(there, names)
    # One that is answered with 0 is in the log: another gateway goes on with it at once.
    run(second, "level", "rotate", "default")
    first.start()
    second.kill()
    again = client(first, key)
    answered(lambda: again.list_buckets(), 30)
    check(again, names)
