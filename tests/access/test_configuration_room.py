"""What documents of buckets fill: it is the room of their level, and keeps nothing else from going
on."""

import json
import shutil

import pytest
from botocore.exceptions import ClientError

from harness.administration import client_of, run
from harness.sealed_copies import made
from harness.server import Server, coffer

#: As long as rules of one bucket may be, about.
RULE = {"Status": "Enabled", "Filter": {"Prefix": "p" * 1000}, "Expiration": {"Days": 1000}}


def at(level):
    return {"CreateBucketConfiguration": {"LocationConstraint": level}}


def fill(client, level):
    """Until nothing more is taken."""
    for number in range(60):
        bucket = f"full-{level}-{number}"
        client.create_bucket(Bucket=bucket, **at(level))
        for count in (200, 20, 1):
            rules = [{**RULE, "ID": f"r{index}"} for index in range(count)]
            try:
                client.put_bucket_lifecycle_configuration(
                    Bucket=bucket, LifecycleConfiguration={"Rules": rules}
                )
                break
            except ClientError as error:
                message = error.response["Error"]["Message"]
                assert "all buckets of this level" in message, message
        else:
            return
    pytest.fail("it was never full")


def assert_room_is_kept(client, level):
    readers = ", ".join(f"id={number:032x}" for number in range(1, 100))
    listed = {"ObjectOwnership": "ObjectWriter", "GrantRead": readers}
    for _ in range(2):
        with pytest.raises(ClientError, match="all buckets of this level"):
            client.create_bucket(Bucket="listed", **listed, **at(level))
    client.create_bucket(Bucket="listed", **at(level))


def test_one_level_fills_its_own_room_alone_and_locks_go_on(own_server, tmp_path):
    with own_server() as server:
        for name, category in (("north", "c1"), ("south", "c2")):
            run(server, "level", "create", name, "--rank", "1", "--categories", category)
        nora, sam = client_of(server, "nora", "north"), client_of(server, "sam", "south")
        for client, level in ((nora, "north"), (sam, "south")):
            bucket = f"kept-{level}"
            client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True, **at(level))
            days = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}
            client.put_object_lock_configuration(
                Bucket=bucket,
                ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": days},
            )
        fill(sam, "south")
        # Nor is a bucket made with a long list: that is of the same room.
        assert_room_is_kept(sam, "south")
        # Who is refused for what others have set there has read it, and writes nothing below.
        flo = client_of(server, "flo", "default..south")
        flo.create_bucket(Bucket="low")
        flo.create_bucket(Bucket="high", **at("south"))
        flo.put_object(Bucket="low", Key="a", Body=b"before")
        with pytest.raises(ClientError, match="all buckets of this level"):
            rules = [{**RULE, "ID": f"r{index}"} for index in range(20)]
            flo.put_bucket_lifecycle_configuration(
                Bucket="high", LifecycleConfiguration={"Rules": rules}
            )
        with pytest.raises(ClientError, match="AccessDenied"):
            flo.put_object(Bucket="low", Key="a", Body=b"after")
        # Not in the other level, and what the server notes of locks goes on in both.
        nora.create_bucket(Bucket="open", **at("north"))
        rule = {**RULE, "ID": "r"}
        nora.put_bucket_lifecycle_configuration(
            Bucket="open", LifecycleConfiguration={"Rules": [rule]}
        )
        for client, level in ((nora, "north"), (sam, "south")):
            bucket = f"kept-{level}"
            client.put_object(Bucket=bucket, Key="a", Body=b"a")
            hold = {"Status": "ON"}
            client.put_object_legal_hold(Bucket=bucket, Key="a", LegalHold=hold)
        # And a copy of all of it can be gone on from.
        run(server, "backup", tmp_path / "backup")
        copy = tmp_path / "backup" / "copy"
        shutil.copy(server.data / "root.key", copy)
        keys = server.credentials()
        server.stop()
    restored = Server(made(tmp_path / "again"), data=copy, arguments=["--accept-rollback"])
    with restored:
        run(restored, "subject", "enable", "first")
        run(restored, "subject", "key", "enable", keys[0])
        shown = json.loads(coffer("--data", restored.data, "bucket", "list", "--json").stdout)
        assert {"kept-north", "kept-south"} <= {bucket["name"] for bucket in shown}
