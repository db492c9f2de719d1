"""Slow lines at the data port: what is steady goes to its end, and what stands still is cut."""

import time

import pytest

from harness import sealed
from harness.clients import s3_client
from harness.content import MIB, content
from harness.server import Server

PATIENCE_SECONDS = 4
LEAST_BYTES = 20_000
LIMITS = f"""
[limits]
progress-timeout-seconds = {PATIENCE_SECONDS}
progress-min-bytes = {LEAST_BYTES}
"""


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    with Server(folder, config=LIMITS) as running:
        sealed.make_bucket(running, "open")
        client = s3_client(running)
        client.put_object(Bucket="open", Key="film", Body=content(40 * MIB, "film"))
        yield running
        assert "panicked" not in running.log(), running.log()


def test_a_steady_reader_is_not_cut(serving):
    # The system holds megabytes for it, and tells of room only once a third of them has gone.
    rate = 64_000
    document = sealed.offer(serving, "/open/film")
    with sealed.Slow(serving, document, receive_buffer=1 << 15) as slow:
        began, taken = time.monotonic(), slow.received
        while time.monotonic() < began + 5 * PATIENCE_SECONDS:
            piece = slow.socket.recv(rate // 8)
            assert piece, "the stream ended"
            taken += len(piece)
            time.sleep(max(0, began + taken / rate - time.monotonic()))


def test_a_reader_that_stands_still_is_cut(serving):
    document = sealed.offer(serving, "/open/film")
    with sealed.Slow(serving, document, receive_buffer=1 << 15) as slow:
        time.sleep(2 * PATIENCE_SECONDS)
        was_reset, received = slow.rest()
        assert was_reset or received < document["bytes"]
