"""A copy on each kind of store: kept up, verified, followed by a standby, damaged, and restored."""

import time

import pytest

from harness import stores
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    keys_of,
    made,
    put,
    replica,
    restore,
    served,
    status,
    verify,
)
from harness.standbys import add_copy, has, standby_of, started, within

OF_OTHERS = [stores.azurite]


@pytest.fixture(
    params=[
        stores.folder,
        stores.another_coffer,
        *(pytest.param(store, marks=pytest.mark.stores) for store in OF_OTHERS),
    ],
    ids=lambda store: store.__name__,
)
def url(request, tmp_path):
    with request.param(made(tmp_path / "store")) as url:
        yield url


def test_a_copy_is_kept_up_followed_and_restored(server, url, tmp_path):
    names = ["small-1", "middle-1", "large-1"]
    put(server, [*names, "middle-gone"])
    add_copy(server, url)
    caught_up(server, seconds=60)
    assert "there is a copy in this place" in replica(server, "add", "again", url, expect=1)
    put(server, ["small-2", "middle-2"])
    s3_client(server).delete_object(Bucket=BUCKET, Key="middle-gone")
    names += ["small-2", "middle-2"]
    told = caught_up(server, seconds=60)
    before = time.time()
    (tmp_path / "credentials").write_text(server.credentials_path.read_text())
    standby = standby_of(url, tmp_path / "standby", tmp_path / "credentials")
    try:
        started(standby)
        check(standby, names)
        put(server, ["middle-3"])
        names.append("middle-3")
        within(has(standby, names, BUCKET))
    finally:
        standby.close()
    server.kill()
    server.start()
    put(server, ["small-4", "large-4"])
    names += ["small-4", "large-4"]
    caught_up(server, seconds=60)
    events = verify(server)
    assert events[-1]["event"] == "done" and events[-1]["damage_count"] == 0, events[-1]
    told = status(server)
    assert told["state"] == "following" and told["problem"] is None, told
    keys = keys_of(server, tmp_path / "restored")
    earlier = keys_of(server, tmp_path / "earlier")
    server.kill()
    done = restore(url, keys, "--head", told["head"])
    assert done["missing_count"] == 0, done
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(before))
    assert restore(url, earlier, "--at", at)["missing_count"] == 0
    with served(tmp_path / "second", keys) as second:
        check(second, names)


@pytest.mark.stores
def test_a_store_without_conditional_creation_is_refused(server, tmp_path):
    with stores.s3proxy(made(tmp_path / "store")) as url:
        assert "no conditional creation" in replica(server, "add", "far", url, expect=1)
