"""What can't be undone is asked for, where there is a person to ask; scripts go on."""

import os
import subprocess

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
