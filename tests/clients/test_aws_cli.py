"""The aws CLI, version 2 (Debian's package)."""

import json

import pytest

from harness.content import MIB, digest, write_file
from harness.programs import make_tree, run, tree_digests

AWS = "/usr/bin/aws"


@pytest.fixture
def aws(server, client_env):
    def call(*arguments):
        return run([AWS, "--endpoint-url", server.endpoint, *arguments], client_env)

    return call


def test_version(client_env):
    assert run([AWS, "--version"], client_env).startswith("aws-cli/2")


@pytest.mark.parametrize("size_bytes", [1000, 64 * MIB + 1])
def test_files_both_ways(aws, tmp_path, size_bytes):
    source = write_file(tmp_path / "source", size_bytes)
    aws("s3", "mb", "s3://awscli")
    aws("s3", "cp", source, "s3://awscli/dir/a b.bin")
    aws("s3", "cp", "s3://awscli/dir/a b.bin", "s3://awscli/copy.bin")
    aws("s3", "cp", "s3://awscli/copy.bin", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(source)
    assert f"{size_bytes}" in aws("s3", "ls", "--recursive", "s3://awscli")
    aws("s3", "rb", "--force", "s3://awscli")


def test_sync(aws, tmp_path):
    source = make_tree(tmp_path / "source", large_bytes=9 * MIB)
    aws("s3", "mb", "s3://awssync")
    aws("s3", "sync", source, "s3://awssync/tree")
    assert aws("s3", "sync", source, "s3://awssync/tree") == ""
    (source / "folder 1/file 1").unlink()
    assert "delete: " in aws("s3", "sync", "--delete", source, "s3://awssync/tree")
    aws("s3", "sync", "s3://awssync/tree", tmp_path / "back")
    assert tree_digests(tmp_path / "back") == tree_digests(source)
    aws("s3", "rb", "--force", "s3://awssync")


def test_api_calls(aws, tmp_path):
    source = write_file(tmp_path / "source", 1000)
    aws("s3api", "create-bucket", "--bucket", "awsapi")
    where = ["--bucket", "awsapi", "--key", "a"]
    for algorithm in ("CRC32", "CRC32C", "SHA1", "SHA256"):
        aws("s3api", "put-object", *where, "--body", source, "--checksum-algorithm", algorithm)
        head = json.loads(aws("s3api", "head-object", *where, "--checksum-mode", "ENABLED"))
        assert head[f"Checksum{algorithm}"]
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "default")
    assert "X-Amz-Signature=" in aws("s3", "presign", "s3://awsapi/a")
    aws("s3", "rb", "--force", "s3://awsapi")


def test_versions_are_listed_in_pages(aws, tmp_path):
    source = write_file(tmp_path / "source", 10)
    where = ["--bucket", "awsversions"]
    aws("s3api", "create-bucket", *where)
    aws("s3api", "put-bucket-versioning", *where, "--versioning-configuration", "Status=Enabled")
    names = ["a&<b> '\"é", "b/c", "b/d"]
    for name in names:
        for _ in range(2):
            aws("s3api", "put-object", *where, "--key", name, "--body", source)
    aws("s3api", "delete-object", *where, "--key", names[1])
    listed = json.loads(aws("s3api", "list-object-versions", *where, "--page-size", "2"))
    versions = [(row["Key"], row["IsLatest"], row["Size"]) for row in listed["Versions"]]
    latest = [(name, name != names[1], 10) for name in names]
    assert versions == [row for one in latest for row in (one, (one[0], False, 10))]
    [marker] = listed["DeleteMarkers"]
    assert (marker["Key"], marker["IsLatest"]) == (names[1], True)
    folded = json.loads(aws("s3api", "list-object-versions", *where, "--delimiter", "/"))
    assert [row["Prefix"] for row in folded["CommonPrefixes"]] == ["b/"]
    assert len(folded["Versions"]) == 2
