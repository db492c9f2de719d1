"""coffer put, get, ls, rm and cp with the real server."""

import json
import os
import shutil
import subprocess

import pytest

from harness.content import MIB, content, digest, write_file
from harness.mover import Mover
from harness.programs import make_tree, tree_digests
from harness.server import BINARY, clean_environment

LARGE_BYTES = 64 * MIB + 12_345


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 + 1, 16 * MIB, 16 * MIB + 1])
def test_a_file_comes_back_as_it_was(mover, s3, bucket, tmp_path, size):
    source = write_file(tmp_path / "source", size)
    os.utime(source, ns=(0, 1_600_000_000_123_456_789))
    put = mover.done("put", source, f"s3://{bucket}/a name/ü+%&?")
    assert put["bytes"] == size
    assert put["verified"] is True
    assert put["transfer"] == "tls"
    head = s3.head_object(Bucket=bucket, Key="a name/ü+%&?", ChecksumMode="ENABLED")
    assert head["ContentLength"] == size
    assert "CRC64NVME " + head["ChecksumCRC64NVME"] == put["checksum"]
    assert head["Metadata"]["mtime"] == "1600000000.123456789"
    target = tmp_path / "target"
    got = mover.done("get", f"s3://{bucket}/a name/ü+%&?", target)
    assert (got["checksum"], got["verified"]) == (put["checksum"], True)
    assert digest(target) == digest(source)
    assert target.stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert mover.journals() == []


def test_what_others_stored_comes_as_it_is(mover, s3, bucket, tmp_path):
    large = content(20 * MIB)
    s3.put_object(Bucket=bucket, Key="sha", Body=large, ChecksumAlgorithm="SHA256")
    s3.put_object(Bucket=bucket, Key="crc", Body=large, ChecksumAlgorithm="CRC32C")
    for name, algorithm in [("sha", "SHA256"), ("crc", "CRC32C")]:
        got = mover.done("get", f"s3://{bucket}/{name}", tmp_path / name)
        assert got["checksum"].split()[0] == algorithm
        assert got["verified"] is True
        assert (tmp_path / name).read_bytes() == large
    source = write_file(tmp_path / "source", LARGE_BYTES)
    s3.upload_file(str(source), bucket, "parts")
    mover.done("get", f"s3://{bucket}/parts", tmp_path / "parts")
    assert digest(tmp_path / "parts") == digest(source)


def test_streams(mover, bucket, tmp_path):
    for size in (0, 5, LARGE_BYTES):
        source = write_file(tmp_path / "source", size)
        with source.open("rb") as reading:
            put = mover.done("put", "-", f"s3://{bucket}/stream", stdin=reading)
        assert (put["from"], put["bytes"], put["verified"]) == ("-", size, True)
        out, _ = mover.run("get", f"s3://{bucket}/stream", "-")
        assert out == source.read_bytes()
    _, told = mover.run("get", f"s3://{bucket}/stream", "-", "--json")
    assert json.loads(told.splitlines()[-1])["event"] == "summary"


