"""Keystores of other servers in the place of a copy that a standby follows: whoever can write to
the store can put them there, and seal them for the same recipients."""

import shutil

import pytest

from harness.age import IDENTITY, RECIPIENT
from harness.clients import s3_client
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    made,
    put,
    replica,
    restore,
    url_of,
    verify,
)
from harness.server import Server, StartError
from harness.standbys import (
    add_copy,
    has,
    promote,
    serves_writes,
    standby_of,
    standby_status,
    started,
    within,
)

NAMES = ["small-1", "middle-1", "large-1"]


@pytest.fixture
def followed(server, tmp_path):
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    put(server, NAMES)
    caught_up(server)
    standby = standby_of(url_of(copy), tmp_path / "second", tmp_path / "credentials")
    started(standby)
    within(has(standby, NAMES, BUCKET))
    yield standby
    standby.close()


@pytest.fixture
def foreign(tmp_path):
    """A copy of another server, sealed for the same recipient."""
    return copy_of_another(tmp_path, add_copy)


def copy_of_another(tmp_path, add):
    copy = tmp_path / "theirs"
    with Server(made(tmp_path / "another")) as another:
        s3_client(another).create_bucket(Bucket=BUCKET)
        add(another, url_of(copy))
        put(another, ["small-2"])
        caught_up(another)
    return copy


def newest_keystore(copy):
    return max((copy / "keystores").iterdir())


def keys_of(standby):
    return {name: (standby.data / name).read_bytes() for name in ("keystore", "root.key")}


def is_failing(standby, why):
    def told():
        found = standby_status(standby)
        return found["state"] == "failing" and why in found["problem"]

    return told


def goes_on_alone(standby, names):
    """From what it serves."""
    promote(standby, "--without-copy")
    serves_writes(standby)
    check(standby, names)
    put(standby, ["middle-2"])
    check(standby, sorted([*names, "middle-2"]))


@pytest.mark.parametrize("is_for_recipients", [True, False])
def test_a_foreign_keystore_changes_nothing(server, followed, tmp_path, is_for_recipients):
    def add(another, url):
        if is_for_recipients:
            add_copy(another, url)
        else:
            replica(another, "add", "far", url, "--with-keystore")

    theirs, keys = copy_of_another(tmp_path, add), keys_of(followed)
    put_there = tmp_path / "copy" / "keystores" / "00000009-000000000999"
    shutil.copy(newest_keystore(theirs), put_there)
    within(is_failing(followed, "keystores/00000009-000000000999"))
    told = standby_status(followed)["problem"]
    assert "is not of the server that this one follows" in told, told
    assert keys_of(followed) == keys
    check(followed, NAMES)
    followed.kill()
    started(followed)
    within(is_failing(followed, "keystores/00000009-000000000999"))
    assert keys_of(followed) == keys
    put_there.unlink()
    put(server, ["small-2"])
    within(has(followed, [*NAMES, "small-2"], BUCKET))
    shutil.copy(newest_keystore(theirs), put_there)
    within(is_failing(followed, "keystores/00000009-000000000999"))
    server.kill()
    goes_on_alone(followed, [*NAMES, "small-2"])


def test_an_older_keystore_under_a_newer_name_changes_nothing(server, followed, tmp_path):
    copy = tmp_path / "copy"
    older = newest_keystore(copy)
    name, older = older.name, older.read_bytes()
    s3_client(server).create_bucket(Bucket="later")
    put(server, ["small-1"], bucket="later")
    caught_up(server)
    within(has(followed, ["small-1"], "later"))
    keys = keys_of(followed)
    for put_there in (f"00000009-{name.split('-')[1]}", "00000009-000000000999"):
        path = copy / "keystores" / put_there
        path.write_bytes(older)
        within(lambda: standby_status(followed)["state"] == "failing")
        assert keys_of(followed) == keys
        check(followed, ["small-1"], bucket="later")
        path.unlink()
        within(lambda: standby_status(followed)["state"] == "following")


