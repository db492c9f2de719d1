"""Every operation of the administration API, asked for by every role."""

import base64
import contextlib
import http.client
import json
import time

import pytest

from harness.administration import ask, make_subject, run
from harness.raw import tls_context
from harness.server import ROOT

DATA_USER, ADMINISTRATOR = "data-user", "system-administrator"
CUSTODIAN, AUDITOR = "key-custodian", "auditor"
ROLES = (DATA_USER, ADMINISTRATOR, CUSTODIAN, AUDITOR)
ANYBODY = frozenset(ROLES)

# Well-formed, and about nothing that is there: whoever may do it is told so.
NOBODY = "0" * 32
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"

# Who may, by `operationId`, and what is sent: values of parameters in the path, and a body.
OPERATIONS = {
    "adopt_bucket": ({CUSTODIAN}, {}, {"id": NOBODY}),
    "read_audit": ({AUDITOR}, {}, None),
    "follow_audit": ({AUDITOR}, {}, None),
    "verify_audit": ({AUDITOR}, {}, {}),
    "list_buckets": (ANYBODY, {}, None),
    "create_bucket": ({ADMINISTRATOR}, {}, {"name": "bucket-of-{role}"}),
    "show_bucket": (ANYBODY, {"name": "kept"}, None),
    "delete_bucket": ({ADMINISTRATOR}, {"name": "empty-for-{role}"}, None),
    "erase_bucket": ({CUSTODIAN}, {"name": "doomed-for-{role}"}, None),
    "rotate_bucket": ({CUSTODIAN}, {"name": "kept"}, None),
    "import_level": ({CUSTODIAN}, {}, {"export": "no export", "identity": IDENTITY}),
    "show_keystore": ({CUSTODIAN, AUDITOR}, {}, None),
    "move_keystore": ({CUSTODIAN}, {}, {"to": "file"}),
    "rotate_root": ({CUSTODIAN}, {}, None),
    "list_levels": (ANYBODY, {}, None),
    "create_level": ({CUSTODIAN}, {}, {"name": "level-of-{role}", "rank": 1}),
    "show_level": (ANYBODY, {"name": "default"}, None),
    "erase_level": ({CUSTODIAN}, {"name": "doomed-for-{role}"}, None),
    "export_level": ({CUSTODIAN}, {"name": "default"}, {"recipients": [RECIPIENT]}),
    "rotate_level": ({CUSTODIAN}, {"name": "default"}, None),
    "show_receipt_key": (ANYBODY, {}, None),
    "list_receipts": ({AUDITOR, CUSTODIAN}, {}, None),
    "show_receipt": ({AUDITOR, CUSTODIAN}, {"id": NOBODY}, None),
    "list_requests": ({AUDITOR, CUSTODIAN}, {}, None),
    "withdraw_request": ({CUSTODIAN}, {"id": NOBODY}, None),
    "approve_request": ({CUSTODIAN}, {"id": NOBODY}, None),
    "list_rotations": ({AUDITOR, CUSTODIAN}, {}, None),
    "list_subjects": (ANYBODY, {}, None),
    "create_subject": (
        {ADMINISTRATOR}, {}, {"name": "made-by-{role}", "clearance": "default"},
    ),
    "show_subject": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, None),
    "delete_subject": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, None),
    "change_subject": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, {"roles": list(ROLES)}),
    "verify": ({ADMINISTRATOR}, {}, {}),
}  # fmt: skip

# Under which name it stands in the audit log. What anybody may do, or what tells somebody without
# the role that there is no such thing, has none.
ACTS = {
    "adopt_bucket": "bucket.adopt",
    "read_audit": "audit.read",
    "follow_audit": "audit.read",
    "verify_audit": "audit.verify",
    "create_bucket": "bucket.create",
    "delete_bucket": "bucket.delete",
    "erase_bucket": "bucket.erase",
    "rotate_bucket": "bucket.rotate",
    "import_level": "key.import",
    "show_keystore": "keystore.status",
    "move_keystore": "keystore.move",
    "rotate_root": "keystore.rotate",
    "create_level": "level.create",
    "erase_level": "level.erase",
    "export_level": "key.export",
    "rotate_level": "level.rotate",
    "list_receipts": "receipt.show",
    "show_receipt": "receipt.show",
    "list_requests": "request.list",
    "withdraw_request": "request.withdraw",
    "approve_request": "request.approve",
    "list_rotations": "rotation.list",
    "create_subject": "subject.create",
    "delete_subject": "subject.delete",
    "change_subject": "subject.change",
    "verify": "storage.verify",
}

# They change something, or try to where there is nothing to be changed.
CHANGING = {
    "adopt_bucket", "create_bucket", "delete_bucket", "erase_bucket", "rotate_bucket",
    "import_level", "move_keystore", "rotate_root", "create_level", "erase_level", "export_level",
    "rotate_level", "create_subject", "delete_subject", "change_subject", "verify",
}  # fmt: skip

# Denials are recorded within a second.
RECORDED_SECONDS = 5


