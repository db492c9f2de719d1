"""coffer migrate from folders."""

import json
import os
import subprocess

import pytest

from harness.content import MIB, content, digest, write_file
from harness.migration import Migrator
from harness.server import BINARY


@pytest.fixture
def migrator(server, tmp_path):
    return Migrator(server, tmp_path / "home")


@pytest.fixture
def shares(tmp_path, request):
    """A folder of folders, whose names nothing else has."""
    name = request.node.name.replace("_", "-")[5:55].strip("-")
    folder = tmp_path / "shares" / name
    folder.mkdir(parents=True)
    return folder


def names(s3, bucket):
    return {row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def test_each_folder_becomes_a_bucket(migrator, s3, shares):
    sizes = {"empty": 0, "a-b": 1, "a/b": 2, "a.b": 3, "ü/日本 +%": 17, "large": 33 * MIB}
    for name, size in sizes.items():
        path = shares / name
        path.parent.mkdir(exist_ok=True)
        write_file(path, size)
    os.utime(shares / "empty", ns=(0, 1_600_000_000_123_456_789))
    second = shares.parent / (shares.name + "-2")
    second.mkdir()
    (second / "one").write_text("one")
    run = migrator.migrate(source=shares.parent)
    assert run.counts(shares.name) == (len(sizes), 0, 0)
    assert run.counts(second.name) == (1, 0, 0)
    for name in sizes:
        got = migrator.home / "got"
        s3.download_file(shares.name, name, str(got))
        assert digest(got) == digest(shares / name), name
    head = s3.head_object(Bucket=shares.name, Key="empty")
    assert head["Metadata"]["mtime"] == "1600000000.123456789"
    assert {line["proof"] for line in run.versions} == {"target-tells"}
    assert migrator.migrate(source=shares.parent).counts(shares.name) == (0, len(sizes), 0)
    assert migrator.migrate("--check", source=f"file://{shares.parent}").failed == {}
    # What changed, and what is gone.
    (shares / "a-b").write_text("longer now")
    (shares / "a.b").unlink()
    run = migrator.migrate("--delete", source=shares.parent)
    assert run.counts(shares.name) == (1, len(sizes) - 2, 0)
    assert run.buckets[shares.name]["deleted"] == 1
    assert names(s3, shares.name) == set(sizes) - {"a.b"}


def test_a_file_that_changed_and_whose_time_was_set_back_comes(migrator, s3, shares):
    balance, other = shares / "balance", shares / "other"
    balance.write_bytes(b"balance 100")
    other.write_bytes(b"other")
    migrator.migrate(source=shares.parent)
    before = balance.stat()
    balance.write_bytes(b"balance 999")
    os.utime(balance, ns=(before.st_atime_ns, before.st_mtime_ns))
    run = migrator.migrate("--check", source=shares.parent, code=1)
    assert (run.codes(), run.counts(shares.name)) == (["differs"], (0, 1, 1))
    assert migrator.migrate(source=shares.parent).counts(shares.name) == (1, 1, 0)
    assert s3.get_object(Bucket=shares.name, Key="balance")["Body"].read() == b"balance 999"
    # A file that takes the name of another, with its length and its time.
    beside = shares.parent.parent / "beside"
    beside.write_bytes(b"OTHER")
    before = other.stat()
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.rename(other)
    assert migrator.migrate(source=shares.parent).counts(shares.name) == (1, 1, 0)
    assert s3.get_object(Bucket=shares.name, Key="other")["Body"].read() == b"OTHER"


def test_a_file_that_has_another_mode_does_not_come_again(migrator, s3, shares):
    file = shares / "file"
    file.write_bytes(b"content")
    migrator.migrate(source=shares.parent)
    before = s3.head_object(Bucket=shares.name, Key="file")["LastModified"]
    file.chmod(0o600)
    assert migrator.migrate("--check", source=shares.parent).counts(shares.name) == (0, 1, 0)
    assert migrator.migrate(source=shares.parent).counts(shares.name) == (0, 1, 0)
    assert s3.head_object(Bucket=shares.name, Key="file")["LastModified"] == before
    # It still is this migration's own; another time comes with the file.
    os.utime(file, ns=(0, 1_600_000_000_000_000_000))
    run = migrator.migrate("--check", source=shares.parent, code=1)
    assert "its bytes are the same" in next(iter(run.failed.values()))["message"]
    assert migrator.migrate(source=shares.parent).counts(shares.name) == (1, 0, 0)
    head = s3.head_object(Bucket=shares.name, Key="file")
    assert head["Metadata"]["mtime"] == "1600000000.000000000"


def test_a_report_does_not_lie_in_the_source(migrator, s3, shares):
    (shares / "a").write_text("a")
    for report in (shares / "report.jsonl", shares.parent / "report.jsonl"):
        words = ("migrate", shares.parent, "--report", report)
        _, told = migrator.run(*words, code=2)
        assert "write the report elsewhere" in told
        assert not report.exists()
    assert shares.name not in [row["Name"] for row in s3.list_buckets()["Buckets"]]


def test_a_folder_becomes_one_bucket_or_a_part_of_one(migrator, s3, shares):
    (shares / "in").mkdir()
    (shares / "in/file").write_text("x")
    (shares / "file").write_text("y")
    migrator.migrate(f"s3://{shares.name}/2026/", source=shares)
    s3.put_object(Bucket=shares.name, Key="other", Body=b"not ours")
    assert names(s3, shares.name) == {"2026/in/file", "2026/file", "other"}
    run = migrator.migrate(f"s3://{shares.name}/2026/", source=shares)
    assert run.counts(shares.name) == (0, 2, 0)
    assert run.buckets[shares.name]["others"] == 0


def test_a_part_of_a_bucket_is_named_with_or_without_its_slash(migrator, s3, shares):
    (shares / "file").write_text("y")
    for place in (f"s3://{shares.name}/2026", f"s3://{shares.name}/2026/"):
        migrator.migrate(place, source=shares)
        assert names(s3, shares.name) == {"2026/file"}


def test_a_folder_that_can_be_no_bucket_is_told_before_it_moves(migrator, s3, shares):
    (shares / "file").write_text("y")
    for name in ("ab", "ab--x-s3", "Not_A_Bucket"):
        (shares.parent / name).mkdir()
        (shares.parent / name / "file").write_text("x")
    for words in (["--dry-run"], ["--check"], []):
        run = migrator.migrate(*words, source=shares.parent, code=1)
        told = [it for it in run.failed.values() if it["code"] == "InvalidBucketName"]
        assert len(told) == 3, words
        assert all("small letters" in it["message"] and "rename" in it["message"] for it in told)
    assert names(s3, shares.name) == {"file"}


def test_what_cannot_come_is_named(migrator, s3, shares):
    (shares / "good").write_text("good")
    (shares / "nowhere").symlink_to(shares / "missing")
    os.mkfifo(shares / "pipe")
    (shares / os.fsdecode(b"\xff")).write_text("no name")
    (shares.parent / "stray").write_text("in no bucket")
    (shares.parent / "Not_A_Bucket").mkdir()
    run = migrator.migrate(source=shares.parent, code=1)
    assert run.counts(shares.name) == (1, 0, 3)
    assert run.codes() == sorted(
        ["in_no_bucket", "InvalidBucketName", "symbolic_link"] + ["unsuitable_file"] * 2
    )
    assert names(s3, shares.name) == {"good"}
    only = ("--bucket", shares.name)
    run = migrator.migrate(*only, "--without", "links", source=shares.parent, code=1)
    assert run.codes() == ["unsuitable_file"] * 2
    run = migrator.migrate(*only, "--follow-links", source=shares.parent, code=1)
    assert "local_file_failed" in run.codes()
    (shares / "missing").write_text("found")
    migrator.migrate(*only, "--follow-links", source=shares.parent, code=1)
    assert s3.get_object(Bucket=shares.name, Key="nowhere")["Body"].read() == b"found"


def test_a_source_that_is_not_mounted_deletes_nothing(migrator, s3, shares):
    (shares / "file").write_text("x")
    migrator.migrate(source=shares.parent)
    (shares / "file").unlink()
    run = migrator.migrate("--delete", source=shares.parent, code=1)
    assert run.codes() == ["source_empty"]
    assert "--delete-all" in next(iter(run.failed.values()))["message"]
    assert names(s3, shares.name) == {"file"}
    run = migrator.migrate("--delete-all", source=shares.parent)
    assert run.buckets[shares.name]["deleted"] == 1
    assert names(s3, shares.name) == set()


def test_a_folder_that_is_missing_changes_nothing(migrator, s3, shares):
    (shares / "file").write_text("x")
    place = f"s3://{shares.name}"
    migrator.migrate(place, source=shares)
    (shares / "file").unlink()
    shares.rmdir()
    for words in ([], ["--delete"], ["--delete-all"], ["--dry-run"], ["--check"]):
        run = migrator.migrate(place, *words, source=shares, code=1)
        assert run.codes() == ["local_file_failed"], words
    assert names(s3, shares.name) == {"file"}
    migrator.migrate(f"{place}-2", source=shares, code=1)
    assert f"{shares.name}-2" not in [row["Name"] for row in s3.list_buckets()["Buckets"]]


def test_what_is_gone_at_the_source_is_a_difference(migrator, shares):
    for name in ("a", "b", "c"):
        (shares / name).write_text(name)
    migrator.migrate(source=shares.parent)
    (shares / "a").unlink()
    (shares / "b").unlink()
    out, _ = migrator.run("migrate", shares.parent, "--check", code=1)
    assert b"All of it is there" not in out and b"\n1 not the same" in out
    run = migrator.migrate("--check", source=shares.parent, code=1)
    [failed] = run.failed.values()
    assert run.counts(shares.name) == (0, 1, 1)
    assert failed["code"] == "gone" and failed["message"].startswith("2 objects or versions")
    migrator.migrate("--delete", source=shares.parent)
    assert migrator.migrate("--check", source=shares.parent).failed == {}


def test_an_older_version_of_a_file_is_no_difference(migrator, s3, shares):
    (shares / "file").write_text("old")
    migrator.migrate(source=shares.parent)
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=shares.name, VersioningConfiguration=enabled)
    (shares / "file").write_text("newer")
    run = migrator.migrate(source=shares.parent)
    assert (run.counts(shares.name), run.buckets[shares.name]["gone"]) == ((1, 0, 0), 0)
    assert migrator.migrate("--check", source=shares.parent).failed == {}
    run = migrator.migrate("--delete", source=shares.parent)
    assert (run.buckets[shares.name]["older"], run.buckets[shares.name]["deleted"]) == (1, 0)
    versions = s3.list_object_versions(Bucket=shares.name)["Versions"]
    assert [version["Size"] for version in versions] == [len("newer"), len("old")]


