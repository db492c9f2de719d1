"""What SQLite's logs need to be durable, refused: nothing that was acknowledged is lost by it."""

import errno
import pickle
import random
import shutil

import pytest

from harness.power import tape
from harness.power.check import visit, with_marks
from harness.power.disk import Disk, place
from harness.power.preload import KINDS
from harness.power.world import World, copy_tree
from harness.server import StartError

LOGS = ("system.db-wal", "catalog.db-wal")


def put_anew(root, image):
    shutil.rmtree(root)
    place(image, root)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("log", LOGS)
def test_a_left_log_is_never_written_over_without_room_for_a_copy(bench, log):
    folder, bases = bench
    base, ledger = bases["killed"]
    root = folder / f"no-room-{log}" / "world"
    root.parent.mkdir()
    copy_tree(base, root)
    before = pickle.dumps(Disk.of(root))
    fault = (KINDS["write"], 0, 1 << 40, errno.ENOSPC, f"{log}.new")
    world = World(root, ledger.copy(), recorded=True, fault=fault)
    if log == "system.db-wal":
        with pytest.raises(StartError, match=r"no room to make the log of .*system.db durable"):
            world.start()
    else:
        world.start()
        status, *_, told = world.client.s3("GET", "/alpha/blob")
        assert status == 507 and b"has freed" in told, (status, told)
    world.close()
    steps = tape.read(world.running.tape_path, root)
    written = [step for step in steps if step.what == tape.WRITE and step.path.endswith(log)]
    assert not written, "where it is"
    for seed in range(4):
        served = pickle.loads(before)
        for step in steps:
            served.apply(step)
        put_anew(root, served.cut(random.Random(seed), "garbled", "all"))
        found, _ = visit(root, with_marks(ledger, []), thorough=False)
        assert not found, found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["open", "folder sync"])
def test_a_log_whose_name_is_not_durable_takes_no_commit(bench, kind):
    folder, bases = bench
    base, ledger = bases["rest"]
    for number in range(8):
        root = folder / f"names-{kind.replace(' ', '-')}-{number}" / "world"
        root.parent.mkdir()
        copy_tree(base, root)
        before = pickle.dumps(Disk.of(root))
        world = World(root, ledger.copy(), recorded=True)
        world.start()
        world.client.s3("GET", "/alpha/blob")
        world.running.arm(KINDS[kind], number, 1, errno.EIO, "")
        for index in range(6):
            world.put("alpha", f"new{index}", 300)
        world.close()
        served, marks = pickle.loads(before), []
        for step in tape.read(world.running.tape_path, root):
            served.apply(step)
            if step.what == tape.MARK:
                marks.append((step.number, step.path))
        put_anew(root, served.cut(random.Random(1), "all", "none"))
        found, _ = visit(root, with_marks(world.ledger, marks), thorough=False)
        assert not found, (number, found)
