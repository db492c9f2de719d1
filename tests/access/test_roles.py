"""Every operation of the administration API, asked for by every role."""

import base64
import contextlib
import http.client
import json
import time

import pytest

from harness.acts import ACTS, CHANGING
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
    "prune_audit": ({AUDITOR}, {}, {"before": "2026-01-01T00:00:00Z"}),
    "list_buckets": (ANYBODY, {}, None),
    "create_bucket": ({ADMINISTRATOR}, {}, {"name": "bucket-of-{role}"}),
    "show_bucket": (ANYBODY, {"name": "kept"}, None),
    "delete_bucket": ({ADMINISTRATOR}, {"name": "empty-for-{role}"}, None),
    "erase_bucket": ({CUSTODIAN}, {"name": "doomed-for-{role}"}, None),
    "rotate_bucket": ({CUSTODIAN}, {"name": "kept"}, None),
    "end_uploads": ({CUSTODIAN, DATA_USER}, {"name": "kept"}, {"older_than_seconds": 0}),
    "list_quotas": ({ADMINISTRATOR}, {}, None),
    "set_quota": ({ADMINISTRATOR}, {"kind": "bucket", "name": "kept"}, {"objects": 9_999}),
    "remove_quota": ({ADMINISTRATOR}, {"kind": "bucket", "name": "kept"}, None),
    "import_level": ({CUSTODIAN}, {}, {"export": "no export", "identity": IDENTITY}),
    "show_keystore": ({CUSTODIAN, AUDITOR}, {}, None),
    "back_up_keystore": ({CUSTODIAN}, {}, {"recipients": [RECIPIENT]}),
    "move_keystore": ({CUSTODIAN}, {}, {"to": "file"}),
    "rotate_root": ({CUSTODIAN}, {}, None),
    "list_levels": (ANYBODY, {}, None),
    "create_level": ({CUSTODIAN}, {}, {"name": "level-of-{role}", "rank": 1, "same_label": True}),
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
    "create_subject": ({ADMINISTRATOR}, {}, {"name": "made-by-{role}", "clearance": "default"}),
    "show_subject": ({ADMINISTRATOR, CUSTODIAN, AUDITOR}, {"name": "attacks.auditor"}, None),
    "settle_subject": ({CUSTODIAN}, {"name": "victim-of-{role}"}, None),
    "change_subject": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, {"roles": list(ROLES)}),
    "list_access_keys": ({ADMINISTRATOR, CUSTODIAN, AUDITOR}, {"name": "attacks.auditor"}, None),
    "create_access_key": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, {}),
    "rotate_access_keys": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, {"overlap_seconds": 60}),
    "change_access_key": (
        {ADMINISTRATOR}, {"name": "victim-of-{role}", "key": NOBODY}, {"expires_at": "never"},
    ),
    "delete_access_key": ({ADMINISTRATOR}, {"name": "victim-of-{role}", "key": NOBODY}, None),
    "delete_subject": ({ADMINISTRATOR}, {"name": "victim-of-{role}"}, None),
    "verify": ({ADMINISTRATOR}, {}, {}),
    # Over HTTPS it is refused to all, to administrators with where to ask for it.
    "back_up": ({ADMINISTRATOR}, {}, {"folder": "/nowhere/backup"}),
    "list_replicas": ({ADMINISTRATOR}, {}, None),
    "add_replica": ({ADMINISTRATOR}, {}, {"name": "copy", "url": "file:///nowhere/copy"}),
    "verify_replica": ({ADMINISTRATOR}, {"name": "none"}, None),
    "remove_replica": ({ADMINISTRATOR}, {"name": "none"}, None),
    # Refused to all by a server that follows no copy.
    "show_standby": ({ADMINISTRATOR}, {}, None),
    "promote_standby": ({ADMINISTRATOR}, {}, None),
    "show_lock_time": ({CUSTODIAN, AUDITOR}, {}, None),
    "confirm_lock_time": ({CUSTODIAN}, {}, {"time": "2026-01-01T00:00:00Z"}),
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
        run(server, "level", "create", f"doomed-for-{role}", "--rank", "0", "--same-label")
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
def answer(server, operation, credentials, values, body, query=""):
    """The answer to an operation that is asked for with an access key. It may have no end."""
    method, path = DESCRIBED[operation]
    path = path.format(**values) + (f"?{query}" if query else "")
    headers = {} if body is None else {"Content-Type": "application/json"}
    if credentials:
        user = base64.b64encode(":".join(credentials).encode()).decode()
        headers["Authorization"] = f"Basic {user}"
    body = None if body is None else json.dumps(body)
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
    sent = filled(values, role), filled(body, role)
    with answer(server, operation, credentials, *sent) as answered:
        return answered.status


def answer_of(server, operation, credentials, values, body=None, query=""):
    with answer(server, operation, credentials, values, body, query) as answered:
        said = answered.read()
        assert answered.status in (200, 201, 202, 204), (operation, said)
        return said


def recorded(server):
    return [json.loads(line) for line in run(server, "audit", "export").splitlines()]


def asker(record):
    """The access key that it was asked with, or else the actor."""
    return record.get("access_key_id", record["actor"])


def missing_records(server, expected):
    """Of acts, outcomes and actors: those that the audit log does not have, nor gets soon."""
    end = time.monotonic() + RECORDED_SECONDS
    while True:
        found = {(one["act"], one["outcome"], asker(one)) for one in recorded(server)}
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
    # What can be seen to fail is not begun.
    early = (
        "bucket.adopt", "storage.backup", "access-key.change", "access-key.delete",
        "replica.add", "replica.verify", "replica.remove", "lock-time.confirm", "standby.promote",
    )  # fmt: skip
    begun = [(act, "failed" if act in early else "begun", actor) for act, actor in acted]
    assert missing_records(server, begun) == []
    found = recorded(server)
    ended = {(one["act"], asker(one)) for one in found if one["outcome"] in ("done", "failed")}
    assert set(acted) - ended == set()


