"""Which server coffer put, get, ls, rm and cp mean: one as a whole, with its key and authority."""

import os
import subprocess

import pytest

from harness.clients import s3_client
from harness.server import BINARY, clean_environment


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return home


def run(home, *arguments, code=0, **more):
    """Runs a command in `home` with nothing set but this; both its outputs."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)],
        env=clean_environment() | {"HOME": str(home)} | more,
        cwd=home,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done
    return (done.stdout + done.stderr).decode()


def test_the_folder_of_other_commands_is_meant_where_nothing_says_an_address(server, bucket, home):
    assert "no access key" in run(home, "ls", code=1)
    (home / "coffer-data").symlink_to(server.data)
    assert bucket in run(home, "bucket", "list")
    assert bucket in run(home, "ls")
    key_id, secret = server.credentials()
    keys = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    assert bucket in run(home, "ls", **keys)
    (home / "coffer-data").unlink()
    assert "say which server" in run(home, "ls", code=2, **keys)
    assert bucket in run(home, "ls", COFFER_DATA=str(server.data), **keys)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_folder_that_another_user_put_there_is_not_meant(server, bucket, home):
    key_id, secret = server.credentials()
    keys = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    folder = home / "coffer-data"
    folder.symlink_to(server.data)
    home.chmod(0o777)
    assert bucket in run(home, "ls", **keys)
    os.chown(folder, 65534, 65534, follow_symlinks=False)
    for told in (run(home, "ls", code=2, **keys), run(home, "ls", code=1)):
        assert "note: ./coffer-data is another user's" in told
        assert "--data ./coffer-data" in told
    assert "say which server" in run(home, "ls", code=2, **keys)
    # Where another is meant, it does not matter.
    told = run(home, "ls", "--endpoint", "http://127.0.0.1:1", "--retries", 0, code=1, **keys)
    assert "coffer-data" not in told
    # Where it is named, that counts.
    assert bucket in run(home, "ls", "--data", folder, **keys)
    assert bucket in run(home, "ls", COFFER_DATA="coffer-data", **keys)
    # So it does where no other could have put it.
    home.chmod(0o755)
    assert bucket in run(home, "ls", **keys)
    os.chown(home, 65534, 65534)
    assert "say which server" in run(home, "ls", code=2, **keys)


def test_the_folder_of_the_configuration_is_meant(server, bucket, home):
    config = home / "coffer.toml"
    config.write_text(f'data = "{server.data}"\n')
    assert bucket in run(home, "bucket", "list", COFFER_CONFIG=str(config))
    assert bucket in run(home, "ls", COFFER_CONFIG=str(config))
    assert bucket in run(home, "ls", "--config", config, AWS_ENDPOINT_URL="https://127.0.0.1:1")
    told = run(home, "ls", "--config", home / "none.toml", code=2)
    assert "none.toml could not be read" in told


def test_a_folder_that_is_named_means_its_server_before_the_environment(
    server, bucket, own_server, home
):
    other = own_server("other").start()
    s3_client(other).create_bucket(Bucket="of-the-other")
    told = run(home, "ls", "--data", other.data, AWS_ENDPOINT_URL=server.endpoint)
    assert "of-the-other" in told and bucket not in told
    # What was typed beside it counts.
    told = run(home, "ls", "--data", server.data, "--endpoint", other.endpoint, code=1)
    assert "not trusted here" in told


def test_a_folder_without_a_key_takes_one_from_elsewhere(own_server, home):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="kept")
    key_id, secret = server.credentials()
    server.credentials_path.rename(home / "kept-apart")
    told = run(home, "ls", "--data", server.data, code=1)
    assert "restored" in told and "AWS_ACCESS_KEY_ID" in told and "--credentials" in told
    keys = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    assert "kept" in run(home, "ls", "--data", server.data, **keys)
    assert "kept" in run(home, "ls", "--data", server.data, "--credentials", home / "kept-apart")


def test_the_authority_of_a_source_has_an_option_of_its_own(server, own_server, home):
    source = own_server("source").start()
    s3_client(source).create_bucket(Bucket="moving-in")
    s3_client(source).put_object(Bucket="moving-in", Key="a", Body=b"a")
    key_id, secret = source.credentials()
    keys = {"COFFER_SOURCE_ACCESS_KEY_ID": key_id, "COFFER_SOURCE_SECRET_ACCESS_KEY": secret}
    migrate = ("migrate", source.endpoint, "--data", server.data, "--dry-run")
    told = run(home, *migrate, code=1, **keys)
    assert "not trusted here: give that with --source-ca (" in told
    assert "AWS_CA_BUNDLE" not in told
    run(home, *migrate, "--source-ca", source.ca, **keys)


def test_the_port_of_administration_is_told_as_such(server, home):
    key_id, secret = server.credentials()
    keys = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    told = run(home, "ls", "--endpoint", server.admin_endpoint, "--ca", server.ca, code=1, **keys)
    assert "administration of a coffer answers there: S3 has a port of its own" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_folder_that_another_user_put_there_is_not_administered(server, bucket, home):
    folder = home / "coffer-data"
    folder.symlink_to(server.data)
    home.chmod(0o777)
    asking, moving = ("bucket", "list"), ("keystore", "move", "--to", "file")
    assert bucket in run(home, *asking)
    os.chown(folder, 65534, 65534, follow_symlinks=False)
    elsewhere = (("tls", "renew-authority"), ("offline", "ls"), ("prove",))
    for command in (asking, moving, *elsewhere):
        told = run(home, *command, code=2)
        assert "--data: ./coffer-data is another user's" in told, command
    # Where it is named, that counts, and where another server is, it does not matter.
    for named in ("coffer-data", "./coffer-data", folder):
        assert bucket in run(home, *asking, "--data", named)
    assert bucket in run(home, *asking, COFFER_DATA="coffer-data")
    told = run(home, *asking, "--endpoint", "https://127.0.0.1:1", code=1)
    assert "coffer-data" not in told
    # So it does where no other could have put it.
    home.chmod(0o755)
    assert bucket in run(home, *asking)


def test_what_is_typed_counts_as_typed_though_the_environment_says_the_same(server, bucket, home):
    """A key of the environment goes before a folder of the environment, not before one that is
    typed."""
    keys = {"AWS_ACCESS_KEY_ID": "another", "AWS_SECRET_ACCESS_KEY": "key"}
    environment = keys | {"COFFER_DATA": str(server.data)}
    assert "InvalidAccessKeyId" in run(home, "ls", code=1, **environment)
    assert bucket in run(home, "ls", "--data", server.data, **environment)
    assert bucket in run(home, "--data", server.data, "ls", **environment)


def test_no_other_server_is_asked_in_the_place_of_one_that_does_not_run(server, own_server, home):
    """What answers at the usual address may be another's."""
    stopped = own_server("stopped").start()
    stopped.stop()
    file = home / "file"
    file.write_bytes(b"x")
    bucket_list = run(home, "bucket", "list", "--data", stopped.data, code=1)
    for asked in (
        ("ls",),
        ("put", file, "s3://b/file"),
        ("get", "s3://b/file", home / "fetched"),
    ):
        # Another server is where this one would be.
        usual = f"127.0.0.1:{server.port}"
        told = run(home, *asked, "--data", stopped.data, code=1, COFFER_LISTEN=usual)
        assert f"no server runs on {stopped.data}" in told and told == bucket_list
        assert f"start one with `coffer serve --data {stopped.data}`" in told
    (home / "coffer-data").symlink_to(stopped.data)
    assert "no server runs on coffer-data" in run(home, "ls", code=1)
    # What says another address counts as before.
    key_id, secret = server.credentials()
    keys = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
    ca = {"AWS_CA_BUNDLE": str(server.ca)}
    run(home, "ls", AWS_ENDPOINT_URL=server.endpoint, **keys, **ca)
    typed = ("--endpoint", server.endpoint, "--ca", server.ca)
    run(home, "ls", "--data", stopped.data, *typed, code=1)
    stopped.credentials_path.rename(home / "kept-apart")
    run(home, "ls", "--data", stopped.data, *typed, **keys)
    # So it is of a folder without a key, as that of a gateway.
    told = run(home, "ls", "--data", stopped.data, code=1, **keys)
    assert f"no server runs on {stopped.data}" in told
