"""A server with a level that allows sealed transfer, and a bucket `open` there."""

import errno
import struct

import pytest

import harness.server
from harness import sealed
from harness.clients import s3_client
from harness.power.preload import KINDS, LIBRARY, PAGE_BYTES
from harness.server import Server, clean_environment


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


class Faulty(Server):
    """A server whose calls fail as a test says."""

    def __init__(self, folder):
        super().__init__(folder, config='verify = "later"\n')
        self.control = folder / "control"
        self.control.write_bytes(bytes(PAGE_BYTES))
        self.environment = {
            "LD_PRELOAD": str(LIBRARY),
            "COFFER_FAULTS_ROOT": str(folder),
            "COFFER_FAULTS_TAPE": str(folder / "tape"),
            "COFFER_FAULTS_CONTROL": str(self.control),
        }

    def arm(self, kind, first, count, text, error=errno.EIO):
        head = struct.pack("<7Q", KINDS[kind], first, count, error, 0, 0, len(text))
        with self.control.open("r+b") as control:
            control.write(head + text.encode())

    def failed(self):
        """How many calls were made to fail."""
        return struct.unpack_from("<Q", self.control.read_bytes(), 40)[0]

    def heal(self):
        with self.control.open("r+b") as control:
            control.write(bytes(PAGE_BYTES))


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is missing: cargo build --release -p coffer-faults")
    server = Faulty(tmp_path)
    (tmp_path / "tape").write_bytes(b"")
    with monkeypatch.context() as patch:
        environment = clean_environment() | server.environment
        patch.setattr(harness.server, "clean_environment", lambda: environment)
        server.start()
    sealed.make_bucket(server, "open")
    yield server
    server.close()
