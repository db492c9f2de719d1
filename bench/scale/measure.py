"""Measures what docs/SCALE.md counts with, on this machine, and writes measured.json beside this.

    .venv/bin/python bench/scale/measure.py          # some minutes; needs target/release/coffer

COFFER_BINARY names another program, BUCKETS and OBJECTS other numbers.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from harness.administration import run  # noqa: E402
from harness.clients import s3_client  # noqa: E402
from harness.sealed_copies import caught_up, replica, url_of  # noqa: E402
from harness.server import Server, coffer  # noqa: E402

BUCKETS = int(os.environ.get("BUCKETS", "1000"))
OBJECTS = int(os.environ.get("OBJECTS", "20000"))
BLOB_BYTES = 17_000
"""More than what lies in the catalog itself."""
WAL_FRAME_BYTES = 4_096 + 24
WRITERS = 16


def one_catalog(server):
    """Bytes that an object takes in a catalog, and pages that the commit of one writes."""
    s3 = s3_client(server)
    s3.create_bucket(Bucket="objects")

    def put(number):
        name = f"recordings/2026/11/{number % 977:03}/{number:012}.bin"
        s3.put_object(Bucket="objects", Key=name, Body=os.urandom(BLOB_BYTES))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(put, range(OBJECTS)))
    server.restart()
    (folder,) = (server.data / "buckets").iterdir()
    catalog_bytes = (folder / "catalog.db").stat().st_size
    s3 = s3_client(server)
    pages = []
    for number in range(OBJECTS, OBJECTS + 40):
        before = (folder / "catalog.db-wal").stat().st_size
        put(number)
        grown = (folder / "catalog.db-wal").stat().st_size - before
        if grown > 0:
            pages.append(grown / WAL_FRAME_BYTES)
    return {
        "catalog_bytes_an_object": round(catalog_bytes / OBJECTS),
        "pages_a_commit": round(statistics.median(pages), 1),
    }


def many_buckets(server, folder):
    """What a thousand buckets take: in the keystore, in a head, at a start, and at their erase."""
    run(server, "level", "create", "many", "--rank", "1")
    began = time.monotonic()
    for number in range(BUCKETS):
        run(server, "bucket", "create", f"many-{number:05}", "--level", "many")
    made = time.monotonic() - began
    server.restart()
    start = server.start_seconds
    replica(server, "add", "far", url_of(folder / "copy"))
    caught_up(server)
    heads = sorted((folder / "copy").glob("**/heads/**/*"), key=lambda path: path.stat().st_mtime)
    head_bytes = [path for path in heads if path.is_file()][-1].stat().st_size
    replica(server, "remove", "far")
    began = time.monotonic()
    run(server, "level", "erase", "many", "--yes")
    erase = time.monotonic() - began
    return {
        "buckets": BUCKETS,
        "head_bytes_a_bucket": round(head_bytes / BUCKETS),
        "seconds_to_make_a_bucket": round(made / BUCKETS, 4),
        "seconds_to_start": round(start, 2),
        "seconds_to_erase_them": round(erase, 3),
        "resident_mb_after_start": round(server.resident_bytes() / 1e6, 1),
    }


def main():
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "one").mkdir()
        with Server(folder / "one") as server:
            found |= one_catalog(server)
        (folder / "many").mkdir()
        with Server(folder / "many") as server:
            found |= many_buckets(server, folder)
    found["program"] = coffer("--version", text=True).stdout.strip()
    (HERE / "measured.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
