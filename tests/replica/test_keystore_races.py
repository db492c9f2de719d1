"""A keystore of a copy that is replaced between the look for it and its answer."""

import pytest

from harness.administration import run
from harness.clients import s3_client
from harness.sealed_copies import BUCKET, caught_up, check, made, put
from harness.server import Server
from harness.standbys import add_copy, names_at, standby_of, standby_status, started, within
from harness.watching import Watching

NAMES = ["small-1", "middle-1"]


@pytest.fixture
def between(server, tmp_path):
    """Stands between a standby and the store of the copy, which another coffer is."""
    with Server(made(tmp_path / "store")) as store, Watching(store) as between:
        s3_client(store).create_bucket(Bucket="copies")
        for bucket in ("doomed-1", "doomed-2", "doomed-3"):
            s3_client(server).create_bucket(Bucket=bucket)
        put(server, NAMES)
        at = f"credentials={store.credentials_path}"
        add_copy(server, f"s3://copies/c?endpoint={store.endpoint}&ca={store.ca}&{at}")
        caught_up(server)
        between.url = f"s3://copies/c?endpoint={between.endpoint}&{at}"
        yield between


def erase_as_it_is_fetched(between, server, bucket):
    """Has the server put another keystore, and remove the one that is just asked for."""
    replaced = []

    def replace(method, path):
        if method == "GET" and path.startswith("/copies/c/keystores/") and not replaced:
            replaced.append(path)
            run(server, "bucket", "erase", bucket, "--yes")

    between.before = replace
    return replaced


def test_it_is_looked_for_again(server, between, tmp_path):
    replaced = erase_as_it_is_fetched(between, server, "doomed-1")
    standby = standby_of(between.url, tmp_path / "second", tmp_path / "credentials")
    try:
        started(standby)
        assert replaced, between.requests
        check(standby, NAMES)
        # So it is while one follows.
        replaced = erase_as_it_is_fetched(between, server, "doomed-2")
        run(server, "bucket", "erase", "doomed-3", "--yes")
        within(lambda: replaced)
        put(server, ["small-2"])
        within(lambda: "small-2" in names_at(standby, BUCKET))
        check(standby, [*NAMES, "small-2"])
        told = standby_status(standby)
        assert told["state"] == "following" and told["problem"] is None, told
        assert "falls behind" not in standby.log()
    finally:
        standby.close()
