"""What the simulations share: the folders that scenes begin with, and where failures are kept."""

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from harness.disks import free_bytes
from harness.power.preload import LIBRARY
from harness.power.scenes import make_bases

SHARED_MEMORY = Path("/dev/shm")

ROOM_BYTES = 1 << 30


@pytest.fixture(scope="session")
def bench():
    """A folder of a fast file system, and the bases in it."""
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is missing: cargo build --release -p coffer-faults")
    has_room = SHARED_MEMORY.is_dir() and free_bytes(SHARED_MEMORY) > ROOM_BYTES
    place = SHARED_MEMORY if has_room else None
    folder = Path(tempfile.mkdtemp(prefix="coffer-power-", dir=place))
    yield folder, make_bases(folder)
    shutil.rmtree(folder)


COUNTS = Counter()


@pytest.fixture(scope="session")
def tally():
    """How many acts were done, and how many states were looked at, in sum."""
    return COUNTS


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Adds what a process of the test run has counted, when it ends."""
    COUNTS.update(getattr(node, "workeroutput", {}).get("power", {}))


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["power"] = dict(COUNTS)


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        told = ", ".join(f"{count} {what}" for what, count in sorted(COUNTS.items()))
        terminalreporter.write_line(f"simulated power cuts and faults: {told}")


@pytest.fixture(scope="session")
def seed(request):
    given = request.config.getoption("--power-seed")
    return random.randrange(1 << 32) if given is None else given
