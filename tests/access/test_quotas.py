"""Quotas: exact however many write at once, given back, and the same after `kill -9`."""

import threading
import time

import pytest

from harness import raw
from harness.administration import ask, client_of, from_afar, make_subject, refused, run
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.content import KIB, MIB, PART_MIN_BYTES, content
from harness.server import coffer


@pytest.fixture
def running(own_server):
    return own_server("quotas").start()


def used(server, kind, name):
    rows = ask(server, "quota", "list")
    return next(row["used"] for row in rows if (row["kind"], row["name"]) == (kind, name))


def stored_bytes(s3, bucket):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sum(row["Size"] for page in pages for row in page.get("Contents", []))


def is_put(s3, bucket, key, body):
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    except s3.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "QuotaExceeded", error.response
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
        return False
    return True


@pytest.mark.parametrize("kind", ["bucket", "level", "subject"])
def test_a_hundred_writers_never_pass_a_quota_and_use_all_of_it(running, kind):
    """Small ones, which lie in catalogs, and larger ones."""
    run(running, "level", "create", "kept", "--rank", "0", "--same-label")
    ann = client_of(running, "ann", "default..kept", max_pool_connections=100)
    buckets = ["one"] if kind == "bucket" else ["one", "two", "three"]
    for bucket in buckets:
        where = {"LocationConstraint": "kept"}
        ann.create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
    name = {"bucket": "one", "level": "kept", "subject": "ann"}[kind]
    most = 40 * 1_000 + 5 * 20_000
    set_to = ask(running, "quota", "set", kind, name, "--bytes", most)
    assert set_to["limits"] == {"bytes": most} and set_to["used"]["bytes"] == 0
    done = []

    def write(number):
        size = 20_000 if number % 4 == 0 else 1_000
        bucket = buckets[number % len(buckets)]
        for turn in range(2):
            key = f"{number}-{turn}"
            if is_put(ann, bucket, key, content(size, key)):
                done.append(size)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) <= most
    # To the last byte: no attempt that was refused has left anything.
    while is_put(ann, buckets[0], f"small-{len(done)}", b"s" * 1_000):
        done.append(1_000)
    rest = most - sum(done)
    assert 0 <= rest < 1_000
    assert is_put(ann, buckets[-1], "rest", b"r" * rest)
    assert not is_put(ann, buckets[0], "more", b"m")
    assert sum(stored_bytes(ann, bucket) for bucket in buckets) == most
    assert used(running, kind, name)["bytes"] == most
    # And after a kill, before anything else was opened.
    running.kill()
    running.start()
    again = s3_client(running, credentials=credentials_of(ann))
    assert not is_put(again, buckets[0], "more", b"m")
    assert used(running, kind, name)["bytes"] == most
    again.delete_object(Bucket=buckets[-1], Key="rest")
    assert is_put(again, buckets[0], "more", b"m" * rest)
    assert not is_put(again, buckets[0], "yet more", b"m")


def credentials_of(s3):
    frozen = s3._request_signer._credentials.get_frozen_credentials()
    return frozen.access_key, frozen.secret_key


