"""Power cuts: a scene is recorded, and the real server started on what each cut could leave."""

import pickle
import random
import shutil
from typing import NamedTuple

from harness.server import StartError

from . import disk, tape
from .check import visit, with_marks
from .disk import Disk
from .ledger import Ledger, marks_of
from .world import World, copy_tree

# What a power cut does to bytes and to names. The first four are what is found first.
WAYS = [
    ("none", "none"),
    ("all", "all"),
    ("all", "none"),
    ("none", "all"),
    ("files", "prefix"),
    ("prefix", "prefix"),
    ("writes", "subset"),
    ("torn", "prefix"),
    ("torn", "subset"),
    ("garbled", "all"),
    ("garbled", "subset"),
    ("mixed", "subset"),
    ("mixed", "prefix"),
]


class Recording(NamedTuple):
    """What happened in a scene, from the start of the server on."""

    scene: str
    # The disk before, pickled: each tape is gone through more than once.
    before: bytes
    steps: list
    ledger: Ledger
    arguments: tuple


class Cut(NamedTuple):
    """A state that a power cut could leave."""

    told: str
    image: dict
    marks: list


def record(name, scene, base, folder):
    """Runs a scene on a copy of `base`: a folder and a ledger."""
    source, ledger = base
    root = folder / "w"
    copy_tree(source, root)
    if scene.prepare:
        scene.prepare(root)
    before = pickle.dumps(Disk.of(root))
    world = World(root, ledger.copy(), recorded=True, arguments=scene.arguments)
    try:
        world.start()
        scene.act(world)
    finally:
        world.close()
    steps = tape.read(world.running.tape_path, root)
    assert_complete(pickle.loads(before), steps, root)
    assert "panicked" not in world.running.log(), world.running.log()
    shutil.rmtree(root)
    return Recording(name, before, steps, world.ledger, scene.arguments)


def assert_complete(served, steps, root):
    """The tape leads to what is in the folder."""
    for step in steps:
        served.apply(step)
    served.sync_all()
    at_end, there = served.cut(random.Random(0)), Disk.of(root).cut(random.Random(0))
    names = sorted(set(at_end) ^ set(there))
    for path in set(at_end) & set(there):
        if disk.digest({path: there[path]}) != disk.digest({path: at_end[path]}):
            names.append(path)
    assert not names, f"the tape does not lead to what is in the folder: {names}"


def cuts(served, steps, chance, count, before=()):
    """`count` cuts of a tape, from the disk `served` on: each different."""
    places = [at for at, step in enumerate(steps) if step.what != tape.MARK] + [len(steps)]
    wanted = {}
    for number in range(count):
        at = places[number % len(places)] if count >= len(places) else chance.choice(places)
        wanted.setdefault(at, []).append((chance.choice(WAYS), chance.randrange(1 << 32)))
    seen, marks = set(), list(before)
    for at in range(len(steps) + 1):
        for (data, names), seed in wanted.get(at, []):
            image = torn(served, steps[at : at + 1], random.Random(seed), data, names)
            key = (disk.digest(image), len(marks))
            if key not in seen:
                seen.add(key)
                within = f" within: {steps[at]}" if at < len(steps) else ""
                told = f"cut at {at} of {len(steps)}, {data}/{names}, seed {seed}{within}"
                yield Cut(told, image, list(marks))
        if at < len(steps):
            served.apply(steps[at])
            if steps[at].what == tape.MARK:
                marks.append((steps[at].number, steps[at].path))


def torn(served, step, chance, data, names):
    """The power goes within a step: it may have an effect already."""
    undone = None
    if step and step[0].what == tape.WRITE and step[0].inode in served.inodes:
        undone = served.inodes[step[0].inode]
        served.begin(step[0])
    image = served.cut(chance, data, names)
    if undone:
        undone.pending.pop()
    return image


def check(recording, cut, folder, *, again=0, chance=None):
    """Starts servers on a cut; what is wrong, as texts, and how many states were looked at.

    With `again`, the start itself is recorded and cut as well, so many times.
    """
    root = folder / "w"
    disk.place(cut.image, root)
    ledger = with_marks(recording.ledger, cut.marks)
    arguments = recording.arguments
    if not again:
        wrong, _ = visit(root, ledger, arguments=arguments)
        shutil.rmtree(root)
        return wrong, 1
    served = Disk.of(root)
    world = World(root, ledger, recorded=True, arguments=arguments)
    # The acts of the first tape keep their marks.
    count = len(ledger.acts)
    try:
        world.start()
        world.bucket("recovered")
        world.put("recovered", "blob", 20_000)
    except StartError as error:
        return [f"does not start: {error}"], 1
    finally:
        world.close()
    steps = tape.read(world.running.tape_path, root)
    shutil.rmtree(root)
    assert all(number >= count for number, _ in marks_of(steps))
    wrong, looked = [], 0
    for second in cuts(served, steps, chance, again, cut.marks):
        disk.place(second.image, root)
        ledger_then = with_marks(world.ledger, second.marks)
        found, _ = visit(root, ledger_then, thorough=False, arguments=arguments)
        shutil.rmtree(root)
        looked += 1
        wrong += [f"then {second.told}: {one}" for one in found]
        if wrong:
            break
    return wrong, looked


__all__ = ["WAYS", "Cut", "Recording", "check", "cuts", "record"]
