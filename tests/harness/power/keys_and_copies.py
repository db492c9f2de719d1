"""Acts on access keys, quotas and copies of the folder, and a folder of an older format.

What they make is looked at as `looking.py` says.
"""

import json
import tarfile
from pathlib import Path

from .acts import BLOB, INLINE
from .looking import short
from .world import YES

MUSEUM = Path(__file__).parents[2] / "reliability/museum"

COPIES = "copies"
"""The folder, beside the data, into which backups go."""

LARGE = bytes(range(256)) * 80


def access_keys(world):
    """One more, changes of one, a rotation, and deletions."""
    with world.ledger.trying({("keys", name): "active" for name in ("ann", "bob")}) as answer:
        answer.is_(YES)
    ann, bob, cleo = (world.notes["key", name][0] for name in ("ann", "bob", "cleo"))
    make_key(world, "ann", "ann-2", {})
    path = f"/v1/subjects/ann/keys/{ann}"
    told = {("keys", "ann"): "disabled,active", ("signin", "ann"): None}
    world.admin(told, "PATCH", path, {"disabled": True})
    told = {("keys", "ann"): "active,active", ("signin", "ann"): True}
    world.admin(told, "PATCH", path, {"disabled": False})
    told = {("keys", "ann"): "active", ("signin", "ann"): None}
    world.admin(told, "DELETE", path)
    # The other counts on for an hour.
    make_key(world, "bob", "bob-2", {"overlap_seconds": 3600}, "keys/rotate")
    told = {("keys", "bob"): "active", ("signin", "bob"): None}
    world.admin(told, "DELETE", f"/v1/subjects/bob/keys/{bob}")
    # And here it does not.
    ends = {("signin", "cleo"): None}
    make_key(world, "cleo", "cleo-2", {"overlap_seconds": 0}, "keys/rotate", ends)
    world.admin({}, "DELETE", f"/v1/subjects/cleo/keys/{cleo}")
    world.record()


def make_key(world, subject, name, body, path="keys", ends=()):
    """A new access key, which counts from then on; the test knows it by `name`."""
    before = world.ledger.standing(world.ledger.log).get(("keys", subject), ["active"])
    changes = dict(ends)
    if len(before) == 1 and not ends:
        changes["keys", subject] = f"{before[0]},active"
    with world.ledger.trying(changes) as answer:

        def ask():
            return world.client.admin("POST", f"/v1/subjects/{subject}/{path}", body)

        outcome, made = world.asking(answer, ask)
        if outcome == YES:
            world.notes["key", name] = (made["access_key_id"], made["secret_access_key"])
            answer.is_(YES, more={("signin", name): True})


def with_copies(root):
    (root / COPIES).mkdir(mode=0o700)


def backups(world):
    """One, and what goes into the next one."""
    for _ in range(2):
        back_up(world)
        world.put("alpha", "new", INLINE)
        world.put("alpha", "old", BLOB)
        world.delete("turned", "blob-1")
    back_up(world)
    world.record()


def back_up(world):
    body = {"folder": str(world.running.root / COPIES)}
    with world.ledger.trying({("backup",): "sound"}) as answer:
        outcome, lines = world.asking(answer, lambda: ask_for_backup(world, body))
        if outcome == YES and lines[-1]["event"] != "done":
            answer.status = json.dumps(lines[-1])
            answer.is_("doubt")


def ask_for_backup(world, body):
    return world.client.admin("POST", "/v1/backup", body)


def quotas(world):
    """Set, used up, raised and removed."""
    path = "/v1/quotas/bucket/worn"
    world.admin({("quota", "worn"): 50_000}, "PUT", path, {"bytes": 50_000})
    for number in range(4):
        world.put("worn", f"new-{number}", BLOB)
    world.admin({("quota", "worn"): 60_000}, "PUT", path, {"bytes": 60_000})
    world.put("worn", "after", BLOB)
    world.admin({("quota", "worn"): None}, "DELETE", path)
    world.put("worn", "unlimited", BLOB)
    world.record()


def unpack_museum(root, version):
    """A folder of an older format, as a version of then left it; facts and notes about it."""
    with tarfile.open(MUSEUM / f"system-{version}.tar.gz") as old:
        old.extractall(root, filter="data")
    notes_path = root / "access-keys.json"
    keys = json.loads(notes_path.read_text())
    notes_path.unlink()
    notes = {("key", name): tuple(key) for name, key in keys.items()}
    notes["key of level", "secret"] = notes["key", "ann"]
    facts = {
        ("bucket", "notes"): "default",
        ("bucket", "vault"): "secret",
        ("object", "notes", "small"): short(b"A small object."),
        ("object", "notes", "large"): short(LARGE),
        ("object", "vault", "plan"): short(b"plan"),
        ("receipt", "gone"): 1,
        ("source",): "file",
        ("authority",): short((root / "data/tls/ca.pem").read_bytes()),
        ("keys", "ann"): "active",
        ("signin", "ann"): True,
        ("signin", "bob"): True,
        ("signin", "eve"): None,
    }
    return facts, notes


def first_use(world):
    """The start has brought it to this version's format; its catalogs come with their use."""
    world.put("notes", "new", INLINE)
    world.put("notes", "small", BLOB)
    make_key(world, "ann", "ann-2", {})
    world.record()
