"""A server that is left, for those that are moved from."""

import pytest

from harness.clients import s3_client
from harness.migration import Migrator
from harness.server import Server


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """The server that is left."""
    with Server(tmp_path_factory.mktemp("origin")) as running:
        yield running


@pytest.fixture(scope="module")
def old(origin):
    return s3_client(origin)


@pytest.fixture
def migrator(server, origin, tmp_path):
    return Migrator(server, tmp_path / "home", source=origin)
