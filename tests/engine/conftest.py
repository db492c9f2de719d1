"""A store for engines, and two gateways of one."""

import pytest

from harness.clients import s3_client
from harness.engines import Gateway, url_at
from harness.sealed_copies import made
from harness.server import Server


@pytest.fixture
def store(tmp_path):
    with Server(made(tmp_path / "store")) as server:
        s3_client(server).create_bucket(Bucket="log")
        yield server


@pytest.fixture
def first(tmp_path, store):
    with Gateway(tmp_path / "one", url_at(store)) as gateway:
        yield gateway


@pytest.fixture
def second(tmp_path, store, first):
    with Gateway(tmp_path / "two", url_at(store)) as gateway:
        yield gateway
