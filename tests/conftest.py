"""Fixtures: a server for each module, and buckets in it."""

import itertools
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from harness.clients import client_environment, drain, s3_client
from harness.faults import library
from harness.keys import TOKEN_PIN
from harness.server import BINARY, Server

_numbers = itertools.count(1)


def pytest_configure(config):
    if not BINARY.exists():
        raise pytest.UsageError(f"{BINARY} is missing: cargo build --release -p coffer")


def pytest_addoption(parser):
    parser.addoption("--kill-rounds", type=int, default=50, help="rounds of the kill -9 test")
    parser.addoption(
        "--transfer-rounds", type=int, default=200, help="transfers over a network that cuts them"
    )
    parser.addoption("--cluster-seconds", type=int, default=40, help="how long gateways die for")
    parser.addoption("--cluster-seed", type=int, default=1, help="what decides which, and when")
    parser.addoption("--power-seed", type=int, help="what decides which power cuts are looked at")
    parser.addoption("--power-states", type=int, help="how many states after power cuts and faults")


#: So many lines of the log of each server are shown where a test fails.
LOG_LINES = 40


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        own, folder = item.funcargs.values(), item.funcargs.get("tmp_path")
        for server in list(Server.all):
            lines = server.log().splitlines()[-LOG_LINES:]
            if lines and (server in own or (folder and server.folder.is_relative_to(folder))):
                report.sections.append((f"log of {server.folder}", "\n".join(lines)))
    return report


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with default settings, shared by the tests of a module."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running
        if running.process is not None:
            assert running.process.poll() is None, "the server died:\n" + running.log()
            assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


@pytest.fixture(scope="module")
def s3(server):
    """A boto3 client of the module's server."""
    return s3_client(server)


@pytest.fixture
def bucket(s3):
    """An empty bucket, removed with its content when the test ends."""
    name = f"bucket-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    yield name
    drain(s3, name)


@pytest.fixture
def client_env(server, tmp_path):
    """The environment of a user who has pasted the server's credentials."""
    home = tmp_path / "home"
    home.mkdir()
    return client_environment(server, home)


@pytest.fixture
def own_server(tmp_path):
    """Makes servers of the test's own, which it may stop, kill and damage."""
    servers = []

    def make(name="own", **options):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        servers.append(Server(folder, **options))
        return servers[-1]

    yield make
    for running in servers:
        running.close()


@pytest.fixture
def token(tmp_path, monkeypatch):
    """A token of SoftHSM2, as a PKCS#11 URI that leaves its PIN to be found."""
    modules = map(Path, ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so"))
    module = next((module for module in modules if module.exists()), None)
    if not module or not shutil.which("softhsm2-util"):
        pytest.fail("softhsm2 is missing: scripts/install-test-tools")
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    configuration = tmp_path / "softhsm2.conf"
    configuration.write_text(f"directories.tokendir = {tokens}\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(configuration))
    command = ["softhsm2-util", "--init-token", "--free", "--label", "coffer"]
    pins = ["--pin", TOKEN_PIN, "--so-pin", TOKEN_PIN]
    subprocess.run([*command, *pins], check=True, capture_output=True)
    return f"pkcs11:token=coffer?module-path={module}"


@pytest.fixture
def token_with_pin(token, tmp_path):
    """The same with a file that holds its PIN."""
    pin = tmp_path / "pin"
    pin.write_text(TOKEN_PIN)
    pin.chmod(0o600)
    return f"{token}&pin-source=file:{pin}"


@pytest.fixture
def set_clock(tmp_path, monkeypatch):
    """Sets the clock of servers that run, and of those to come: so many seconds ahead."""
    ahead = tmp_path / "ahead"
    ahead.write_bytes(bytes(8))
    monkeypatch.setenv("LD_PRELOAD", str(library(tmp_path, "clock.c")))
    monkeypatch.setenv("CLOCK_AHEAD_FILE", str(ahead))

    def set_to(seconds):
        with ahead.open("r+b") as file:
            file.write(struct.pack("=q", seconds))

    return set_to