def described():
    """Method and path by `operationId`."""
    paths = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    return {
        operation["operationId"]: (method.upper(), path)
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


DESCRIBED = described()


@pytest.fixture(scope="module")
def credentials(server):
    """One subject a role, and what each may try to destroy."""
    run(server, "bucket", "create", "kept")
    made = {}
    for role in ROLES:
        run(server, "level", "create", f"doomed-for-{role}", "--rank", "0")
        for kind in ("empty", "doomed"):
            run(server, "bucket", "create", f"{kind}-for-{role}")
        make_subject(server, f"victim-of-{role}", "default")
        made[role] = make_subject(server, f"attacks.{role}", "default", "--roles", role)
    return made


def filled(value, role):
    """A value with the role's name put in."""
    if isinstance(value, dict):
        return {name: filled(inner, role) for name, inner in value.items()}
    return value.replace("{role}", role) if isinstance(value, str) else value


@contextlib.contextmanager
def answer(server, operation, credentials, values, body):
    """The answer to an operation that is asked for with an access key. It may have no end."""
    method, path = DESCRIBED[operation]
    path = path.format(**values)
    headers = {}
    if credentials:
        user = base64.b64encode(":".join(credentials).encode()).decode()
        headers["Authorization"] = f"Basic {user}"
    if body is not None:
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.admin_port, context=tls_context(server), timeout=30
    )
    try:
        connection.request(method, path, body, headers)
        yield connection.getresponse()
    finally:
        connection.close()


def status_of(server, operation, credentials, role):
    _, values, body = OPERATIONS[operation]
    with answer(
        server, operation, credentials, filled(values, role), filled(body, role)
    ) as answered:
        return answered.status


def answer_of(server, operation, credentials, values, body=None):
    with answer(server, operation, credentials, values, body) as answered:
        said = answered.read()
        assert answered.status in (200, 202), (operation, said)
        return said


def recorded(server):
    return [json.loads(line) for line in run(server, "audit", "export").splitlines()]


def missing_records(server, expected):
    """Of acts, outcomes and actors: those that the audit log does not have, nor gets soon."""
    end = time.monotonic() + RECORDED_SECONDS
    while True:
        found = {(one["act"], one["outcome"], one["actor"]) for one in recorded(server)}
        missing = sorted(set(expected) - found)
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(0.2)


def state(server):
    """All that an act could have changed."""
    return {
        "levels": ask(server, "level", "list"),
        "buckets": [bucket["name"] for bucket in ask(server, "bucket", "list")],
        "subjects": ask(server, "subject", "list"),
        "keystore": ask(server, "keystore", "status"),
        "receipts": ask(server, "receipt", "list"),
        "requests": ask(server, "request", "list"),
    }


def test_the_table_holds_every_operation():
    assert set(OPERATIONS) == set(DESCRIBED)


def test_nobody_without_the_role_changes_anything(server, credentials):
    before = state(server)
    allowed = []
    for operation, (may, _, _) in OPERATIONS.items():
        for role in set(ROLES) - set(may):
            status = status_of(server, operation, credentials[role], role)
            # What one may not know of does not exist.
            if status not in (403, 404):
                allowed.append((operation, role, status))
    assert allowed == []
    assert state(server) == before
    denied = [
        (ACTS[operation], "denied", credentials[role][0])
        for operation, (may, _, _) in OPERATIONS.items()
        for role in set(ROLES) - set(may)
        if operation in ACTS
    ]
    assert missing_records(server, denied) == []


def test_a_stranger_does_nothing(server, credentials):
    before = state(server)
    statuses = {name: status_of(server, name, None, ADMINISTRATOR) for name in OPERATIONS}
    assert set(statuses.values()) == {401}, statuses
    assert state(server) == before


def test_whoever_has_the_role_is_let_in(server, credentials):
    """So the refusals above are not for another reason."""
    refused = []
    for operation, (may, _, _) in OPERATIONS.items():
        for role in sorted(may):
            status = status_of(server, operation, credentials[role], role)
            if status in (401, 403, 405) or status >= 500:
                refused.append((operation, role, status))
    assert refused == []
    acted = [
        (ACTS[operation], credentials[role][0])
        for operation in CHANGING
        for role in OPERATIONS[operation][0]
    ]
    assert missing_records(server, [(act, "begun", actor) for act, actor in acted]) == []
    found = recorded(server)
    ended = {(one["act"], one["actor"]) for one in found if one["outcome"] in ("done", "failed")}
    assert set(acted) - ended == set()


def test_what_custodians_do_is_told_by_name(own_server):
    server = own_server().start()
    run(server, "level", "create", "guarded", "--rank", "1", "--approvals", "2")
    roles = ("--roles", CUSTODIAN)
    one, other = (make_subject(server, name, "default", *roles) for name in ("one", "other"))
    place = {"name": "guarded"}
    answer_of(server, "export_level", one, place, {"recipients": [RECIPIENT]})
    [request] = ask(server, "request", "list")
    answer_of(server, "approve_request", other, {"id": request["id"]})
    answer_of(server, "rotate_level", one, place)
    new_source = {"to": "passphrase", "passphrase": "correct horse battery staple"}
    answer_of(server, "move_keystore", one, {}, new_source)
    assert missing_records(server, [("rotation.end", "done", "server")]) == []

    def told(act, outcome, actor):
        ended = (act, outcome, actor)
        [details] = [
            record["details"]
            for record in recorded(server)
            if (record["act"], record["outcome"], record["actor"]) == ended
        ]
        return details

    asked, approved = one[0], other[0]
    for outcome in ("begun", "done"):
        details = told("request.create", outcome, asked)
        assert details["wants"] == "key.export" and details["level"] == "guarded"
        details = told("request.approve", outcome, approved)
        assert details["request"] == request["id"] and details["level"] == "guarded"
        exported = told("key.export", outcome, approved)
        assert exported["level"] == "guarded" and exported["to"] == RECIPIENT
        assert (exported["requested_by"], exported["approved_by"]) == (asked, approved)
        assert told("level.rotate", outcome, asked)["level"] == "guarded"
        moved = told("keystore.move", outcome, asked)
        assert (moved["from"], moved["to"]) == ("file", "passphrase")
    assert told("rotation.end", "done", "server")["level"] == "guarded"
    assert "horse" not in run(server, "audit", "export")
