"""coffer put and get of several files and objects at once, as cp takes them."""

import time

import pytest

from harness.mover import Mover
from harness.watching import Watching


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def keys(s3, bucket, prefix=""):
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=prefix)
    return [each["Key"] for each in listed.get("Contents", [])]


@pytest.fixture
def files(tmp_path):
    """Two files, and a folder with one."""
    folder = tmp_path / "from"
    (folder / "inner").mkdir(parents=True)
    for name in ("a", "b", "inner/c"):
        (folder / name).write_text(name)
    return folder


def test_several_files_are_put(mover, s3, bucket, files):
    a, b = files / "a", files / "b"
    mover.run("put", a, b, f"s3://{bucket}")
    events = mover.events("put", a, "--jobs", "2", b, f"s3://{bucket}/p/")
    assert (events[-1]["done"], events[-1]["failed"]) == (2, 0)
    assert keys(s3, bucket) == ["a", "b", "p/a", "p/b"]
    assert s3.get_object(Bucket=bucket, Key="p/b")["Body"].read() == b"b"
    # One that is not stored is told, and the others go on.
    _, told = mover.run("put", a, files / "none", files / "inner", f"s3://{bucket}/q/", code=1)
    assert "none: reading failed" in told and "is a folder: -r" in told
    assert "2 failed, 1 went well" in told and keys(s3, bucket, "q/") == ["q/a"]
    # Folders keep their names beside each other, which one alone does not.
    mover.run("put", "-r", a, files / "inner", f"s3://{bucket}/r/")
    mover.run("put", "-r", files / "inner", f"s3://{bucket}/s/")
    assert keys(s3, bucket, "r/") == ["r/a", "r/inner/c"] and keys(s3, bucket, "s/") == ["s/c"]


def test_several_objects_are_fetched(mover, s3, bucket, tmp_path):
    for key in ("p/a", "b", "q/c"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    into = tmp_path / "into"
    into.mkdir()
    mover.run("get", f"s3://{bucket}/p/a", f"s3://{bucket}/b", into)
    assert {path.name: path.read_text() for path in into.iterdir()} == {"a": "p/a", "b": "b"}
    _, told = mover.run("get", f"s3://{bucket}/none", f"s3://{bucket}/q/c", into, code=1)
    assert "no object none" in told and (into / "c").read_text() == "q/c"
    below = tmp_path / "below"
    below.mkdir()
    mover.run("get", "-r", f"s3://{bucket}/p/", f"s3://{bucket}/q", below)
    assert (below / "p/a").read_text() == "p/a" and (below / "q/c").read_text() == "q/c"
    # A prefix that no name has is told, and the others go on.
    typo = ("get", "-r", f"s3://{bucket}/typo/", f"s3://{bucket}/q/")
    more = tmp_path / "more"
    more.mkdir()
    _, told = mover.run(*typo, more, code=1)
    assert "no name begins with typo/" in told and "1 failed, 1 went well" in told
    assert (more / "q/c").read_text() == "q/c"
    events = mover.events(*typo, more, code=1)
    [failed] = [event for event in events if event["event"] == "failed"]
    assert (failed["what"], failed["code"]) == (f"s3://{bucket}/typo/", "NoSuchKey")


def test_a_folder_that_can_not_be_begun_leaves_the_others_to_go_on(
    mover, server, s3, bucket, files, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    (other / "d").write_text("d")
    (files / "late").symlink_to(files / "missing")
    put = ("put", "-r", "--follow-links", files, other, f"s3://{bucket}/p/", "--retries", "0")
    # Files that were just made are not noted.
    time.sleep(1.1)

    def breaks(method, path):
        if method == "GET" and "prefix=" in path and "from" in path:
            raise OSError

    with Watching(server) as between:
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        # Where something failed, there are notes, and what was stored is looked at.
        mover.run(*put, code=1)
        s3.delete_object(Bucket=bucket, Key="p/other/d")
        between.before = breaks
        events = mover.events(*put, code=1)
    failed = [event["what"] for event in events if event["event"] == "failed"]
    assert failed == [str(files)]
    assert keys(s3, bucket, "p/other/") == ["p/other/d"]


def test_what_is_wrong_with_several_is_told_before_any_is_moved(mover, s3, bucket, files, tmp_path):
    a, b = files / "a", files / "b"
    (files / "inner/a").write_text("another")
    place = f"s3://{bucket}"
    for arguments, expected in (
        (("put", a), "behind it where to"),
        (("put", a, b), "write s3://BUCKET/NAME"),
        (("put", a, b, f"{place}/name"), "a name that ends with /"),
        (("put", a, files / "inner/a", f"{place}/"), "would have this name"),
        (("put", a, "-", f"{place}/"), "standard input is stored by itself"),
        (("get", f"{place}/x"), "behind it where to"),
        (("get", f"{place}/x", f"{place}/y", tmp_path / "none"), "a folder that is there"),
        (("get", f"{place}/x", f"{place}/p/x", tmp_path), "would have this name"),
        (("get", f"{place}/x", f"{place}/y", tmp_path, "--version-id", "v"), "one object"),
    ):
        _, told = mover.run(*arguments, code=2)
        assert expected in told and told.count("\n") == 1, (arguments, told)
    assert keys(s3, bucket) == []