def test_a_dry_run_promises_what_a_run_does(migrator, s3, shares):
    for name in ("new", "taken", "touched"):
        (shares / name).write_text(name)
    s3.create_bucket(Bucket=shares.name)
    s3.put_object(Bucket=shares.name, Key="taken", Body=b"by another")
    planned = migrator.migrate("--dry-run", source=shares.parent, code=1)
    assert (planned.counts(shares.name), planned.codes()) == ((2, 0, 1), ["occupied"])
    run = migrator.migrate(source=shares.parent, code=1)
    assert (run.counts(shares.name), run.codes()) == ((2, 0, 1), ["occupied"])
    # What has the same length is not looked at, which is told.
    s3.put_object(Bucket=shares.name, Key="taken", Body=b"other")
    os.utime(shares / "touched", ns=(0, 1_600_000_000_000_000_000))
    planned = migrator.migrate("--dry-run", source=shares.parent)
    assert planned.counts(shares.name) == (2, 1, 0)
    assert (planned.buckets[shares.name]["uncompared"], planned.buckets[shares.name]["gone"]) == (
        2,
        0,
    )
    out, _ = migrator.run("migrate", shares.parent, "--dry-run")
    assert b"2 have something of their length at the target" in out


def test_a_dry_run_says_what_would_be_deleted(migrator, s3, shares):
    for name in ("gone", "stays"):
        (shares / name).write_text(name)
    migrator.migrate(source=shares.parent)
    (shares / "gone").unlink()
    out, _ = migrator.run("migrate", shares.parent, "--dry-run", "--delete")
    assert b"1 (1 would be deleted)" in out
    run = migrator.migrate("--dry-run", "--delete", source=shares.parent)
    assert [line["outcome"] for line in run.versions if line["key"] == "gone"] == ["would-delete"]
    assert names(s3, shares.name) == {"gone", "stays"}


