"""coffer migrate while clients write at the target, and over a network that loses answers."""

import re

import pytest
from botocore.exceptions import ClientError

from harness.content import MIB, content
from harness.migration import Migrator
from harness.watching import Watching, one_of

THEIRS = b"a client's own, written here"


@pytest.fixture
def bucket(old, request):
    """A bucket of the source, of a name that nothing else has."""
    name = re.sub("[^a-z]+", "-", request.node.name.lower())[-60:].strip("-")
    old.create_bucket(Bucket=name)
    return name


@pytest.fixture
def between(server):
    with Watching(server) as running:
        yield running


@pytest.fixture
def watched(server, origin, tmp_path, between):
    """Moves to a target whose requests the test sees first."""
    migrator = Migrator(server, tmp_path / "home", source=origin)
    migrator.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
    return migrator


def read(s3, bucket, key):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def keep_versions(s3, bucket):
    status = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=status)


@pytest.mark.parametrize("has_versions", [False, True])
def test_what_clients_write_while_it_runs_stays(watched, between, old, s3, bucket, has_versions):
    if has_versions:
        keep_versions(old, bucket)
    for key in ("a", "large", "m", "z"):
        old.put_object(Bucket=bucket, Key=key, Body=b"of the source")
    only = ("--bucket", bucket, "--jobs", "1")
    watched.migrate(*only)
    old.put_object(Bucket=bucket, Key="a", Body=bytes(1000))
    old.put_object(Bucket=bucket, Key="large", Body=content(17 * MIB))
    old.put_object(Bucket=bucket, Key="m", Body=b"of the source 2")
    old.put_object(Bucket=bucket, Key="n", Body=b"new at the source")
    old.delete_object(Bucket=bucket, Key="z")
    written = ("large", "m", "n", "z")

    def before(method, path):
        # Both lists have been read when the first name goes.
        if method == "PUT" and path == f"/{bucket}/a":
            for key in written:
                s3.put_object(Bucket=bucket, Key=key, Body=THEIRS)

    between.before = before
    run = watched.migrate(*only, "--delete", code=1)
    assert {key: read(s3, bucket, key) for key in written} == dict.fromkeys(written, THEIRS)
    assert read(s3, bucket, "a") == bytes(1000)
    assert set(run.codes()) == {"changed_at_target"}
    # The next run knows whose that is, and --overwrite puts the source's before it.
    between.before = lambda method, path: None
    run = watched.migrate(*only, "--delete", code=1)
    assert set(run.codes()) == {"occupied"}
    assert {key: read(s3, bucket, key) for key in written} == dict.fromkeys(written, THEIRS)
    watched.migrate(*only, "--overwrite")
    assert read(s3, bucket, "m") == b"of the source 2"


@pytest.mark.parametrize("has_versions", [False, True])
def test_what_comes_back_to_the_source_while_it_runs_stays(
    watched, between, old, s3, bucket, has_versions
):
    if has_versions:
        keep_versions(old, bucket)
    for key in ("a", "back", "gone"):
        old.put_object(Bucket=bucket, Key=key, Body=b"of the source")
    only = ("--bucket", bucket, "--jobs", "1")
    watched.migrate(*only)
    old.put_object(Bucket=bucket, Key="a", Body=bytes(1000))
    for key in ("back", "gone"):
        head = old.head_object(Bucket=bucket, Key=key)
        version = {"VersionId": head["VersionId"]} if has_versions else {}
        old.delete_object(Bucket=bucket, Key=key, **version)

    def before(method, path):
        # Both lists have been read when the first name goes.
        if method == "PUT" and path == f"/{bucket}/a":
            old.put_object(Bucket=bucket, Key="back", Body=b"back again")

    between.before = before
    run = watched.migrate(*only, "--delete", code=1)
    assert read(s3, bucket, "back") == b"of the source"
    assert run.buckets[bucket]["deleted"] == 1
    assert run.codes() == ["again_at_source"]
    with pytest.raises(ClientError):
        read(s3, bucket, "gone")
    between.before = lambda method, path: None
    watched.migrate(*only, "--delete")
    assert read(s3, bucket, "back") == b"back again"


