"""Races of puts, conditional puts, deletes and lifecycle rules: one order explains all answers.

Each object is a history of its own. What a bucket without versions does is told by `plain`, what
one with versions does by `versioned`; the checker is tried on histories without explanation too.
"""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness.clients import s3_client
from harness.lifecycle import rule, set_rules
from harness.linearizable import Call, History, explain, least_unexplained

CLIENTS = 6
CALLS = 14
OBJECTS = 6
ABSENT = ("absent",)

# What a call may be answered with that is no success.
SAID = {
    "NoSuchKey": "absent",
    "404": "absent",
    "PreconditionFailed": "refused",
    "412": "refused",
    "ConditionalRequestConflict": "conflict",
    "409": "conflict",
}


def answered(ask):
    """What was said: `ok` and what came with it, or a word for the refusal."""
    try:
        return ("ok", ask())
    except ClientError as error:
        code = error.response["Error"]["Code"]
        assert code in SAID, error
        return (SAID[code], None)


def plain(state, what, answer):
    """An object without versions: its state is its content, or `None`."""
    kind, *rest = what
    word, came = answer or (None, None)
    if word == "conflict":
        # Another was faster: nothing was done.
        return state
    match kind:
        case "put":
            return (rest[0],) if word in (None, "ok") else None
        case "delete" | "expire":
            return ABSENT if word in (None, "ok") else None
        case "get":
            expected = ("absent", None) if state == ABSENT else ("ok", state[0])
            return state if answer in (None, expected) else None
        case "create":
            if state == ABSENT:
                return (rest[0],) if word in (None, "ok") else None
            return state if word in (None, "refused") else None
        case "replace":
            old, new = rest
            if state == (old,):
                return (new,) if word in (None, "ok") else None
            expected = "absent" if state == ABSENT else "refused"
            return state if word in (None, expected) else None
        case "delete-if":
            if state == (rest[0],):
                return ABSENT if word in (None, "ok") else None
            expected = "absent" if state == ABSENT else "refused"
            return state if word in (None, expected) else None
    raise AssertionError(f"{kind} is no call; {came}")


def versioned(state, what, answer):
    """An object with versions: a tuple of ids and contents, the newest last; markers have none.

    Ids are the server's, so a write is explained only where its answer told the id.
    """
    kind, *rest = what
    word, came = answer
    newest = state[-1][1] if state else None
    match kind:
        case "put":
            return (*state, (came, rest[0])) if word == "ok" else None
        case "create":
            if newest is None:
                return (*state, (came, rest[0])) if word == "ok" else None
            return state if word in ("refused", "conflict") else None
        case "delete":
            return (*state, (came, None)) if word == "ok" else None
        case "remove":
            return tuple(row for row in state if row[0] != rest[0]) if word == "ok" else None
        case "get":
            return (
                state
                if answer == (("absent", None) if newest is None else ("ok", newest))
                else None
            )
        case "list":
            return state if came == frozenset(row[0] for row in state) else None
    raise AssertionError(f"{kind} is no call")


def holds(history, start, step):
    """Fails with the shortest history that has no explanation."""
    if explain(history.calls, start, step) is not None:
        return
    shortest = least_unexplained(history.calls, start, step) or history.calls
    lines = [f"{c.sent:.6f} to {c.answered:.6f}: {c.what} -> {c.answer}" for c in shortest]
    pytest.fail("no order of these calls explains their answers:\n" + "\n".join(lines))


def race(work, seed):
    """Runs `work` for several clients at once, each with its own chance."""
    ready = threading.Barrier(CLIENTS)

    def one(client):
        chance = random.Random(seed * 1000 + client)
        ready.wait()
        for number in range(CALLS):
            work(chance, f"{client}-{number}")

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(one, client) for client in range(CLIENTS)]:
            done.result()


def test_the_checker_tells_right_from_wrong():
    both = [
        Call(("put", "a"), ("ok", None), 0, 2),
        Call(("put", "b"), ("ok", None), 1, 3),
    ]
    for last in "ab":
        assert explain([*both, Call(("get",), ("ok", last), 4, 5)], ABSENT, plain)
    stale = Call(("get",), ("absent", None), 4, 5)
    assert explain([*both, stale], ABSENT, plain) is None
    back = [Call(("get",), ("ok", "b"), 4, 5), Call(("get",), ("ok", "a"), 6, 7)]
    assert explain([*both, *back], ABSENT, plain) is None
    twice = [Call(("create", name), ("ok", None), 0, 1) for name in "ab"]
    assert explain(twice, ABSENT, plain) is None
    doubt = [Call(("put", "a"), None, 0), Call(("get",), ("ok", "a"), 5, 6)]
    assert explain(doubt, ABSENT, plain)
    assert explain([doubt[0], Call(("get",), ("absent", None), 5, 6)], ABSENT, plain)
    lost = [Call(("put", "x"), ("ok", "1"), 0, 1), Call(("list",), ("ok", frozenset()), 2, 3)]
    assert explain(lost, (), versioned) is None


