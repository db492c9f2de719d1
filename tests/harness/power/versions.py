"""Acts on versions and what locks them, and on rules by which objects end.

What they make is looked at as `looking.py` says.
"""

import time
from datetime import UTC, datetime, timedelta

from harness import raw
from harness.server import ROOT

from .acts import BLOB, INLINE, side_by_side
from .looking import short
from .world import YES, body_of

QUICK_DAYS = ("--config", str(ROOT / "tests/power/quick-days.toml"))

MARKER = "marker"


def after(days):
    """A day to come, as locks have it."""
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT00:00:00Z")


def tried(world, bucket, name, what):
    """Notes what may be found as a version of an object."""
    world.notes.setdefault(("tried", bucket, name), set()).add(what)


def make(world, bucket, *, lockable=False):
    """A bucket that keeps versions, of which none is there that was never asked for: whether it is
    certain that it is one."""
    told = [world.bucket(bucket) is not None]
    versioning = configure(world, bucket, "versioning", "<Status>Enabled</Status>", "Versioning")
    told.append(versioning == YES)
    if lockable:
        enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>"
        told.append(configure(world, bucket, "object-lock", enabled, "ObjectLock") == YES)
    with world.ledger.trying({("versions", bucket): "known"}) as answer:
        answer.is_(YES)
    return all(told)


def configure(world, bucket, query, text, kind):
    body = f"<{kind}Configuration>{text}</{kind}Configuration>".encode()
    with world.ledger.trying({}) as answer:

        def ask():
            return world.s3(bucket, "PUT", f"/{bucket}", query=f"{query}=", body=body)

        return world.asking(answer, ask)[0]


def put(world, bucket, name, size_bytes, *, mode=None, until=None):
    """Puts a version, with a lock if one is given; its id, if that is known."""
    world.count += 1
    body = body_of(size_bytes, f"{bucket}/{name}/{world.count}")
    tried(world, bucket, name, short(body))
    changes, locks, heads = {("object", bucket, name): short(body)}, {}, []
    if mode:
        locks["x-amz-object-lock-mode"] = mode
        locks["x-amz-object-lock-retain-until-date"] = until
        locks |= raw.md5_of(body)
    with world.ledger.trying(changes) as answer:

        def ask():
            answered = world.s3(bucket, "PUT", f"/{bucket}/{name}", body=body, headers=locks)
            heads.append(answered[1])
            return answered

        if world.asking(answer, ask)[0] != YES:
            return None
        version = heads[0].get("x-amz-version-id")
        if version:
            more = {("version", bucket, name, version): short(body)}
            if mode:
                more["retention", bucket, name, version] = f"{mode} {until[:10]}"
            answer.is_(YES, more=more)
        return version


def hide(world, bucket, name):
    """Deletes the newest version behind a marker; the marker's id, if that is known."""
    tried(world, bucket, name, MARKER)
    heads = []
    with world.ledger.trying({("object", bucket, name): None}) as answer:

        def ask():
            answered = world.s3(bucket, "DELETE", f"/{bucket}/{name}")
            heads.append(answered[1])
            return answered

        if world.asking(answer, ask)[0] != YES:
            return None
        marker = heads[0].get("x-amz-version-id")
        if marker:
            answer.is_(YES, more={("version", bucket, name, marker): MARKER})
        return marker


def remove(world, bucket, name, version, *, shows=None, bypasses=False):
    """Removes a version for good; `shows`: what the object is then, where that changes."""
    if version is None:
        return
    changes = {("version", bucket, name, version): None}
    if ("retention", bucket, name, version) in world.ledger.standing(world.ledger.log):
        changes["retention", bucket, name, version] = None
    if shows:
        changes["object", bucket, name] = shows
    headers = {"x-amz-bypass-governance-retention": "true"} if bypasses else {}
    with world.ledger.trying(changes) as answer:
        query = f"versionId={version}"

        def ask():
            return world.s3(bucket, "DELETE", f"/{bucket}/{name}", query=query, headers=headers)

        world.asking(answer, ask)


def retain(world, bucket, name, version, mode, until):
    if version is None:
        return
    text = f"<Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate>"
    changes = {("retention", bucket, name, version): f"{mode} {until[:10]}"}
    set_lock(world, (bucket, name, version), "retention", f"<Retention>{text}</Retention>", changes)


def hold(world, bucket, name, version, status):
    if version is None:
        return
    text = f"<LegalHold><Status>{status}</Status></LegalHold>"
    changes = {("hold", bucket, name, version): "ON" if status == "ON" else None}
    set_lock(world, (bucket, name, version), "legal-hold", text, changes)


def set_lock(world, place, query, text, changes):
    bucket, name, version = place
    with world.ledger.trying(changes) as answer:
        query = f"{query}=&versionId={version}"

        def ask():
            path = f"/{bucket}/{name}"
            return world.s3(bucket, "PUT", path, query=query, body=text.encode())

        world.asking(answer, ask)


