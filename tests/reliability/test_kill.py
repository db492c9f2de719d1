"""kill -9 at random moments under load: what was acknowledged stays, what was not is whole or
absent, nothing else is left on the disk, and the next start is quick."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from harness.clients import s3_client
from harness.content import INLINE_MAX_BYTES, PART_MIN_BYTES, content

START_MAX_SECONDS = 2.0
WORKERS = 4
NAMES_EACH = 12
SIZES = [0, 100, 4096, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 70_000, 1_000_000]
BUCKET = "killed"


class Name:
    """What may be stored under one name: what was last acknowledged, or what was under way."""

    def __init__(self):
        self.acknowledged = None
        self.under_way = None
        self.uncertain = False

    def allowed(self):
        return [self.acknowledged, *([self.under_way] if self.uncertain else [])]


def body_of(version):
    """A version is (size, seed), or (part sizes, seed), or None where there is no object."""
    size, seed = version
    if isinstance(size, tuple):
        return b"".join(content(part, f"{seed}-{n}") for n, part in enumerate(size))
    return content(size, seed)


class Worker(threading.Thread):
    """Writes under names of its own until the server is gone."""

    def __init__(self, server, names, seed):
        super().__init__(daemon=True)
        self.s3 = s3_client(server, connect_timeout=3, read_timeout=20)
        self.names = names
        self.dice = random.Random(seed)
        self.seed = seed
        self.count = 0
        self.surprise = None

    def run(self):
        try:
            while True:
                self.step()
        except (BotoCoreError, ClientError, ConnectionError) as error:
            if isinstance(error, ClientError):
                self.surprise = error

    def step(self):
        key = self.dice.choice(sorted(self.names))
        name = self.names[key]
        self.count += 1
        seed = f"{self.seed}.{self.count}"
        what = self.dice.random()
        if what < 0.15:
            self.change(name, None, lambda: self.s3.delete_object(Bucket=BUCKET, Key=key))
        elif what < 0.25:
            sizes = (PART_MIN_BYTES, self.dice.choice(SIZES))
            self.change(name, (sizes, seed), lambda: self.upload(key, (sizes, seed)))
        else:
            version = (self.dice.choice(SIZES), seed)
            put = {"Bucket": BUCKET, "Key": key, "Body": body_of(version)}
            self.change(name, version, lambda: self.s3.put_object(**put))

    def change(self, name, version, act):
        name.under_way, name.uncertain = version, True
        act()
        name.acknowledged, name.uncertain = version, False

    def upload(self, key, version):
        created = self.s3.create_multipart_upload(Bucket=BUCKET, Key=key)
        where = {"Bucket": BUCKET, "Key": key, "UploadId": created["UploadId"]}
        parts = []
        for number, size in enumerate(version[0]):
            body = content(size, f"{version[1]}-{number}")
            part = self.s3.upload_part(**where, PartNumber=number + 1, Body=body)
            parts.append({"PartNumber": number + 1, "ETag": part["ETag"]})
        self.s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


def settle(s3, names):
    """Reads every name whose state is uncertain, and all names listed; compares and settles."""
    listed = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        listed |= {row["Key"]: row["Size"] for row in page.get("Contents", [])}
    for key, name in names.items():
        if name.uncertain or random.random() < 0.2:
            found = read(s3, key)
            bodies = [None if v is None else body_of(v) for v in name.allowed()]
            assert found in bodies, f"{key}: {len(found or b'')} bytes, none of {name.allowed()}"
            name.acknowledged = name.allowed()[bodies.index(found)]
            name.uncertain = False
        expected = None if name.acknowledged is None else len_of(name.acknowledged)
        assert listed.get(key) == expected, key
    assert set(listed) <= set(names)


def len_of(version):
    size, _ = version
    return sum(size) if isinstance(size, tuple) else size


def read(s3, key):
    try:
        return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except s3.exceptions.NoSuchKey:
        return None


def expected_blobs(names):
    """How many blob files the stored objects need."""
    count = 0
    for name in names.values():
        if name.acknowledged is not None:
            size, _ = name.acknowledged
            count += len(size) if isinstance(size, tuple) else int(size > INLINE_MAX_BYTES)
    return count


def wait_for_blobs(server, count, seconds=20):
    """Reclaiming goes on behind the first answers; it must end with nothing left over."""
    end = time.monotonic() + seconds
    while len(server.blob_files()) != count and time.monotonic() < end:
        time.sleep(0.05)
    assert len(server.blob_files()) == count, "blob files that belong to no object, or lost ones"


def abort_uploads(s3):
    for upload in s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        s3.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


@pytest.mark.timeout(600)
def test_kill_under_load(own_server, request, capsys):
    rounds = request.config.getoption("--kill-rounds")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    names = [{f"{w}/{n}": Name() for n in range(NAMES_EACH)} for w in range(WORKERS)]
    everything = {key: name for own in names for key, name in own.items()}
    starts, steps = [], 0
    for number in range(rounds):
        workers = [Worker(server, own, f"{seed}.{number}.{w}") for w, own in enumerate(names)]
        for worker in workers:
            worker.start()
        time.sleep(dice.uniform(0.02, 0.6))
        server.kill()
        for worker in workers:
            worker.join(30)
            assert not worker.is_alive() and worker.surprise is None, worker.surprise
            steps += worker.count
        if number % 5 == 4:
            # And once more while it recovers.
            server.start()
            starts.append(server.start_seconds)
            time.sleep(dice.uniform(0, 0.05))
            server.kill()
        server.start()
        starts.append(server.start_seconds)
        s3 = s3_client(server)
        settle(s3, everything)
        if number % 10 == 9 or number == rounds - 1:
            abort_uploads(s3)
            wait_for_blobs(server, expected_blobs(everything))
    with capsys.disabled():
        print(
            f"\nkill -9: {rounds} rounds, {steps} writes, "
            f"slowest start {max(starts):.3f} s, median {sorted(starts)[len(starts) // 2]:.3f} s"
        )
    assert steps > rounds * 5, "there was hardly any load"
    assert max(starts) < START_MAX_SECONDS
    assert server.stop() == 0
    server.start()
    s3 = s3_client(server)
    for key, name in everything.items():
        assert read(s3, key) == (name.acknowledged and body_of(name.acknowledged)), key


def test_start_with_many_objects_is_quick(own_server, capsys):
    """Recovery looks at catalogs, not at every blob, before the server serves."""
    server = own_server().start()
    s3 = s3_client(server)
    for bucket in range(20):
        s3.create_bucket(Bucket=f"many-{bucket}")

    def store(number):
        where = {"Bucket": f"many-{number % 20}", "Key": f"{number}"}
        s3.put_object(**where, Body=bytes(20_000))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(store, range(1000)))
    server.kill()
    server.start()
    with capsys.disabled():
        print(f"\nstart with 20 buckets of 50 blobs after kill -9: {server.start_seconds:.3f} s")
    assert server.start_seconds < START_MAX_SECONDS
    for bucket in range(20):
        assert s3_client(server).list_objects_v2(Bucket=f"many-{bucket}")["KeyCount"] == 50
