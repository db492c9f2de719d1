"""The cache of a gateway: some of the blobs, within its bounds, and never other bytes."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness.administration import run
from harness.content import KIB, MIB, content
from harness.engines import REPLACED_SECONDS, Gateway, answered, client, url_at
from harness.raw import metric
from harness.sealed_copies import blobs_in
from harness.server import coffer

BUCKET = "films"
MANY_SECONDS = 30


def until(what, holds, seconds=MANY_SECONDS):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.1)


def bytes_in(gateway):
    """How long all blobs in a cache are; some may go meanwhile."""
    total = 0
    for path in blobs_in(gateway.data):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def put(s3, name, size):
    s3.put_object(Bucket=BUCKET, Key=name, Body=content(size, name))


def read(s3, name, size, **how):
    return s3.get_object(Bucket=BUCKET, Key=name, **how)["Body"].read()


def refused(s3, name):
    """What becomes of a read that does not come to its end."""
    try:
        body = s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    except Exception as error:
        return type(error).__name__
    return body


@pytest.fixture
def made(tmp_path, store):
    """Makes gateways, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make(name, *arguments):
            return stack.enter_context(Gateway(tmp_path / name, url_at(store), *arguments))

        yield make


class Blobs:
    """The blobs of an engine in its store."""

    def __init__(self, store):
        self.s3 = client(store, store.credentials())

    def names(self):
        listed = self.s3.list_objects_v2(Bucket="log", Prefix="engine/blobs/")
        return [item["Key"] for item in listed.get("Contents", [])]

    def get(self, name):
        return self.s3.get_object(Bucket="log", Key=name)["Body"].read()

    def put(self, name, body):
        self.s3.put_object(Bucket="log", Key=name, Body=body)

    def remove(self, name):
        self.s3.delete_object(Bucket="log", Key=name)


def test_a_cache_that_is_smaller_than_the_data_serves_all_of_it(made):
    first = made("one", "--cache-size", "6MB")
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket=BUCKET)
    sizes = {f"film-{number}": 2 * MIB + number * 77_777 for number in range(8)}
    sizes |= {"empty": 0, "inline": 900, "large": 9 * MIB}
    for name, size in sizes.items():
        put(s3, name, size)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    parts = []
    for number in (1, 2):
        body = content(5 * MIB, f"part-{number}")
        part = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload, "PartNumber": number}
        parts.append({"PartNumber": number, "ETag": s3.upload_part(**part, Body=body)["ETag"]})
    s3.complete_multipart_upload(
        Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    until("the bound", lambda: bytes_in(first) <= 6_000_000)
    for _ in range(2):
        for name, size in sizes.items():
            assert read(s3, name, size) == content(size, name), name
    whole = content(5 * MIB, "part-1") + content(5 * MIB, "part-2")
    assert read(s3, "parts", 10 * MIB) == whole
    for begin, end in [(0, 0), (5 * MIB - 3, 5 * MIB + 3), (10 * MIB - 1, 10 * MIB - 1)]:
        ranged = read(s3, "parts", 10 * MIB, Range=f"bytes={begin}-{end}")
        assert ranged == whole[begin : end + 1]
    s3.copy_object(Bucket=BUCKET, Key="copied", CopySource=f"{BUCKET}/large")
    assert read(s3, "copied", 9 * MIB) == content(9 * MIB, "large")
    # What checks all of it fetches what it needs, and takes nothing for damage.
    run(first, "verify")
    until("the bound", lambda: bytes_in(first) <= 6_000_000)
    assert metric(first, "coffer_cache_evictions_total") > 10
    assert metric(first, "coffer_cache_misses_total") > 10
    assert metric(first, "coffer_cache_bytes") <= metric(first, "coffer_cache_max_bytes")
    assert metric(first, "coffer_damage_total") == 0


def test_taking_over_fetches_no_blobs(made):
    first = made("one")
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket=BUCKET)
    for number in range(4):
        put(s3, f"film-{number}", 9 * MIB)
    second = made("two")
    there = client(second, key)
    assert there.head_object(Bucket=BUCKET, Key="film-0")["ContentLength"] == 9 * MIB
    assert bytes_in(second) == 0, "it follows, and fetches nothing ahead"
    first.kill()
    took, _ = answered(lambda: put(there, "small", 900))
    assert took < REPLACED_SECONDS
    assert metric(second, "coffer_cache_fetched_bytes_total") == 0
    assert read(there, "film-1", 9 * MIB) == content(9 * MIB, "film-1")
    assert 9 * MIB < metric(second, "coffer_cache_fetched_bytes_total") < 10 * MIB
    until("it is kept", lambda: 9 * MIB < bytes_in(second) < 10 * MIB)
    # A start on what is there fetches it no more.
    second.kill()
    second.start()
    answered(lambda: put(there, "small", 900))
    assert read(there, "film-1", 9 * MIB) == content(9 * MIB, "film-1")
    assert metric(second, "coffer_cache_fetched_bytes_total") == 0
    assert metric(second, "coffer_cache_hits_total") >= 1


