"""A server to copy, whose first access key is noted beside it for the one that is restored."""

import pytest

from harness.clients import s3_client
from harness.sealed_copies import BUCKET, caught_up, made, put, url_of
from harness.server import Server
from harness.standbys import add_copy, standby_of, started


@pytest.fixture
def server(tmp_path):
    with Server(made(tmp_path / "first")) as server:
        s3_client(server).create_bucket(Bucket=BUCKET)
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        yield server


@pytest.fixture
def followed(server, tmp_path):
    """A standby of a copy of the server."""
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    put(server, ["small-1", "middle-1", "large-1"])
    caught_up(server)
    standby = standby_of(url_of(copy), tmp_path / "second", tmp_path / "credentials")
    started(standby)
    yield standby
    standby.close()
