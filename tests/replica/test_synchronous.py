"""Synchronous copies: what was acknowledged outlives the machine, and what was not says so."""

import json
import shutil
import threading
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from harness.administration import run
from harness.clients import s3_client
from harness.content import KIB, content
from harness.raw import metric
from harness.sealed_copies import (
    BUCKET,
    enable_first,
    files_in,
    made,
    put,
    reached,
    replica,
    restore,
    served,
    status,
    url_of,
    verify,
)
from harness.server import Server

WRITERS = 8
SIZES = {"small": 900, "middle": 40 * KIB}


def add(server, url, *arguments):
    """A synchronous copy, from the moment on at which all writes wait for it."""
    replica(server, "add", "far", url, "--sync", *arguments)
    end = time.time() + 60
    while not (told := status(server))["sync"]["since"]:
        assert time.time() < end, told
        time.sleep(0.1)
    return told


class Writers:
    """Clients that write until the server is gone, and what each was told."""

    def __init__(self, server):
        self.s3 = s3_client(server)
        self.stored, self.removed = {}, set()
        self.buckets = set()
        #: What is not answered, by who asked: a key with its content, and a bucket.
        self.asked, self.asked_buckets = {}, set()
        self.is_killed, self.failures = False, []
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WRITERS)]

    def _run(self, number):
        count = 0
        try:
            while True:
                self._step(number, count)
                count += 1
        except (BotoCoreError, ClientError) as error:
            if not self.is_killed:
                self.failures.append(error)

    def _step(self, number, count):
        kind = "middle" if count % 3 == 2 else "small"
        key = f"{kind}-{number}-{count}"
        body = content(SIZES[kind], key)
        self.asked[number] = (key, body)
        if count % 10 == 9:
            upload = self.s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
            part = {"Bucket": BUCKET, "Key": key, "UploadId": upload}
            etag = self.s3.upload_part(**part, PartNumber=1, Body=body)["ETag"]
            parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
            self.s3.complete_multipart_upload(**part, MultipartUpload=parts)
        else:
            self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        self.stored[key] = body
        if count % 5 == 4:
            del self.stored[key]
            self.s3.delete_object(Bucket=BUCKET, Key=key)
            self.removed.add(key)
        del self.asked[number]
        if number == 0 and count % 4 == 3:
            self.asked_buckets = {f"made-{count}"}
            self.s3.create_bucket(Bucket=f"made-{count}")
            self.buckets.add(f"made-{count}")
            self.asked_buckets = set()

    def until_killed(self, server, seconds):
        for thread in self.threads:
            thread.start()
        time.sleep(seconds)
        # On a busy machine nothing may be stored so soon.
        end = time.time() + 30
        while len(self.stored) <= 2 * WRITERS and time.time() < end:
            time.sleep(0.05)
        self.is_killed = True
        server.kill()
        for thread in self.threads:
            thread.join()


def lose_and_restore(server, url, folder, seconds):
    """Writers until kill -9; then the machine's disk is gone, but for the root key."""
    writers = Writers(server)
    writers.until_killed(server, seconds)
    assert not writers.failures, "each was answered until the server was killed"
    assert len(writers.stored) > WRITERS, "they wrote"
    keys = folder / "restored"
    keys.mkdir(mode=0o700)
    shutil.copy(server.data / "root.key", keys / "root.key")
    (folder / "credentials").write_text(server.credentials_path.read_text())
    shutil.rmtree(server.data)
    restore(url, keys)
    return served(made(folder / "second"), keys), writers


def check_all(server, writers):
    """All that was acknowledged is there, and whole; beside it only what was not answered, whole as
    well."""
    # The keystore that has the key of a bucket comes before the row of it.
    if "ALL ACCESS KEYS ARE DISABLED" in server.log():
        enable_first(server)
    s3 = s3_client(server)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    listed = {item["Key"] for page in pages for item in page.get("Contents", [])}
    in_doubt = dict(writers.asked.values())
    assert set(writers.stored) <= listed
    assert listed <= set(writers.stored) | set(in_doubt), "nothing is there that was not written"
    assert not writers.removed & listed, "what was acknowledged as deleted stays so"
    bodies = {**in_doubt, **writers.stored}
    for key in listed:
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == bodies[key], key
    there = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    assert writers.buckets | {BUCKET} <= there
    assert there <= writers.buckets | {BUCKET} | writers.asked_buckets


@pytest.mark.parametrize("moment", [0.7, 1.3])
def test_all_that_was_acknowledged_outlives_the_machine(server, tmp_path, moment):
    url = url_of(tmp_path / "copy")
    add(server, url, "--with-keystore")
    second, writers = lose_and_restore(server, url, tmp_path, moment)
    with second:
        check_all(second, writers)


def test_all_that_was_acknowledged_outlives_the_machine_over_s3(server, tmp_path):
    with Server(made(tmp_path / "other")) as other:
        s3_client(other).create_bucket(Bucket="copies")
        url = (
            f"s3://copies/of-first?endpoint={other.endpoint}&ca={other.ca}"
            f"&credentials={other.credentials_path}"
        )
        add(server, url, "--with-keystore")
        second, writers = lose_and_restore(server, url, tmp_path, 2.5)
        with second:
            check_all(second, writers)


