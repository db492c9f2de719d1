"""A copy on each kind of store: kept up, verified, followed by a standby, damaged, and restored."""

import json
import time

import pytest

from harness import stores
from harness.administration import ask
from harness.age import RECIPIENT
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
from harness.server import Server, coffer
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


def keeps_versions(store, status):
    settings = {"Status": status}
    s3_client(store).put_bucket_versioning(Bucket="copies", VersioningConfiguration=settings)


def test_a_bucket_that_keeps_versions_takes_no_keystore(server, tmp_path):
    """Older ones would stay there. Other copies it takes."""
    with Server(made(tmp_path / "store")) as store:
        s3_client(store).create_bucket(Bucket="copies")
        url = stores.url_of_coffer(store)
        keeps_versions(store, "Enabled")
        words = ["add", "far", url, "--with-keystore", "--recipient", RECIPIENT]
        error = replica(server, *words, expect=1)
        assert "keeps versions" in error and "s3://copies/of-first" in error, error
        assert "Turn versioning off" in error, error
        assert ask(server, "replica", "list") == []
        listed = s3_client(store).list_objects_v2(Bucket="copies")
        assert listed["KeyCount"] == 0, listed
        replica(server, "add", "plain", url)
        put(server, ["small-1"])
        caught_up(server, "plain")
        keeps_versions(store, "Suspended")
        replica(server, "add", "far", url.replace("of-first", "second"), *words[3:])


def test_an_erase_is_pending_where_versioning_was_turned_on_later(server, tmp_path):
    with Server(made(tmp_path / "store")) as store:
        s3_client(store).create_bucket(Bucket="copies")
        url = stores.url_of_coffer(store)
        replica(server, "add", "far", url, "--with-keystore", "--recipient", RECIPIENT)
        for bucket in ("doomed", "other"):
            s3_client(server).create_bucket(Bucket=bucket)
        caught_up(server)
        within(lambda: status(server)["keystore"]["taken_at"] is not None)
        keeps_versions(store, "Enabled")
        words = ("--data", server.data, "--yes", "--json")
        done = coffer("bucket", "erase", "doomed", *words, text=True)
        assert done.returncode == 0 and "PENDING: copy far" in done.stderr, done
        receipt = json.loads(done.stdout)
        [told] = receipt["copies"]
        assert told["keystore"]["state"] == "pending", told
        assert "as a version that the store keeps" in told["holds"], told
        versions = s3_client(store).list_object_versions(
            Bucket="copies", Prefix="of-first/keystores/"
        )["Versions"]
        assert len(versions) >= 2, "the one before, with the key, is there"
        told = status(server)
        assert "turn versioning off" in told["problem"], told
        # As is said to do, and the next change of the keystore has it looked again.
        keeps_versions(store, "Suspended")
        for version in versions:
            if not version["IsLatest"]:
                s3_client(store).delete_object(
                    Bucket="copies", Key=version["Key"], VersionId=version["VersionId"]
                )
        done = coffer("bucket", "erase", "other", *words, text=True)
        assert done.returncode == 0, done

        def settled():
            shown = ask(server, "receipt", "show", receipt["id"])
            return shown["copies"][0]["keystore"]["state"] == "taken"

        within(settled)
        within(lambda: status(server)["problem"] is None)


@pytest.mark.stores
def test_a_store_without_conditional_creation_is_refused(server, tmp_path):
    with stores.s3proxy(made(tmp_path / "store")) as url:
        assert "no conditional creation" in replica(server, "add", "far", url, expect=1)
