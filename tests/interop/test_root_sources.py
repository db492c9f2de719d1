"""The root key of a real server, found with nothing but docs/FORMAT.md and Python."""

import contextlib
import os
import pty
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from cryptography.cobblestone import Cobblestone256Decryptor
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from harness.clients import s3_client
from harness.keys import format_reader
from harness.server import BINARY, clean_environment, coffer

PASSPHRASE = b"lantern-gravel-uncle-seventeen-otters"
KEY_CONTEXT = b"coffer key v1\0"
ROOT = b"\x06"


def unwrapped(text, passphrase):
    """The root key in the text of a passphrase source."""
    heading, derivation, wrapped, end = text.split("\n")
    assert heading == "coffer passphrase root key v1" and end == ""
    name, memory, passes, lanes, salt = derivation.split(" ")
    assert (name, memory[:2], passes[:2], lanes[:2]) == ("argon2id", "m=", "t=", "p=")
    salt = bytes.fromhex(salt)
    costs = {"memory_cost": int(memory[2:]), "iterations": int(passes[2:])}
    derive = Argon2id(salt=salt, length=32, lanes=int(lanes[2:]), **costs).derive
    context = KEY_CONTEXT + ROOT + salt + (1).to_bytes(4, "big")
    decryptor = Cobblestone256Decryptor(derive(passphrase), context)
    return decryptor.update(bytes.fromhex(wrapped)) + decryptor.finalize()


@pytest.fixture
def with_passphrase(own_server, tmp_path, monkeypatch):
    """A server whose root key a passphrase opens, with one bucket."""
    (tmp_path / "coffer-passphrase").write_bytes(PASSPHRASE + b"\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    server = own_server(arguments=["--root-key", "passphrase"]).start()
    s3_client(server).create_bucket(Bucket="mine")
    return server


def test_a_passphrase_opens_the_keystore(with_passphrase, tmp_path, monkeypatch):
    data = with_passphrase.data
    record = (data / "keystore.source").read_text()
    assert record == "coffer root-key source v1\npassphrase root.passphrase\n"
    assert stat.S_IMODE(os.stat(data / "root.passphrase").st_mode) == 0o600
    root_key = unwrapped((data / "root.passphrase").read_text(), PASSPHRASE)

    # The document's reader takes a readable root key, so it gets one: the rest is the same.
    aside = tmp_path / "coffer-data"
    aside.mkdir()
    (aside / "keystore").write_bytes((data / "keystore").read_bytes())
    (aside / "root.key").write_text(f"coffer root key v1\n{root_key.hex()}\n")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(format_reader(), found)
    assert len(found["bucket_keys"]) == 1


def test_another_passphrase_does_not(with_passphrase):
    text = (with_passphrase.data / "root.passphrase").read_text()
    with pytest.raises((InvalidTag, ValueError)):
        unwrapped(text, b"lantern-gravel-uncle-seventeen-weasels")


def test_a_start_without_it_says_what_to_do(with_passphrase, monkeypatch):
    with_passphrase.stop()
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    refused = coffer("serve", "--data", with_passphrase.data, start_new_session=True)
    message = refused.stderr.decode()
    assert refused.returncode != 0
    assert "--passphrase-fd" in message and "LoadCredential" in message, message


def test_it_is_asked_for_at_the_terminal(with_passphrase, monkeypatch):
    with_passphrase.stop()
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    child, terminal = pty.fork()
    if child == 0:
        os.execv(BINARY, [BINARY, "offline", "--data", with_passphrase.data, "ls"])
    shown = b""
    with contextlib.suppress(OSError):  # The end of a terminal is an error.
        while piece := os.read(terminal, 1000):
            if b"Passphrase" in piece:
                time.sleep(0.5)  # Nobody types before the terminal has stopped to echo.
                os.write(terminal, PASSPHRASE + b"\n")
            shown += piece
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    assert b"mine" in shown and PASSPHRASE not in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as another user")
def test_a_pipe_of_another_user_s_will_do(with_passphrase):
    """As when root starts the server as a user of its own."""
    with_passphrase.stop()
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        binary = shutil.copy(BINARY, folder)
        data = shutil.copytree(with_passphrase.data, Path(folder) / "data")
        for path in (data, *data.rglob("*")):
            os.chown(path, 65534, 65534)
        shown = subprocess.run(
            [*other, binary, "offline", "--data", data, "--passphrase-fd", "0", "ls"],
            input=PASSPHRASE,
            capture_output=True,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    assert b"mine" in shown.stdout, shown.stderr


def test_it_comes_from_a_descriptor_as_well(with_passphrase, tmp_path, monkeypatch):
    with_passphrase.stop()
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    given = tmp_path / "given"
    for passphrase, code in ((PASSPHRASE, 0), (b"another one", 1)):
        given.write_bytes(passphrase)
        with given.open("rb") as file:
            number = file.fileno()
            shown = coffer(
                *("offline", "ls", "--data", with_passphrase.data, "--passphrase-fd", number),
                pass_fds=[number],
            )
        assert shown.returncode == code, shown.stderr
        assert (b"mine" in shown.stdout) == (code == 0)
    assert b"does not open" in shown.stderr
