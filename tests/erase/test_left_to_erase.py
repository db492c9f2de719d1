"""A bucket whose erase was ordered, in a copy that was gone on from: the copy left it out, and
there is nothing of it but its name and its key."""

import json

import pytest

from harness.clients import s3_client
from harness.faults import FailingSync
from harness.raw import metric
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    files_in,
    keys_of,
    made,
    put,
    replica,
    restored,
    served,
    url_of,
    verify,
)
from harness.server import Server, coffer

DOOMED = "doomed"


@pytest.fixture
def server(tmp_path, monkeypatch):
    failing = FailingSync(tmp_path, monkeypatch)
    with Server(made(tmp_path / "first")) as server:
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        server.failing = failing
        yield server


def backed_up(server, to):
    done = coffer("backup", made(to), "--data", server.data, "--json", text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def erase(server, name):
    return coffer("bucket", "erase", name, "--yes", "--data", server.data, text=True)


def test_what_a_copy_left_out_is_erased_where_the_copy_is_gone_on_from(server, tmp_path):
    copy, again = tmp_path / "copy", tmp_path / "again"
    for bucket in (BUCKET, DOOMED):
        s3_client(server).create_bucket(Bucket=bucket)
        put(server, ["small-1", "middle-1"], bucket)
    replica(server, "add", "far", url_of(copy))
    caught_up(server)
    keys = keys_of(server, tmp_path / "restored")
    before = set(files_in(copy / "heads"))
    # The keystore takes no writes: the erase stays an order, and the copy has one without it.
    server.failing.fail("first/data/keystore")
    assert erase(server, DOOMED).returncode != 0
    caught_up(server)
    assert set(files_in(copy / "heads")) > before
    server.kill()
    server.failing.heal()

    told = restored(url_of(copy), keys, expect=3)
    assert {"event": "notthere", "bucket": DOOMED} in told
    with served(tmp_path / "second", keys) as second:
        check(second, ["small-1", "middle-1"])
        listed = coffer("bucket", "list", "--data", keys, "--json", text=True)
        assert DOOMED in listed.stdout, "who ordered it is to ask for it again"
        assert backed_up(second, tmp_path / "kept-1")["left_to_erase_count"] == 1
        # Copies go on without it, which is no error.
        damage_count = metric(second, "coffer_damage_total")
        replica(second, "add", "far", url_of(again))
        put(second, ["small-2"])
        caught_up(second)
        assert metric(second, "coffer_damage_total") == damage_count
        assert second.log().count("an erase of this bucket was ordered") == 1, second.log()
        assert "can't be opened: a copy goes on without it" not in second.log()
        done = erase(second, DOOMED)
        assert done.returncode == 0, done.stderr
        assert backed_up(second, tmp_path / "kept-2")["left_to_erase_count"] == 0
        caught_up(second)
        assert verify(second)[-1]["damage_count"] == 0
        check(second, ["small-1", "middle-1", "small-2"])
        checked = coffer("verify", "--data", keys, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
