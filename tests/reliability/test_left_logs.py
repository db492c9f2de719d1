"""Catalogs that lack what was acknowledged: told, never "there is none", and no blob is removed."""

import time

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import content
from harness.server import StartError, coffer

BUCKET = "left"


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def flip(path, offset):
    file = bytearray(path.read_bytes())
    file[offset] ^= 1
    path.write_bytes(file)


def fetch(server, name):
    """Status and body."""
    path = f"/{BUCKET}/{name}"
    signed = raw.signed_headers(server, "GET", path)
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("GET", path, signed | {"connection": "close"}))
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def killed_with_a_log(own_server, name):
    """A bucket with objects in blobs and a log that was not copied, as kill -9 leaves it."""
    server = own_server(name).start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    for index in range(20):
        s3.put_object(Bucket=BUCKET, Key=f"{index}", Body=content(20_000, index))
    server.kill()
    return server, set(server.blob_files())


def statuses(server):
    """What a GET of each object answers; what is answered with 200 must be right."""
    found = []
    for index in range(20):
        status, body = fetch(server, f"{index}")
        assert status != 200 or body == content(20_000, index)
        found.append(status)
    return found


def swept(server, seconds=20):
    """Waits until the sweep after a start has been: it says what it kept or could not do."""
    end = time.monotonic() + seconds
    ends = ("no object refers to are kept", "could not look for orphaned")
    while time.monotonic() < end:
        if any(said in server.log() for said in ends):
            return
        time.sleep(0.05)
    raise AssertionError(server.log())


@pytest.mark.parametrize("part", [0, 3, 8])
def test_a_left_log_with_a_flipped_bit_is_told_and_nothing_is_swept(own_server, part):
    server, blobs = killed_with_a_log(own_server, f"log-{part}")
    log = only(server.data, "buckets/*/catalog.db-wal")
    size_bytes = log.stat().st_size
    assert size_bytes > 100_000
    flip(log, size_bytes * part // 10 + 16)
    damaged = log.read_bytes()
    server.start()
    swept(server)
    assert set(statuses(server)) == {500}, "never that there is no such object"
    assert raw.metric(server, "coffer_damage_total") > 0
    told = [line for line in server.log().splitlines() if "ERROR stored data is damaged" in line]
    bucket = only(server.data, "buckets/*").name
    assert told and all("its log is damaged" in line and bucket in line for line in told)
    found = coffer("verify", "--data", server.data)
    assert found.returncode == 1 and BUCKET.encode() in found.stdout
    assert set(server.blob_files()) == blobs
    assert server.stop() == 0
    assert log.read_bytes() == damaged, "left as it was"
    # Undamaged, it has everything.
    flip(log, size_bytes * part // 10 + 16)
    server.start()
    assert set(statuses(server)) == {200}


def test_an_older_catalog_put_back_is_told_and_newer_blobs_stay(own_server):
    server = own_server("older").start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket=BUCKET)
    assert server.stop() == 0
    catalog = only(server.data, "buckets/*/catalog.db")
    older = catalog.read_bytes()
    server.start()
    s3 = s3_client(server)
    for index in range(20):
        s3.put_object(Bucket=BUCKET, Key=f"{index}", Body=content(20_000, index))
    blobs = set(server.blob_files())
    assert server.stop() == 0
    newer = catalog.read_bytes()
    catalog.write_bytes(older)
    with pytest.raises(StartError, match="ROLLBACK"):
        server.start()
    catalog.write_bytes(newer)
    server.start()
    assert set(statuses(server)) == {200}
    assert coffer("verify", "--data", server.data).returncode == 0
    assert server.stop() == 0
    # Gone on from all the same, it knows nothing of the newer blobs, and they stay.
    catalog.write_bytes(older)
    server.arguments.append("--accept-rollback")
    server.start()
    swept(server)
    assert set(server.blob_files()) == blobs
    assert raw.metric(server, "coffer_kept_orphans") == 20
    found = coffer("verify", "--data", server.data)
    assert found.returncode == 1 and b"catalog.in-doubt" in found.stdout
