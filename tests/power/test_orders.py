"""What is told of an act whose end the disk did not take holds: an erase is completed, and a bucket
whose policy is in doubt is out of use."""

import contextlib
import errno
import json
import shutil
import time

import pytest

from harness.power.preload import KINDS
from harness.power.world import World, copy_tree

ALWAYS = 1 << 40


@contextlib.contextmanager
def served(bench, name):
    folder, bases = bench
    base, ledger = bases["rest"]
    root = folder / name / "w"
    root.parent.mkdir()
    copy_tree(base, root)
    world = World(root, ledger.copy(), recorded=True).start()
    try:
        yield world
    finally:
        world.close()
        shutil.rmtree(root.parent)


def refuse(world, kind, text):
    """From now on all calls of this kind fail that name a path with this text."""
    world.running.arm(KINDS[kind], 0, ALWAYS, errno.EIO, text)


def refuse_nothing(world):
    world.running.arm(0, 0, 0, 0)


def restart(world):
    world.client.close()
    world.running.end()
    world.running.start()


def receipts_of(world, level):
    status, told = world.client.admin("GET", "/v1/receipts")
    assert status == 200, told
    ids = [one["id"] for one in told if one["level"] == level]
    return [world.client.admin("GET", f"/v1/receipts/{one}")[1] for one in ids]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["asked again", "restarted", "restarted twice"])
@pytest.mark.parametrize("what", ["bucket", "level"])
def test_an_erase_that_the_keystore_did_not_take_is_completed(bench, what, how):
    with served(bench, f"ordered-{what}-{how.replace(' ', '-')}") as world:
        client = world.client
        level = {"name": "ordered", "rank": 0, "approvals": 1, "same_label": True}
        assert client.admin("POST", "/v1/levels", level)[0] < 300
        bucket = {"name": "of-ordered", "level": "ordered"}
        assert client.admin("POST", "/v1/buckets", bucket)[0] < 300
        assert client.s3("PUT", "/of-ordered/key", body=b"secret")[0] == 200
        erase = "/v1/levels/ordered/erase" if what == "level" else "/v1/buckets/of-ordered/erase"

        refuse(world, "sync", "keystore")
        for _ in range(2):
            status, told = client.admin("POST", erase)
            assert status == 500 and "can't be used any more" in json.dumps(told), told
            # An erase ends the connections that were about the bucket.
            client.close()
            assert client.s3("GET", "/of-ordered/key")[0] == 404
        refuse_nothing(world)
        assert not receipts_of(world, "ordered")
        assert client.s3("PUT", "/of-ordered")[0] == 409, "its name is taken"
        if how == "asked again":
            status, told = client.admin("POST", erase)
            assert status == 200, told
        for _ in range({"asked again": 0, "restarted": 1, "restarted twice": 2}[how]):
            restart(world)

        assert client.s3("GET", "/of-ordered/key")[0] == 404
        assert client.admin("POST", erase)[0] == 404
        [receipt] = receipts_of(world, "ordered")
        erased = receipt["erased"]
        assert [one["name"] for one in erased["buckets"]] == ["of-ordered"]
        assert (erased["what"], erased["objects"], erased["bytes"]) == (what, 1, 6)
        assert client.s3("PUT", "/of-ordered")[0] == 200, "its name is free"


@pytest.mark.timeout(300)
def test_a_bucket_whose_policy_is_in_doubt_is_out_of_use(bench):
    with served(bench, "policy-in-doubt") as world:
        client = world.client
        assert client.s3("PUT", "/doubted")[0] == 200
        assert client.s3("PUT", "/doubted/key", body=b"x")[0] == 200
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::doubted/*",
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
        refuse(world, "sync", "system.db")
        status, _, told = client.s3("PUT", "/doubted", query="policy=", body=policy)
        assert status == 500 and b"out of use" in told, (status, told)
        assert client.s3("GET", "/doubted/key")[0] == 503
        assert client.s3("PUT", "/doubted/other", body=b"x")[0] == 503
        assert client.s3("GET", "/doubted", query="policy=")[0] == 503
        refuse_nothing(world)
        until = time.monotonic() + 30
        while (status := client.s3("GET", "/doubted/key")[0]) == 503 and time.monotonic() < until:
            time.sleep(0.2)
        is_set = client.s3("GET", "/doubted", query="policy=")[0] == 200
        assert status == (403 if is_set else 200)


@pytest.mark.timeout(300)
def test_a_bucket_that_could_not_be_made_leaves_no_folder(bench):
    with served(bench, "not-made") as world:
        buckets = world.running.data / "buckets"
        before = sorted(buckets.iterdir())
        refuse(world, "write", "keystore")
        assert world.client.s3("PUT", "/not-made")[0] >= 500
        refuse_nothing(world)
        assert sorted(buckets.iterdir()) == before
        assert world.client.s3("PUT", "/not-made")[0] == 200
