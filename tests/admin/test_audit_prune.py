"""Pruning the audit log, as far as a log of today goes: nothing of it is old enough.

What happens to segments that are is in `crates/coffer-audit/src/pruned_logs.rs`.
"""

import datetime
import json

from harness.administration import ask, make_subject, refused, run
from harness.auditing import export
from harness.custodian import WAITS
from harness.server import coffer

LONG_AGO = "2026-01-01T00:00:00.000Z"


def test_nothing_young_is_pruned(own_server):
    server = own_server().start()
    before = export(server)
    for wanted in (("--keep", "1d"), ("--before", "2026-01-01")):
        assert ask(server, "audit", "prune", *wanted) == {"count": 0}
        assert "nothing was pruned" in run(server, "audit", "prune", *wanted)
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "24 hours" in refused(server, "audit", "prune", "--before", now)
    for wrong in ((), ("--keep", "0d"), ("--keep", "1d", "--before", LONG_AGO)):
        assert coffer("--data", server.data, "audit", "prune", *wrong).returncode == 2, wrong
    after = export(server)
    assert after[: len(before)] == before
    asked = [record for record in after if record["act"] == "audit.prune"]
    assert [record["outcome"] for record in asked[:2]] == ["begun", "done"]
    report = ask(server, "audit", "verify")
    assert report["sound"] and report["pruned_through"] == 0


def test_custodians_approve_what_an_auditor_asks_for(own_server):
    server = own_server().start()
    run(server, "level", "create", "guarded", "--rank", "0", "--same-label", "--approvals", "2")
    grace = make_subject(server, "grace", "default", "--roles", "key-custodian")
    prune = ("--data", server.data, "audit", "prune", "--before", "2026-01-01", "--json")
    first, again = coffer(*prune), coffer(*prune)
    assert (first.returncode, again.returncode) == (WAITS, WAITS)
    request = json.loads(first.stdout)
    assert json.loads(again.stdout)["id"] == request["id"]
    assert (request["wants"], request["before"]) == ("audit.prune", LONG_AGO)
    assert "another custodian" in refused(server, "request", "approve", request["id"])

    profile = server.folder / "grace.ini"
    lines = ("[default]", f"aws_access_key_id = {grace[0]}", f"aws_secret_access_key = {grace[1]}")
    profile.write_text("\n".join(lines) + "\n")
    profile.chmod(0o600)
    reach = ("--endpoint", server.admin_endpoint, "--ca", server.ca, "--credentials", profile)
    alone = coffer("audit", "prune", "--keep", "365d", *reach)
    assert alone.returncode == 1, "a custodian is no auditor"
    done = coffer("request", "approve", request["id"], *reach, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"count": 0}
    assert ask(server, "request", "list") == []
    records = [one for one in export(server) if one["act"] == "audit.prune"]
    told = [one["details"] for one in records if one["outcome"] == "done"]
    assert [(one["before"], one["approved_by_name"]) for one in told] == [(LONG_AGO, "grace")]
