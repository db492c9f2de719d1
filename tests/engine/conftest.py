"""A store for engines."""

import pytest

from harness.clients import s3_client
from harness.sealed_copies import made
from harness.server import Server


@pytest.fixture
def store(tmp_path):
    with Server(made(tmp_path / "store")) as server:
        s3_client(server).create_bucket(Bucket="log")
        yield server