def test_many_who_read_one_blob_share_one_fetch(made):
    first = made("one", "--cache-size", "1")
    s3 = client(first, first.credentials(), max_pool_connections=16)
    s3.create_bucket(Bucket=BUCKET)
    put(s3, "film", 40 * MIB)
    until("it is evicted", lambda: bytes_in(first) == 0)
    first.stop()
    first.arguments[-1] = "1GB"
    first.start()
    s3 = client(first, first.credentials(), max_pool_connections=16)
    answered(lambda: s3.head_object(Bucket=BUCKET, Key="film"))
    whole = content(40 * MIB, "film")

    def one(number):
        begin = number * 3 * MIB
        return read(s3, "film", 40 * MIB, Range=f"bytes={begin}-") == whole[begin:]

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(one, range(12)))
    assert metric(first, "coffer_cache_fetched_bytes_total") < 41 * MIB
    until("it is kept", lambda: bytes_in(first) > 40 * MIB)


def test_what_the_store_lost_cut_or_altered_is_an_error_and_not_kept(made, store):
    first = made("one", "--cache-size", "1")
    s3 = client(first, first.credentials(), retries={"max_attempts": 1})
    s3.create_bucket(Bucket=BUCKET)
    size, blobs = 300 * KIB, Blobs(store)
    put(s3, "film", size)
    [name] = blobs.names()
    put(s3, "other", size)
    [other] = [found for found in blobs.names() if found != name]
    good, swapped = blobs.get(name), blobs.get(other)
    altered = good[:200_000] + bytes([good[200_000] ^ 1]) + good[200_001:]
    for bad in [None, good[:-1], good + b"x", altered, swapped, b""]:
        until("all is evicted", lambda: bytes_in(first) == 0)
        blobs.remove(name)
        if bad is not None:
            blobs.put(name, bad)
        told = refused(s3, "film")
        assert not isinstance(told, bytes), "other bytes were served"
        until("nothing is kept", lambda: bytes_in(first) == 0)
        blobs.put(name, good)
        _, body = answered(lambda: read(s3, "film", size))
        assert body == content(size, "film")
    assert read(s3, "other", size) == content(size, "other")
    assert metric(first, "coffer_damage_total") > 0


def test_a_bad_disk_of_a_gateway_replaces_no_blob_of_the_store(made, store):
    first = made("one")
    s3 = client(first, first.credentials())
    s3.create_bucket(Bucket=BUCKET)
    size, blobs = 300 * KIB, Blobs(store)
    put(s3, "film", size)
    [name], [path] = blobs.names(), blobs_in(first.data)
    good = blobs.get(name)
    altered = good[:-1] + bytes([good[-1] ^ 1])

    def checked():
        done = coffer("replica", "verify", "engine", "--data", first.data, "--json", text=True)
        return done.returncode

    blobs.put(name, altered)
    path.write_bytes(good[:200_000] + bytes([good[200_000] ^ 1]) + good[200_001:])
    assert checked() != 0
    until("it is told", lambda: "a blob is not put again" in first.log())
    assert blobs.get(name) == altered, "one bad blob in place of another"
    path.write_bytes(good)
    assert checked() != 0
    until("it is put again", lambda: blobs.get(name) == good)
    assert checked() == 0
    assert read(s3, "film", size) == content(size, "film")


def test_a_store_that_is_away_leaves_what_is_cached(made, store):
    first = made("one", "--cache-size", "3MB")
    s3 = client(first, first.credentials(), retries={"max_attempts": 1}, read_timeout=20)
    s3.create_bucket(Bucket=BUCKET)
    put(s3, "old", 2 * MIB)
    put(s3, "new", 2 * MIB)
    until("one is evicted", lambda: bytes_in(first) < 3_000_000)
    for name in ("old", "new"):
        assert read(s3, name, 2 * MIB) == content(2 * MIB, name)
    until("one is evicted", lambda: bytes_in(first) < 3_000_000)
    # For as long as its lease holds.
    store.kill()
    assert read(s3, "new", 2 * MIB) == content(2 * MIB, "new")
    assert refused(s3, "old") == 503
    store.start()
    _, body = answered(lambda: read(s3, "old", 2 * MIB), 30)
    assert body == content(2 * MIB, "old")


def test_nothing_acknowledged_is_lost_with_a_cache_that_holds_next_to_nothing(made):
    """However it is killed while blobs come and go."""
    first = made("one", "--cache-size", "1")
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    done, stop = {}, threading.Event()

    def write(number):
        at = 0
        s3 = client(first, key, retries={"max_attempts": 1}, read_timeout=20)
        while not stop.is_set():
            name, size = f"{number}-{at}", 20 * KIB + at * 1_001
            with contextlib.suppress(Exception):
                put(s3, name, size)
                done[name] = size
                if at % 3 == 0:
                    assert read(s3, name, size) == content(size, name)
            at += 1

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for pause in (2.5, 3.3, 4.1):
        time.sleep(pause)
        first.kill()
        first.start()
    time.sleep(3)
    stop.set()
    for writer in writers:
        writer.join()
    assert len(done) > 20
    s3 = client(first, key)
    for name, size in list(done.items()):
        _, body = answered(lambda name=name, size=size: read(s3, name, size))
        assert body == content(size, name), name
    until("the bound", lambda: bytes_in(first) < 100 * KIB)


def test_a_cache_is_of_an_engine_and_no_backup_is_made_of_it(made):
    first = made("one")
    done = coffer("serve", "--data", first.folder / "other", "--cache-size", "1GB", text=True)
    assert done.returncode == 2 and "--engine" in done.stderr, done
    assert "is a cache" in run(first, "backup", first.folder / "backup", expect=1)