def test_overwrites_deletes_copies_and_uploads_count_what_they_leave(running):
    s3 = s3_client(running)
    s3.create_bucket(Bucket="mine")
    most = 2 * PART_MIN_BYTES + 10 * KIB
    run(running, "quota", "set", "bucket", "mine", "--bytes", most, "--objects", 3, "--uploads", 1)
    s3.put_object(Bucket="mine", Key="a", Body=b"a" * 10 * KIB)
    # In place of what is there.
    s3.put_object(Bucket="mine", Key="a", Body=b"b" * 4 * KIB)
    assert used(running, "bucket", "mine") == {
        "bytes": 4 * KIB, "objects": 1, "uploads": 0, "buckets": 1,
    }  # fmt: skip
    s3.copy_object(Bucket="mine", Key="copy", CopySource="mine/a")
    s3.put_object(Bucket="mine", Key="third", Body=b"")
    with s3_refused("QuotaExceeded", 403) as error:
        s3.put_object(Bucket="mine", Key="fourth", Body=b"")
    for word in ("bucket", "3 objects", "3 are used", "add 1"):
        assert word in error.message, error.message
    s3.delete_object(Bucket="mine", Key="third")
    upload = s3.create_multipart_upload(Bucket="mine", Key="big")["UploadId"]
    with s3_refused("QuotaExceeded", 403) as error:
        s3.create_multipart_upload(Bucket="mine", Key="other")
    assert "1 upload under way" in error.message
    where = {"Bucket": "mine", "Key": "big", "UploadId": upload}
    parts = []
    for number in (1, 2):
        body = content(PART_MIN_BYTES, number)
        tag = s3.upload_part(**where, PartNumber=number, Body=body)["ETag"]
        parts.append({"PartNumber": number, "ETag": tag})
    with s3_refused("QuotaExceeded", 403):
        s3.upload_part(**where, PartNumber=3, Body=content(PART_MIN_BYTES, 3))
    # A part in place of one of the same number.
    tag = s3.upload_part(**where, PartNumber=2, Body=content(MIB, 2))["ETag"]
    parts[1]["ETag"] = tag
    held = 2 * 4 * KIB + PART_MIN_BYTES + MIB
    assert used(running, "bucket", "mine")["bytes"] == held
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert used(running, "bucket", "mine") == {
        "bytes": held, "objects": 3, "uploads": 0, "buckets": 1,
    }  # fmt: skip
    upload = s3.create_multipart_upload(Bucket="mine", Key="ended")["UploadId"]
    where = {"Bucket": "mine", "Key": "ended", "UploadId": upload}
    s3.upload_part(**where, PartNumber=1, Body=content(MIB, 1))
    assert used(running, "bucket", "mine")["uploads"] == 1
    s3.abort_multipart_upload(**where)
    assert used(running, "bucket", "mine")["bytes"] == held
    # Nothing is left of what was refused.
    until = time.monotonic() + 5
    while len(running.blob_files()) != 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert len(running.blob_files()) == 2


def test_versions_count_all_that_is_stored(running):
    s3 = s3_client(running)
    s3.create_bucket(Bucket="mine")
    s3.put_bucket_versioning(Bucket="mine", VersioningConfiguration={"Status": "Enabled"})
    run(running, "quota", "set", "bucket", "mine", "--bytes", 2500)
    for _ in range(2):
        s3.put_object(Bucket="mine", Key="a", Body=b"a" * 1000)
    with s3_refused("QuotaExceeded", 403):
        s3.put_object(Bucket="mine", Key="a", Body=b"a" * 1000)
    s3.delete_object(Bucket="mine", Key="a")
    with s3_refused("QuotaExceeded", 403):
        s3.put_object(Bucket="mine", Key="a", Body=b"a" * 1000)
    oldest = s3.list_object_versions(Bucket="mine")["Versions"][-1]["VersionId"]
    s3.delete_object(Bucket="mine", Key="a", VersionId=oldest)
    s3.put_object(Bucket="mine", Key="a", Body=b"a" * 1000)


def test_buckets_are_counted_by_level_and_by_who_makes_them(running):
    run(running, "level", "create", "kept", "--rank", "0", "--same-label")
    ann = client_of(running, "ann", "default..kept")
    run(running, "quota", "set", "subject", "ann", "--buckets", 2)
    run(running, "quota", "set", "level", "kept", "--buckets", 1)
    ann.create_bucket(Bucket="one")
    ann.create_bucket(Bucket="two")
    with s3_refused("QuotaExceeded", 403) as error:
        ann.create_bucket(Bucket="three")
    assert "quota of this subject" in error.message
    ann.delete_bucket(Bucket="two")
    run(running, "bucket", "create", "by-hand", "--level", "kept")
    told = refused(running, "bucket", "create", "another", "--level", "kept")
    assert "quota of this level" in told and "1 bucket, 1 is used" in told
    where = {"LocationConstraint": "kept"}
    with s3_refused("QuotaExceeded", 403):
        ann.create_bucket(Bucket="three", CreateBucketConfiguration=where)
    run(running, "bucket", "delete", "by-hand")
    ann.create_bucket(Bucket="three", CreateBucketConfiguration=where)
    assert used(running, "subject", "ann")["buckets"] == 2


