"""A bucket that was erased, and that an older copy of the database brought back: its key is gone
from today's keystore, so nothing of it opens, and an erase takes away what is left."""

import json
import time
from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError

from harness.administration import run
from harness.clients import s3_client
from harness.sealed_copies import (
    caught_up,
    enable_first,
    keys_of,
    made,
    replica,
    restored,
    served,
    url_of,
)
from harness.server import Server, coffer


def second():
    """A moment that nothing else is in the second of."""
    time.sleep(1.2)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    time.sleep(1.2)
    return moment


@pytest.fixture
def server(tmp_path):
    with Server(made(tmp_path / "first")) as server:
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        s3 = s3_client(server)
        for bucket in ("notes", "gone"):
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key="k", Body=b"1")
        replica(server, "add", "far", url_of(tmp_path / "copy"))
        yield server


def restored_at(server, tmp_path, moment, keys):
    server.kill()
    told = restored(url_of(tmp_path / "copy"), keys, "--at", moment, expect=4)
    assert any(event["event"] == "nokey" for event in told), told
    return served(tmp_path / "second", keys)


def erased(server, what, name):
    # Of a level it takes two.
    sure = ["--yes"] * (2 if what == "level" else 1)
    return coffer(what, "erase", name, *sure, "--data", server.data, "--json", text=True)


def refusal(call):
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]


def refused_in_words(s3, bucket="gone", words="destroyed"):
    for call in (
        lambda: s3.list_objects_v2(Bucket=bucket),
        lambda: s3.get_object(Bucket=bucket, Key="k"),
        lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"x"),
        lambda: s3.create_bucket(Bucket=bucket),
        lambda: s3.delete_bucket(Bucket=bucket),
    ):
        status, error = refusal(call)
        assert (status, error["Code"]) == (409, "InvalidBucketState"), error
        assert words in error["Message"], error
        assert f"coffer bucket erase {bucket}" in error["Message"], error
    assert refusal(lambda: s3.head_bucket(Bucket=bucket))[0] == 409


@pytest.mark.parametrize("whole_level", [False, True], ids=["bucket", "level"])
def test_what_was_erased_and_comes_back_is_refused_in_words_and_can_be_ended(
    server, tmp_path, whole_level
):
    caught_up(server)
    moment = second()
    run(server, "bucket", "erase", "gone", "--yes")
    s3_client(server).put_object(Bucket="notes", Key="z", Body=b"2")
    caught_up(server)
    keys = keys_of(server, tmp_path / "keys")
    with restored_at(server, tmp_path, moment, keys) as back:
        enable_first(back)
        s3 = s3_client(back)
        refused_in_words(s3)
        assert s3.get_object(Bucket="notes", Key="k")["Body"].read() == b"1"
        backup = coffer("backup", made(tmp_path / "kept"), "--data", back.data, text=True)
        assert backup.returncode == 0, backup.stderr
        if whole_level:
            # Of those whose keys are there locks are counted.
            done = erased(back, "level", "default")
        else:
            assert "gone" in coffer("bucket", "list", "--data", back.data, text=True).stdout
            done = erased(back, "bucket", "gone")
        assert done.returncode == 0, done.stderr
        receipt = json.dumps(json.loads(done.stdout))
        assert "the keystore had no key for bucket gone" in receipt, receipt
        assert "no lock is known to have stood" in receipt, receipt
        assert ("this erase destroyed no key" in receipt) != whole_level, receipt
        left = coffer("bucket", "list", "--data", back.data, text=True).stdout
        assert "gone" not in left, left
        if not whole_level:
            s3.create_bucket(Bucket="gone")
            s3.put_object(Bucket="gone", Key="k", Body=b"new")
            back.kill()
            back.start()
            assert s3_client(back).get_object(Bucket="gone", Key="k")["Body"].read() == b"new"


def test_buckets_of_a_level_that_was_erased_can_be_ended_one_by_one(server, tmp_path):
    run(server, "level", "create", "ending", "--rank", "0", "--same-label")
    s3 = s3_client(server)
    for bucket in ("first", "second"):
        run(server, "bucket", "create", bucket, "--level", "ending")
        s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    caught_up(server)
    moment = second()
    run(server, "level", "erase", "ending", "--yes")
    s3.put_object(Bucket="notes", Key="z", Body=b"2")
    caught_up(server)
    keys = keys_of(server, tmp_path / "keys")
    with restored_at(server, tmp_path, moment, keys) as back:
        enable_first(back)
        s3 = s3_client(back)
        refused_in_words(s3, "first", "nor its level")
        made_anew = coffer("bucket", "create", "first", "--data", back.data, text=True)
        assert made_anew.returncode == 1, made_anew
        assert "coffer bucket erase first" in made_anew.stderr, made_anew
        backup = coffer("backup", made(tmp_path / "kept"), "--data", back.data, text=True)
        assert backup.returncode == 0, backup.stderr
        for bucket in ("first", "second"):
            done = erased(back, "bucket", bucket)
            assert done.returncode == 0, done.stderr
            receipt = json.loads(done.stdout)
            told = json.dumps(receipt)
            assert f"neither a key for bucket {bucket}" in told, told
            assert "this erase destroyed no key" in told, told
            assert "root key that older copies were sealed under" not in told, told
            assert receipt["erased"]["level"]["label"] is None, receipt
            path = tmp_path / f"{bucket}.json"
            path.write_text(done.stdout)
            key = coffer("receipt", "key", "--data", back.data, text=True).stdout.strip()
            verified = coffer("receipt", "verify", path, "--key", key, text=True)
            assert verified.returncode == 0, verified
        listed = coffer("receipt", "list", "--data", back.data, text=True)
        assert listed.returncode == 0, listed
        s3.create_bucket(Bucket="first")
        s3.put_object(Bucket="first", Key="k", Body=b"new")
        back.kill()
        back.start()
        assert s3_client(back).get_object(Bucket="first", Key="k")["Body"].read() == b"new"


def test_a_key_that_an_older_keystore_lacks_is_not_taken_for_destroyed(server, tmp_path):
    caught_up(server)
    keys = keys_of(server, tmp_path / "keys")
    s3 = s3_client(server)
    s3.create_bucket(Bucket="later")
    s3.put_object(Bucket="later", Key="k", Body=b"1")
    caught_up(server)
    server.kill()
    restored(url_of(tmp_path / "copy"), keys, expect=4)
    with served(tmp_path / "second", keys) as back:
        status, error = refusal(lambda: s3_client(back).list_objects_v2(Bucket="later"))
        assert status == 500 and "newest keystore" in error["Message"], error
        client = s3_client(back)
        assert refusal(lambda: client.head_bucket(Bucket="later"))[0] == 500
        status, error = refusal(lambda: client.create_bucket(Bucket="later"))
        assert status == 500 and "newest keystore" in error["Message"], error
        done = erased(back, "bucket", "later")
        assert done.returncode == 1 and "newest keystore" in done.stderr, done
        assert s3_client(back).get_object(Bucket="notes", Key="k")["Body"].read() == b"1"