def test_acts_and_settings_outlive_the_machine(server, tmp_path):
    """Each is the last before the loss, so that nothing else takes it along."""
    for number, act in enumerate([versioned, tagged, with_a_subject]):
        folder = made(tmp_path / str(number))
        with Server(made(folder / "own")) as own:
            s3_client(own).create_bucket(Bucket=BUCKET)
            url = url_of(folder / "copy")
            add(own, url, "--with-keystore")
            expected = act(own)
            own.kill()
            keys = folder / "restored"
            keys.mkdir(mode=0o700)
            shutil.copy(own.data / "root.key", keys / "root.key")
            (folder / "credentials").write_text(own.credentials_path.read_text())
            shutil.rmtree(own.data)
            restore(url, keys)
        with served(made(folder / "second"), keys) as second:
            expected(second)


def versioned(server):
    settings = {"Status": "Enabled"}
    s3_client(server).put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=settings)

    def expected(second):
        assert s3_client(second).get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"

    return expected


def tagged(server):
    tags = [{"Key": "a", "Value": "b"}]
    s3_client(server).put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})

    def expected(second):
        assert s3_client(second).get_bucket_tagging(Bucket=BUCKET)["TagSet"] == tags

    return expected


def with_a_subject(server):
    run(server, "subject", "create", "late", "--clearance", "default")

    def expected(second):
        assert "late" in json.dumps(run(second, "subject", "list"))

    return expected


def test_clients_share_rounds(server, tmp_path):
    copy = tmp_path / "copy"
    add(server, url_of(copy))
    s3 = s3_client(server)

    def write(number):
        for count in range(5):
            s3.put_object(Bucket=BUCKET, Key=f"small-{number}-{count}", Body=b"x" * 900)

    before = len(files_in(copy / "heads"))
    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heads = len(files_in(copy / "heads")) - before
    assert 5 <= heads <= 40, f"{heads} heads for 80 writes"


def refused(server, key):
    with pytest.raises(ClientError) as caught:
        s3_client(server).put_object(Bucket=BUCKET, Key=key, Body=b"x" * 900)
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 503
    return response["Error"]["Message"]


def test_a_target_that_is_away_leaves_writes_in_doubt_and_reads_alone(server, tmp_path):
    copy, away = tmp_path / "copy", tmp_path / "away"
    add(server, url_of(copy), "--sync-wait", "1s")
    put(server, ["small-1"])
    assert metric(server, "coffer_replica_sync_in_doubt_total") == 0
    s3 = s3_client(server)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    part = s3.upload_part(Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    whole = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload, "MultipartUpload": parts}
    copy.rename(away)
    copy.write_text("no folder")
    began = time.monotonic()
    told = refused(server, "small-2")
    assert "stored here and not yet" in told and "in doubt" in told
    assert 0.9 < time.monotonic() - began < 5, "it waits, and not for long"
    s3 = s3_client(server)
    assert s3.get_object(Bucket=BUCKET, Key="small-2")["Body"].read() == b"x" * 900
    made_late = run(server, "subject", "create", "late", "--clearance", "default", expect=1)
    assert "in doubt" in made_late and "not yet in the synchronous copy" in made_late
    sync = status(server)["sync"]
    assert sync["in_doubt_count"] == 2 and sync["wait_seconds"] == 1, sync
    assert metric(server, "coffer_replica_sync_in_doubt_total") == 2
    for _ in range(2):
        with pytest.raises(ClientError, match="in doubt"):
            s3.complete_multipart_upload(**whole)
    copy.unlink()
    away.rename(copy)
    reached(server, "following")
    s3.complete_multipart_upload(**whole)
    put(server, ["small-3"])
    assert verify(server)[-1]["damage_count"] == 0
    server.kill()
    server.start()
    put(server, ["small-4"])


def test_a_server_that_was_fenced_acknowledges_nothing_any_more(server, tmp_path):
    """Two servers on copies of one data folder: the one that started later writes the copy."""
    add(server, url_of(tmp_path / "copy"), "--sync-wait", "5s")
    put(server, ["small-1"])
    server.stop()
    shutil.copytree(server.data, tmp_path / "twin")
    server.start()
    put(server, ["small-2"])
    (tmp_path / "credentials").write_text(server.credentials_path.read_text())
    with Server(made(tmp_path / "later"), data=tmp_path / "twin") as later:
        later.credentials_path.write_text((tmp_path / "credentials").read_text())
        put(later, ["small-3"])
        told = refused(server, "small-4")
        assert "stored here and not yet" in told or "Nothing was stored" in told
        reached(server, "stopped")
        assert "Nothing was stored" in refused(server, "small-5")
        s3 = s3_client(server)
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket=BUCKET, Key="small-5")
        assert s3.get_object(Bucket=BUCKET, Key="small-2")["Body"].read()
        put(later, ["small-6"])
        replica(server, "remove", "far")
        put(server, ["small-7"])


def test_what_can_not_be_waited_for_says_why(server, tmp_path):
    url = url_of(tmp_path / "copy")
    assert "--sync" in replica(server, "add", "far", url, "--sync-wait", "5s", expect=2)
    told = replica(server, "add", "far", url, "--sync", "--sync-wait", "11m", expect=2)
    assert "one second to ten minutes" in told
    assert not (tmp_path / "copy").exists()
