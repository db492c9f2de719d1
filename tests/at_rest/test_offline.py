"""A stopped server's data, with its root key: `coffer offline`, and other implementations."""

import json

import pytest
from cryptography.cobblestone import Cobblestone256Decryptor

from harness.clients import s3_client
from harness.content import CHUNK_BYTES, INLINE_MAX_BYTES, PART_MIN_BYTES, content
from harness.server import Server, coffer

OBJECTS = {
    "empty": b"",
    "small": content(100),
    "inline": content(INLINE_MAX_BYTES),
    "dir/one blob": content(INLINE_MAX_BYTES + 1),
    "dir/whole chunks": content(4 * CHUNK_BYTES),
    "dir/ümlaut & more": content(1_000_000),
}
PARTS = [content(PART_MIN_BYTES, 1), content(1234, 2)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A stopped server that has stored something."""
    stopped = Server(tmp_path_factory.mktemp("offline")).start()
    s3 = s3_client(stopped)
    s3.create_bucket(Bucket="second")
    s3.create_bucket(Bucket="first")
    for name, body in OBJECTS.items():
        s3.put_object(Bucket="first", Key=name, Body=body)
    upload = s3.create_multipart_upload(Bucket="first", Key="parts")["UploadId"]
    where = {"Bucket": "first", "Key": "parts", "UploadId": upload}
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(**where, PartNumber=n, Body=body)["ETag"]}
        for n, body in enumerate(PARTS, 1)
    ]
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert stopped.stop() == 0
    yield stopped
    stopped.close()


def offline(server, *arguments, code=0):
    done = coffer("offline", *arguments, "--data", server.data)
    assert done.returncode == code, (arguments, done.stdout[:500], done.stderr)
    return done.stdout


def test_ls(server):
    buckets = offline(server, "ls").decode()
    assert buckets.index("first") < buckets.index("second")
    listed = offline(server, "ls", "first").decode()
    assert all(name in listed for name in [*OBJECTS, "parts"])
    below = offline(server, "ls", "first", "dir/").decode()
    assert "dir/one blob" in below and "small" not in below


@pytest.mark.parametrize("name", OBJECTS)
def test_cat(server, name):
    assert offline(server, "cat", "first", name) == OBJECTS[name]


def test_cat_of_parts(server):
    assert offline(server, "cat", "first", "parts") == b"".join(PARTS)


def open_blob(server, blob):
    """As the README shows it: any implementation of Cobblestone-256 opens a blob."""
    sealed = (server.data / blob["blob_file"]).read_bytes()
    key = bytes.fromhex(blob["data_key_hex"])
    decryptor = Cobblestone256Decryptor(key, bytes.fromhex(blob["context_hex"]))
    opened = decryptor.update(sealed) + decryptor.finalize()
    assert len(opened) == blob["plaintext_bytes"]
    return opened


@pytest.mark.parametrize("name", ["dir/one blob", "dir/whole chunks", "dir/ümlaut & more"])
def test_keys_open_a_blob_elsewhere(server, name):
    (blob,) = json.loads(offline(server, "keys", "first", name))
    assert open_blob(server, blob) == OBJECTS[name]


def test_keys_of_parts_come_in_order(server):
    blobs = json.loads(offline(server, "keys", "first", "parts"))
    assert [open_blob(server, blob) for blob in blobs] == PARTS


def test_a_small_object_has_no_blob(server):
    """It lies in the catalog: `keys` says so, in an empty list or in words, and `cat` reads it."""
    done = coffer("offline", "keys", "--data", server.data, "first", "small")
    assert done.stdout.strip() == b"[]" or (done.returncode != 0 and b"offline cat" in done.stderr)


def test_what_is_not_there(server):
    for arguments in (("cat", "first", "missing"), ("keys", "first", "missing"), ("ls", "none")):
        done = coffer("offline", *arguments, "--data", server.data)
        assert done.returncode != 0 and done.stdout == b""
        assert done.stderr.strip()


def test_a_running_server_is_left_alone(server):
    server.start()
    try:
        done = coffer("offline", "ls", "--data", server.data)
        assert done.returncode != 0
        assert done.stdout == b"" and b"running" in done.stderr.lower()
    finally:
        server.stop()


def test_without_the_root_key_there_is_nothing(server, tmp_path):
    root_key = server.data / "root.key"
    aside = tmp_path / "root.key"
    root_key.rename(aside)
    try:
        done = coffer("offline", "ls", "--data", server.data)
        assert done.returncode != 0 and done.stdout == b""
        assert b"root" in done.stderr
    finally:
        aside.rename(root_key)


def test_offline_changes_nothing(server):
    def state():
        files = (path for path in server.data.rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    offline(server, "ls", "first")
    offline(server, "cat", "first", "small")
    assert {path: data for path, (_, data) in state().items()} == {
        path: data for path, (_, data) in before.items()
    }