def test_a_root_without_folders_is_told(migrator, s3, shares):
    (shares / "file").write_text("x")
    migrator.migrate(source=shares.parent)
    (shares / "file").unlink()
    shares.rmdir()
    for words in (["--delete"], ["--check"]):
        _, told = migrator.run("migrate", shares.parent, *words, code=1)
        assert "mounted" in told
    assert names(s3, shares.name) == {"file"}


def test_what_cannot_be_read_is_not_gone(migrator, s3, shares, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in").write_text("precious")
    (shares / "folder").symlink_to(elsewhere)
    (shares / "link").symlink_to(elsewhere / "in")
    for name in ("folder.txt", "gone", "plain"):
        (shares / name).write_text(name)
    migrator.migrate("--follow-links", source=shares.parent)
    (shares / "gone").unlink()
    left = {"folder.txt", "folder/in", "link", "plain"}
    run = migrator.migrate("--delete", source=shares.parent, code=1)
    assert run.codes() == ["symbolic_link"] * 2
    assert run.buckets[shares.name]["deleted"] == 1
    assert run.buckets[shares.name]["unread"] == 2
    assert names(s3, shares.name) == left
    migrator.migrate("--delete", "--without", "links", source=shares.parent)
    assert names(s3, shares.name) == left
    elsewhere.rename(tmp_path / "away")
    run = migrator.migrate("--delete", "--follow-links", source=shares.parent, code=1)
    assert set(run.codes()) == {"local_file_failed"}
    assert names(s3, shares.name) == left


def test_names_of_unfinished_downloads_are_told(migrator, s3, shares):
    for name in (".file.coffer-part", ".file.coffer-journal", "file"):
        (shares / name).write_text(name)
    run = migrator.migrate(source=shares.parent, code=1)
    assert run.codes() == ["unfinished"] * 2
    assert names(s3, shares.name) == {"file"}


def test_without_the_ledger_nothing_goes_twice(migrator, s3, shares):
    write_file(shares / "large", 20 * MIB)
    (shares / "small").write_bytes(content(1000))
    migrator.migrate(source=shares.parent)
    before = s3.head_object(Bucket=shares.name, Key="large")["LastModified"]
    migrator.ledgers()[0].unlink()
    run = migrator.migrate(source=shares.parent)
    assert run.counts(shares.name) == (0, 2, 0)
    assert s3.head_object(Bucket=shares.name, Key="large")["LastModified"] == before


def test_two_at_once_do_not_meet(migrator, shares):
    write_file(shares / "large", 200 * MIB)
    first = migrator.start("migrate", shares.parent, "--jobs", "1")
    while not migrator.ledgers():
        assert first.poll() is None, first.communicate()
    run = migrator.migrate(source=shares.parent, code=1)
    assert run.codes() == ["busy"]
    first.terminate()
    _, told = first.communicate()
    assert first.returncode == 1 and b"goes on from there" in told


def test_an_empty_folder_whose_bucket_is_missing_is_told(migrator, shares):
    run = migrator.migrate("--check", source=shares.parent, code=1)
    [failed] = run.failed.values()
    assert failed["message"] == "the bucket is not at the target"
    migrator.migrate(source=shares.parent)
    assert migrator.migrate("--check", source=shares.parent).failed == {}


def test_a_file_is_no_source(migrator, s3, bucket, shares):
    film = shares / "film.mkv"
    film.write_bytes(b"film")
    report = migrator.home / "report.jsonl"
    for words in ([f"s3://{bucket}"], [f"s3://{bucket}", "--check"], []):
        _, told = migrator.run("migrate", film, *words, "--report", report, code=2)
        assert "is no folder: `coffer put" in told
    assert names(s3, bucket) == set()
    assert not list(migrator.home.glob("*report*")) + list(migrator.home.glob(".*report*"))


def test_a_report_takes_the_place_of_files_only(migrator, s3, shares):
    (shares / "file").write_text("x")
    file, link = migrator.home / "private.jsonl", migrator.home / "link.jsonl"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    migrator.run("migrate", shares.parent, "--report", link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert shares.name in file.read_text()
    version, bucket = (json.loads(line) for line in file.read_text().splitlines())
    assert version["outcome"] == "moved" and float(version["modified"]) > 1_700_000_000
    assert "outcome" not in bucket and (bucket["versions"], bucket["moved"]) == (1, 1), bucket
    out, _ = migrator.run("migrate", shares.parent, "--report", "/dev/stdout")
    assert b'"outcome":"there"' in out
    redirected = migrator.home / "redirected"
    with redirected.open("wb") as stdout:
        subprocess.run(
            [BINARY, "migrate", shares.parent, "--report", "/dev/stdout"],
            env=migrator.environment,
            stdout=stdout,
            check=True,
        )
    told = redirected.read_bytes()
    assert b'"outcome":"there"' in told and told.endswith(b"All of it arrived.\n"), told
    for wrong in (migrator.home, "-"):
        _, told = migrator.run("migrate", shares.parent, "--report", wrong, code=2)
        assert "--report" in told
    assert {path.name for path in migrator.home.iterdir()} >= {file.name, link.name}
    assert not list(migrator.home.glob("*coffer-part"))
    assert not list(migrator.home.parent.glob(".*coffer-part"))
