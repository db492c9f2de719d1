"""`Expect: 100-continue`: asked before a body, and never left out without a word.

The aws CLI and boto3's older versions expect on every upload. They take a final answer without a
100 before it only if the connection closes then; else they misread the next answer on it.
"""

import pytest

from harness import raw


def exchange(connection, server, path, body, **given):
    """Sends the head alone; then the body, if it is asked for. Returns (asked, status, headers)."""
    headers = {"content-length": str(len(body)), "expect": "100-continue"}
    signed = raw.signed_headers(server, "PUT", path, headers=headers, **given)
    connection.sendall(raw.request_head("PUT", path, signed))
    line = read_line(connection)
    asked = line.startswith(b"HTTP/1.1 100 ")
    if asked:
        assert read_line(connection) == b"\r\n"
        connection.sendall(body)
        line = read_line(connection)
    headers = {}
    while (field := read_line(connection)) not in (b"\r\n", b""):
        name, _, value = field.decode().partition(":")
        headers[name.lower()] = value.strip()
    return asked, int(line.split()[1]), headers


def read_line(connection):
    line = b""
    while not line.endswith(b"\n") and (byte := connection.recv(1)):
        line += byte
    return line


@pytest.mark.parametrize("size_bytes", [1, 10_000, 1_000_000])
def test_a_body_is_asked_for(server, bucket, size_bytes):
    with raw.connect(server) as connection:
        for _ in range(3):
            asked, status, _ = exchange(connection, server, f"/{bucket}/a", bytes(size_bytes))
            assert (asked, status) == (True, 200)


def test_an_empty_body(server, s3, bucket):
    with raw.connect(server) as connection:
        asked, status, headers = exchange(connection, server, f"/{bucket}/a", b"")
        assert status == 200
        assert asked or headers.get("connection") == "close"
    assert s3.head_object(Bucket=bucket, Key="a")["ContentLength"] == 0


def test_a_refused_request_need_not_send_its_body(server, bucket):
    path, wrong = "/missing-bucket/a", (server.credentials()[0], "x" * 40)
    for given, expected in (({}, 404), ({"credentials": wrong}, 403)):
        with raw.connect(server) as connection:
            asked, status, headers = exchange(connection, server, path, bytes(1_000_000), **given)
            assert status == expected
            assert asked or headers.get("connection") == "close"
