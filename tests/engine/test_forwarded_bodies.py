"""Bodies of requests that a gateway forwards: what is wrong with them is the client's to hear."""

import pathlib
import socket
import time

import pytest

from harness import raw
from harness.engines import Gateway, client, url_at
from harness.proxy import Proxy
from harness.standbys import within

BUCKET = "notes"
#: What is wrong with a body in HTTP's own chunks.
MALFORMED = {
    "a size that is none": b"5\r\nhello\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a chunk that goes on": b"5\r\nhello, and more\r\n0\r\n\r\n",
}
#: An upload of a length that is not told before its chunks.
IN_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
CHUNKED = {
    "transfer_encoding": "chunked",
    "content_encoding": "aws-chunked",
    "x_amz_decoded_content_length": "100000",
}
#: In `/proc/net/tcp`: open, and the timer that looks whether the other end is still there.
ESTABLISHED, KEEPALIVE = "01", "02"


@pytest.fixture
def key(first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    return key


def begin(connection, gateway, key, path, *, expects=False, payload=raw.UNSIGNED, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"headers": headers, "payload_hash": payload, "credentials": key}
    signed = raw.signed_headers(gateway, "PUT", path, **given)
    # As AWS's clients have it: what they expect they do not sign.
    sent = signed | ({"expect": "100-continue"} if expects else {})
    connection.sendall(raw.request_head("PUT", path, sent))


def refused(connection):
    status, _, body = raw.receive(connection, "PUT")
    return status, body.partition(b"<Code>")[2].partition(b"</Code>")[0]


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_refused_as_by_the_gateway_that_serves(first, second, key, body):
    for is_late in (False, True):
        told = []
        for gateway in (first, second):
            with raw.connect(gateway) as connection:
                begin(connection, gateway, key, f"/{BUCKET}/a", payload=IN_CHUNKS, **CHUNKED)
                if is_late:
                    connection.sendall(b"7\r\n10000\r\n\r\n")
                    time.sleep(0.3)
                connection.sendall(body)
                told.append(refused(connection))
        assert told[0][0] == 400 and told[0][1], told
        assert told[1] == told[0]
    assert "Contents" not in client(second, key).list_objects_v2(Bucket=BUCKET)


def answers_with(gateway, status):
    """Whether a gateway has answered so itself."""
    _, page = raw.get_admin(gateway, "/metrics")
    return f'status="{status}"' in page


def test_a_body_that_its_client_cuts_is_no_failure_of_the_gateway_that_serves(second, key):
    with raw.connect(second) as connection:
        begin(connection, second, key, f"/{BUCKET}/a", content_length="100000")
        connection.sendall(bytes(1_000))
        time.sleep(0.3)
        connection.shutdown(socket.SHUT_RDWR)
    within(lambda: answers_with(second, 400) or answers_with(second, 503), 10)
    assert answers_with(second, 400) and not answers_with(second, 503)


def test_what_waits_to_send_is_asked_for_or_refused(second, key):
    path, wrong = f"/{BUCKET}/a", (key[0], "x" * 40)
    body = b"x" * 100_000
    for credentials, expected in ((key, 200), (wrong, 403)):
        with raw.connect(second) as connection:
            length = str(len(body))
            begin(connection, second, credentials, path, expects=True, content_length=length)
            told = connection.recv(12)
            assert told in (b"HTTP/1.1 100", f"HTTP/1.1 {expected}".encode())
            if told == b"HTTP/1.1 100":
                assert connection.recv(13).endswith(b"\r\n\r\n")
                connection.sendall(body)
                assert raw.receive(connection, "PUT")[0] == expected


def test_where_none_is_known_that_serves_who_sends_or_waits_to_send_hears_so(
    tmp_path, store, first
):
    """A client that finds its connection broken does not know whether to ask again."""
    key, body = first.credentials(), bytes(8_000_000)
    client(first, key).create_bucket(Bucket=BUCKET)
    with Proxy(store.port) as proxy:
        url = url_at(store).replace(f":{store.port}", f":{proxy.port}")
        with Gateway(tmp_path / "two", url) as second:
            proxy.waits_seconds = 120.0
            time.sleep(8)  # What it last read of the lease counts no longer than that.
            for expects in (False, True):
                with raw.connect(second) as connection:
                    given = {"expects": expects, "content_length": str(len(body))}
                    begin(connection, second, key, f"/{BUCKET}/a", **given)
                    if not expects:
                        connection.sendall(body)
                    status, headers, told = raw.receive(connection, "PUT")
                assert status == 503 and b"no gateway of this engine serves now" in told
                if expects:
                    assert headers["connection"] == "close"
            second.kill()


def connections_to(port):
    """State and timer of each connection that this machine has made to a port."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return [
        (field[3], field[5].partition(":")[0])
        for field in fields
        if int(field[2].partition(":")[2], 16) == port
    ]


def test_a_gateway_that_vanished_is_missed_by_what_waits_for_its_answer(first, second, key):
    """Nothing that is sent would tell: the connection is asked."""
    client(second, key).put_object(Bucket=BUCKET, Key="a", Body=b"x")

    def found():
        return [
            timer for state, timer in connections_to(first.gateway_port) if state == ESTABLISHED
        ]

    within(lambda: found() and set(found()) == {KEEPALIVE}, 10)
