"""What can't be undone is asked for, where there is a person to ask; scripts go on."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from harness.administration import ask, run
from harness.server import BINARY, clean_environment


@pytest.fixture(scope="module")
def served(server):
    run(server, "bucket", "create", "kept")
    return server


def at_terminal(server, *words, typed):
    """Runs a command at a terminal, where something is typed; its code, and what was seen."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [BINARY, "--data", server.data, *words],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        out, _ = process.communicate(timeout=60)
    seen = out
    try:
        while more := os.read(ours, 1 << 16):
            seen += more
    except OSError:
        # The other end is closed, and all of it read.
        pass
    os.close(ours)
    return process.returncode, seen.decode()


def generation(server, what, name):
    return ask(server, what, "show", name)["generation"]


def test_rotations_are_asked_for_at_a_terminal(served):
    for what, name in (("level", "default"), ("bucket", "kept")):
        before = generation(served, what, name)
        code, seen = at_terminal(served, what, "rotate", name, typed="no\n")
        assert code == 2 and "nothing was rotated" in seen, seen
        assert "will be destroyed" in seen and "16 KiB" in seen
        assert generation(served, what, name) == before
        code, seen = at_terminal(served, what, "rotate", name, typed="yes\n")
        assert code == 0, seen
        code, seen = at_terminal(served, what, "rotate", name, "--yes", typed="")
        assert code == 0 and "Type yes" not in seen, seen
        assert generation(served, what, name) == before + 2
        run(served, what, "rotate", name)
        assert generation(served, what, name) == before + 3
    root = (served.data / "root.key").read_text()
    code, seen = at_terminal(served, "keystore", "rotate", typed="\n")
    assert code == 2 and "nothing was rotated" in seen and "will be destroyed" in seen, seen
    assert (served.data / "root.key").read_text() == root
    code, seen = at_terminal(served, "keystore", "rotate", typed="yes\n")
    assert code == 0, seen
    assert (served.data / "root.key").read_text() != root


def test_the_server_keeps_a_system_administrator(own_server):
    """By whatever way: without the question of the command, by access keys, by times of expiry."""
    server = own_server("kept").start()
    lasting = {"name": "sole", "clearance": "default", "roles": ["system-administrator"]}
    made = asked(server, "POST", "/v1/subjects", lasting)
    run(server, "subject", "delete", "first")
    sole, key = "/v1/subjects/sole", f"/v1/subjects/sole/keys/{made['access_key_id']}"
    soon = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    ending = [
        ("DELETE", sole, None),
        ("PATCH", sole, {"disabled": True}),
        ("PATCH", sole, {"roles": ["auditor", "key-custodian"]}),
        ("PATCH", sole, {"expires_at": soon}),
        ("DELETE", key, None),
        ("PATCH", key, {"disabled": True}),
        ("PATCH", key, {"expires_at": soon}),
        ("POST", f"{sole}/keys/rotate", {"overlap_seconds": 0, "expires_at": soon}),
    ]
    for words in ending:
        assert asked(server, *words, status=409)["error"]["code"] == "last_administrator", words
    told = run(server, "subject", "key", "disable", made["access_key_id"], expect=1)
    assert "no system administrator" in told and "--yes" in told and "subject create" in told
    # What leaves one is done: a key that lasts, and one more by who can act for as long.
    asked(server, "PATCH", sole, {"name": "only"})
    only = "/v1/subjects/only"
    asked(server, "PATCH", only, {"expires_at": later})
    new = asked(server, "POST", f"{only}/keys/rotate", {"overlap_seconds": 0})
    brief = lasting | {"name": "brief", "expires_at": soon}
    asked(server, "POST", "/v1/subjects", brief)
    assert asked(server, "DELETE", only, status=409)["error"]["code"] == "last_administrator"
    asked(server, "PATCH", "/v1/subjects/brief", {"expires_at": "never"})
    asked(server, "PATCH", only, {"disabled": True})
    # One that is disabled leaves none behind; and what is meant is done.
    asked(server, "DELETE", f"{only}/keys/{new['access_key_id']}")
    asked(server, "DELETE", only)
    assert asked(server, "PATCH", "/v1/subjects/brief", {"disabled": True}, status=409)
    meant = "/v1/subjects/brief?without_administrator=true"
    assert asked(server, "PATCH", meant, {"disabled": True})["disabled"]
    run(server, "subject", "create", "next", "--roles", "system-administrator")
    [key] = ask(server, "subject", "key", "list", "next")
    run(server, "subject", "key", "disable", key["id"], "--yes")


def asked(server, method, path, body=None, status=None):
    """What the administration answers at its socket, with this status, or one that it is done."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(server.data / "admin.sock"))
    with contextlib.closing(connection):
        headers = {"content-type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        told = answer.read()
    is_expected = answer.status == status if status else answer.status < 300
    assert is_expected, (method, path, answer.status, told)
    return json.loads(told) if told else None


def test_the_last_system_administrator_is_not_deleted_by_mistake(served):
    run(served, "subject", "create", "plain")
    run(served, "subject", "delete", "plain")
    told = run(served, "subject", "delete", "first", expect=2)
    assert "last system administrator" in told and "auditor" in told
    assert "nothing was deleted" in told and "--yes" in told
    told = run(served, "subject", "disable", "first", expect=2)
    assert "last system administrator" in told and "nothing was disabled" in told
    told = run(served, "subject", "set", "first", "--roles", "data-user", expect=2)
    assert "last system administrator" in told and "nothing was changed" in told
    shown = ask(served, "subject", "show", "first")
    assert "system-administrator" in shown["roles"] and not shown["disabled"]
    code, seen = at_terminal(served, "subject", "delete", "first", typed="second\n")
    assert code == 2 and "that is not first" in seen, seen
    # One who can't act is none.
    run(served, "subject", "create", "second", "--roles", "system-administrator")
    run(served, "subject", "disable", "second")
    run(served, "subject", "delete", "first", expect=2)
    run(served, "subject", "enable", "second")
    run(served, "subject", "delete", "first")
    code, seen = at_terminal(served, "subject", "delete", "second", typed="second\n")
    assert code == 0, seen
    run(served, "subject", "create", "third", "--roles", "system-administrator")
    run(served, "subject", "delete", "third", "--yes")
