"""Three gateways over one store while they are killed and paused, and the network to the store is
cut: one order explains all that clients were answered.

In each half minute clients use objects of its own, so that histories stay short enough to search.
`make test-cluster` runs it for ten minutes.
"""

import contextlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness.engines import Gateway, answered, client, url_at
from harness.linearizable import History, explain, least_unexplained
from harness.proxy import Proxy

CLIENTS = 4
OBJECTS = 8
SPAN_SECONDS = 30
BUCKET = "cluster"
ABSENT = ("absent",)
#: What a gateway says for sure that it did not do.
NOT_DONE = "not done"


def step(state, what, answer):
    """An object without versions: its state is its content, or that it is absent."""
    kind, *rest = what
    match kind:
        case "put":
            return (rest[0],)
        case "delete":
            return ABSENT
        case "create":
            if answer == "refused":
                return None if state == ABSENT else state
            if state == ABSENT:
                return (rest[0],)
            # In doubt: it may have been refused.
            return state if answer is None else None
        case "get":
            return state if answer in (None, state) else None
    raise AssertionError(f"{kind} is no call")


class Told:
    """What a client makes of an answer: none, where it is in doubt."""

    def __init__(self, gateways, key):
        # A client that waits for long would have few calls in its time.
        config = {"connect_timeout": 2, "read_timeout": 15}
        self.clients = [client(gateway, key, **config) for gateway in gateways]
        self.answers = 0

    def ask(self, chance, act):
        try:
            told = act(chance.choice(self.clients))
        except ClientError as error:
            code, message = (error.response["Error"][part] for part in ("Code", "Message"))
            told = {"NoSuchKey": ABSENT, "PreconditionFailed": "refused"}.get(code)
            if told is None and "does not serve now" in message and "in doubt" not in message:
                told = NOT_DONE
        except Exception:
            told = None
        self.answers += told not in (None, NOT_DONE)
        if told in (None, NOT_DONE):
            # Calls in doubt may stand anywhere: hundreds of them are no history to search.
            time.sleep(0.5)
        return told


def work(told, histories, lock, seed, end):
    chance, number = random.Random(seed), 0
    began = time.monotonic()
    while time.monotonic() < end:
        number += 1
        span = int((time.monotonic() - began) / SPAN_SECONDS)
        name, content = f"{span}-{chance.randrange(OBJECTS)}", f"{seed}-{number}"
        with lock:
            history = histories.setdefault(name, History())
        where = {"Bucket": BUCKET, "Key": name}

        def put(s3, where=where, content=content, **condition):
            s3.put_object(**where, Body=content.encode(), **condition)
            return "done"

        def get(s3, where=where):
            return (s3.get_object(**where)["Body"].read().decode(),)

        def delete(s3, where=where):
            s3.delete_object(**where)
            return "done"

        kind = chance.choice(["put", "put", "get", "get", "get", "create", "delete"])
        what, act = {
            "put": (("put", content), put),
            "get": (("get",), get),
            "create": (("create", content), lambda s3, put=put: put(s3, IfNoneMatch="*")),
            "delete": (("delete",), delete),
        }[kind]
        history.call(what, lambda act=act: told.ask(chance, act))
        time.sleep(chance.random() * 0.2)


def trouble(gateways, chance, end):
    """What happened, in order."""
    happened = []
    while time.monotonic() < end:
        time.sleep(2 + chance.random() * 4)
        gateway = chance.choice(gateways)
        if chance.random() < 0.5:
            happened.append("kill")
            gateway.kill()
            time.sleep(chance.random() * 3)
            # Its store may be cut off just then.
            for _ in range(5):
                with contextlib.suppress(Exception):
                    gateway.start()
                    break
        else:
            happened.append("pause")
            gateway.pause()
            time.sleep(1 + chance.random() * 10)
            gateway.go_on()
    return happened


@pytest.mark.timeout(1200)
def test_one_order_explains_all_answers(tmp_path, store, request):
    seconds = request.config.getoption("--cluster-seconds")
    seed = request.config.getoption("--cluster-seed")
    chance = random.Random(seed)
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(Proxy(store.port, cuts=0.1, seed=seed))
        url = url_at(store).replace(f":{store.port}", f":{proxy.port}")
        gateways = [
            stack.enter_context(Gateway(tmp_path / f"gateway-{number}", url)) for number in range(3)
        ]
        key = gateways[0].credentials()
        answered(lambda: client(gateways[1], key).create_bucket(Bucket=BUCKET), 20)
        told, histories, lock = Told(gateways, key), {}, threading.Lock()
        end = time.monotonic() + seconds
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [
                pool.submit(work, told, histories, lock, 100 * seed + number, end)
                for number in range(CLIENTS)
            ]
            happened = trouble(gateways, chance, end)
            for done in clients:
                done.result()
        # Whatever happened, it serves again by itself.
        for gateway in gateways:
            if gateway.process is None:
                gateway.start(60)
        answered(lambda: client(gateways[0], key).list_objects_v2(Bucket=BUCKET), 60)
        # What is there at the end is what the last of an explanation left.
        for name, history in histories.items():
            history.call(("get",), lambda name=name: final(gateways[1], key, name))
        for gateway in gateways:
            assert "panicked" not in gateway.log()
    assert len(happened) >= seconds / 25 and told.answers > seconds, (happened, told.answers)
    for name, history in histories.items():
        history.calls = [call for call in history.calls if says_something(call)]
        if explain(history.calls, ABSENT, step) is None:
            shortest = least_unexplained(history.calls, ABSENT, step) or history.calls
            lines = [f"{c.sent:.3f} to {c.answered:.3f}: {c.what} -> {c.answer}" for c in shortest]
            pytest.fail(f"no order explains {name} (seed {seed}):\n" + "\n".join(lines))


def says_something(call):
    """Not so a read without an answer, or what was not done."""
    is_read = call.what[0] == "get"
    return call.answer != NOT_DONE and not (is_read and call.answer is None)


def final(gateway, key, name):
    def ask():
        s3 = client(gateway, key)
        try:
            return (s3.get_object(Bucket=BUCKET, Key=name)["Body"].read().decode(),)
        except s3.exceptions.NoSuchKey:
            return ABSENT

    return answered(ask, 60)[1]
