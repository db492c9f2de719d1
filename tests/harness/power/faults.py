"""Calls that fail: a scene is gone through while some of the server's calls are refused."""

import errno
import http.client
import pickle
import random
import shutil
from typing import NamedTuple

from harness.server import StartError

from . import tape
from .check import goes_on, log_of, look, visit
from .cuts import cuts
from .disk import Disk, place
from .preload import KINDS
from .world import World, copy_tree

IN_A_ROW_MAX = 6

# Which errors a kind of call can meet.
ERRORS = {
    "open": [errno.EMFILE, errno.EIO, errno.ENOSPC],
    "write": [errno.ENOSPC, errno.EIO],
    "sync": [errno.EIO, errno.ENOSPC],
    "folder sync": [errno.EIO],
    "truncate": [errno.EIO],
    "rename": [errno.EIO, errno.ENOSPC],
    "remove": [errno.EIO],
    "make folder": [errno.ENOSPC, errno.EIO, errno.EMFILE],
    "read": [errno.EIO],
}

# What fails at once: calls of one kind, of those that change something, or of one file alone.
GROUPS = [
    *[([kind], "") for kind in ERRORS],
    (["write", "sync", "folder sync", "truncate", "rename", "make folder"], ""),
    (["write", "sync"], "catalog.db-wal"),
    (["sync"], "catalog.db-wal"),
    (["write", "sync"], "system.db-wal"),
    (["sync"], "system.db"),
    (["write", "sync"], "keystore"),
    (["write", "sync"], "/audit/"),
    (["write", "sync"], "/blobs/"),
]


class Fault(NamedTuple):
    """Which calls fail: of some kinds and paths, the first one, how many, and how."""

    kinds: tuple
    text: str
    first: int
    count: int
    error: int
    # Whether calls of the start count as well.
    from_start: bool

    def __str__(self):
        when = "from the start on" if self.from_start else "after the start"
        where = f" of *{self.text}*" if self.text else ""
        name = errno.errorcode[self.error]
        kinds = ", ".join(self.kinds)
        return f"{name} of {self.count} calls from {self.first} on: {kinds}{where}, {when}"

    def mask(self):
        return sum(KINDS[kind] for kind in self.kinds)

    def control(self):
        return (self.mask(), self.first, self.count, self.error, self.text)


class Sweep:
    """All faults of one scene."""

    def __init__(self, scene, base, folder):
        self.scene = scene
        self.source, self.ledger = base
        self.folder = folder
        self.counts = {}

    def open(self, folder, fault, count):
        """A world in which `count` calls are to fail, started. It may have failed to start."""
        root = folder / "w"
        copy_tree(self.source, root)
        if self.scene.prepare:
            self.scene.prepare(root)
        before = pickle.dumps(Disk.of(root))
        armed = fault._replace(count=count).control()
        options = {"fault": armed} if fault.from_start else {}
        arguments = self.scene.arguments
        world = World(root, self.ledger.copy(), recorded=True, arguments=arguments, **options)
        try:
            world.start()
        except StartError:
            return world, before
        if not fault.from_start:
            world.running.arm(*armed)
        return world, before

    def count(self, kinds, text, from_start):
        """How many calls there are to refuse."""
        key = (tuple(kinds), text, from_start)
        if key not in self.counts:
            world, _ = self.open(self.folder, Fault(*key[:2], 0, 0, errno.EIO, from_start), 0)
            try:
                self.scene.act(world)
                self.counts[key] = world.running.counted()[0]
            finally:
                world.close()
                shutil.rmtree(world.running.root)
        return self.counts[key]

    def choose(self, chance):
        """A fault by chance; none where the scene has no such call."""
        for _ in range(100):
            group, from_start = chance.choice(GROUPS), chance.random() < 0.25
            if self.scene.often and chance.random() < 0.5:
                group, from_start = self.scene.often, False
            kinds, text = group
            from_start = from_start or self.scene.base == "empty"
            count = self.count(kinds, text, from_start)
            if count:
                error = chance.choice(ERRORS[chance.choice(kinds)])
                first, row = chance.randrange(count), chance.randint(1, IN_A_ROW_MAX)
                return Fault(tuple(kinds), text, first, row, error, from_start)
        return None

    def check(self, folder, fault, chance, cut_count=1):
        """Goes through the scene with the fault. What is wrong, and how many states were seen."""
        world, before = self.open(folder, fault, fault.count)
        wrong, root = [], folder / "w"
        try:
            if world.running.process is not None:
                wrong += self._go_through(world)
            elif "panicked" in world.running.log():
                wrong += log_of(world)
        except (AssertionError, OSError, http.client.HTTPException) as error:
            wrong.append(f"{type(error).__name__}: {error}")
        finally:
            world.close()
        ledger = world.ledger
        steps = tape.read(world.running.tape_path, root)
        if not wrong:
            found, _ = visit(root, ledger, thorough=True, arguments=self.scene.arguments)
            wrong += [f"after kill -9: {one}" for one in found]
        shutil.rmtree(root, ignore_errors=True)
        looked = 2
        if not wrong:
            found, more = self._cut(folder, before, steps, ledger, chance, cut_count)
            wrong, looked = wrong + found, looked + more
        if wrong:
            wrong += [f"  {step}" for step in steps if step.what == tape.REFUSED]
            wrong += [f"  {told}" for told in ledger.answers()]
        return wrong, looked

    def _go_through(self, world):
        """The scene with its fault, and a look when the fault is gone.

        An act that is in doubt may wait for a restart to be completed.
        """
        self.scene.act(world)
        world.running.arm(0, 0, 0, 0)
        world.client.close()
        if self.scene.is_stop:
            return []
        if not world.running.is_alive():
            return [f"the server ended: {world.running.log()[-1500:]}"]
        wrong = log_of(world)
        if not wrong:
            wrong += [f"without a restart: {one}" for one in goes_on(world) + look(world, False)]
        return wrong + log_of(world)

    def _cut(self, folder, before, steps, ledger, chance, count):
        """And then the power goes, where a sync had failed."""
        if not any(step.what == tape.SYNC_REFUSED for step in steps):
            return [], 0
        looked, root = 0, folder / "w"
        for cut in cuts(pickle.loads(before), steps, chance, count):
            place(cut.image, root)
            then = ledger.copy()
            then.acts, then.log = list(ledger.acts), list(cut.marks)
            found, _ = visit(root, then, thorough=False, arguments=self.scene.arguments)
            shutil.rmtree(root)
            looked += 1
            if found:
                return [f"then {cut.told}: {one}" for one in found], looked
        return [], looked


def seeded(seed, *words):
    return random.Random(" ".join(map(str, (seed, *words))))


__all__ = ["Fault", "Sweep", "seeded"]
