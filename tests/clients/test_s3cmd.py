"""s3cmd."""

import pytest

from harness.content import MIB, digest, write_file
from harness.programs import make_tree, run, tree_digests


@pytest.fixture
def s3cmd(server, client_env):
    access_key_id, secret_access_key = server.credentials()
    place = f"127.0.0.1:{server.port}"
    settings = [
        "--config=/dev/null",
        f"--access_key={access_key_id}",
        f"--secret_key={secret_access_key}",
        f"--host={place}",
        f"--host-bucket={place}",
        f"--ca-certs={server.ca}",
        "--no-progress",
    ]

    def call(*arguments):
        return run(["s3cmd", *settings, *arguments], client_env)

    return call


@pytest.mark.parametrize("size_bytes", [0, 1000, 64 * MIB + 1])
def test_files_both_ways(s3cmd, tmp_path, size_bytes):
    source = write_file(tmp_path / "source", size_bytes)
    s3cmd("mb", "s3://s3cmd")
    s3cmd("put", source, "s3://s3cmd/dir/a b.bin")
    s3cmd("cp", "s3://s3cmd/dir/a b.bin", "s3://s3cmd/copy.bin")
    s3cmd("get", "s3://s3cmd/copy.bin", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(source)
    assert f"{size_bytes}" in s3cmd("ls", "--recursive", "s3://s3cmd")
    assert f"{size_bytes}" in s3cmd("info", "s3://s3cmd/copy.bin")
    s3cmd("rb", "--force", "--recursive", "s3://s3cmd")


def test_sync(s3cmd, tmp_path):
    source = make_tree(tmp_path / "source", large_bytes=16 * MIB)
    s3cmd("mb", "s3://s3cmd-sync")
    s3cmd("sync", f"{source}/", "s3://s3cmd-sync/tree/")
    (tmp_path / "back").mkdir()
    s3cmd("sync", "s3://s3cmd-sync/tree/", f"{tmp_path / 'back'}/")
    assert tree_digests(tmp_path / "back") == tree_digests(source)
    s3cmd("del", "--recursive", "--force", "s3://s3cmd-sync/tree/")
    assert s3cmd("ls", "--recursive", "s3://s3cmd-sync") == ""
    s3cmd("rb", "s3://s3cmd-sync")
