"""Starts the real server on what is left, and looks at what was promised."""

import http.client

from harness.server import StartError

from .acts import BLOB, INLINE
from .ledger import NO, YES
from .looking import compare, damage
from .world import World

TRIES = 3


def with_marks(ledger, marks):
    """A ledger that goes on from here: acts that were not settled stay in doubt."""
    own = ledger.copy()
    own.facts = ledger.facts
    own.acts, own.log = list(ledger.acts), list(marks)
    return own


def look(world, whole=True):
    """What is wrong, with a server that is running."""
    wrong, _ = compare(world.client, world.ledger, world.ledger.log, whole)
    found = damage(world.client)
    if found:
        wrong.append(f"verify finds {found}")
    return wrong


def goes_on(world):
    """Whether a server takes in new things; it has a few tries."""
    wrong = []
    standing = world.ledger.standing(world.ledger.log)
    has_bucket = standing.get(("bucket", "alpha")) == ["default"]
    if not has_bucket:
        world.bucket("alpha")
    for name, size_bytes in (("afterwards", INLINE), ("afterwards-blob", BLOB)):
        if not any(world.put("alpha", name, size_bytes) == YES for _ in range(TRIES)):
            wrong.append(f"can't store {name} any more")
    if not any(world.bucket(f"afterwards-{n}") for n in range(TRIES)):
        wrong.append("can't make a bucket any more")
    if not any(world.subject(f"afterwards-{n}", "default", "s0") for n in range(TRIES)):
        wrong.append("can't make a subject any more")
    return wrong


def log_of(world):
    """What a server says of its own mistakes."""
    _, panicked, rest = world.running.log().partition("panicked")
    return [panicked + rest[:1500]] if panicked else []


def visit(root, ledger, *, recorded=False, thorough=True, arguments=()):
    """Starts a server on `root`, looks, ends it by kill -9. What is wrong, and its world."""
    world = World(root, ledger, recorded=recorded, arguments=arguments)
    wrong = []
    try:
        try:
            world.start()
        except StartError as error:
            return [f"does not start: {error}"], world
        wrong += look(world)
        if thorough and not wrong:
            wrong += goes_on(world)
            world.client.close()
            world.running.end()
            try:
                world.start()
            except StartError as error:
                return [*wrong, f"does not start again: {error}"], world
            wrong += [f"after another start: {one}" for one in look(world)]
        wrong += log_of(world)
    except (AssertionError, OSError, http.client.HTTPException) as error:
        wrong.append(f"{type(error).__name__}: {error}")
    finally:
        world.close()
    return wrong, world


__all__ = ["NO", "goes_on", "log_of", "look", "visit", "with_marks"]
