"""rclone: copy, sync, check, and streams."""

import time

import pytest

from harness.content import MIB
from harness.programs import make_tree, run, tree_digests


@pytest.fixture
def rclone(server, client_env):
    # rclone trusts what --ca-cert names; the bundle for the AWS SDK confuses it.
    environment = {key: value for key, value in client_env.items() if key != "AWS_CA_BUNDLE"}
    environment |= {
        "RCLONE_CONFIG_COFFER_TYPE": "s3",
        "RCLONE_CONFIG_COFFER_PROVIDER": "Other",
        "RCLONE_CONFIG_COFFER_ENV_AUTH": "true",
        "RCLONE_CONFIG_COFFER_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG": "/dev/null",
        "RCLONE_RETRIES": "1",
        "RCLONE_LOW_LEVEL_RETRIES": "1",
    }

    def call(*arguments, **options):
        command = ["rclone", "--ca-cert", server.ca, *arguments]
        return run(command, environment, **options)

    return call


@pytest.mark.parametrize(
    "options",
    [["Other"], ["Minio"], ["Other", "--s3-use-multipart-etag=true"]],
    ids=["other", "minio", "as-aws"],
)
def test_uploads_in_parts_are_whole_to_every_provider(rclone, s3, tmp_path, options):
    """AWS and Minio have rclone form the entity tag of an upload in parts, and compare.

    AWS has it address buckets by host as well, which is why its other habit is asked for by name.
    """
    source = make_tree(tmp_path / "source", large_bytes=12 * MIB + 1)
    bucket = "rclone-etags"
    of_provider = ("--s3-provider", *options)
    in_parts = ("--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M")
    s3.create_bucket(Bucket=bucket)
    rclone("copy", *of_provider, *in_parts, source, f"coffer:{bucket}")
    rclone("check", *of_provider, "--download", source, f"coffer:{bucket}")
    rclone("check", *of_provider, source, f"coffer:{bucket}")
    assert s3.head_object(Bucket=bucket, Key="large")["ETag"].endswith('-3"')
    rclone("purge", *of_provider, f"coffer:{bucket}")


def test_copy_sync_and_check(rclone, tmp_path):
    source = make_tree(tmp_path / "source")
    rclone("mkdir", "coffer:rclone")
    rclone("copy", source, "coffer:rclone/tree")
    # --download compares the bytes themselves: an ETag here is no MD5 to compare.
    rclone("check", "--download", source, "coffer:rclone/tree")
    rclone("check", source, "coffer:rclone/tree")
    (source / "folder 0/file 0").unlink()
    (source / "folder 1/file 1").write_bytes(b"changed")
    rclone("sync", source, "coffer:rclone/tree")
    rclone("check", "--download", source, "coffer:rclone/tree")
    rclone("sync", "coffer:rclone/tree", tmp_path / "back")
    assert tree_digests(tmp_path / "back") == tree_digests(source)
    rclone("purge", "coffer:rclone")


def test_copies_inside_the_server(rclone, tmp_path):
    source = make_tree(tmp_path / "source")
    rclone("mkdir", "coffer:rclone-a")
    rclone("mkdir", "coffer:rclone-b")
    # In parts, which rclone's defaults would make of larger files only.
    rclone("copy", "--s3-upload-cutoff", "16M", source, "coffer:rclone-a")
    rclone("move", "--s3-copy-cutoff", "32M", "coffer:rclone-a", "coffer:rclone-b/moved")
    assert rclone("ls", "coffer:rclone-a") == ""
    rclone("check", "--download", source, "coffer:rclone-b/moved")
    rclone("purge", "coffer:rclone-a")
    rclone("purge", "coffer:rclone-b")


def test_a_stream_of_unknown_length(rclone):
    rclone("mkdir", "coffer:rclone-stream")
    text = "streamed\n" * 100_000
    rclone("rcat", "--streaming-upload-cutoff", "0", "coffer:rclone-stream/a", input=text)
    assert rclone("cat", "coffer:rclone-stream/a") == text
    rclone("purge", "coffer:rclone-stream")


def test_modification_times_are_kept(rclone, tmp_path):
    (tmp_path / "file").write_bytes(b"a")
    rclone("mkdir", "coffer:rclone-times")
    rclone("copy", tmp_path / "file", "coffer:rclone-times")
    rclone("touch", "--timestamp", "2001-02-03T04:05:06", "coffer:rclone-times/file")
    assert "2001-02-03 04:05:06" in rclone("lsl", "coffer:rclone-times")
    rclone("purge", "coffer:rclone-times")


def test_versions_are_listed_and_brought_back(rclone, s3, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    s3.create_bucket(Bucket="rclone-versions")
    rclone("backend", "versioning", "coffer:rclone-versions", "Enabled")
    for text in ("old", "new"):
        # Versions are named by their second, which is all that S3's lists tell.
        time.sleep(1.1)
        (source / "file.txt").write_text(text)
        rclone("copy", "--ignore-times", source, "coffer:rclone-versions")
    rclone("deletefile", "coffer:rclone-versions/file.txt")
    assert rclone("lsf", "coffer:rclone-versions") == ""
    listed = rclone("lsf", "--s3-versions", "coffer:rclone-versions").split()
    assert len(listed) == 2 and all(name.startswith("file-v") for name in listed)
    found = {rclone("cat", "--s3-versions", f"coffer:rclone-versions/{name}") for name in listed}
    assert found == {"old", "new"}
    rclone("backend", "cleanup-hidden", "coffer:rclone-versions")
    assert "Versions" not in s3.list_object_versions(Bucket="rclone-versions")
    s3.delete_bucket(Bucket="rclone-versions")