def test_the_same_of_others_is_not_deleted(migrator, old, s3, bucket):
    s3.create_bucket(Bucket=bucket)
    for key in ("same", "changed"):
        old.put_object(Bucket=bucket, Key=key, Body=b"hello")
        s3.put_object(Bucket=bucket, Key=key, Body=b"hello")
    old.put_object(Bucket=bucket, Key="stays", Body=b"stays")
    only = ("--bucket", bucket)
    assert migrator.migrate(*only).counts(bucket) == (1, 2, 0)
    assert migrator.migrate(*only).counts(bucket) == (0, 3, 0)
    old.delete_object(Bucket=bucket, Key="same")
    old.put_object(Bucket=bucket, Key="changed", Body=b"newer at the source")
    run = migrator.migrate(*only, "--delete", code=1)
    assert (run.codes(), run.buckets[bucket]["deleted"]) == (["occupied"], 0)
    assert read(s3, bucket, "same") == read(s3, bucket, "changed") == b"hello"


def test_a_lost_answer_stores_nothing_twice(watched, between, old, s3, bucket):
    keep_versions(old, bucket)
    keys = ("k", "empty", "large")
    for key, body in zip(keys, (b"one", b"", content(17 * MIB)), strict=True):
        old.put_object(Bucket=bucket, Key=key, Body=body)
    old.put_object(Bucket=bucket, Key="gone", Body=b"one")
    old.delete_object(Bucket=bucket, Key="gone")
    lost = []

    def loses(method, path):
        is_stored = method == "PUT" and "partNumber" not in path
        is_completed = method == "POST" and "uploadId=" in path
        is_write = is_stored or is_completed or method == "DELETE"
        if not is_write or path.count("/") != 2 or (method, path) in lost:
            return False
        lost.append((method, path))
        return True

    between.loses = loses
    only = ("--bucket", bucket)
    run = watched.migrate(*only)
    assert {method for method, _ in lost} == {"PUT", "POST", "DELETE"}
    assert run.counts(bucket) == (5, 0, 0)
    there = s3.list_object_versions(Bucket=bucket)
    assert sorted(row["Key"] for row in there["Versions"]) == sorted([*keys, "gone"])
    assert [row["Key"] for row in there["DeleteMarkers"]] == ["gone"]
    assert watched.migrate(*only, "--check").counts(bucket) == (0, 5, 0)
    # It was this migration that stored them: what is newer comes behind, what is gone goes.
    old.put_object(Bucket=bucket, Key="gone", Body=b"two")
    [first] = [
        row["VersionId"] for row in old.list_object_versions(Bucket=bucket, Prefix="k")["Versions"]
    ]
    old.delete_object(Bucket=bucket, Key="k", VersionId=first)
    run = watched.migrate(*only, "--delete")
    assert (run.counts(bucket), run.buckets[bucket]["deleted"]) == ((1, 4, 0), 1)
    assert read(s3, bucket, "gone") == b"two"
    with pytest.raises(ClientError):
        read(s3, bucket, "k")


@pytest.mark.parametrize("number", [1, 2, 3], ids=["first", "second", "third"])
def test_a_lost_answer_to_a_deletion_leaves_one_marker(watched, between, old, s3, bucket, number):
    """Also where there is no object that a condition could name: before a name's first version,
    and behind another marker."""
    keep_versions(old, bucket)
    old.delete_object(Bucket=bucket, Key="k")
    old.put_object(Bucket=bucket, Key="k", Body=b"1")
    old.delete_object(Bucket=bucket, Key="k")
    old.delete_object(Bucket=bucket, Key="k")
    between.loses = one_of(number, "DELETE", f"/{bucket}/k")
    only = ("--bucket", bucket)
    assert watched.migrate(*only).counts(bucket) == (4, 0, 0)
    assert [method for method, _ in between.lost] == ["DELETE"]
    there = s3.list_object_versions(Bucket=bucket)
    assert (len(there["DeleteMarkers"]), len(there["Versions"])) == (3, 1)
    assert watched.migrate(*only, "--check").counts(bucket) == (0, 4, 0)
    # What comes later is not held up by a marker that none has put there.
    old.put_object(Bucket=bucket, Key="k", Body=b"2")
    assert watched.migrate(*only).counts(bucket) == (1, 4, 0)
    assert read(s3, bucket, "k") == b"2"


def test_a_bucket_does_not_move_into_itself(server, s3, tmp_path):
    s3.create_bucket(Bucket="circle")
    s3.put_object(Bucket="circle", Key="k", Body=b"k")
    migrator = Migrator(server, tmp_path / "home", source=server)
    for target in ("s3://circle/below/", "s3://circle"):
        source = f"{server.endpoint}/circle"
        _, told = migrator.run("migrate", source, target, *migrator.options, code=1)
        assert "into itself" in told, target
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="circle")["Contents"]] == ["k"]
