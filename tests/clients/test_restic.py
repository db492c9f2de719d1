"""restic: init, backup, check, restore."""

import json

import pytest

from harness.programs import make_tree, run, tree_digests


@pytest.fixture
def restic(server, client_env):
    environment = client_env | {
        "RESTIC_REPOSITORY": f"s3:{server.endpoint}/restic/repository",
        "RESTIC_PASSWORD": "a test's password",
    }

    def call(*arguments):
        return run(["restic", "--cacert", server.ca, *arguments], environment)

    return call


def test_backup_and_restore(restic, tmp_path):
    source = make_tree(tmp_path / "source")
    restic("init")
    restic("backup", source)
    (source / "folder 1/file 1").write_bytes(b"changed")
    (source / "new").write_bytes(b"new")
    restic("backup", source)
    restic("check", "--read-data")
    assert len(json.loads(restic("snapshots", "--json"))) == 2
    restic("restore", "latest", "--target", tmp_path / "back", "--verify")
    assert tree_digests(tmp_path / "back" / source.relative_to("/")) == tree_digests(source)
    restic("forget", "--keep-last", "1", "--prune")
    restic("check", "--read-data")
