"""`verify = "later"` where clients go and disks fail: each verdict comes all the same."""

import base64
import hashlib
import http.client
import socket
import struct
import time

import pytest

from harness import raw, sealed
from harness.clients import refused, s3_client
from harness.content import PART_MIN_BYTES, content
from harness.server import coffer

#: Less than the server waits before it looks again where something could not be read.
SECONDS = 20


def told(body):
    return {"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(body).digest()).decode()}


ALGORITHM = {"x-amz-checksum-algorithm": "SHA256"}


def stored(server, path):
    return raw.send(server, "HEAD", path)[1].get("x-coffer-stored")


def verdicts(server, paths, seconds=SECONDS):
    """What is said of each, once none waits, or after so long."""
    end = time.monotonic() + seconds
    while True:
        said = {path: stored(server, path) for path in paths}
        if "unverified" not in said.values() or time.monotonic() > end:
            return said
        time.sleep(0.2)


def unreadable(server, path, body, *, commits_as=None, is_early=False):
    """Stores what can't be read until the server is healed."""
    while True:
        before = set(server.blob_files())
        ticket = sealed.arrive(server, path, body, headers=ALGORITHM)
        (file,) = set(server.blob_files()) - before
        if not is_early or file.parent.name < "20":
            break
    server.arm("read", 0, 1 << 40, file.name)
    said = told(body if commits_as is None else commits_as)
    answer = sealed.commit(server, path, ticket, headers=said)
    assert (answer[0], answer[1]["x-coffer-stored"]) == (200, "unverified")


def waiting_count(server):
    """How many wait, as docs/OPERATING.md says that it is told."""
    stored = raw.metric(server, "coffer_stored_unverified_total")
    return stored - raw.metric(server, "coffer_verified_later_total")


def test_what_a_client_did_not_wait_for_gets_its_verdict(own_server):
    server = own_server(config='verify = "later"\n').start()
    sealed.make_bucket(server, "open")
    body = content(50_000)
    paths = []
    for number in range(100):
        path = f"/open/k{number}"
        ticket = sealed.arrive(server, path, body, headers=ALGORITHM)
        headers = {"x-coffer-transfer": ticket, "content-length": "0", **told(body)}
        connection = raw.connect(server)
        signed = raw.signed_headers(server, "PUT", path, headers=headers)
        connection.sendall(raw.request_head("PUT", path, signed))
        time.sleep(number % 50 * 0.0003)
        reset = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        connection.close()
        # The next commit would have this one looked at as well.
        time.sleep(0.05)
        paths.append(path)
        if stored(server, path) == "unverified":
            said = verdicts(server, [path], 5)
            assert said[path] is None, path
    assert set(verdicts(server, paths).values()) == {None}
    assert waiting_count(server) == 0


def test_a_commit_in_doubt_gets_its_verdict(faulty):
    client, body, doubted = s3_client(faulty), content(50_000), []
    for first in range(4):
        path = f"/open/k{first}"
        ticket = sealed.arrive(faulty, path, body, headers=ALGORITHM)
        faulty.arm("sync", first, 1, "catalog")
        status = sealed.commit(faulty, path, ticket, headers=told(body))[0]
        faulty.heal()
        if status == 200:
            continue
        doubted.append(path)
        # The next write asks what stands.
        client.put_object(Bucket="open", Key="next", Body=b"next")
        assert verdicts(faulty, [path]) == {path: None}
    # That of the row that it waits, and that of the commit: only this one can stand.
    assert len(doubted) >= 2
    assert 200 in [raw.send(faulty, "HEAD", path)[0] for path in doubted]


def test_what_can_not_be_read_keeps_no_other_waiting(faulty):
    unreadable(faulty, "/open/bad", content(200_000), is_early=True)
    paths = [f"/open/o{number}" for number in range(10)]
    for path in paths:
        body = content(60_000, path)
        sealed.put(faulty, path, body, headers=told(body))
    assert set(verdicts(faulty, paths).values()) == {None}
    assert stored(faulty, "/open/bad") == "unverified"
    assert waiting_count(faulty) == 1


def test_no_copy_hides_that_a_checksum_is_not_the_one_told(faulty):
    client = s3_client(faulty)
    body = content(2 * PART_MIN_BYTES)
    unreadable(faulty, "/open/lie", body, commits_as=b"other")
    time.sleep(1)
    faulty.heal()
    source = {"Bucket": "open", "Key": "lie"}
    with refused("InternalError", 500):
        client.copy_object(Bucket="open", Key="copy", CopySource=source)
    assert raw.send(faulty, "HEAD", "/open/copy")[0] == 404
    name = {"Bucket": "open", "Key": "parts"}
    upload = client.create_multipart_upload(**name)["UploadId"]
    part = {**name, "UploadId": upload, "PartNumber": 1, "CopySource": source}
    for more in ({}, {"CopySourceRange": f"bytes=0-{PART_MIN_BYTES - 1}"}):
        with refused("InternalError", 500):
            client.upload_part_copy(**part, **more)
    assert "Parts" not in client.list_parts(**name, UploadId=upload)


@pytest.mark.parametrize("chunk", [0, 10])
def test_what_does_not_open_ends_an_answer_before_its_verdict(faulty, chunk):
    body = content(300_000)
    document = sealed.announced(faulty, "/open/cut", len(body), headers=ALGORITHM)
    message = bytearray(sealed.seal(document, body))
    message[56 + chunk * 16_400 + 5] ^= 1
    before = set(faulty.blob_files())
    assert sealed.request(faulty, "PUT", document["ticket"], bytes(message))[0] == 204
    (file,) = set(faulty.blob_files()) - before
    faulty.arm("read", 0, 1 << 40, file.name)
    assert sealed.commit(faulty, "/open/cut", document["ticket"], headers=told(body))[0] == 200
    time.sleep(1)
    faulty.heal()
    if chunk == 0:
        assert raw.send(faulty, "GET", "/open/cut")[0] == 500
    else:
        with pytest.raises(http.client.IncompleteRead) as ended:
            raw.send(faulty, "GET", "/open/cut")
        assert ended.value.partial == body[: len(ended.value.partial)]
    asked = {"range": "bytes=200000-"}
    status, said, end = raw.send(faulty, "GET", "/open/cut", headers=asked)
    assert (status, said["x-coffer-stored"], end) == (206, "unverified", body[200_000:])


def test_another_checksum_is_told_as_unverified_before_its_verdict(faulty):
    body = content(100_000)
    unreadable(faulty, "/open/lie", body, commits_as=b"other")
    time.sleep(1)
    faulty.heal()
    sums = {"x-amz-checksum-mode": "ENABLED"}
    status, said, whole = raw.send(faulty, "GET", "/open/lie", headers=sums)
    assert (status, said["x-coffer-stored"], whole) == (200, "unverified", body)
    assert said["x-amz-checksum-sha256"] == told(b"other")["x-amz-checksum-sha256"]


def test_a_copy_of_what_waits_is_whole(faulty):
    client = s3_client(faulty)
    body = content(100_000)
    unreadable(faulty, "/open/whole", body)
    time.sleep(1)
    faulty.heal()
    client.copy_object(Bucket="open", Key="copy", CopySource={"Bucket": "open", "Key": "whole"})
    assert client.get_object(Bucket="open", Key="copy")["Body"].read() == body


def test_a_verdict_in_doubt_is_counted_and_told(faulty):
    """The verdict's own commit fails, and may stand all the same."""
    body = content(40_000)
    firsts = range(1, 5)
    for first in firsts:
        path = f"/open/k{first}"
        unreadable(faulty, path, body, commits_as=b"other")
        time.sleep(0.5)
        faulty.arm("sync", first, 1, "catalog")
        # Its commit has the bucket looked at.
        name = f"/open/n{first}"
        ticket = sealed.arrive(faulty, name, body, headers=ALGORITHM)
        sealed.commit(faulty, name, ticket, headers=told(body))
        time.sleep(0.5)
        faulty.heal()
        sealed.put(faulty, "/open/next", body, headers=told(body))
        assert verdicts(faulty, [path]) == {path: "damaged"}, first
    end = time.monotonic() + SECONDS
    while waiting_count(faulty) and time.monotonic() < end:
        sealed.put(faulty, "/open/next", body, headers=told(body))
        time.sleep(0.5)
    assert waiting_count(faulty) == 0
    lines = raw.get_admin(faulty, "/metrics")[1].splitlines()
    damaged = 'coffer_verified_later_total{outcome="damaged"}'
    assert f"{damaged} {len(firsts)}" in lines, [line for line in lines if damaged in line]
    # Of so many in a minute, one is recorded.
    shown = coffer("audit", "export", "--act", "storage.damage", "--data", faulty.data, text=True)
    assert shown.returncode == 0 and shown.stdout, shown
