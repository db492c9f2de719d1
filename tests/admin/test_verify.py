"""What whoever looks after the server learns of damage, and of a verification under way."""

import json
import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.clients import s3_client
from harness.content import content
from harness.server import coffer

BUCKET = "looked-after"
SIZE_BYTES = 100_000
FIRST_BYTE = 56
"""Of the first chunk in a blob, behind the header."""


def test_the_log_tells_of_damage_once_and_names_no_object(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="secret-name", Body=content(SIZE_BYTES))
    (path,) = server.blob_files()
    sealed = bytearray(path.read_bytes())
    sealed[FIRST_BYTE] ^= 1
    path.write_bytes(sealed)
    for _ in range(3):
        with pytest.raises(ClientError):
            s3.get_object(Bucket=BUCKET, Key="secret-name")
    assert raw.metric(server, "coffer_damage_total") == 3
    told = [line for line in server.log().splitlines() if "stored data is damaged" in line]
    (line,) = told
    assert path.parent.name + path.name in line, "the blob"
    assert path.parents[2].name in line, "the bucket"
    assert "secret-name" not in server.log()
    server.stop()
    server.start()
    assert recorded_damage(server) == 3


def recorded_damage(server):
    """How much damage the audit log tells of that readers met."""
    shown = coffer("audit", "export", "--data", server.data)
    assert shown.returncode == 0, shown.stderr
    records = [json.loads(line) for line in shown.stdout.splitlines()]
    found = [record for record in records if record.get("act") == "storage.damage"]
    return sum(int(record["details"]["count"]) for record in found)


def test_verify_is_throttled_and_tells_how_far_it_is(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="bulk", Body=bytes(8_000_000))
    began = time.monotonic()
    done = coffer("verify", "--data", server.data, "--rate", "4MB", "--json")
    assert done.returncode == 0
    assert time.monotonic() - began > 1.0
    *progress, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["event"] == "done" and {event["event"] for event in progress} == {"progress"}
    checked = [event["checked_bytes"] for event in progress]
    assert len(checked) > 3 and checked == sorted(set(checked)), "it rises"
    total_bytes = 8_000_000
    assert {event["total_bytes"] for event in progress} == {total_bytes}
    assert checked[-1] <= last["checked_bytes"] == total_bytes
