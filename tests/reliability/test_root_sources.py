"""Root keys move from source to source while the server serves, and survive kill -9 as they do."""

import json
import random
import threading
import time

import pytest

from harness.auditing import eventually
from harness.clients import s3_client
from harness.content import content
from harness.keys import TOKEN_PIN
from harness.server import StartError, coffer

PASSPHRASE = "lantern-gravel-uncle-seventeen-otters"
KILLS = 12

NAMES = {"small": 3_000, "large": 400_000}


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    """What opens every source, where systemd would put it."""
    folder = tmp_path / "credentials of systemd"
    folder.mkdir()
    (folder / "coffer-passphrase").write_text(PASSPHRASE)
    (folder / "coffer-pin").write_text(TOKEN_PIN)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


def move(server, source):
    return coffer("--data", server.data, "keystore", "move", "--to", source, "--json")


def status(server):
    shown = coffer("--data", server.data, "keystore", "status", "--json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def fill(server):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    for name, size_bytes in NAMES.items():
        s3.put_object(Bucket="mine", Key=name, Body=content(size_bytes, name))


def is_whole(server):
    s3 = s3_client(server)
    for name, size_bytes in NAMES.items():
        read = s3.get_object(Bucket="mine", Key=name)["Body"].read()
        if read != content(size_bytes, name):
            return False
    s3.put_object(Bucket="mine", Key="another", Body=b"written as well")
    return True


def root_files(server):
    return sorted(path.name for path in server.data.glob("root*"))


@pytest.mark.parametrize("kind", ["file", "file elsewhere", "passphrase", "keyring", "token"])
def test_the_first_start_says_what_to_keep(own_server, secrets, token, tmp_path, kind):
    elsewhere = tmp_path / "the key"
    source, kept = {
        "file": ("file", "root.key"),
        "file elsewhere": (f"file:{elsewhere}", str(elsewhere)),
        "passphrase": ("passphrase", "root.passphrase"),
        "keyring": ("keyring", "a reboot destroys it"),
        "token": (token, "root.token"),
    }[kind]
    server = own_server(arguments=["--root-key", source]).start()
    (advice,) = advised(server)
    assert kept in advice
    for word in advice.replace(":", "").split():
        assert not word.startswith("root.") or word in root_files(server), "no such file"
    assert all(name in advice for name in root_files(server))
    server.restart()
    assert advised(server) == []
    if kind == "keyring":
        assert move(server, "file").returncode == 0, "nothing is left in the kernel"


def advised(server):
    """What the server says must be kept, or data is lost."""
    lines = [line for line in server.output if line.startswith("#") and "data" in line]
    return [line for line in lines if "lost" in line or "destroys" in line]


def test_from_source_to_source(own_server, secrets, token):
    server = own_server().start()
    fill(server)
    (before,) = server.data.glob("keystore")
    old = before.read_bytes()
    assert status(server)["source"] == "file"
    for source, files in (
        ("passphrase", ["root.passphrase"]),
        ("passphrase", ["root-2.passphrase"]),
        ("keyring", []),
        (token, ["root.token"]),
        (f"file:{server.folder / 'my root.key'}", []),
        ("file", ["root.key"]),
    ):
        moved = move(server, source)
        assert moved.returncode == 0, moved.stderr
        shown = json.loads(moved.stdout)
        assert shown["source"].split(":")[0] == source.split(":")[0] and not shown["is_moving"]
        assert shown["unlocked_key_bytes"] == 0 and shown["locked_key_bytes"] > 0
        assert root_files(server) == files
        assert is_whole(server)
        assert server.stop() == 0
        server.start()
        assert status(server)["source"] == shown["source"]
        assert is_whole(server)
    assert not (server.folder / "my root.key").exists()
    assert "panicked" not in server.log()
    server.stop()
    (server.data / "keystore").write_bytes(old)
    shown = coffer("offline", "ls", "--data", server.data)
    assert shown.returncode != 0, "under none of the later root keys the old keystore opens"


def test_requests_go_on_meanwhile(own_server, secrets):
    server = own_server().start()
    fill(server)
    stop, failures, done = threading.Event(), [], []

    def work(number):
        s3 = s3_client(server)
        while not stop.is_set():
            try:
                s3.put_object(Bucket="mine", Key=f"{number}", Body=content(50_000, f"{number}"))
                read = s3.get_object(Bucket="mine", Key=f"{number}")["Body"].read()
                assert read == content(50_000, f"{number}")
                done.append(number)
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for source in ("passphrase", "keyring", "file"):
            before = len(done)
            assert move(server, source).returncode == 0
            assert eventually(lambda before=before: failures or len(done) > before, 60)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == [] and len(done) > 3


def test_a_move_that_can_not_be(own_server, secrets):
    server = own_server().start()
    fill(server)
    for source, problem in (
        ("file", "already"),
        ("file:/nowhere/at/all/root.key", "could not"),
        ("pkcs11:token=coffer?module-path=/nowhere.so", "token"),
    ):
        refused = move(server, source)
        assert refused.returncode != 0 and problem in refused.stderr.decode(), refused.stderr
        assert status(server)["source"] == "file" and root_files(server) == ["root.key"]
    assert is_whole(server)
    server.restart()
    assert is_whole(server)
    assert move(server, "passphrase").returncode == 0


def test_a_wrong_pin_is_told_as_that(own_server, secrets, token):
    server = own_server().start()
    (secrets / "coffer-pin").write_text("000000")
    refused = move(server, token)
    assert refused.returncode == 1 and b"does not take the PIN" in refused.stderr, refused.stderr
    assert status(server)["source"] == "file"
    (secrets / "coffer-pin").write_text(TOKEN_PIN)
    assert move(server, token).returncode == 0
    server.stop()
    (secrets / "coffer-pin").write_text("000000")
    with pytest.raises(StartError, match="token coffer does not take the PIN"):
        server.start()
    (secrets / "coffer-pin").write_text(TOKEN_PIN)
    server.start()


def test_killed_while_it_moves(own_server, secrets):
    """Wherever it is killed, one source opens the keystore, and the other holds nothing."""
    server = own_server().start()
    fill(server)
    seen = set()
    for number in range(KILLS):
        before = status(server)["source"]
        after = {"file": "passphrase", "passphrase": "file"}[before]
        moving = threading.Thread(target=lambda to=after: move(server, to))
        moving.start()
        # The first before anything happened, the last after everything did.
        time.sleep({0: 0, KILLS - 1: 5}.get(number, random.Random(number).uniform(0.02, 0.5)))
        server.kill()
        moving.join()
        server.start()
        now = status(server)
        assert now["source"] in (before, after) and not now["is_moving"]
        seen.add(now["source"] == after)
        expected = "root.key" if now["source"] == "file" else "passphrase"
        (name,) = root_files(server)
        assert expected in name
        assert is_whole(server)
    assert "panicked" not in server.log()
    assert seen == {False, True}, "some moves were completed, some had not begun"