def test_a_standby_that_starts_again_knows_another_copy_in_its_place(
    server, followed, foreign, tmp_path
):
    copy, keys = tmp_path / "copy", keys_of(followed)
    server.kill()
    followed.kill()
    copy.rename(tmp_path / "away")
    shutil.copytree(foreign, copy)
    started(followed)
    within(is_failing(followed, "copy.json in this place is of copy"))
    assert keys_of(followed) == keys
    check(followed, NAMES)
    goes_on_alone(followed, NAMES)


def test_nothing_of_a_copy_is_placed_whose_heads_do_not_open(server, foreign, tmp_path):
    """Where nothing was followed before, nothing else tells whose keystore it is."""
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    put(server, NAMES)
    caught_up(server)
    theirs = newest_keystore(foreign)
    put_there = copy / "keystores" / f"00000009-{theirs.name.split('-')[1]}"
    shutil.copy(theirs, put_there)
    standby = standby_of(url_of(copy), tmp_path / "second", tmp_path / "credentials")
    try:
        with pytest.raises(StartError, match="the copy is of another server"):
            started(standby)
        assert not (standby.data / "keystore").exists()
        put_there.unlink()
        started(standby)
        within(has(standby, NAMES, BUCKET))
    finally:
        standby.close()


def test_a_folder_that_has_the_keys_of_another_goes_on_with_those_of_its_state(
    server, followed, foreign, tmp_path
):
    """As earlier versions left it."""
    server.kill()
    keys = keys_of(followed)
    other = standby_of(url_of(foreign), tmp_path / "third", tmp_path / "credentials")
    try:
        started(other)
        theirs = keys_of(other)
    finally:
        other.close()
    shutil.rmtree(tmp_path / "copy")
    within(lambda: standby_status(followed)["state"] == "failing")
    for name, found in theirs.items():
        (followed.data / name).write_bytes(found)
    goes_on_alone(followed, NAMES)
    assert keys_of(followed)["root.key"] == keys["root.key"]


def test_a_restore_says_that_a_keystore_is_foreign(server, foreign, tmp_path):
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    put(server, ["small-1"])
    caught_up(server)
    server.kill()
    put_there = copy / "keystores" / "00000009-000000000999"
    shutil.copy(newest_keystore(foreign), put_there)
    identity = tmp_path / "identity"
    identity.write_text(f"{IDENTITY}\n")
    data = tmp_path / "restored"
    error = restore(url_of(copy), data, "--identity", identity, expect=1)
    assert f"keystores/{put_there.name}" in error, error
    assert not (data / "keystore").exists() and not (data / "root.key").exists()
    put_there.unlink()
    restore(url_of(copy), data, "--identity", identity)


@pytest.mark.parametrize("sealed", [("--recipient", RECIPIENT), ()])
def test_what_has_a_later_name_alone_is_no_keystore(server, tmp_path, sealed):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore", *sealed)
    put(server, ["small-1"])
    caught_up(server)

    def is_told():
        # Each time: the server looks by itself, too, and may have put it again.
        newest = newest_keystore(copy)
        epoch, generation = newest.name.split("-")
        newest.unlink()
        later = newest.with_name(f"{epoch}-{int(generation) + 7:012}")
        later.write_bytes(b"?" * 500)
        told = [event.get("what", "") for event in verify(server, expect=None)]
        return any(f"keystores/{later.name} " in it and "is no keystore" in it for it in told)

    within(is_told)
    within(lambda: verify(server, expect=None)[-1]["damage_count"] == 0)


def test_who_is_fenced_by_a_keystore_names_that(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    put(server, ["small-1"])
    caught_up(server)
    newest = newest_keystore(copy)
    other = newest.with_name(f"00000099-{newest.name.split('-')[1]}")
    shutil.copy(newest, other)
    within(lambda: f"keystores/{other.name} is a keystore of epoch 99" in server.log())
    # As the message says, where it was put there by hand.
    other.unlink()
    server.stop()
    server.start()
    put(server, ["small-2"])
    caught_up(server)
    assert verify(server)[-1]["damage_count"] == 0
