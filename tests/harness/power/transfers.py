"""Uploads that arrive sealed: at the data port first, and then in a commit without a body."""

import http.client
import json

from harness.sealed import seal

from .acts import BLOB
from .looking import short
from .world import YES, body_of

DATA_PORT = ("--data-listen", "127.0.0.1:0")

LARGE = 300_000
"""More than one write of a blob."""


def sealed_puts(world):
    """Objects and a part; what is announced or has come, and is never committed, leaves nothing."""
    body = {"name": "open", "rank": 0, "same_label": True, "sealed_transfer": True}
    facts = {("level", "open"): "s0 1 False", ("generation", "open"): 1, ("exports", "open"): 0}
    world.admin(facts, "POST", "/v1/levels", body)
    world.notes["key of level", "open"] = world.client.credentials()
    world.bucket("sealed", "open")
    for name, size_bytes in (("new", BLOB), ("large", LARGE), ("new", BLOB + 1)):
        put(world, name, size_bytes)
    arrive(world, "left", body_of(BLOB, "left"))
    upload = world.upload("sealed", "parts")
    if upload:
        query = f"partNumber=1&uploadId={upload}"
        changes = {("upload", "sealed", "parts", upload): str(BLOB)}
        content, tag = put(world, "parts", BLOB, query=query, changes=changes)
        if tag:
            world.complete("sealed", "parts", upload, (tag, content))


def put(world, name, size_bytes, *, query="", changes=None):
    """Puts an object, or a part; its bytes, and its entity tag if that is known."""
    world.count += 1
    content = body_of(size_bytes, f"sealed/{name}/{world.count}")
    ticket = arrive(world, name, content, query)
    if ticket is None:
        return content, None
    tags = []

    def commit():
        headers = {"x-coffer-transfer": ticket}
        answered = world.s3("sealed", "PUT", f"/sealed/{name}", query=query, headers=headers)
        tags.append(answered[1].get("etag"))
        return answered

    made = {("object", "sealed", name): short(content), ("tags", "sealed", name): None}
    with world.ledger.trying(changes or made) as answer:
        world.asking(answer, commit)
    return content, (tags or [None])[0]


def arrive(world, name, content, query=""):
    """Announces an upload and sends it: of that nothing is seen. The ticket, if it has come."""
    announced = "coffer-transfer=" + (f"&{query}" if query else "")
    length = {"x-coffer-transfer-length": str(len(content))}

    def announce():
        return world.s3("sealed", "POST", f"/sealed/{name}", query=announced, headers=length)

    with world.ledger.trying({}) as answer:
        outcome, told = world.asking(answer, announce)
    document = json.loads(told) if outcome == YES else {}
    if document.get("transfer") != "sealed":
        return None

    def send():
        port = http.client.HTTPConnection("127.0.0.1", document["port"], timeout=20)
        try:
            port.request("PUT", f"/transfer/{document['ticket']}", body=seal(document, content))
            status = port.getresponse()
            return status.status, status.read()
        finally:
            port.close()

    with world.ledger.trying({}) as answer:
        outcome, _ = world.asking(answer, send)
    return document["ticket"] if outcome == YES else None
