"""coffer rm --dry-run names what would be deleted, and deletes nothing."""

import pytest

from harness.mover import Mover

VERSIONED = {"Status": "Enabled"}


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.fixture
def place(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=VERSIONED)
    for key, body in (("t/a", b"1"), ("t/a", b"22"), ("t/b", b"333"), ("u", b"4")):
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    s3.delete_object(Bucket=bucket, Key="t/b")
    return f"s3://{bucket}"


def versions(s3, place):
    listed = s3.list_object_versions(Bucket=place[5:])
    rows = listed["Versions"] + listed["DeleteMarkers"]
    return {(f"{place}/{row['Key']}", row["VersionId"]) for row in rows}


def test_what_would_be_deleted_is_named_and_stays(mover, s3, place):
    before = versions(s3, place)
    out, told = mover.run("rm", "-r", f"{place}/t/", "--dry-run")
    assert out.decode() == f"would delete {place}/t/a\n"
    assert "1 would be deleted" in told and "nothing was" in told
    found, summary = mover.events("rm", "-r", f"{place}/t/", "--dry-run")
    assert found == {"event": "would_delete", "what": f"{place}/t/a"}
    assert summary == {"event": "summary", "would_delete": 1, "bytes": 2}
    *found, summary = mover.events("rm", "-r", "--versions", place, "--dry-run")
    assert {(line["what"], line["version_id"]) for line in found} == before
    assert (summary["would_delete"], summary["bytes"]) == (5, 7)
    [found] = mover.events("rm", f"{place}/u", "--dry-run")
    assert found["what"] == f"{place}/u"
    assert versions(s3, place) == before
    *deleted, _ = mover.events("rm", "-r", f"{place}/t/", "--yes")
    assert [line["what"] for line in deleted] == [f"{place}/t/a"]


def test_what_is_not_there_is_an_error_as_without_it(mover, place):
    for arguments in (
        (f"{place}/none",),
        ("-r", f"{place}/none/"),
        ("-r", "--versions", f"{place}/x"),
    ):
        _, told = mover.run("rm", *arguments, "--dry-run", code=1)
        assert "NoSuchKey" in told, told
    mover.run("rm", "-r", "s3://no-such-bucket", "--dry-run", code=1)


def test_what_can_not_be_looked_at_is_an_error(mover, place):
    named = (f"{place}/u", "--dry-run")
    _, told = mover.run("rm", *named, "--version-id", "nonsense", code=1)
    assert "InvalidArgument" in told, told
    _, told = mover.run("rm", *named, "--endpoint", "https://127.0.0.1:1", code=1)
    assert "127.0.0.1:1" in told, told