@pytest.mark.parametrize("seed", range(2))
def test_an_object_without_versions(s3, bucket, seed):
    histories = {f"object-{number}": History() for number in range(OBJECTS)}
    tags = {}

    def work(chance, content):
        name = chance.choice(list(histories))
        where = {"Bucket": bucket, "Key": name}
        kind = chance.choice(
            ["put", "put", "get", "get", "create", "replace", "delete", "delete-if"]
        )
        # An entity tag that somebody has seen, and what it stands for.
        old = chance.choice(list(tags.items()) or [("0", "none")])

        def put(**condition):
            tag = s3.put_object(**where, Body=content.encode(), **condition)["ETag"]
            tags[tag] = content

        def get():
            return s3.get_object(**where)["Body"].read().decode()

        what, ask = {
            "put": (("put", content), put),
            "get": (("get",), get),
            "create": (("create", content), lambda: put(IfNoneMatch="*")),
            "replace": (("replace", old[1], content), lambda: put(IfMatch=old[0])),
            "delete": (("delete",), lambda: s3.delete_object(**where) and None),
            "delete-if": (
                ("delete-if", old[1]),
                lambda: s3.delete_object(**where, IfMatch=old[0]) and None,
            ),
        }[kind]
        histories[name].call(what, lambda: answered(ask))

    race(work, seed)
    assert sum(len(history.calls) for history in histories.values()) == CLIENTS * CALLS
    for history in histories.values():
        holds(history, ABSENT, plain)


def test_an_object_with_versions(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    histories = {f"object-{number}": History() for number in range(OBJECTS)}
    made = {name: [] for name in histories}

    def work(chance, content):
        name = chance.choice(list(histories))
        where = {"Bucket": bucket, "Key": name}
        kind = chance.choice(["put", "put", "create", "delete", "remove", "get", "list"])

        def put(**condition):
            version = s3.put_object(**where, Body=content.encode(), **condition)["VersionId"]
            made[name].append(version)
            return version

        def delete():
            return s3.delete_object(**where)["VersionId"]

        def listed():
            page = s3.list_object_versions(Bucket=bucket, Prefix=name)
            rows = page.get("Versions", []) + page.get("DeleteMarkers", [])
            return frozenset(row["VersionId"] for row in rows)

        def get():
            return s3.get_object(**where)["Body"].read().decode()

        victim = chance.choice(made[name] or [None])
        if kind == "remove" and victim is None:
            kind = "get"
        what, ask = {
            "put": (("put", content), put),
            "create": (("create", content), lambda: put(IfNoneMatch="*")),
            "delete": (("delete",), delete),
            "remove": (
                ("remove", victim),
                lambda: s3.delete_object(**where, VersionId=victim) and None,
            ),
            "get": (("get",), get),
            "list": (("list",), listed),
        }[kind]
        histories[name].call(what, lambda: answered(ask))

    race(work, 7)
    for history in histories.values():
        holds(history, (), versioned)


def test_lifecycle_ends_objects_as_a_delete_would(own_server):
    """A rule is due at each of the short days: what it ends stays away, what is newer stays."""
    server = own_server(config="lifecycle-day-seconds = 1\n").start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="races")
    set_rules(s3, "races", rule(Expiration={"Days": 1}))
    histories = {f"object-{number}": History() for number in range(3)}
    end = time.monotonic() + 5

    def put(name, content):
        def ask():
            return s3.put_object(Bucket="races", Key=name, Body=content.encode()) and None

        histories[name].call(("put", content), lambda: answered(ask))

    def get(name):
        def ask():
            return s3.get_object(Bucket="races", Key=name)["Body"].read().decode()

        histories[name].call(("get",), lambda: answered(ask))

    def one(client):
        chance, number = random.Random(client), 0
        while time.monotonic() < end:
            name, number = chance.choice(list(histories)), number + 1
            if chance.random() < 0.4:
                put(name, f"{client}-{number}")
            else:
                get(name)
            time.sleep(chance.random() * 0.15)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(one, client) for client in range(4)]:
            done.result()
    for history in histories.values():
        puts = sorted(c.answered for c in history.calls if c.what[0] == "put")
        # The server's own deletions: when they were is not known, only that they may have been.
        expiries = [Call(("expire",), None, sent) for sent in puts[-12:]]
        holds(History(history.calls + expiries), ABSENT, plain)
    deadline = time.monotonic() + 20
    while s3.list_objects_v2(Bucket="races")["KeyCount"] and time.monotonic() < deadline:
        time.sleep(0.2)
    assert s3.list_objects_v2(Bucket="races")["KeyCount"] == 0
