"""SIGTERM: what is in flight ends, nothing new begins, and the program ends with 0."""

import signal
import socket
import threading
import time

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, content

BUCKET = "ending"


@pytest.fixture
def server(own_server):
    running = own_server(config="[limits]\nshutdown-timeout-seconds = 4\n").start()
    s3_client(running).create_bucket(Bucket=BUCKET)
    return running


def test_idle_servers_end_at_once(server):
    idle = raw.connect(server)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 2
    idle.close()


def test_interrupts_end_it_too(server):
    assert server.end(signal.SIGINT, 10) == 0


def test_requests_in_flight_end_well(server):
    s3 = s3_client(server)
    body = content(32 * MIB)
    s3.put_object(Bucket=BUCKET, Key="down", Body=body)
    stream = s3.get_object(Bucket=BUCKET, Key="down")["Body"]
    path = f"/{BUCKET}/up"
    headers = raw.signed_headers(server, "PUT", path, headers={"content-length": str(2 * MIB)})
    up = raw.connect(server)
    up.sendall(raw.request_head("PUT", path, headers) + body[:MIB])
    received = stream.read(MIB)
    codes = []
    ending = threading.Thread(target=lambda: codes.append(server.stop()))
    ending.start()
    time.sleep(0.5)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=1).recv(1)
    while piece := stream.read(8 * MIB):
        received += piece
    assert received == body
    up.sendall(body[MIB : 2 * MIB])
    assert raw.receive(up, "PUT")[0] == 200
    up.close()
    ending.join()
    assert codes == [0]
    server.start()
    got = s3_client(server).get_object(Bucket=BUCKET, Key="up")["Body"].read()
    assert got == body[: 2 * MIB]


def test_clients_that_do_not_end_are_cut_off(server):
    path = f"/{BUCKET}/never"
    headers = raw.signed_headers(server, "PUT", path, headers={"content-length": str(MIB)})
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", path, headers) + bytes(100_000))
        time.sleep(0.2)
        began = time.monotonic()
        assert server.stop() == 0
        assert 2 < time.monotonic() - began < 10
    server.start()
    assert s3_client(server).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    end = time.monotonic() + 10
    while server.blob_files() and time.monotonic() < end:
        time.sleep(0.05)
    assert server.blob_files() == []


def test_everything_is_there_after_a_restart(server):
    s3 = s3_client(server)
    stored = {f"{size}": content(size) for size in (0, 10, 20_000, MIB)}
    for name, body in stored.items():
        s3.put_object(Bucket=BUCKET, Key=name, Body=body, Metadata={"name": name})
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    where = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload}
    part = s3.upload_part(**where, PartNumber=1, Body=content(MIB))
    credentials, ca = server.credentials(), server.ca.read_bytes()
    server.restart()
    assert (server.credentials(), server.ca.read_bytes()) == (credentials, ca)
    s3 = s3_client(server)
    for name, body in stored.items():
        got = s3.get_object(Bucket=BUCKET, Key=name)
        assert (got["Body"].read(), got["Metadata"]) == (body, {"name": name})
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**where, MultipartUpload=parts)
    assert s3.get_object(Bucket=BUCKET, Key="parts")["Body"].read() == content(MIB)
