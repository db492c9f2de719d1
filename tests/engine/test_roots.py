"""Gateways that share a passphrase or a token: the engine's identity lies in its store, sealed."""

import fcntl
import json
import os
import pty
import subprocess
import termios
import threading

import pytest
from botocore.exceptions import ClientError

from harness.age import IDENTITY, opened, opened_by_passphrase, sealed_by_passphrase
from harness.content import KIB, content
from harness.engines import REPLACED_SECONDS, Gateway, answered, client, url_at
from harness.keys import TOKEN_PIN
from harness.sealed_copies import files_in, made, restore
from harness.server import StartError, coffer

BUCKET = "notes"
NAMES = {"small": 900, "large": 300 * KIB}
PASSPHRASE = "lantern-gravel-uncle-seventeen-otters"
OTHER = "harbour-violin-seven-lamps-under-moss"


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    """What opens every source, where systemd would put it."""
    folder = made(tmp_path / "credentials of systemd")
    (folder / "coffer-passphrase").write_text(PASSPHRASE)
    (folder / "coffer-pin").write_text(TOKEN_PIN)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


class Log:
    """What lies in the store, beside the gateways."""

    def __init__(self, store):
        self.s3 = client(store, store.credentials())

    def names(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/")
        return {item["Key"].removeprefix("engine/") for page in pages for item in page["Contents"]}

    def read(self, name):
        return self.s3.get_object(Bucket="log", Key=f"engine/{name}")["Body"].read()

    def put(self, name, body):
        self.s3.put_object(Bucket="log", Key=f"engine/{name}", Body=body)

    def identity(self):
        """The identity, as the passphrase opens it."""
        found = self.read("identity").decode()
        return opened_by_passphrase(found, PASSPHRASE).decode().strip()

    def has_identity(self):
        try:
            return bool(self.read("identity"))
        except ClientError:
            return False


@pytest.fixture
def log(store):
    return Log(store)


def gateway(tmp_path, store, name, root_key="passphrase"):
    return Gateway(tmp_path / name, url_at(store), root_key=root_key)


def fill(s3):
    s3.create_bucket(Bucket=BUCKET)
    for name, size_bytes in NAMES.items():
        s3.put_object(Bucket=BUCKET, Key=name, Body=content(size_bytes, name))


def check(s3):
    for name, size_bytes in NAMES.items():
        body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        assert body == content(size_bytes, name), name


def test_gateways_that_share_a_passphrase_serve_the_same(tmp_path, store, secrets):
    with gateway(tmp_path, store, "one") as first, gateway(tmp_path, store, "two") as second:
        key = first.credentials()
        fill(client(first, key))
        check(client(second, key))
        first.kill()
        took, _ = answered(lambda: client(second, key).put_object(Bucket=BUCKET, Key="late"))
        assert took < REPLACED_SECONDS
        # One that comes with an empty folder, and the passphrase alone.
        with gateway(tmp_path, store, "three") as third:
            answered(lambda: check(client(third, key)))


def test_two_that_begin_at_once_have_one_identity(tmp_path, store, log, secrets):
    gateways = [gateway(tmp_path, store, name) for name in ("one", "two")]
    starts = [threading.Thread(target=each.start) for each in gateways]
    try:
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        made_by = next(each for each in gateways if each.credentials_path.exists())
        key = made_by.credentials()
        fill(client(made_by, key))
        for each in gateways:
            check(client(each, key))
    finally:
        for each in gateways:
            each.close()


def test_the_identity_is_nowhere_in_the_clear(tmp_path, store, log, secrets):
    with gateway(tmp_path, store, "one") as first, gateway(tmp_path, store, "two") as second:
        key = first.credentials()
        fill(client(first, key))
        check(client(second, key))
        identity = log.identity()
        assert identity.startswith("AGE-SECRET-KEY-1")
        [keystore] = [name for name in log.names() if name.startswith("keystores/")]
        assert opened(log.read(keystore).decode(), identity).startswith(b"coffer carried keystore")
        readable = (b"AGE-SECRET-KEY-", identity.encode(), PASSPHRASE.encode())
        for name in log.names():
            body = log.read(name)
            assert not any(word in body for word in readable), name
        for each in (first, second):
            for path in files_in(each.data):
                if path.is_file():
                    assert not any(word in path.read_bytes() for word in readable), path
            assert not any(word.decode() in each.log() for word in readable)


def test_a_wrong_passphrase_costs_nothing(tmp_path, store, log, secrets):
    with gateway(tmp_path, store, "one") as first:
        key = first.credentials()
        fill(client(first, key))
        sealed = log.read("identity")
        (secrets / "coffer-passphrase").write_text(OTHER)
        second = gateway(tmp_path, store, "two")
        with pytest.raises(StartError, match="does not open with this passphrase") as told:
            second.start()
        assert told.value.code == 1
        assert not second.data.exists()
        assert log.read("identity") == sealed
        check(client(first, key))
        (secrets / "coffer-passphrase").write_text(PASSPHRASE)
        with second:
            check(client(second, key))


def test_a_short_passphrase_begins_no_engine(tmp_path, store, log, secrets):
    (secrets / "coffer-passphrase").write_text("short")
    with pytest.raises(StartError, match="at least 8") as told:
        gateway(tmp_path, store, "one").start()
    assert told.value.code == 2
    assert not log.has_identity()


def test_a_damaged_identity_is_told_and_can_be_put_back(tmp_path, store, log, secrets):
    with gateway(tmp_path, store, "one") as first:
        key = first.credentials()
        fill(client(first, key))
        first.stop()
        sealed = log.read("identity")
        middle = len(sealed) // 2
        for damaged, told in [
            (b"", "was altered"),
            (b"nothing like it", "was altered"),
            (sealed[:middle], "was altered"),
            (sealed[:middle] + b"A" * 8 + sealed[middle + 8 :], "altered"),
            (sealed + b"x" * 16 * KIB, "longer than any"),
            (sealed_by_passphrase(b"no identity", PASSPHRASE), "was altered"),
            (b"coffer token root key v1\n00\n", "kind of source"),
        ]:
            log.put("identity", damaged)
            with pytest.raises(StartError, match=told) as refused:
                first.start()
            assert refused.value.code == 1
            assert log.read("identity") == damaged
        log.put("identity", sealed)
        first.start()
        answered(lambda: check(client(first, key)), 30)


def age(*arguments, answers):
    """Runs the program `age`, which asks at a terminal, and answers each of its questions."""
    here, there = pty.openpty()
    running = subprocess.Popen(
        ["age", *map(str, arguments)],
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(there)
    said = b""
    for answer in answers:
        said = b""
        while not said.endswith(b": "):
            said += os.read(here, 1000)
        os.write(here, f"{answer}\n".encode())
    code = running.wait(60)
    os.close(here)
    assert code == 0, said


def test_an_engine_gets_a_passphrase_and_another(tmp_path, store, log, secrets):
    """As the guide has it, by the program `age`."""
    key_file, sealed = tmp_path / "key.txt", tmp_path / "sealed.age"
    key_file.write_text(f"# created: today\n{IDENTITY}\n")

    def seal(passphrase):
        asked = ("--passphrase", "--armor", "--output", sealed, key_file)
        age(*asked, answers=[passphrase, passphrase])
        log.put("identity", sealed.read_bytes())
        key_file.unlink()
        sealed.unlink()

    with Gateway(tmp_path / "one", url_at(store)) as first:
        key = first.credentials()
        fill(client(first, key))
        with pytest.raises(StartError, match="is not there, and a log is") as told:
            gateway(tmp_path, store, "two").start()
        assert told.value.code == 1
        assert not log.has_identity()
        seal(PASSPHRASE)
        with gateway(tmp_path, store, "two") as second:
            check(client(second, key))
            sealed.write_bytes(log.read("identity"))
            age("--decrypt", "--output", key_file, sealed, answers=[PASSPHRASE])
            seal(OTHER)
            check(client(second, key))
        with pytest.raises(StartError, match="does not open with this passphrase"):
            gateway(tmp_path, store, "two").start()
        (secrets / "coffer-passphrase").write_text(OTHER)
        with gateway(tmp_path, store, "two") as second:
            check(client(second, key))
        # Who was given the identity goes on.
        first.restart()
        answered(lambda: check(client(first, key)))


def test_what_the_first_gateway_seals_opens_by_other_programs(tmp_path, store, log, secrets):
    with gateway(tmp_path, store, "one"):
        sealed, key_file = tmp_path / "old.age", tmp_path / "key.txt"
        sealed.write_bytes(log.read("identity"))
        age("--decrypt", "--output", key_file, sealed, answers=[PASSPHRASE])
        assert key_file.read_text() == log.identity()


def test_an_engine_is_restored_by_its_passphrase(tmp_path, store, secrets):
    with gateway(tmp_path, store, "one") as first:
        fill(client(first, first.credentials()))
    data = made(tmp_path / "restored") / "data"
    (secrets / "coffer-passphrase").write_text(OTHER)
    told = restore(url_at(store), data, "--root-key", "passphrase", expect=1)
    assert "does not open with this passphrase" in told
    (secrets / "coffer-passphrase").write_text(PASSPHRASE)
    restore(url_at(store), data, "--root-key", "passphrase")
    done = coffer("offline", "cat", "--data", data, BUCKET, "small")
    assert done.stdout == content(NAMES["small"], "small"), done.stderr


def test_gateways_that_share_a_token_serve_the_same(tmp_path, store, log, secrets, token):
    with gateway(tmp_path, store, "one", token) as first:
        key = first.credentials()
        fill(client(first, key))
        sealed = log.read("identity")
        assert sealed.startswith(b"coffer token root key v1\n")
        assert b"AGE-SECRET-KEY-" not in sealed
        with gateway(tmp_path, store, "two", token) as second:
            check(client(second, key))
            first.kill()
            answered(lambda: check(client(second, key)))
        with pytest.raises(StartError, match="kind of source"):
            gateway(tmp_path, store, "three").start()
        # An id that the token has no key of.
        heading, number, rest = sealed.split(b"\n", 2)
        log.put("identity", b"\n".join([heading, number[::-1], rest]))
        with pytest.raises(StartError, match="key that this token does not hold"):
            gateway(tmp_path, store, "three", token).start()
        log.put("identity", sealed)
        (secrets / "coffer-pin").write_text("000000")
        with pytest.raises(StartError, match="does not take the PIN"):
            gateway(tmp_path, store, "three", token).start()
        (secrets / "coffer-pin").write_text(TOKEN_PIN)
        data = made(tmp_path / "restored") / "data"
        restore(url_at(store), data, "--root-key", token)


def test_what_gateways_do_not_share_is_refused(tmp_path, store, log):
    identity = made(tmp_path / "own") / "identity"
    identity.write_text(IDENTITY)
    for options, told in [
        (["--root-key", "file"], "don't share"),
        (["--root-key", "keyring"], "don't share"),
        (["--root-key", "passphrase", "--identity", identity], "not both"),
        ([], "--root-key passphrase"),
    ]:
        data = tmp_path / "data"
        engine = ["--engine", url_at(store), *options]
        done = coffer("serve", "--data", data, *engine, text=True)
        assert done.returncode == 2 and told in done.stderr, done
        assert not data.exists() and not log.has_identity()


@pytest.mark.parametrize("kind", ["passphrase", "token"])
def test_what_the_store_overwrites_counts_as_purged_on_no_receipt(
    tmp_path, store, secrets, token, kind
):
    root_key = {"token": token}.get(kind, kind)
    with gateway(tmp_path, store, "one", root_key) as first:
        fill(client(first, first.credentials()))
        words = ("bucket", "erase", BUCKET, "--data", first.data, "--yes", "--json")
        done = coffer(*words, text=True)
        assert done.returncode == 0, done.stderr
        receipt = json.loads(done.stdout)
        assert receipt["method"]["category"] == "Clear"
        [told] = receipt["copies"]
        assert "the store if it keeps what is removed" in told["holds"]
        assert "which may lie in that store as well" in told["holds"]
