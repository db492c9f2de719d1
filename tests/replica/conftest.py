"""A server to copy, whose first access key is noted beside it for the one that is restored."""

import pytest

from harness.clients import s3_client
from harness.sealed_copies import BUCKET, made
from harness.server import Server


@pytest.fixture
def server(tmp_path):
    with Server(made(tmp_path / "first")) as server:
        s3_client(server).create_bucket(Bucket=BUCKET)
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        yield server
