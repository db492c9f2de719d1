"""Who does what, and on whose approval: the table of docs/THREATS.md, row by row."""

import json
import os
import re

import pytest

from harness.administration import ask, make_subject, run
from harness.clients import s3_client
from harness.custodian import WAITS
from harness.server import ROOT, coffer

CUSTODIAN = "key-custodian"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
PASSPHRASE = "correct horse battery staple"


def table():
    """Role and approvals by operation, as the document has them."""
    section = (ROOT / "docs/THREATS.md").read_text().split("### Every act")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return {operation: (act, role, approvals) for operation, act, role, approvals in rows}


def operations():
    paths = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    return {one["operationId"] for methods in paths.values() for one in methods.values()}


def test_the_table_has_every_operation():
    assert set(table()) == operations()


def commands(server, tmp_path):
    """What takes approvals, by operation: a command, and what shows that it was done."""
    keystore = lambda: ask(server, "keystore", "status")  # noqa: E731
    level = lambda: ask(server, "level", "show", "guarded")  # noqa: E731
    bucket = lambda name: ask(server, "bucket", "show", name)  # noqa: E731
    move = ("keystore", "move", "--to", "passphrase")
    return {
        "export_level": (
            ("key", "export", "guarded", "--to", RECIPIENT, "--out", tmp_path / "export.age"),
            lambda: level()["export_count"],
        ),
        "rotate_level": (("level", "rotate", "guarded"), lambda: level()["generation"]),
        "rotate_bucket": (("bucket", "rotate", "kept"), lambda: bucket("kept")["generation"]),
        "rotate_root": (("keystore", "rotate"), lambda: (server.data / "root.key").read_text()),
        "back_up_keystore": (
            ("keystore", "backup", "--recipient", RECIPIENT, "--output", tmp_path / "root.age"),
            lambda: keystore().get("backup"),
        ),
        "move_keystore": (move, lambda: keystore()["source"]),
        "erase_bucket": (
            ("bucket", "erase", "doomed", "--yes"),
            lambda: [one["name"] for one in ask(server, "bucket", "list")],
        ),
        "erase_level": (
            ("level", "erase", "guarded", "--yes"),
            lambda: [one["name"] for one in ask(server, "level", "list")],
        ),
    }


@pytest.fixture
def guarded(own_server):
    """A server with a level of two people, and two custodians."""
    server = own_server().start()
    run(server, "level", "create", "guarded", "--rank", "0", "--same-label", "--approvals", "2")
    for name in ("kept", "doomed"):
        run(server, "bucket", "create", name, "--level", "guarded")
    s3_client(server).put_object(Bucket="kept", Key="object", Body=b"stays")
    people = [
        make_subject(server, name, "default", "--roles", CUSTODIAN) for name in ("ada", "grace")
    ]
    return server, *people


def asking(server, who, *command, expect=0):
    """Runs a command over HTTPS, or over the socket as nobody in particular; its answer."""
    reading, writing = os.pipe()
    os.write(writing, PASSPHRASE.encode() + b"\n")
    os.close(writing)
    place = ("--data", server.data)
    if who:
        profile = server.folder / f"{who[0]}.ini"
        lines = ("[default]", f"aws_access_key_id = {who[0]}", f"aws_secret_access_key = {who[1]}")
        profile.write_text("\n".join(lines) + "\n")
        profile.chmod(0o600)
        reach = ("--endpoint", server.admin_endpoint, "--ca", server.ca)
        place = (*reach, "--credentials", profile)
    if "move" in command:
        command = (*command, "--passphrase-fd", reading)
    done = coffer(*command, *place, "--json", pass_fds=[reading])
    os.close(reading)
    assert done.returncode == expect, (command, done.stderr.decode())
    return json.loads(done.stdout) if done.stdout and expect != 1 else done.stderr.decode()


def test_what_takes_approvals_is_done_by_two_and_by_none_alone(guarded, tmp_path):
    server, ada, grace = guarded
    tried = commands(server, tmp_path)
    wanting = {name for name, (_, _, approvals) in table().items() if approvals != "-"}
    # Those have tests of their own, which need old records, and a clock that has moved.
    assert wanting - {"prune_audit", "confirm_lock_time"} == set(tried)
    for operation, (command, state) in tried.items():
        act = table()[operation][0].strip("`")
        before = state()
        # Neither a custodian alone, nor the owner of the machine.
        asked = asking(server, ada, *command, expect=WAITS)
        assert asked["wants"] == act and asked["approvals"] == 2, operation
        assert asked["requested_by"] == ask(server, "subject", "show", ada[0])["id"]
        assert asked["requested_by_name"] == "ada"
        assert asking(server, None, *command, expect=WAITS)["id"] == asked["id"]
        exports = operation in ("export_level", "back_up_keystore")
        out = ("--out", tmp_path / f"{operation}.age") if exports else ()
        approve = ("request", "approve", asked["id"], "--yes", *out)
        own = asking(server, ada, *approve, expect=1)
        assert "another custodian" in own
        assert state() == before, operation
        asking(server, grace, *approve)
        if operation == "move_keystore":
            assert state() == before, "the passphrase is kept nowhere"
            asking(server, None, *command, expect=WAITS)
            assert state() == before, "it is not done by somebody else"
            asking(server, ada, *command)
        assert state() != before, operation
        assert ask(server, "request", "list") == [], operation
    assert PASSPHRASE not in run(server, "audit", "export")


def test_one_custodian_can_t_take_the_root_key_for_himself(guarded, tmp_path):
    """To a passphrase that only he knows: who then starts the server decides about everything."""
    server, ada, grace = guarded
    command, source = commands(server, tmp_path)["move_keystore"]
    asking(server, ada, *command, expect=WAITS)
    assert source() == "file" and (server.data / "root.key").exists()
    # An approval is of one act, once.
    (request,) = ask(server, "request", "list")
    asking(server, grace, "request", "approve", request["id"])
    (request,) = ask(server, "request", "list")
    assert request["approved"] and request["approved_by_names"] == ["grace"]
    to_file = asking(server, ada, "keystore", "move", "--to", "keyring:other", expect=WAITS)
    assert to_file["id"] != request["id"] and not to_file["approved"]
    # Who approved is no custodian any more: the approval doesn't count.
    run(server, "subject", "disable", "grace")
    asking(server, ada, *command, expect=WAITS)
    assert source() == "file"
    run(server, "subject", "enable", "grace")
    asking(server, ada, *command)
    assert source() == "passphrase"


def test_without_such_a_level_one_is_enough(own_server):
    server = own_server().start()
    ada = make_subject(server, "ada", "default", "--roles", CUSTODIAN)
    before = ask(server, "keystore", "status")["generation"]
    rotated = asking(server, ada, "keystore", "rotate")
    assert rotated["generation"] > before
    rotation = asking(server, ada, "level", "rotate", "default")
    assert rotation["replaced_destroyed"]


def test_an_import_over_a_level_that_is_here_is_refused(own_server, tmp_path):
    """Whoever asks: so it takes no approval, and takes nothing away."""
    server = own_server().start()
    run(server, "level", "create", "guarded", "--rank", "0", "--same-label")
    identity = tmp_path / "identity"
    identity.write_text(
        "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n"
    )
    out = tmp_path / "guarded.age"
    run(server, "key", "export", "guarded", "--to", RECIPIENT, "--out", out)
    levels = ask(server, "level", "list")
    for words in ((), ("--as", "other"), ("--as", "default")):
        done = coffer("--data", server.data, "key", "import", out, "--identity", identity, *words)
        assert done.returncode == 1, done
    assert ask(server, "level", "list") == levels