def test_folders(mover, s3, bucket, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    make_tree(tree, LARGE_BYTES)
    (tree / "new\nline").write_text("x")
    (tree / "empty folder").mkdir()
    (tree / ".half.coffer-part").write_text("ours")
    _, told = mover.run("put", "-r", tree, f"s3://{bucket}/deep/er")
    assert ".half.coffer-part is passed over" in told
    names = {each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    assert "deep/er/ümlaut & Co (1).txt" in names
    assert "deep/er/new\nline" in names
    assert not any("half" in name for name in names)
    mover.run("get", "-r", f"s3://{bucket}/deep/er/", tmp_path / "back")
    (tree / ".half.coffer-part").unlink()
    assert tree_digests(tmp_path / "back") == tree_digests(tree)


def test_what_fails_of_a_folder_is_named_and_the_rest_goes_on(mover, s3, bucket, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "good").write_text("good")
    (tree / "nowhere").symlink_to(tree / "missing")
    os.mkfifo(tree / "pipe")
    (tree / os.fsdecode(b"\xff")).write_text("no name")
    _, told = mover.run("put", "-r", "--follow-links", tree, f"s3://{bucket}/", code=1)
    assert "nowhere" in told
    assert "pipe is no file" in told
    assert "no UTF-8" in told
    assert "3 failed, 1 went well" in told
    events = mover.events("put", "-r", "--follow-links", tree, f"s3://{bucket}/", code=1)
    assert {event["what"].rsplit("/")[-1] for event in events if event["event"] == "failed"} >= {
        "pipe",
        "nowhere",
    }
    assert events[-1]["failed"] == 3
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["good"]


def test_names_that_are_no_paths_stay_where_they_are(mover, s3, bucket, tmp_path):
    for key in ("p/good", "p/../escape", "p//double", "p/sub/./x", "p/a", "p/a/b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    _, told = mover.run("get", "-r", f"s3://{bucket}/p/", tmp_path / "into", code=1)
    assert "escape" in told
    assert not (tmp_path / "escape").exists()
    assert (tmp_path / "into/good").read_bytes() == b"x"
    # Of a file and a folder of one name, one is there.
    assert "4 failed, 2 went well" in told


def test_names_of_unfinished_files_are_refused(mover, s3, bucket, tmp_path):
    names = ("order", ".order.coffer-part", ".order.coffer-journal", "also")
    for name in names:
        s3.put_object(Bucket=bucket, Key=f"p/{name}", Body=f"this is {name}".encode())
    into = tmp_path / "into"
    _, told = mover.run("get", "-r", f"s3://{bucket}/p/", into, code=1)
    assert told.count("under another name") == 2
    assert ".order.coffer-part" in told
    assert "2 failed, 2 went well" in told
    assert {path.name: path.read_text() for path in into.iterdir()} == {
        "order": "this is order",
        "also": "this is also",
    }
    _, told = mover.run("get", f"s3://{bucket}/p/.order.coffer-part", into, code=1)
    assert "under another name" in told
    mover.run("get", f"s3://{bucket}/p/.order.coffer-part", into / "renamed")
    assert (into / "renamed").read_text() == "this is .order.coffer-part"


def test_what_is_no_file_is_not_replaced(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="x", Body=b"x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for target in (pipe, tmp_path / "link"):
        _, told = mover.run("get", f"s3://{bucket}/x", target, code=1)
        assert "is no regular file: write `-`" in told
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} >= {"pipe", "link"}
    assert not list(tmp_path.glob(".*coffer-*"))
    # As /dev/stdout, where standard output is a file.
    stdout = tmp_path / "stdout"
    stdout.symlink_to("/proc/self/fd/1")
    with (tmp_path / "redirected").open("wb") as redirected:
        command = [BINARY, "get", f"s3://{bucket}/x", stdout]
        done = subprocess.run(
            command, env=mover.environment, stdout=redirected, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1 and b"is no regular file: write `-`" in done.stderr
    assert stdout.is_symlink()


def test_a_file_that_gives_more_than_its_size_is_refused(mover, s3, bucket):
    _, told = mover.run("put", "/proc/self/status", f"s3://{bucket}/status", code=1)
    assert "more bytes than its size says" in told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_lists(mover, s3, bucket):
    for key in ("a/1", "a/2", "b", "new\nline"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * 1500)
    out, _ = mover.run("ls")
    assert bucket in out.decode()
    lines = mover.run("ls", f"s3://{bucket}")[0].decode().splitlines()
    assert [line.split()[-1] for line in lines] == ["a/", "b", r"new\nline"]
    assert "1.5 kB" in lines[1]
    lines = mover.run("ls", "-l", f"s3://{bucket}")[0].decode().splitlines()
    etag = s3.head_object(Bucket=bucket, Key="b")["ETag"].strip('"')
    assert lines[0].split() == ["-", "a/"]
    assert lines[1].split()[2:] == ["1500", etag, "b"]
    listed = [
        json.loads(line) for line in mover.run("ls", f"s3://{bucket}/", "--json")[0].splitlines()
    ]
    assert [entry.get("name", entry.get("prefix")) for entry in listed] == ["a/", "b", "new\nline"]
    assert listed[1]["bytes"] == 1500
    out, _ = mover.run("ls", "-r", f"s3://{bucket}/a", "--json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["a/1", "a/2"]
    _, told = mover.run("ls", f"s3://{bucket}/none", code=1)
    assert "no name begins with none" in told


def test_deleting(mover, s3, bucket):
    for number in range(1, 1203):
        s3.put_object(Bucket=bucket, Key=f"many/{number}", Body=b"")
    s3.put_object(Bucket=bucket, Key="one", Body=b"")
    mover.run("rm", f"s3://{bucket}/one")
    _, told = mover.run("rm", "-r", f"s3://{bucket}/many/", code=2, input=b"no\n")
    assert "nothing was deleted" in told
    events = mover.events("rm", "-r", f"s3://{bucket}/many/", "--yes")
    assert events[-1] == {
        "event": "summary",
        "done": 1202,
        "bytes": 0,
        "failed": 0,
        "seconds": events[-1]["seconds"],
    }
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_copies(mover, s3, bucket, tmp_path):
    body = content(6 * MIB)
    s3.put_object(
        Bucket=bucket,
        Key="from/a",
        Body=body,
        Metadata={"k": "v"},
        ContentType="x/y",
        Tagging="t=1",
    )
    s3.put_object(Bucket=bucket, Key="from/b", Body=b"b")
    copied = mover.done("cp", f"s3://{bucket}/from/a", f"s3://{bucket}/to/")
    assert (copied["transfer"], copied["verified"]) == ("server", True)
    there = s3.get_object(Bucket=bucket, Key="to/a")
    assert there["Body"].read() == body
    assert (there["Metadata"], there["ContentType"], there["TagCount"]) == ({"k": "v"}, "x/y", 1)
    mover.run("cp", "-r", f"s3://{bucket}/from", f"s3://{bucket}/all")
    assert s3.get_object(Bucket=bucket, Key="all/b")["Body"].read() == b"b"
    _, told = mover.run("cp", tmp_path, f"s3://{bucket}/x", code=2)
    assert "coffer put" in told


def test_spaces_in_values_are_signed_as_servers_read_them(mover, s3, bucket, tmp_path):
    source = tmp_path / "source"
    source.write_text("x")
    kind = ("--content-type", "text/x;  a=b", "--metadata", "title=Minutes  of May")
    mover.run("put", source, f"s3://{bucket}/x", *kind, "--metadata", "tab=a\tb")
    head = s3.head_object(Bucket=bucket, Key="x")
    assert head["Metadata"]["title"] == "Minutes  of May"
    mover.run("put", source, f"s3://{bucket}/y", "--metadata", "a=2", "--metadata", "a=1")
    assert s3.head_object(Bucket=bucket, Key="y")["Metadata"]["a"] == "2,1"


def test_headers_and_versions(mover, s3, bucket, tmp_path):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    source = tmp_path / "source"
    ids = []
    for text in ("one", "two"):
        source.write_text(text)
        kind = ("--content-type", "text/x", "--metadata", "Who=me=you")
        ids.append(mover.done("put", source, f"s3://{bucket}/", *kind)["version_id"])
    head = s3.head_object(Bucket=bucket, Key="source")
    assert head["ContentType"] == "text/x"
    assert head["Metadata"]["who"] == "me=you"
    out, _ = mover.run("get", f"s3://{bucket}/source", "-", "--version-id", ids[0])
    assert out == b"one"
    mover.run("rm", f"s3://{bucket}/source", "--version-id", ids[1])
    assert mover.run("get", f"s3://{bucket}/source", "-")[0] == b"one"


def test_versions_are_listed_with_their_ids(mover, s3, bucket, tmp_path):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    ids = [
        s3.put_object(Bucket=bucket, Key="a/k", Body=body)["VersionId"] for body in (b"1", b"22")
    ]
    ids.append(s3.delete_object(Bucket=bucket, Key="a/k")["VersionId"])
    s3.put_object(Bucket=bucket, Key="b", Body=b"b")
    out, _ = mover.run("ls", "--versions", f"s3://{bucket}/a", "--json")
    listed = [json.loads(line) for line in out.splitlines()]
    assert [entry["version_id"] for entry in listed] == ids[::-1]
    assert [entry["is_latest"] for entry in listed] == [True, False, False]
    assert [entry["is_delete_marker"] for entry in listed] == [True, False, False]
    assert [entry.get("bytes") for entry in listed] == [None, 2, 1]
    assert {entry["name"] for entry in listed} == {"a/k"}
    lines = mover.run("ls", "--versions", f"s3://{bucket}")[0].decode().splitlines()
    assert len(lines) == 4 and "deleted" in lines[0] and ids[2] in lines[0]
    # More than a page, and what is told is what is taken.
    for _ in range(1001):
        s3.put_object(Bucket=bucket, Key="many", Body=b"")
    out, _ = mover.run("ls", "--versions", f"s3://{bucket}/many", "--json")
    assert len({json.loads(line)["version_id"] for line in out.splitlines()}) == 1001
    mover.run("rm", f"s3://{bucket}/a/k", "--version-id", listed[0]["version_id"])
    assert mover.run("get", f"s3://{bucket}/a/k", "-")[0] == b"22"
    assert "no name begins" in mover.run("ls", "--versions", f"s3://{bucket}/c", code=1)[1]
    mover.run("ls", "--versions", code=2)
    # All of them, also those that a deletion would leave.
    s3.delete_object(Bucket=bucket, Key="b")
    every = ("rm", "-r", "--versions", f"s3://{bucket}")
    _, told = mover.run(*every, code=2, input=b"no\n")
    assert "All versions and delete markers" in told and "nothing was deleted" in told
    mover.run("rm", "--versions", f"s3://{bucket}/b", code=2)
    mistyped = ("rm", "-r", "--versions", f"s3://{bucket}/none/", "--yes")
    assert "no name begins with none/ (NoSuchKey)" in mover.run(*mistyped, code=1)[1]
    events = mover.events(*every, "--yes")
    assert (events[-1]["done"], events[-1]["failed"]) == (1005, 0)
    gone = {event["version_id"] for event in events if event["event"] == "deleted"}
    assert len(gone) == 1005 and ids[0] in gone
    assert s3.list_object_versions(Bucket=bucket).get("Versions", []) == []
    assert s3.list_object_versions(Bucket=bucket).get("DeleteMarkers", []) == []


def test_what_is_wrong_is_told_with_what_to_do(mover, server, bucket, tmp_path):
    source = tmp_path / "source"
    source.write_text("x")
    place = f"s3://{bucket}/x"
    cases = [
        (("put", source, "bucket/x"), 2, "write s3://BUCKET/NAME"),
        (("put", source, place, "--endpoint", "127.0.0.1:1"), 2, "write https:// or http://"),
        (("put", source, place, "--jobs", "0"), 2, "--jobs"),
        (("put", tmp_path / "none", place), 1, "none: reading failed: No such file"),
        (("put", tmp_path, place), 1, "is a folder: -r"),
        (("put", source, "s3://no-such-bucket/x"), 1, "`coffer ls` lists"),
        (("get", f"s3://{bucket}/none", tmp_path), 1, "no object none in the bucket"),
        (("cp", f"s3://{bucket}/none", place), 1, "NoSuchKey"),
        (("get", "s3://no-such-bucket/x", tmp_path), 1, "no bucket no-such-bucket"),
        (("get", f"s3://{bucket}", tmp_path), 2, "name an object"),
        (("put", source, place, "--endpoint", "https://127.0.0.1:1"), 1, "cannot be reached"),
        (("put", "-r", "-", place), 2, "standard input is no folder"),
        (("get", "-r", place, "-"), 2, "can't go to standard output"),
        (("put", source, place, "--follow-links"), 2, "--recursive"),
        (("put", source, place, "--transfer", "sealed"), 1, "allows no sealed transfer"),
    ]
    for arguments, code, expected in cases:
        _, told = mover.run(*arguments, code=code)
        assert expected in told, (arguments, told)
        assert told.count("\n") == 1 or code == 2, told
    error = json.loads(mover.run("get", f"s3://{bucket}/none", tmp_path, "--json", code=1)[1])
    assert error["error"]["code"] == "NoSuchKey"
    assert not (tmp_path / "none").exists()
    mover.environment["AWS_SECRET_ACCESS_KEY"] = "wrong"
    assert "SignatureDoesNotMatch" in mover.run("ls", code=1)[1]


def test_keys_and_addresses_from_files(server, bucket, tmp_path):
    key_id, secret = server.credentials()
    aws = tmp_path / ".aws"
    aws.mkdir()
    (aws / "credentials").write_text(
        f"[mine]\naws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n"
    )
    (aws / "config").write_text(
        f"[profile mine]\nca_bundle = {server.ca}\nservices = here\n"
        f"[services here]\ns3 =\n  endpoint_url = {server.endpoint}\n"
    )
    environment = clean_environment() | {"HOME": str(tmp_path)}

    def run(*arguments, code=0, **more):
        command = [BINARY, *map(str, arguments)]
        done = subprocess.run(
            command, env=environment | more, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == code, done
        return (done.stdout + done.stderr).decode()

    assert bucket in run("ls", "--profile", "mine")
    assert bucket in run("ls", AWS_PROFILE="mine")
    assert "no access key" in run("ls", "--endpoint", server.endpoint, code=1)
    assert bucket in run("ls", "--data", server.data, "--endpoint", server.endpoint)
    named = ("--endpoint", server.endpoint, "--ca", server.ca)
    file = ("--credentials", server.credentials_path)
    assert bucket in run("ls", *named, *file)
    assert "is not trusted here" in run("ls", "--endpoint", server.endpoint, *file, code=1)


def test_another_program_reads_what_was_put(mover, bucket, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    make_tree(tree, 20 * MIB)
    mover.run("put", "-r", tree, f"s3://{bucket}/t/")
    environment = mover.environment | {
        "RCLONE_CONFIG_C_TYPE": "s3",
        "RCLONE_CONFIG_C_PROVIDER": "Other",
        "RCLONE_CONFIG_C_ENV_AUTH": "true",
        "RCLONE_CONFIG_C_ENDPOINT": mover.environment["AWS_ENDPOINT_URL"],
    }
    ca = environment.pop("AWS_CA_BUNDLE")
    command = [
        shutil.which("rclone"),
        "--ca-cert",
        ca,
        "check",
        "--download",
        tree,
        f"c:{bucket}/t",
    ]
    subprocess.run(list(map(str, command)), env=environment, check=True, timeout=120)


def test_empty_folders_are_told(mover, bucket, tmp_path):
    for folder in ("with/one", "with/nothing", "without"):
        (tmp_path / "tree" / folder).mkdir(parents=True)
    (tmp_path / "tree/with/one/file").write_bytes(b"x")
    _, told = mover.run("put", "-r", tmp_path / "tree", f"s3://{bucket}/tree/")
    assert "note: 2 empty folders are left out" in told
    events = mover.events("put", "-r", tmp_path / "tree", f"s3://{bucket}/tree/")
    assert events[-1]["empty_folders"] == 2