def try_to_erase(world, bucket):
    """Asks for an erase that a lock stops, where one certainly stands that gives way to nothing."""
    for (kind, *place), values in world.ledger.standing(list(world.ledger.log)).items():
        is_strict = kind in ("retention", "hold") and place[0] == bucket
        if is_strict and all(str(value).startswith(("COMPLIANCE", "ON")) for value in values):
            world.admin({}, "POST", f"/v1/buckets/{bucket}/erase")
            return


def versions(world):
    """Puts over, deletions behind markers, and of versions and markers."""
    if not make(world, "kept"):
        return
    older = put(world, "kept", "a", BLOB)
    newer = put(world, "kept", "a", INLINE)
    shown = world.ledger.standing(world.ledger.log).get(("object", "kept", "a"))
    marker = hide(world, "kept", "a")
    if newer and len(shown) == 1:
        remove(world, "kept", "a", marker, shows=shown[0])
    remove(world, "kept", "a", older)
    hide(world, "kept", "a")
    put(world, "kept", "a", BLOB)

    def work(own, number):
        for turn in range(3):
            put(own, "kept", f"writer-{number}", BLOB if turn % 2 else INLINE)
        hide(own, "kept", f"writer-{number}")

    side_by_side(world, work, 4)
    configure(world, "kept", "versioning", "<Status>Suspended</Status>", "Versioning")
    put(world, "kept", "b", BLOB)
    put(world, "kept", "b", INLINE)


def locks(world):
    """Locks of all kinds: set, made longer, passed over, and counted by erases that they stop."""
    if not make(world, "locked", lockable=True):
        return
    first = put(world, "locked", "a", BLOB, mode="GOVERNANCE", until=after(9))
    retain(world, "locked", "a", first, "GOVERNANCE", after(40))
    put(world, "locked", "a", INLINE)
    held = put(world, "locked", "b", BLOB)
    hold(world, "locked", "b", held, "ON")
    try_to_erase(world, "locked")
    strict = put(world, "locked", "c", INLINE, mode="COMPLIANCE", until=after(9))
    retain(world, "locked", "c", strict, "COMPLIANCE", after(90))
    hold(world, "locked", "b", held, "OFF")
    try_to_erase(world, "locked")
    remove(world, "locked", "a", first, bypasses=True)

    def work(own, number):
        put(own, "locked", f"d-{number}", INLINE, mode="COMPLIANCE", until=after(10 + number))
        try_to_erase(own, "locked")

    side_by_side(world, work, 4)
    try_to_erase(world, "locked")
    put(world, "locked", "e", BLOB, mode="COMPLIANCE", until=after(200))
    hide(world, "locked", "e")


RULES = {
    "aging": "<Expiration><Days>1</Days></Expiration>",
    "layers": (
        "<Expiration><Days>1</Days></Expiration><NoncurrentVersionExpiration>"
        "<NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>"
    ),
}


def lifecycle(world):
    """What rules end is whole or gone, and gone for good once that was seen; locks stand."""
    world.bucket("aging")
    names = [f"object-{number}" for number in range(8)]
    for number, name in enumerate(names):
        world.put("aging", name, BLOB if number % 2 else INLINE)
    end(world, "aging", {("object", "aging", name): None for name in names})

    if not make(world, "layers", lockable=True):
        return
    kept = put(world, "layers", "kept", BLOB, mode="COMPLIANCE", until=after(30))
    ended = {}
    for name in ("kept", "a", "b"):
        for size_bytes in (BLOB, INLINE):
            version = put(world, "layers", name, size_bytes)
            if version:
                ended["version", "layers", name, version] = None
        tried(world, "layers", name, MARKER)
        ended["object", "layers", name] = None
    if kept:
        end(world, "layers", ended)


def end(world, bucket, changes):
    """Sets rules, and waits until all that they end is seen to be gone."""
    filled = "<Filter><Prefix></Prefix></Filter><Status>Enabled</Status>"
    rule = f"<Rule><ID>all</ID>{filled}{RULES[bucket]}</Rule>"
    with world.ledger.trying(changes, apart=True) as answer:
        if configure(world, bucket, "lifecycle", rule, "Lifecycle") != YES:
            return
        gone = all_gone(world, changes)
        if gone:
            answer.is_(YES)


def all_gone(world, facts, seconds=12):
    """Whether none of these is there any more, within some seconds."""
    stop = time.monotonic() + seconds
    left = list(facts)
    while left and time.monotonic() < stop:
        time.sleep(0.2)
        try:
            left = [fact for fact in left if is_there(world, *fact)]
        except OSError:
            return False
    return not left


def is_there(world, kind, bucket, name, version=None):
    query = f"versionId={version}" if version else ""
    return world.s3(bucket, "HEAD", f"/{bucket}/{name}", query=query)[0] != 404