def test_quotas_are_set_listed_and_removed_by_system_administrators(running):
    s3 = s3_client(running)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=b"a" * 5_000)
    bucket = ask(running, "bucket", "list")[0]["id"]
    # What is there stays, however much it is.
    run(running, "quota", "set", "bucket", "mine", "--bytes", "1KiB")
    assert s3.get_object(Bucket="mine", Key="a")["Body"].read() == b"a" * 5_000
    assert not is_put(s3, "mine", "b", b"b")
    s3.put_object(Bucket="mine", Key="a", Body=b"less")
    page = raw.get_admin(running, "/metrics")[1]
    assert f'coffer_quota_limit{{of="bucket",id="{bucket}",what="bytes"}} 1024' in page
    assert f'coffer_quota_used{{of="bucket",id="{bucket}",what="bytes"}} 4' in page
    shown = run(running, "quota", "list")
    assert "mine" in shown and "4 B of 1.0 kB" in shown, shown
    told = run(running, "quota", "set", "bucket", "mine", "--objects", "7")
    assert "bytes: was" in told and "now none" in told, told
    running.restart()
    (row,) = ask(running, "quota", "list")
    assert row["limits"] == {"objects": 7} and row["used"]["objects"] == 1
    run(running, "quota", "remove", "bucket", "mine")
    said = refused(running, "quota", "remove", "bucket", "mine")
    assert "mine: this bucket has no quota" in said
    assert ask(running, "quota", "list") == []
    s3_client(running).put_object(Bucket="mine", Key="b", Body=b"b" * 5_000)
    acts = run(running, "audit", "show", "--act", "quota")
    assert acts.count("quota.set") >= 2 and "quota.remove" in acts
    # What makes no sense.
    assert "no bucket" in refused(running, "quota", "set", "bucket", "other", "--bytes", "1")
    assert "buckets" in refused(running, "quota", "set", "bucket", "mine", "--buckets", "1")
    typed = coffer("--data", running.data, "quota", "set", "bucket", "mine", "--bytes", "1.5GB")
    assert typed.returncode == 2 and b"whole number of bytes" in typed.stderr, typed
    done = refused(running, "quota", "set", "level", "nowhere", "--bytes", "1")
    assert "no level" in done
    eve = make_subject(running, "eve", "default", "--roles", "key-custodian")
    denied = from_afar(running, eve, "quota", "list", folder=running.folder)
    assert denied.returncode == 1 and b"access denied" in denied.stderr, denied


def test_a_quota_goes_with_its_bucket(running):
    s3 = s3_client(running)
    s3.create_bucket(Bucket="mine")
    run(running, "quota", "set", "bucket", "mine", "--bytes", 1)
    s3.delete_bucket(Bucket="mine")
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=b"more than that")
    assert ask(running, "quota", "list") == []
    run(running, "quota", "set", "level", "default", "--bytes", 20)
    assert used(running, "level", "default") == {
        "bytes": 14, "objects": 1, "uploads": 0, "buckets": 1,
    }  # fmt: skip
    run(running, "bucket", "erase", "mine", "--yes")
    assert used(running, "level", "default")["bytes"] == 0


def test_a_quota_goes_with_its_subject(running):
    ann = client_of(running, "ann", "default")
    ann.create_bucket(Bucket="anns")
    run(running, "quota", "set", "subject", "ann", "--bytes", 1_000)
    assert not is_put(ann, "anns", "k", b"x" * 2_000)
    # Another name is no other subject.
    run(running, "subject", "rename", "ann", "anna")
    assert not is_put(ann, "anns", "k", b"x" * 2_000)
    run(running, "subject", "delete", "anna")
    first = s3_client(running)
    assert is_put(first, "anns", "k", b"x" * 2_000)
    assert ask(running, "quota", "list") == []
    running.restart()
    assert is_put(s3_client(running), "anns", "more", b"x" * 2_000)


def test_metrics_tell_no_quota_of_what_is_gone(running):
    s3 = s3_client(running)
    s3.create_bucket(Bucket="mine")
    s3.create_bucket(Bucket="erased")
    make_subject(running, "ann", "default")
    run(running, "level", "create", "kept", "--rank", "0", "--same-label")
    run(running, "quota", "set", "level", "default", "--objects", "9")
    doomed = [("bucket", "mine"), ("bucket", "erased"), ("subject", "ann"), ("level", "kept")]
    for kind, name in doomed:
        run(running, "quota", "set", kind, name, "--objects", "7")

    def kinds():
        page = raw.get_admin(running, "/metrics")[1]
        lines = [line for line in page.splitlines() if line.startswith("coffer_quota_limit{")]
        return sorted(line.split('of="')[1].split('"')[0] for line in lines)

    assert kinds() == ["bucket", "bucket", "level", "level", "subject"]
    s3.delete_bucket(Bucket="mine")
    run(running, "bucket", "erase", "erased", "--yes")
    run(running, "subject", "delete", "ann")
    run(running, "level", "erase", "kept", "--yes")
    assert kinds() == ["level"]
    running.restart()
    assert kinds() == ["level"]
