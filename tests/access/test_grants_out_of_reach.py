"""Grants that a clearance leaves out are kept, and who gives them hears that they do nothing."""

import json

from harness.administration import ask, run
from harness.server import coffer


def test_grants_that_no_clearance_reaches_are_told(own_server):
    server = own_server().start()
    run(server, "level", "create", "hidden", "--rank", "3")
    run(server, "bucket", "create", "of-hidden", "--level", "hidden")
    run(server, "bucket", "create", "of-default")

    def subject(*words):
        done = coffer("--data", server.data, "subject", *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr.decode()

    grants = ["--grant", "of-hidden=read,write", "--grant", "of-default=read"]
    made, said = subject("create", "ann", *grants)
    out_of_reach = [{"bucket": "of-hidden", "rights": ["read", "write"]}]
    assert made["unreachable_grants"] == out_of_reach and len(made["grants"]) == 2
    [warning] = said.splitlines()
    assert warning.startswith("warning: ann can't use of-hidden=read,write by this grant")
    assert ask(server, "subject", "show", "ann")["unreachable_grants"] == out_of_reach
    # A clearance can change, and then the grant counts.
    wide, said = subject("set", "ann", "--clearance", "default..hidden")
    assert "unreachable_grants" not in wide and said == ""
    narrow, said = subject("set", "ann", "--clearance", "default")
    assert narrow["unreachable_grants"] == out_of_reach and said == warning + "\n"
    # Who is cleared for what is above reads below it, and writes nothing there.
    made, said = subject(
        "create", "bob", "--clearance", "hidden", "--grant", "of-default=read,write"
    )
    assert made["unreachable_grants"] == [{"bucket": "of-default", "rights": ["write"]}]
    assert "bob can't use of-default=write by this grant" in said
