"""What was erased is not in the server's memory either: contents, names and metadata of objects."""

import contextlib
import functools
import os
import re
import socket
import ssl
import threading
import time
from collections import Counter

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import CHUNK_BYTES, KIB, MIB, PART_MIN_BYTES
from harness.custodian import ask, run
from harness.memory import read, regions

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root reads a server's memory")

CONNECTIONS = 6
SIZES = [100, 4 * KIB, CHUNK_BYTES - 1, 20 * KIB, 300 * KIB, 3 * MIB]

# Code that was not optimised leaves on stacks what it last had in registers; a release build was
# seen to leave nothing.
ON_STACKS_MAX = 128

# How records, names and metadata begin; nothing else in the server's memory looks like them.
RECORD, NAME, DETAIL = b"record%", b"a-telling-name-", b"a-telling-detail-"


def records(size_bytes, seed):
    """Text of which each 32 bytes can be told from all others of the test."""
    count = size_bytes // 32 + 1
    text = b"".join(b"%s%08d-%016d" % (RECORD, seed, at) for at in range(count))
    assert len(text) == count * 32
    return text[:size_bytes]


def found(pid):
    """Which records, names and details lie in a process's memory and where: off stacks, and on."""
    looked_for = re.compile(
        rb"%s\d{8}-\d{16}|%s\d+|%s\d+" % (re.escape(RECORD), re.escape(NAME), re.escape(DETAIL))
    )
    elsewhere, on_stacks, searched_bytes, guard_end = {}, {}, 0, None
    for region in regions(pid):
        data = read(pid, region)
        searched_bytes += len(data)
        # The stack of a thread lies behind a page that can't be touched.
        places = on_stacks if region.start == guard_end else elsewhere
        is_guard = region.permissions == "---p" and region.end - region.start <= 16 * KIB
        guard_end = region.end if is_guard else None
        for place in looked_for.finditer(data):
            where = f"{place.start():#x} of {region.name or 'unnamed'} {region.start:#x}"
            places.setdefault(place.group(), where)
    assert searched_bytes > 10 * MIB, "the memory was not looked at"
    return elsewhere, on_stacks


def told(places):
    """A few of the places, for a failure."""
    kinds = Counter(what.split(b"0")[0] for what in places)
    return f"{dict(kinds)}, such as {list(places.items())[:5]}"


def request(connection, server, method, path, *, query="", headers=None, body=b""):
    """One request over a connection that stays open."""
    headers = {"content-length": str(len(body))} | (headers or {})
    signed = raw.signed_headers(server, method, path, query=query, headers=headers)
    target = path + ("?" + query if query else "")
    connection.sendall(raw.request_head(method, target, signed) + body)
    status, _, answer = raw.receive(connection, method)
    assert status == 200, answer
    return answer


def use(server, bucket, number):
    """Stores and reads objects of all sizes over one connection, and returns it open."""
    connection = raw.connect(server)
    for at, size_bytes in enumerate(SIZES):
        seed = number * 100 + at
        path, body = f"/{bucket}/{NAME.decode()}{seed}", records(size_bytes, seed)
        details = {"x-amz-meta-detail": f"{DETAIL.decode()}{seed}"}
        request(connection, server, "PUT", path, headers=details, body=body)
        assert request(connection, server, "GET", path) == body
    listing = request(connection, server, "GET", f"/{bucket}", query="list-type=2")
    assert NAME in listing
    last = ("GET", "PUT")[number % 2]
    path = f"/{bucket}/{NAME.decode()}{number * 100}"
    body = b"" if last == "GET" else records(9_999, number * 100)
    request(connection, server, last, path, body=body)
    return connection


def keep_open(connections, server, number):
    connections.append(use(server, "doomed-bucket", number))


def use_otherwise(server, bucket):
    """Uploads in parts and in signed chunks, and copies."""
    s3 = s3_client(server, s3={"payload_signing_enabled": True, "addressing_style": "path"})
    name, copy = f"{NAME.decode()}{7_000}", f"{NAME.decode()}{7_001}"
    upload = s3.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"]
    part = {"Bucket": bucket, "Key": name, "UploadId": upload, "PartNumber": 1}
    tag = s3.upload_part(**part, Body=records(PART_MIN_BYTES, 7_000))["ETag"]
    parts = {"Parts": [{"ETag": tag, "PartNumber": 1}]}
    s3.complete_multipart_upload(Bucket=bucket, Key=name, UploadId=upload, MultipartUpload=parts)
    s3.copy_object(Bucket=bucket, Key=copy, CopySource={"Bucket": bucket, "Key": name})
    tags = [{"Key": "detail", "Value": f"{DETAIL.decode()}7000"}]
    s3.put_object_tagging(Bucket=bucket, Key=copy, Tagging={"TagSet": tags})
    s3.delete_object(Bucket=bucket, Key=name)


def under_way(server, bucket):
    """A download of which nothing is taken, and an upload that has come half."""
    path, body = f"/{bucket}/{NAME.decode()}8000", records(24 * MIB, 8_000)
    uploading, reading = raw.connect(server), raw.connect(server)
    request(reading, server, "PUT", path, body=body)
    signed = raw.signed_headers(server, "GET", path)
    reading.sendall(raw.request_head("GET", path, signed))
    headers = {"content-length": str(MIB)}
    signed = raw.signed_headers(server, "PUT", f"{path}1", headers=headers)
    uploading.sendall(raw.request_head("PUT", f"{path}1", signed) + records(MIB // 2 + 77, 8_001))
    time.sleep(0.5)
    return [uploading, reading]


@pytest.mark.parametrize("kind", ["level", "bucket"])
def test_nothing_erased_is_left_in_memory(own_server, kind):
    server = own_server().start()
    ask(server, "level", "create", "doomed", "--rank", "0", "--same-label")
    ask(server, "bucket", "create", "doomed-bucket", "--level", "doomed")
    with contextlib.ExitStack() as open_until_the_end:
        connections, threads = [], []
        for number in range(1, CONNECTIONS + 1):
            job = functools.partial(keep_open, connections, server, number)
            threads.append(threading.Thread(target=job))
            threads[-1].start()
        use_otherwise(server, "doomed-bucket")
        for thread in threads:
            thread.join()
        assert len(connections) == CONNECTIONS
        connections += under_way(server, "doomed-bucket")
        for connection in connections:
            open_until_the_end.enter_context(connection)
        kinds = {what[: len(RECORD)] for what in found(server.pid)[0]}
        assert len(kinds) >= 2, "the search finds what is under way"

        run(server, kind, "erase", {"level": "doomed"}.get(kind, "doomed-bucket"), "--yes")
        places, on_stacks = found(server.pid)
        assert places == {}, told(places)
        assert len(on_stacks) <= ON_STACKS_MAX, told(on_stacks)


def test_requests_leave_nothing_in_memory_that_was_freed(own_server):
    """Without an erase: connections that have ended leave nothing, nor do pools of buffers."""
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="kept")
    for number in range(1, CONNECTIONS + 1):
        with use(server, "kept", number):
            pass
    for connection in under_way(server, "kept"):
        with contextlib.suppress(OSError, ssl.SSLError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    time.sleep(1)
    # Of large objects nothing; small ones and names are in the pages of the open catalog.
    small = sum(size_bytes <= CHUNK_BYTES for size_bytes in SIZES)
    places, on_stacks = found(server.pid)
    assert len(on_stacks) <= ON_STACKS_MAX, told(on_stacks)
    large = {
        what: where
        for what, where in places.items()
        if what.startswith(RECORD) and int(what[len(RECORD) :][:8]) % 100 >= small
    }
    assert large == {}, told(large)
