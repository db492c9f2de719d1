"""coffer put where the answer to a request is lost that did what was asked."""

import pytest

from harness.between import Between, one_of
from harness.content import MIB, digest, write_file
from harness.mover import Mover


@pytest.fixture
def mover(serving, tmp_path):
    return Mover(serving, tmp_path / "home")


@pytest.fixture
def through(serving, mover):
    """Has a mover's requests go through what loses answers."""

    def through(number):
        between = Between(serving, one_of(number, "PUT", "/open/"))
        mover.environment |= {"AWS_ENDPOINT_URL": between.endpoint}
        return between

    return through


@pytest.fixture(scope="module", autouse=True)
def versions(client):
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="open", VersioningConfiguration=enabled)


@pytest.mark.parametrize("retries", [0, 3])
def test_a_commit_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path, retries):
    source = write_file(tmp_path / "source", MIB)
    key = f"small-{retries}"
    with through(1) as between:
        put = mover.done("put", source, f"s3://open/{key}", "--retries", retries)
        assert len(between.lost) == 1
    assert (put["transfer"], put["verified"]) == ("sealed", True)
    listed = client.list_object_versions(Bucket="open", Prefix=key)
    [version] = listed["Versions"]
    assert put["version_id"] == version["VersionId"]


def test_an_older_object_of_the_same_bytes_is_not_what_was_sent(mover, through, client, tmp_path):
    source = write_file(tmp_path / "source", MIB)
    mover.run("put", source, "s3://open/again", "--metadata", "of=before")
    with through(1) as between:
        put = mover.done("put", source, "s3://open/again", "--metadata", "of=now")
        assert len(between.lost) == 1
    head = client.head_object(Bucket="open", Key="again")
    assert head["Metadata"]["of"] == "now"
    assert put["version_id"] == head["VersionId"]


@pytest.mark.parametrize("number", [1, 4])
def test_a_part_whose_answer_is_lost_is_looked_at(mover, through, client, tmp_path, number):
    source = write_file(tmp_path / "source", 100 * MIB)
    with through(number) as between:
        put = mover.done("put", source, f"s3://open/big-{number}", "--jobs", "1")
        assert len(between.lost) == 1
        mover.run("get", f"s3://open/big-{number}", tmp_path / "back")
    assert (put["transfer"], put["verified"]) == ("sealed", True)
    assert mover.journals() == []
    assert client.list_multipart_uploads(Bucket="open").get("Uploads", []) == []
    assert digest(tmp_path / "back") == digest(source)
