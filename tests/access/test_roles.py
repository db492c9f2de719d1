"""Every operation of the administration API, asked for by every role."""

import base64
import http.client
import json

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


def status_of(server, operation, credentials, role):
    """The status of an answer. Its body may have no end."""
    method, path = DESCRIBED[operation]
    _, values, body = OPERATIONS[operation]
    path = path.format(**filled(values, role))
    headers = {}
    if credentials:
        user = base64.b64encode(":".join(credentials).encode()).decode()
        headers["Authorization"] = f"Basic {user}"
    if body is not None:
        body = json.dumps(filled(body, role))
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.admin_port, context=tls_context(server), timeout=30
    )
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


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
