"""The server's log has ids and numbers of audit records: no name that outlives what it names."""

import json

from harness.administration import ask, run
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.server import coffer

# Distinct words: one for each kind of name that users choose.
LEVEL, BUCKET, SUBJECT = "canarylevel", "canarybucket", "canarysubject"
OBJECT, METADATA, TAG = "canaryobject", "canarymetadata", "canarytag"


def use(server):
    """Makes, uses, changes and destroys all that has a name, and fails at it as well."""
    run(server, "level", "create", LEVEL, "--rank", "1", "--audit-data")
    run(server, "bucket", "create", BUCKET, "--level", LEVEL)
    rights = ("--grant", f"{BUCKET}=read,write")
    made = ask(server, "subject", "create", SUBJECT, "--clearance", LEVEL, *rights)
    s3 = s3_client(server, credentials=(made["access_key_id"], made["secret_access_key"]))
    s3.put_object(
        Bucket=BUCKET, Key=OBJECT, Body=b"x" * 100_000, Metadata={METADATA: METADATA},
        Tagging=f"{TAG}={TAG}",
    )  # fmt: skip
    s3.get_object(Bucket=BUCKET, Key=OBJECT)["Body"].read()
    with s3_refused("NoSuchKey"):
        s3.get_object(Bucket=BUCKET, Key=f"{OBJECT}-missing")
    with s3_refused("AccessDenied"):
        s3.delete_object(Bucket=BUCKET, Key=OBJECT)
    for blob in (server.data / "buckets").glob("*/blobs/*/*"):
        sealed = bytearray(blob.read_bytes())
        sealed[200] ^= 1
        blob.write_bytes(sealed)
    with s3_refused():
        s3.get_object(Bucket=BUCKET, Key=OBJECT)["Body"].read()
    run(server, "level", "rotate", LEVEL)
    run(server, "subject", "set", SUBJECT, "--clearance", f"default..{LEVEL}")
    for again in (("level", "create", LEVEL, "--rank", "2"), ("bucket", "create", BUCKET)):
        assert coffer("--data", server.data, *again).returncode == 1
    run(server, "subject", "delete", SUBJECT)
    receipt = ask(server, "level", "erase", LEVEL, "--yes")
    assert receipt["erased"]["level"]["name"] == LEVEL


def test_the_log_has_no_names(own_server):
    server = own_server(arguments=("--log", "debug")).start()
    use(server)
    server.stop()
    log = server.log()
    assert "answered" in log and "administration" in log, "the log tells too little to show it"
    told = [line for line in log.splitlines() if "canary" in line]
    assert not told, told


def test_what_was_done_is_found_by_the_number_of_its_record(own_server):
    server = own_server().start()
    run(server, "level", "create", LEVEL, "--rank", "1", "--same-label")
    line = next(one for one in server.log().splitlines() if "level.create" in one)
    number = int(line.split("record=")[1].split()[0])
    shown = run(server, "audit", "show", "--json")
    records = [json.loads(one) for one in shown.splitlines()]
    found = next(one for one in records if one.get("sequence") == number)
    assert LEVEL in json.dumps(found), found
