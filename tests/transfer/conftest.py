"""A server with a level that allows sealed transfer, and a bucket `open` there."""

import pytest

from harness import sealed
from harness.clients import s3_client
from harness.server import Server


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    """The server of a module."""
    with Server(tmp_path_factory.mktemp("serving")) as running:
        sealed.make_bucket(running, "open")
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


@pytest.fixture(scope="module")
def speaking(tmp_path_factory):
    """A server whose data port speaks TLS."""
    arguments = ("--data-tls", "kernel")
    with Server(tmp_path_factory.mktemp("speaking"), arguments=arguments) as running:
        sealed.make_bucket(running, "open")
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


@pytest.fixture(scope="module")
def client(serving):
    """A boto3 client of it."""
    return s3_client(serving)
