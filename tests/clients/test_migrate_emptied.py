"""coffer migrate from a folder in which others seem to be emptied."""

import os
import tempfile
from pathlib import Path

import pytest

from harness.migration import Migrator


@pytest.fixture
def migrator(server, tmp_path):
    return Migrator(server, tmp_path / "home")


@pytest.fixture
def shares(tmp_path, request):
    """A folder of folders, whose names nothing else has."""
    name = request.node.name.translate(str.maketrans("_ ", "--", "[]"))[5:55].strip("-")
    folder = tmp_path / "shares" / name
    folder.mkdir(parents=True)
    return folder


def names(s3, bucket):
    return {row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def test_an_emptied_folder_keeps_what_came_from_it(migrator, s3, shares):
    """As the place of a mount below the source is whose disk is away."""
    for name in ("disk/a", "disk/deep/b", "disk-2/c", "stays/d", "stays/e"):
        path = shares / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    migrator.migrate(source=shares.parent)
    for name in ("disk/a", "disk/deep/b", "stays/e"):
        (shares / name).unlink()
    (shares / "disk/deep").rmdir()
    kept = {"disk/a", "disk/deep/b", "disk-2/c", "stays/d"}
    for words in (["--dry-run"], []):
        run = migrator.migrate("--delete", *words, source=shares.parent, code=1)
        [(what, failed)] = run.failed.items()
        assert (what, failed["code"]) == (str(shares / "disk"), "source_empty"), words
        assert "--delete-all" in failed["message"]
        of = run.buckets[shares.name]
        assert (of["gone"], of["deleted"], of["missing"]) == (3, 1, 1), words
    assert names(s3, shares.name) == kept
    run = migrator.migrate("--delete-all", source=shares.parent)
    assert run.buckets[shares.name]["deleted"] == 2
    assert names(s3, shares.name) == {"disk-2/c", "stays/d"}
    # An empty folder of which nothing came is none to name.
    assert migrator.migrate("--delete", source=shares.parent).failed == {}


@pytest.mark.parametrize("now", ["a folder", "nothing"])
def test_a_mount_that_is_away_keeps_what_came_from_it(migrator, s3, shares, now):
    if os.stat("/dev/shm").st_dev == shares.stat().st_dev:
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as disk:
        for name in ("a", "b"):
            Path(disk, name).write_text(name)
        (shares / "beside").write_text("beside")
        (shares / "disk").symlink_to(disk)
        options = {"source": shares.parent}
        migrator.migrate("--follow-links", **options)
        Path(disk, "a").unlink()
        run = migrator.migrate("--follow-links", "--delete", **options)
        assert run.buckets[shares.name]["deleted"] == 1
    (shares / "disk").unlink()
    if now == "a folder":
        (shares / "disk").mkdir()
        (shares / "disk/not mounted").write_text("a sign")
    run = migrator.migrate("--follow-links", "--delete", code=1, **options)
    [(what, failed)] = run.failed.items()
    assert (what, failed["code"]) == (str(shares / "disk"), "source_empty")
    assert "disk/b" in names(s3, shares.name)
    run = migrator.migrate("--follow-links", "--delete-all", **options)
    assert run.buckets[shares.name]["deleted"] == 1
    (shares / "beside").unlink()
    (shares / "last").write_text("last")
    migrator.migrate("--follow-links", "--delete", **options)
    assert {"disk/b", "beside"}.isdisjoint(names(s3, shares.name))
