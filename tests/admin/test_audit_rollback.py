"""Records that were rolled back on purpose are told from records that were removed."""

import json
import shutil

import pytest

from harness.administration import client_of, run
from harness.auditing import export
from harness.server import coffer

ACTS = 5


def verified(data, *words, expect=0):
    """The report of the verification, and what it says to people."""
    words = ["audit", "verify", "--data", data, *words]
    told = coffer(*words, text=True)
    report = coffer(*words, "--json", text=True)
    assert told.returncode == report.returncode == expect, (told.stdout, told.stderr)
    return json.loads(report.stdout), told.stdout


@pytest.fixture
def restored(own_server, tmp_path):
    """A backup with the newer keystore, and the last records of both."""
    server = own_server().start()
    client_of(server, "eve", "default..default")
    done = coffer("backup", tmp_path / "backup", "--data", server.data)
    assert done.returncode == 0, done.stderr
    for number in range(ACTS):
        run(server, "level", "create", f"other-{number}", "--rank", str(number), "--same-label")
    server.stop()
    held = verified(server.data)[0]
    data = tmp_path / "restored"
    shutil.copytree(tmp_path / "backup" / "copy", data)
    for name in ("root.key", "keystore"):
        shutil.copy(server.data / name, data / name)
    copy = own_server(data=data)
    yield copy, held
    copy.close()


def accept(server):
    server.arguments.append("--accept-rollback")
    server.start()
    server.arguments.remove("--accept-rollback")


def test_records_that_were_rolled_back_are_told_and_are_no_damage(restored):
    copy, held = restored
    report, told = verified(copy.data, expect=1)
    assert "NOT SOUND" in told and not report["rolled_back"], told
    first, through = report["last_sequence"] + 1, None
    accept(copy)
    assert "DAMAGED" not in copy.log(), copy.log()
    [accepted] = [
        record
        for record in export(copy, "--act", "rollback.accept")
        if record["details"]["file"] == "audit/"
    ]
    through = int(accepted["details"]["held"])
    assert first <= through <= held["last_sequence"]
    line = f"records {first} to {through} were rolled back, which was accepted at "
    line += f"{accepted['time']}, as record {accepted['sequence']} says"
    for _ in range(2):
        report, told = verified(copy.data)
        assert report["sound"] and report["rolled_back"] == [line], report
        assert f"rolled back: {line}" in told.replace("\u00a0", " "), told
        assert "sound, but for what was rolled back" in told and "all sound" not in told, told
        copy.stop()
        assert verified(copy.data)[0]["rolled_back"] == [line]
        copy.start()
    copy.stop()
    # A record that went with it is not there, whoever asks for it.
    wanted = f"{held['last_sequence']}:{held['last_hash']}"
    assert "not in the log" in verified(copy.data, "--record", wanted, expect=1)[1]
    # What is taken away besides is damage.
    [segment, *_] = sorted((copy.data / "audit").glob("*.log"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-200])
    report, told = verified(copy.data, expect=1)
    assert report["findings"] and "NOT SOUND" in told, told
    segment.write_bytes(whole)
    verified(copy.data)
