"""What is done to a server: every act there is, each upon the same folder.

A scene is a function of a [`World`] that has been started, named in [`SCENES`].
"""

import os
import signal
import threading
import time

from harness.custodian import ask_as

from .looking import short
from .world import World, body_of

IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

INLINE, BLOB = 300, 20_000

WRITERS = 8

ARRIVING = "arriving"
"""Where another server's bucket waits, beside the files of this one."""

LEVELS = {"secret": 2, "doomed": 3}


def furnish(world):
    """What every folder has before anything is done to it."""
    for name, rank in LEVELS.items():
        world.level(name, rank)
        give_key(world, name, rank)
    for name in ("ann", "bob", "cleo"):
        world.subject(name, "default", "s0")
    for name in ("custodian-1", "custodian-2"):
        world.subject(name, "default", "s0", ("key-custodian",))
    places = {"alpha": "default", "beta": "secret", "gone": "doomed"}
    places |= {"worn": "default", "empty": "default", "turned": "secret"}
    for name, level in places.items():
        world.bucket(name, level)
        if name != "empty":
            world.put(name, "inline", INLINE)
            world.put(name, "blob", BLOB)
    world.put("alpha", "old", BLOB)
    world.put("alpha", "tagged", INLINE, headers={"x-amz-tagging": "k=first"})
    for number in range(6):
        world.put("turned", f"blob-{number}", BLOB)
    upload = world.upload("alpha", "multipart")
    part = world.part("alpha", "multipart", upload, 1, BLOB)
    world.notes["upload"] = (upload, part)
    facts = {("source",): "file", ("authority",): short(world.running.ca.read_bytes())}
    with world.ledger.trying(facts) as answer:
        answer.is_("yes")
    world.record()


def give_key(world, level, rank):
    """A subject that may use a level."""
    holder = f"of-{level}"
    if world.subject(holder, level, f"s{rank}"):
        world.notes["key of level", level] = world.notes["key", holder]


def furnish_north(world):
    """Another server: a level, its export, and a bucket's folder, its id and what is in it."""
    world.level("north", 0)
    made = world.bucket("of-north", "north")
    for name, size_bytes in (("inline", INLINE), ("blob", BLOB)):
        world.put("of-north", name, size_bytes)
    facts = world.ledger.standing(world.ledger.log)
    held = {fact: values[0] for fact, values in facts.items() if fact[0] in ("object", "tags")}
    body = {"recipients": [RECIPIENT]}
    told = world.admin({("exports", "north"): 1}, "POST", "/v1/levels/north/export", body)
    return told["export"], made["id"], held


def first_start(world):
    """The first start, and the first things that are done."""
    facts = {("source",): "file", ("authority",): short(world.running.ca.read_bytes())}
    with world.ledger.trying(facts) as answer:
        answer.is_("yes")
    world.bucket("alpha")
    world.put("alpha", "inline", INLINE)
    world.put("alpha", "blob", BLOB)
    world.record()


def nothing(world):
    """A start."""
    world.record()


def puts(world):
    world.put("alpha", "new", INLINE)
    world.put("alpha", "new-blob", BLOB)
    world.put("alpha", "inline", BLOB)
    world.put("alpha", "blob", INLINE)
    world.put("alpha", "old", BLOB)
    world.put("alpha", "no-match", BLOB, headers={"if-none-match": "*"})
    world.put("alpha", "inline", INLINE, headers={"if-none-match": "*"})


def deletions(world):
    world.delete("alpha", "blob")
    world.put("alpha", "blob", BLOB)
    world.delete("alpha", "tagged")
    world.delete_many("alpha", ["inline", "old", "never"])
    world.tag("alpha", "blob", "second")
    world.tag("alpha", "blob", None)


def copies(world):
    world.copy("alpha", "old", "copied")
    world.copy("alpha", "old", "inline")
    world.tag("alpha", "tagged", "second")
    world.copy("alpha", "inline", "blob")


def renames(world):
    """To names that are free and to one that is taken, whose object goes."""
    names = [("tagged", "renamed"), ("old", "blob"), ("blob", "old"), ("inline", "renamed")]
    world.notes["renames"] = [world.rename("alpha", *pair) for pair in names]


