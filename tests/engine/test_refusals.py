"""What engines, and what leads to and from them, refuse: who asks is told what to do."""

import pytest

from harness.administration import refused, run
from harness.age import IDENTITY, RECIPIENT
from harness.engines import Gateway, url_at
from harness.sealed_copies import caught_up, made, replica, restored, url_of
from harness.server import Server, StartError, coffer


def test_a_bucket_that_is_not_there_is_named(tmp_path, store):
    url = url_at(store).replace("s3://log/", "s3://logs/")
    told = f"there is no bucket logs at {store.endpoint}: make it there, or correct the URL"
    with Server(made(tmp_path / "first")) as server:
        said = replica(server, "add", "far", url, expect=1)
        assert told in str(said) and "<Error>" not in str(said), said
    with pytest.raises(StartError) as failed:
        Gateway(tmp_path / "one", url).start()
    assert told in failed.value.log and "<Error>" not in failed.value.log


def test_a_gateway_that_follows_says_which_one_serves(first, second):
    run(first, "bucket", "create", "notes", "--level", "default")
    for words in (["bucket", "create", "other", "--level", "default"], ["verify"]):
        said = refused(second, *words)
        assert str(first.gateway_port) in said, said


def test_what_opens_the_log_is_asked_for_by_its_option(tmp_path, store, first, monkeypatch):
    secrets = made(tmp_path / "secrets")
    (secrets / "coffer-passphrase").write_text("six random words")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secrets))
    words = ["--root-key", "passphrase"]
    missing = ["--identity", str(tmp_path / "nokey.txt")]
    for number, (option, told) in enumerate(
        [
            (words, "following it takes the file of an identity, --identity FILE, whatever"),
            (missing, "--identity: "),
        ]
    ):
        standby = Server(
            made(tmp_path / f"second-{number}"), arguments=["--follow", url_at(store), *option]
        )
        with pytest.raises(StartError) as failed:
            standby.start()
        assert told in failed.value.log, failed.value.log


def test_a_folder_of_a_server_is_no_gateway_s(tmp_path, store):
    with Server(made(tmp_path / "first")) as server:
        server.stop()
        with pytest.raises(StartError) as failed:
            Gateway(tmp_path / "first", url_at(store)).start()
        assert "can't be the folder of a gateway: it holds something" in failed.value.log


def test_a_restore_that_is_done_says_so(tmp_path):
    copy, data = tmp_path / "copy", tmp_path / "restored"
    with Server(made(tmp_path / "first")) as server:
        words = ["--with-keystore", "--recipient", RECIPIENT]
        replica(server, "add", "far", url_of(copy), *words)
        caught_up(server)
    identity = tmp_path / "identity"
    identity.write_text(f"{IDENTITY}\n")
    restored(url_of(copy), data, "--identity", str(identity))
    asked = ["restore", "--from", url_of(copy), "--data", data, "--identity", identity]
    done = coffer(*asked, text=True)
    assert done.returncode == 1 and "was restored into already" in done.stderr, done
