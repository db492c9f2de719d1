"""`coffer prove` on the folders of standbys and of gateways, running and stopped."""

import json

import pytest

from harness.clients import s3_client
from harness.content import content
from harness.engines import Gateway, answers_itself, client, url_at
from harness.sealed_copies import caught_up, made, url_of
from harness.server import Server, coffer
from harness.standbys import add_copy, has, promote, serves_writes, standby_of, started, within

SIZES = {"small": 3_000, "middle": 40_000, "large": 2_000_000}


def findings(server):
    """What is found; at a server that follows no canary is planted."""
    done = coffer("prove", "--data", server.data, "--no-canary", "--json", text=True)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["findings"]


@pytest.fixture
def standby(own_server, tmp_path):
    server = own_server().start()
    (tmp_path / "credentials").write_text(server.credentials_path.read_text())
    add_copy(server, url_of(tmp_path / "copy"))
    s3 = s3_client(server)
    s3.create_bucket(Bucket="notes")
    for name, size_bytes in SIZES.items():
        s3.put_object(Bucket="notes", Key=name, Body=content(size_bytes))
    caught_up(server)
    standby = standby_of(url_of(tmp_path / "copy"), tmp_path / "second", tmp_path / "credentials")
    started(standby)
    # The test's own, of the original.
    standby.credentials_path.chmod(0o600)
    yield standby
    standby.close()


def test_nothing_is_found_at_a_standby(standby):
    within(has(standby, list(SIZES), "notes"))
    assert findings(standby) == []
    standby.stop()
    assert findings(standby) == []
    # What is planted beside or within what it serves is found.
    [state] = (standby.data / "standby" / "states").iterdir()
    (standby.data / "standby" / "notes.txt").write_text("readable")
    (state / "copy of it").write_text("readable")
    [bucket] = (state / "buckets").iterdir()
    (bucket / "blobs").unlink()
    (bucket / "blobs").symlink_to("/tmp")
    with (state / "system.db").open("r+b") as file:
        file.write(b"a readable page " * 256)
    told = " ".join(json.dumps(found) for found in findings(standby))
    for name in ("notes.txt", "copy of it", f"{bucket.name}/blobs", "system.db"):
        assert name in told, (name, told)


def test_nothing_is_found_at_a_standby_that_was_promoted(standby):
    promote(standby)
    serves_writes(standby)
    assert findings(standby) == []


def test_nothing_is_found_at_gateways(tmp_path):
    with Server(made(tmp_path / "store")) as store:
        s3_client(store).create_bucket(Bucket="log")
        with Gateway(tmp_path / "one", url_at(store)) as one:
            key = one.credentials()
            s3 = client(one, key)
            s3.create_bucket(Bucket="notes")
            for name, size_bytes in SIZES.items():
                s3.put_object(Bucket="notes", Key=name, Body=content(size_bytes))
            with Gateway(tmp_path / "two", url_at(store)) as two:
                there = client(two, key)
                where = {"Bucket": "notes", "Key": "large"}
                answers_itself(two, lambda: there.get_object(**where)["Body"].read())
                for gateway in (one, two):
                    assert findings(gateway) == []
                two.stop()
                assert findings(two) == []
                # What a start moved aside that was ended before it had a state.
                before = two.data / "before"
                before.mkdir(mode=0o700)
                for name in ("system.db", "anchor"):
                    (two.data / name).rename(before / name)
                # What is not in its place is told as gone back to; all that is there is sealed.
                found = [found for found in findings(two) if "ROLLBACK" not in found["what"]]
                assert found == []