def uploads(world):
    upload, part = world.notes["upload"]
    world.complete("alpha", "multipart", upload, part)
    upload = world.upload("alpha", "blob")
    if upload:
        part = world.part("alpha", "blob", upload, 1, INLINE)
        part = world.part("alpha", "blob", upload, 1, BLOB)
        world.complete("alpha", "blob", upload, part)
    upload = world.upload("alpha", "aborted")
    if upload:
        world.part("alpha", "aborted", upload, 1, BLOB)
        world.abort("alpha", "aborted", upload)


def writers(world, each=5):
    """Several at once, whose rows are committed together, into a new bucket."""
    world.bucket("busy")

    def work(own, number):
        for turn in range(each):
            name = f"writer-{number}-{min(turn, 3)}"
            own.put("busy", name, INLINE if turn == 1 else BLOB)

    side_by_side(world, work, WRITERS)


def side_by_side(world, work, count):
    """Calls `work` with a client of its own and a number, so many times at once."""
    threads = [
        threading.Thread(target=work, args=(companion(world), number)) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def companion(world):
    """Another client of the same server, with the same ledger."""
    own = World.__new__(World)
    own.running, own.ledger, own.count = world.running, world.ledger, 0
    own.client = type(world.client)(world.running)
    return own


def buckets(world):
    world.bucket("made")
    world.put("made", "inline", INLINE)
    world.drop_bucket("empty")
    world.bucket("empty", "secret")
    world.bucket("short-lived")
    world.drop_bucket("short-lived")


def levels(world):
    world.level("made", 5)
    world.bucket("in-made", "made")
    world.level("made-too", 6)
    world.record()


def erase_level(world):
    changes = gone(world, "gone") | level_gone("doomed")
    changes["receipt", "doomed"] = 1
    world.admin(changes, "POST", "/v1/levels/doomed/erase")
    world.record()


def gone(world, bucket):
    """A bucket and all that it holds."""
    facts = world.ledger.standing(world.ledger.log)
    held = {fact: None for fact in facts if fact[0] in ("object", "tags") and fact[1] == bucket}
    return held | {("bucket", bucket): None}


def level_gone(name):
    return {("level", name): None, ("generation", name): None, ("exports", name): None}


def erase_bucket(world):
    changes = gone(world, "worn") | {("receipt", "default"): 1}
    world.admin(changes, "POST", "/v1/buckets/worn/erase")
    world.record()


def rotations(world):
    with world.ledger.trying({("generation", "secret"): 2}) as answer:

        def rotate():
            return world.client.admin("POST", "/v1/levels/secret/rotate")

        # It is begun; that it has ended is told later.
        if world.asking(answer, rotate)[0] == "yes" and not wait_for_rotations(world):
            answer.is_("doubt")
    world.put("turned", "blob-1", BLOB)
    world.admin({}, "POST", "/v1/buckets/turned/rotate")
    world.put("turned", "blob-2", BLOB)
    wait_for_rotations(world)


def wait_for_rotations(world):
    """Whether all came to their end."""
    for _ in range(200):
        try:
            status, rows = world.client.admin("GET", "/v1/rotations")
        except OSError:
            return False
        failed = [row for row in rows if row.get("failure")] if status == 200 else True
        if failed or all(row.get("ended_at") for row in rows):
            return not failed
        time.sleep(0.02)
    return False


def subjects(world):
    world.subject("new", "default", "s0")
    change = {"disabled": True}
    told = {("subject", "ann"): "disabled s0 data-user 0", ("signin", "ann"): None}
    world.admin(told, "PATCH", "/v1/subjects/ann", change)
    told = {("subject", "bob"): None, ("signin", "bob"): None}
    world.admin(told, "DELETE", "/v1/subjects/bob")
    told = {("subject", "cleo"): "enabled s0 data-user,auditor 0"}
    world.admin(told, "PATCH", "/v1/subjects/cleo", {"roles": ["data-user", "auditor"]})
    told = {("subject", "ann"): "enabled s0 data-user 0", ("signin", "ann"): True}
    world.admin(told, "PATCH", "/v1/subjects/ann", {"disabled": False})
    world.record()


def keys(world):
    """An export, and an import of what was exported before its level was erased."""
    told = world.admin(
        {("exports", "doomed"): 1},
        "POST",
        "/v1/levels/doomed/export",
        {"recipients": [RECIPIENT]},
    )
    if told is None:
        return
    changes = level_gone("doomed") | gone(world, "gone") | {("receipt", "doomed"): 1}
    if world.admin(changes, "POST", "/v1/levels/doomed/erase") is None:
        return
    # The bucket's folder may still be there, and then comes back with its level.
    with world.ledger.trying({("bucket", "gone"): "returned"}):
        pass
    body = {"export": told["export"], "identity": IDENTITY, "as": "returned"}
    facts = {("level", "returned"): "s3 1 True", ("generation", "returned"): 1}
    world.admin(facts, "POST", "/v1/imports", body)
    world.record()


def imports(world):
    """A level of another server, and its bucket, whose folder comes later."""
    identity, export, bucket, held = IDENTITY, *world.notes["north"]
    facts = {("level", "arrived"): "s0 1 True", ("generation", "arrived"): 1}
    body = {"export": export, "identity": identity, "as": "arrived"}
    world.admin(facts, "POST", "/v1/imports", body)
    data = world.running.data
    facts = {("bucket", "of-north"): "arrived"} | held
    # From here on a start adopts it by itself.
    with world.ledger.trying(facts):
        pass
    os.rename(data / ARRIVING, data / "buckets" / bucket)
    world.running.marks.moved(data / ARRIVING, data / "buckets" / bucket)
    with world.ledger.trying(facts) as answer:

        def adopt():
            return world.client.admin("POST", "/v1/adoptions", {"id": bucket})

        outcome, told = world.asking(answer, adopt)
        if outcome == "yes" and told["state"] != "adopted":
            answer.is_("doubt")
    world.record()


def approvals(world):
    """With a level that takes two custodians: from then on much else takes two as well."""
    world.level("guarded", 4, approvals=2)
    give_key(world, "guarded", 4)
    world.bucket("watched", "guarded")
    world.put("watched", "blob", BLOB)
    changes = {("request", "guarded"): 1}
    told = world.admin(changes, "POST", "/v1/levels/guarded/erase")
    if told is None:
        return
    request = told["request"]["id"]
    world.admin({("request", "guarded"): None}, "DELETE", f"/v1/requests/{request}")
    told = world.admin(changes, "POST", "/v1/levels/guarded/erase")
    if told is None:
        return
    request = told["request"]["id"]
    changes = gone(world, "watched") | level_gone("guarded") | {("receipt", "guarded"): 1}
    # An approval that fails may have used the request up.
    used = world.ledger.trying({("request", "guarded"): None})
    with used as request_answer, world.ledger.trying(changes) as answer:
        if approve(world, request):
            request_answer.is_("yes")
            answer.is_("yes")
    world.record()


def approve(world, request):
    """Another custodian's command; whether it went well."""
    place = world.running
    place.folder = place.root.parent
    place.admin_endpoint = f"https://127.0.0.1:{place.admin_port}"
    words = ("request", "approve", request, "--yes", "--json")
    try:
        ask_as(place, world.notes["key", "custodian-1"], *words)
    except AssertionError:
        return False
    return True


def keystore(world):
    world.admin({}, "POST", "/v1/keystore/rotate")
    world.put("alpha", "after", INLINE)
    secret = "correct horse battery staple"
    body = {"to": "passphrase", "passphrase": secret}
    world.admin({("source",): "passphrase"}, "POST", "/v1/keystore/move", body)
    world.record()


def keystore_back(world):
    """To a passphrase and back to the file."""
    keystore(world)
    world.admin({("source",): "file"}, "POST", "/v1/keystore/move", {"to": "file"})
    world.put("beta", "after", INLINE)


def tidy(world):
    """Deletions have the log emptied after some seconds."""
    world.put("alpha", "new", INLINE)
    world.delete("alpha", "blob")
    time.sleep(5.6)
    world.put("alpha", "later", BLOB)


def shutdown(world):
    world.put("alpha", "new", INLINE)
    world.put("beta", "new-blob", BLOB)
    world.bucket("last")
    world.running.end(signal.SIGTERM)


def checkpoint(world):
    """More than a write-ahead log holds before it is copied: 16 MiB."""

    def work(own, number):
        for turn in range(300):
            own.put("alpha", f"filling-{number}-{turn % 8}", 15_000)

    side_by_side(world, work, 4)


def renewal(world):
    """A certificate is made anew at the start: the authority that clients know stays."""
    world.put("alpha", "new", INLINE)


__all__ = ["body_of"]
