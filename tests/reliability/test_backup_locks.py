"""Backups of buckets whose objects are locked; and folders that are named in place of the copy."""

import json
import shutil

from harness.administration import refused
from harness.auditing import ask
from harness.clients import s3_client
from harness.server import coffer


def back_up(server, folder):
    done = coffer("backup", folder, "--data", server.data, "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return folder / "copy"


def test_a_restored_copy_counts_its_locks_anew(own_server, tmp_path):
    """Bounds of locks are copied after the catalogs, and may have been lowered meanwhile."""
    server, folder = own_server().start(), tmp_path / "backup"
    s3 = s3_client(server)
    held = []
    for bucket in ("one", "two"):
        s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
        put = s3.put_object(Bucket=bucket, Key="a", Body=b"a", ObjectLockLegalHoldStatus="ON")
        held.append({"Bucket": bucket, "Key": "a", "VersionId": put["VersionId"]})
    one = json.loads(ask(server, "bucket", "show", "one", "--json"))["id"]
    catalog = (back_up(server, folder) / "buckets" / one / "catalog.db").read_bytes()
    s3.put_object_legal_hold(**held[0], LegalHold={"Status": "OFF"})
    # What is counted lowers the bound of the one, and the other's keeps from the erase.
    refused(server, "level", "erase", "default", "--yes", "--yes")
    (back_up(server, folder) / "buckets" / one / "catalog.db").write_bytes(catalog)

    copy = own_server(data=tmp_path / "restored")
    shutil.copytree(folder / "copy", copy.data)
    shutil.copy(server.data / "root.key", copy.data / "root.key")
    copy.arguments.append("--accept-rollback")
    copy.start()
    for bucket in ("one", "two"):
        assert "legal hold" in refused(copy, "bucket", "erase", bucket, "--yes")


def test_the_folder_of_a_backup_says_where_the_copy_is(own_server, tmp_path):
    server, folder = own_server().start(), tmp_path / "backup"
    copy = back_up(server, folder)
    for words, code in (
        (("verify",), 2),
        (("offline", "ls"), 1),
        (("audit", "verify"), 2),
        (("prove",), 2),
        (("level", "list"), 1),
    ):
        said = coffer(*words, "--data", folder)
        told = f"it holds a backup, whose copy is {copy}; `coffer verify` and".encode()
        assert said.returncode == code and told in said.stderr, (words, said)
    root = ("--root-key", f"file:{server.data}/root.key")
    done = coffer("verify", "--data", copy, *root)
    assert done.returncode == 0, done.stderr
