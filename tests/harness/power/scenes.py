"""The scenes, and the folders that they begin with."""

import shutil
from typing import NamedTuple

from . import acts, keys_and_copies, transfers, versions
from .ledger import Ledger
from .world import World, copy_tree


class Scene(NamedTuple):
    """Something that is done, and from where on."""

    act: object
    # The folder that it begins with: empty, of a server that was stopped, or of one that was
    # killed.
    base: str = "rest"
    prepare: object = None
    arguments: tuple = ()
    # Whether it is looked at only where there is time.
    is_long: bool = False
    # Of what calls fail more often than of others: kinds, and what their paths hold.
    often: tuple = ()
    # Whether the server ends in it.
    is_stop: bool = False


def without_certificate(root):
    (root / "data/tls/server.pem").unlink()


def with_north(root):
    """Beside the server's files lies a bucket of another one."""
    copy_tree(root.parent.parent / "north", root / "data" / acts.ARRIVING)


SCENES = {
    "first start": Scene(acts.first_start, "empty"),
    "start": Scene(acts.nothing),
    "start of a killed server": Scene(acts.nothing, "killed"),
    "renewal of the certificate": Scene(acts.renewal, prepare=without_certificate),
    "puts": Scene(acts.puts),
    "puts after a kill": Scene(acts.puts, "killed"),
    "deletions": Scene(acts.deletions),
    "copies": Scene(acts.copies, "killed"),
    "renames": Scene(acts.renames, often=(["write", "sync"], "catalog.db-wal")),
    "uploads": Scene(acts.uploads),
    "writers": Scene(acts.writers, often=(["sync"], "catalog.db-wal")),
    "buckets": Scene(acts.buckets, often=(["write", "sync"], "system.db-wal")),
    "levels": Scene(acts.levels),
    "erase of a level": Scene(acts.erase_level, often=(["write", "sync"], "system.db-wal")),
    "erase of a bucket": Scene(acts.erase_bucket, "killed"),
    "rotations": Scene(acts.rotations),
    "subjects": Scene(acts.subjects, often=(["write", "sync"], "system.db-wal")),
    "access keys": Scene(keys_and_copies.access_keys, often=(["write", "sync"], "system.db-wal")),
    "keys": Scene(acts.keys),
    "imports": Scene(acts.imports, prepare=with_north),
    "approvals": Scene(acts.approvals),
    "keystore": Scene(acts.keystore),
    "keystore and back": Scene(acts.keystore_back, is_long=True),
    "quotas": Scene(keys_and_copies.quotas, often=(["write", "sync"], "system.db-wal")),
    "versions": Scene(versions.versions, often=(["write", "sync"], "catalog.db-wal")),
    "locks": Scene(versions.locks, often=(["write", "sync"], "system.db-wal")),
    "locks after a kill": Scene(versions.locks, "killed", is_long=True),
    "lifecycle": Scene(
        versions.lifecycle,
        arguments=versions.QUICK_DAYS,
        often=(["write", "sync"], "catalog.db-wal"),
    ),
    "sealed puts": Scene(
        transfers.sealed_puts, arguments=transfers.DATA_PORT, often=(["write", "sync"], "blobs")
    ),
    "backups": Scene(keys_and_copies.backups, prepare=keys_and_copies.with_copies),
    "older format": Scene(keys_and_copies.first_use, "museum"),
    "shutdown": Scene(acts.shutdown, is_stop=True),
    "tidying": Scene(acts.tidy),
    "checkpoint": Scene(acts.checkpoint, is_long=True),
}


def make_north(folder):
    """A bucket's folder of another server; what is to be known of it."""
    root = folder / "w"
    root.mkdir()
    world = World(root).start()
    north = acts.furnish_north(world)
    world.running.stop()
    world.close()
    copy_tree(world.running.data / "buckets" / north[1], folder / "north")
    shutil.rmtree(root)
    return north


def make_bases(folder):
    """Folders and ledgers that scenes begin with, by name."""
    bases = {}
    empty = folder / "empty"
    empty.mkdir()
    bases["empty"] = (empty, Ledger())
    museum = folder / "museum"
    museum.mkdir()
    bases["museum"] = (museum, Ledger(*keys_and_copies.unpack_museum(museum, 3)))
    north = make_north(folder)
    for name in ("rest", "killed"):
        root = folder / "w"
        root.mkdir()
        world = World(root).start()
        acts.furnish(world)
        world.notes["north"] = north
        refused = [one for one in world.ledger.log if one[1] not in ("begin", "yes")]
        assert not refused, (refused, world.running.log())
        if name == "rest":
            world.running.stop()
        world.close()
        copy_tree(root, folder / name)
        shutil.rmtree(root)
        bases[name] = (folder / name, world.ledger.seal())
    return bases
