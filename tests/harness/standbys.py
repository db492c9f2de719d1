"""Standbys: servers that follow a sealed copy, and are promoted."""

import json
import time

from harness.age import IDENTITY, RECIPIENT
from harness.auditing import export
from harness.clients import s3_client
from harness.sealed_copies import made, replica
from harness.server import Server, coffer

#: How soon a standby has what was acknowledged, where nothing is in the way.
WITHIN_SECONDS = 30


def add_copy(server, url, name="far"):
    """A copy that can be followed."""
    replica(server, "add", name, url, "--with-keystore", "--recipient", RECIPIENT)


def standby_of(url, own, credentials, *arguments):
    """A server that is to follow a copy; not started yet."""
    identity = made(own) / "identity"
    identity.write_text(f"{IDENTITY}\n")
    follow = ["--follow", url, "--identity", str(identity), *arguments]
    server = Server(own, arguments=follow)
    server.first_credentials = credentials.read_text()
    return server


def started(standby, timeout=60):
    """Started, with the access key that tests sign with beside it."""
    standby.start(timeout)
    standby.credentials_path.write_text(standby.first_credentials)
    return standby


def standby_status(standby):
    done = coffer("standby", "status", "--data", standby.data, "--json", text=True)
    assert done.stdout, (done.stderr, standby.log()[-2000:])
    told = json.loads(done.stdout)
    is_well = told["state"] != "failing" and told["problem"] is None
    assert done.returncode == (0 if is_well else 1), done
    return told


def promote(standby, *options, expect=0):
    arguments = [*options, "--data", standby.data, "--yes", "--json"]
    done = coffer("standby", "promote", *arguments, text=True)
    assert done.returncode == expect, (done.stdout, done.stderr, standby.log()[-2000:])
    return json.loads(done.stdout) if expect == 0 else done.stderr


def promotions(server):
    """What the audit log has of promotions that were done."""
    told = export(server, "--act", "standby.promote")
    return [record for record in told if record["outcome"] == "done"]


def within(told, seconds=WITHIN_SECONDS):
    """Waits until something is so, and returns how long that took."""
    began = time.monotonic()
    while not told():
        assert time.monotonic() - began < seconds, "not in time"
        time.sleep(0.1)
    return time.monotonic() - began


def names_at(server, bucket):
    """What a bucket lists; nothing, where there is no such bucket."""
    client = s3_client(server)
    try:
        listed = client.list_objects_v2(Bucket=bucket)
    except client.exceptions.ClientError:
        return []
    return sorted(item["Key"] for item in listed.get("Contents", []))


def has(server, names, bucket):
    return lambda: names_at(server, bucket) == sorted(names)


def serves_writes(server, timeout=30):
    """Waits until a server that was promoted takes writes."""
    client = s3_client(server, connect_timeout=2)

    def writes():
        try:
            client.put_object(Bucket="after", Key="x", Body=b"y")
        except client.exceptions.NoSuchBucket:
            return True
        except Exception:
            return False
        return True

    return within(writes, timeout)