def test_what_custodians_do_is_told_by_name(own_server):
    server = own_server().start()
    run(server, "level", "create", "guarded", "--rank", "1", "--approvals", "2")
    roles = ("--roles", CUSTODIAN)
    one, other = (make_subject(server, name, "default", *roles) for name in ("one", "other"))
    place = {"name": "guarded"}
    new_source = {"to": "passphrase", "passphrase": "correct horse battery staple"}
    approved_ids = {}
    for operation, values, body in [
        ("export_level", place, {"recipients": [RECIPIENT]}),
        ("rotate_level", place, None),
        ("move_keystore", {}, new_source),
    ]:
        answer_of(server, operation, one, values, body)
        [request] = ask(server, "request", "list")
        assert request["requested_by_name"] == "one"
        approved_ids[request["wants"]] = request["id"]
        answer_of(server, "approve_request", other, {"id": request["id"]})
    answer_of(server, "move_keystore", one, {}, new_source)
    assert missing_records(server, [("rotation.end", "done", "server")]) == []
    asked, approved = one[0], other[0]
    ids = [ask(server, "subject", "show", key)["id"] for key in (asked, approved)]
    # They are gone by the time that somebody reads of it.
    for name in ("one", "other"):
        run(server, "subject", "delete", name)
    records = recorded(server)

    def told(act, outcome, actor, wants=None):
        [record] = [
            record
            for record in records
            if (record["act"], record["outcome"], asker(record)) == (act, outcome, actor)
            and wants in (None, record["details"].get("wants"))
        ]
        names = {asked: "one", approved: "other"}
        assert record.get("actor_name") == names.get(actor)
        return record["details"]

    for outcome in ("begun", "done"):
        for wants, about in [
            ("key.export", {"level": "guarded", "to": RECIPIENT}),
            ("level.rotate", {"level": "guarded"}),
            ("keystore.move", {"to": "passphrase"}),
        ]:
            details = told("request.create", outcome, asked, wants)
            assert details == {"request": approved_ids[wants], "wants": wants, **about}
            people = {
                "requested_by": ids[0], "requested_by_name": "one",
                "approved_by": ids[1], "approved_by_name": "other",
            }  # fmt: skip
            details = told("request.approve", outcome, approved, wants)
            assert details == {"request": approved_ids[wants], "wants": wants, **about, **people}
            actor = asked if wants == "keystore.move" else approved
            if wants == "keystore.move":
                about = {**about, "from": "file"}
            details = told(wants, outcome, actor)
            assert details == {"request": approved_ids[wants], **about, **people}
    assert told("rotation.end", "done", "server")["level"] == "guarded"
    assert "horse" not in run(server, "audit", "export")


def test_records_of_subjects_are_whole(own_server):
    """Who may do what is told to the last grant, when it is given and when it is taken."""
    server = own_server().start()
    names = [f"{'b' * 40}-{number}" for number in range(120)]
    for name in names:
        run(server, "bucket", "create", name)
    grants = [{"bucket": name, "rights": ["read", "list"]} for name in names]
    admin = make_subject(server, "admin", "default", "--roles", ADMINISTRATOR)
    auditor = make_subject(server, "aldo", "default", "--roles", AUDITOR)
    new = {
        "name": "alice", "clearance": "default", "roles": [AUDITOR, DATA_USER], "grants": grants,
        "expires_at": "2099-01-01T00:00:00Z",
    }  # fmt: skip
    key = json.loads(answer_of(server, "create_subject", admin, {}, new))["id"]
    place = {"name": "alice"}
    answer_of(server, "change_subject", admin, place, {"disabled": True, "revoke": names[:100]})
    answer_of(server, "delete_subject", admin, place)
    records = [one for one in recorded(server) if one["details"].get("subject") == "alice"]

    def told(act, outcome):
        pieces = [
            one["details"] for one in records if (one["act"], one["outcome"]) == (act, outcome)
        ]
        if len(pieces) > 1:
            parts = [piece["part"] for piece in pieces]
            assert parts == [f"{place} of {len(pieces)}" for place in range(1, len(pieces) + 1)]
        whole = {}
        for piece in pieces:
            assert piece["subject_id"] == key
            for name in ("grants", "grant", "revoke"):
                if name in piece:
                    whole[name] = [*whole.get(name, []), *piece[name].split()]
        return pieces[0] | whole

    every = sorted(f"{name}=read,list" for name in names)
    for outcome in ("begun", "done"):
        details = told("subject.create", outcome)
        assert sorted(details["grants"]) == every
        assert details["roles"] == "data-user,auditor" and details["clearance"] == "s0"
        assert details["expires_ms"] == "4070908800000" and details["disabled"] == "false"
    assert sorted(told("subject.disable", "begun")["revoke"]) == sorted(names[:100])
    for act, outcome in [
        ("subject.disable", "done"), ("subject.delete", "begun"), ("subject.delete", "done"),
    ]:  # fmt: skip
        details = told(act, outcome)
        assert sorted(details["grants"]) == sorted(f"{name}=read,list" for name in names[100:])
        assert details["disabled"] == "true"
    # Nobody has to know that it is gone: its name is found, and its key's id.
    for who in ("alice", key):
        lines = answer_of(server, "read_audit", auditor, {}, query=f"subject={who}&outcome=done")
        acts = {json.loads(line)["act"] for line in lines.splitlines()}
        assert acts == {"subject.create", "subject.disable", "subject.delete"}
