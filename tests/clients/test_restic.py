"""restic: init, backup, check, restore."""

import json

import pytest

from harness.clients import refused
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


def test_a_repository_in_a_bucket_with_default_retention(restic, s3, server, tmp_path):
    """What is backed up can't be destroyed by who holds the access key, whatever restic deletes."""
    s3.create_bucket(Bucket="restic-locked", ObjectLockEnabledForBucket=True)
    retention = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    s3.put_object_lock_configuration(
        Bucket="restic-locked",
        ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": retention},
    )
    repository = f"s3:{server.endpoint}/restic-locked/repository"
    source = make_tree(tmp_path / "source")
    restic("--repo", repository, "init")
    restic("--repo", repository, "backup", source)
    restic("--repo", repository, "check", "--read-data")
    before = s3.list_object_versions(Bucket="restic-locked")["Versions"]
    for row in before:
        with refused("AccessDenied", 403):
            where = {"Key": row["Key"], "VersionId": row["VersionId"]}
            s3.delete_object(Bucket="restic-locked", **where)
    (source / "new").write_bytes(b"new")
    restic("--repo", repository, "backup", source)
    restic("--repo", repository, "forget", "--keep-last", "1", "--prune")
    restic("--repo", repository, "restore", "latest", "--target", tmp_path / "back", "--verify")
    assert tree_digests(tmp_path / "back" / source.relative_to("/")) == tree_digests(source)
    for page in s3.get_paginator("list_object_versions").paginate(Bucket="restic-locked"):
        for row in page.get("Versions", []) + page.get("DeleteMarkers", []):
            where = {"Key": row["Key"], "VersionId": row["VersionId"]}
            s3.delete_object(Bucket="restic-locked", **where, BypassGovernanceRetention=True)
    s3.delete_bucket(Bucket="restic-locked")
