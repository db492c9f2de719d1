"""The audit log, as an auditor uses it and as someone tries to fool it."""

import contextlib
import json
import shutil
import subprocess

import pytest

from harness.administration import from_afar, make_subject
from harness.auditing import ask, eventually, export, make_level
from harness.clients import refused, s3_client
from harness.content import MIB
from harness.disks import needs_mount, small_disk
from harness.server import BINARY, StartError, clean_environment, coffer

DAMAGED = 1


def acts(records):
    return [(record["act"], record["outcome"]) for record in records]


def verify(server, *arguments, code=0):
    report = json.loads(ask(server, "audit", "verify", "--json", *arguments, code=code))
    assert report["sound"] == (code == 0), report
    return report


@pytest.fixture
def log_of_acts(own_server):
    """A stopped server that has recorded some acts."""
    server = own_server().start()
    for number in range(8):
        make_level(server, f"level-{number}")
    assert server.stop() == 0
    return server


def test_acts_are_recorded_before_and_after(server):
    make_level(server, "secret")
    make_level(server, "secret", code=1)
    eventually(lambda: export(server, "--act", "level.create", "--outcome", "failed"))
    found = export(server, "--act", "level.create")
    records = export(server)
    assert [record["sequence"] for record in records] == list(range(1, len(records) + 1))
    assert records[0]["act"] == "server.start"
    # What can be seen to fail is not begun.
    assert [record["outcome"] for record in found] == ["begun", "done", "failed"]
    assert all(record["details"]["level"] == "secret" for record in found)
    assert all(record["actor"].startswith("local:") for record in found)
    assert all(record["time"].endswith("Z") and len(record["hash"]) == 64 for record in records)

    shown = ask(server, "audit", "show", "--last", 4)
    assert len(shown.splitlines()) == 4
    assert export(server, "--since", 3)[0]["sequence"] == 3
    report = verify(server)
    assert report["record_count"] >= len(records)


def test_following_shows_what_comes(server):
    command = [BINARY, "--data", server.data, "audit", "follow", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as following:
        try:
            first = json.loads(following.stdout.readline())
            make_level(server, "followed")
            names = []
            while "followed" not in names:
                record = json.loads(following.stdout.readline())
                assert record["sequence"] > first["sequence"]
                names.append(record.get("details", {}).get("level"))
        finally:
            following.terminate()


def test_sign_ins_and_denials_are_recorded(server, tmp_path):
    made = json.loads(
        ask(server, "subject", "create", "reader", "--clearance", "default", "--json")
    )
    profile = tmp_path / "reader.ini"
    profile.write_text(
        "[default]\n"
        f"aws_access_key_id = {made['access_key_id']}\n"
        f"aws_secret_access_key = {made['secret_access_key']}\n"
    )
    remote = ["--endpoint", server.admin_endpoint, "--ca", server.ca, "--credentials", profile]
    for _ in range(5):
        done = coffer("audit", "show", *remote)
        assert done.returncode == 1 and b"denied" in done.stderr, done.stderr
    wrong = tmp_path / "wrong.ini"
    wrong.write_text(profile.read_text().replace(made["secret_access_key"], "x" * 40))
    remote[-1] = wrong
    assert coffer("audit", "show", *remote).returncode == 1
    guess = s3_client(server, credentials=(made["access_key_id"], "x" * 40))
    with refused("SignatureDoesNotMatch"):
        guess.list_buckets()

    def found():
        records = [
            record
            for record in export(server)
            if record.get("access_key_id") == made["access_key_id"]
        ]
        told = acts(records)
        sign_ins = {("server.sign-in", "done"), ("server.sign-in", "denied")}
        wanted = sign_ins | {("audit.read", "denied")}
        reasons = {
            record.get("details", {}).get("reason"): record.get("details") for record in records
        }
        is_all = wanted <= set(told) and "wrong signature" in reasons
        return (told, reasons) if is_all else None

    told, reasons = eventually(found)
    assert reasons["wrong signature"]["from"] == reasons["wrong secret"]["from"] == "127.0.0.1"
    assert told.count(("audit.read", "denied")) == 1, "the rest is counted"
    assert made["secret_access_key"] not in json.dumps(export(server))


def test_an_auditor_far_away_reads_and_verifies(server, tmp_path):
    options = ["--clearance", "default", "--roles", "auditor", "--json"]
    made = json.loads(ask(server, "subject", "create", "auditor", *options))
    profile = tmp_path / "auditor.ini"
    profile.write_text(
        "[default]\n"
        f"aws_access_key_id = {made['access_key_id']}\n"
        f"aws_secret_access_key = {made['secret_access_key']}\n"
    )
    remote = ["--endpoint", server.admin_endpoint, "--ca", server.ca, "--credentials", profile]
    shown = coffer("audit", "export", *remote)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout.splitlines()[0])["act"] == "server.start"
    assert coffer("audit", "verify", *remote).returncode == 0
    assert coffer("level", "create", "his", "--rank", "1", *remote).returncode == 1


def test_a_stopped_server_is_verified_from_its_files(log_of_acts):
    records = export(log_of_acts)
    assert acts(records)[-2:] == [("server.stop", "done"), ("audit.checkpoint", "done")]
    report = verify(log_of_acts)
    assert report["record_count"] == len(records)
    last = f"{report['last_sequence']}:{report['last_hash']}"
    verify(log_of_acts, "--record", last)
    verify(log_of_acts, "--record", f"{report['last_sequence']}:{'0' * 64}", code=DAMAGED)
    log_of_acts.start()
    verify(log_of_acts, "--record", last)


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def alter(audit):
    flip(audit / "00000001.log", 1000)


def cut(audit):
    path = audit / "00000001.log"
    path.write_bytes(path.read_bytes()[:-300])


def remove_a_record(audit):
    path = audit / "00000001.log"
    content = path.read_bytes()
    end = 72 + 44 + int.from_bytes(content[72:76])
    path.write_bytes(content[:72] + content[end:])


def remove_the_head(audit):
    (audit / "head").unlink()


def remove_all(audit):
    shutil.rmtree(audit)


@pytest.mark.parametrize("tamper", [alter, cut, remove_a_record, remove_the_head, remove_all])
def test_tampering_is_found_and_the_server_still_starts(log_of_acts, tamper):
    server = log_of_acts
    tamper(server.data / "audit")
    findings = verify(server, code=DAMAGED)["findings"]
    assert "record" in findings[0] or "head" in findings[0], findings
    if tamper is remove_all:
        accept_rollback(server)
    server.start()
    make_level(server, "afterwards")
    verify(server, code=DAMAGED)
    assert server.stop() == 0
    verify(server, code=DAMAGED)
    # What only `verify` reads is not noticed at the start.
    if tamper is not alter:
        assert "AUDIT LOG IS DAMAGED" in server.log()


def accept_rollback(server):
    """Sees a start refused, and has the next one go on all the same."""
    with pytest.raises(StartError, match="ROLLBACK: audit/"):
        server.start()
    server.arguments.append("--accept-rollback")


def test_an_older_copy_is_noticed(own_server, tmp_path):
    server = own_server().start()
    make_level(server, "one")
    assert server.stop() == 0
    old = tmp_path / "old"
    shutil.copytree(server.data / "audit", old)
    server.start()
    make_level(server, "two")
    assert server.stop() == 0
    shutil.rmtree(server.data / "audit")
    shutil.copytree(old, server.data / "audit")
    verify(server, code=DAMAGED)
    accept_rollback(server)
    server.start()
    assert "older copy" in server.log()
    # It was gone back to on purpose, as the log says itself.
    assert verify(server)["rolled_back"]


def test_acknowledged_acts_survive_a_kill(own_server):
    server = own_server()
    for number in range(5):
        server.start()
        made = f"level-{number}"
        make_level(server, made)
        server.kill()
        verify(server)
        created = [record for record in export(server) if record["act"] == "level.create"]
        assert created[-1]["outcome"] == "done" and created[-1]["details"]["level"] == made


def test_acts_are_refused_while_the_log_cannot_be_written(own_server, tmp_path):
    server = own_server().start()
    away = tmp_path / "away"
    (server.data / "audit").rename(away)
    done = coffer("--data", server.data, "level", "create", "refused", "--rank", "1")
    assert done.returncode == 1
    assert b"the audit log can't be written" in done.stderr, done.stderr
    away.rename(server.data / "audit")
    levels = json.loads(ask(server, "level", "list", "--json"))
    assert [level["name"] for level in levels] == ["default"]
    make_level(server, "taken")
    verify(server)


def test_a_log_that_can_not_be_read_is_told_so(log_of_acts):
    path = log_of_acts.data / "audit" / "00000001.log"
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    for command in ("verify", "show", "export"):
        told = coffer("--data", log_of_acts.data, "audit", command).stderr.decode()
        assert "the audit log can't be read" in told and path.name in told, told
        assert "written" not in told and "recorded" not in told, told


@contextlib.contextmanager
def log_on_a_disk_of_its_own(server, folder):
    """Moves a stopped server's audit log to a small disk."""
    with small_disk(folder, 8 * MIB) as disk:
        audit = server.data / "audit"
        shutil.copytree(audit, disk / "audit")
        shutil.rmtree(audit)
        audit.symlink_to(disk / "audit")
        try:
            yield disk
        finally:
            server.close()


@pytest.mark.skipif(needs_mount, reason="only root may mount")
def test_a_full_disk_refuses_acts_and_still_gives_out_data(log_of_acts, tmp_path):
    server = log_of_acts
    with log_on_a_disk_of_its_own(server, tmp_path) as disk:
        server.start()
        s3 = s3_client(server)
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="a", Body=b"a")
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"\0" * 4096):
                pass
        # The last block of the segment may have room for some records.
        first_refused = next(
            done
            for done in (
                coffer(
                    "--data",
                    server.data,
                    "level",
                    "create",
                    f"full-{n}",
                    "--rank",
                    "1",
                    "--same-label",
                )
                for n in range(50)
            )
            if done.returncode != 0
        )
        said = first_refused.stderr
        assert b"audit log" in said and b"space" in said, said
        s3.put_object(Bucket="kept", Key="b", Body=b"b")
        assert s3.get_object(Bucket="kept", Key="b")["Body"].read() == b"b"
        server.restart()
        assert s3_client(server).get_object(Bucket="kept", Key="a")["Body"].read() == b"a"
        filler.unlink()
        make_level(server, "room")
        verify(server)


def test_reads_and_writes_of_a_watched_level_are_recorded(server):
    ask(server, "level", "create", "watched", "--rank", 0, "--same-label", "--audit-data")
    ask(server, "bucket", "create", "watched", "--level", "watched")
    ask(server, "bucket", "create", "free")
    s3 = s3_client(server)
    marker = "the name of a patient"
    for bucket in ["watched", "free"]:
        s3.put_object(Bucket=bucket, Key=marker, Body=b"a")
        s3.get_object(Bucket=bucket, Key=marker)["Body"].read()
    s3.delete_object(Bucket="watched", Key=marker)
    for look in (s3.get_object, s3.head_object, s3.get_object_tagging):
        with pytest.raises(s3.exceptions.ClientError):
            look(Bucket="watched", Key=marker)
    told = [
        (record["act"], record["outcome"], record["details"]["bucket"], record["details"]["object"])
        for record in export(server)
        if record["act"].startswith("object.")
    ]
    assert told == [
        ("object.write", "begun", "watched", marker),
        ("object.read", "done", "watched", marker),
        ("object.delete", "begun", "watched", marker),
        ("object.read", "failed", "watched", marker),
        ("object.head", "failed", "watched", marker),
    ]
    # Its name dies with the level.
    ask(server, "level", "erase", "watched", "--yes", "--json")
    assert marker not in ask(server, "audit", "export")
    verify(server)


def test_a_receipt_names_a_record_that_the_log_has(server, tmp_path):
    ask(server, "level", "create", "doomed", "--rank", 1)
    receipt = tmp_path / "receipt.json"
    receipt.write_text(ask(server, "level", "erase", "doomed", "--yes", "--json"))
    assert json.loads(receipt.read_text())["last_audit_record"]["number"] > 0
    verify(server, "--receipt", receipt)
    changed = json.loads(receipt.read_text())
    changed["last_audit_record"]["hash"] = "0" * 64
    receipt.write_text(json.dumps(changed))
    verify(server, "--receipt", receipt, code=DAMAGED)


def test_denials_name_what_was_to_be_destroyed(server, tmp_path):
    plain = make_subject(server, "plain", "default")
    for level in ("north", "south"):
        make_level(server, level)
        refusal = from_afar(server, plain, "level", "erase", level, "--yes", folder=tmp_path)
        assert refusal.returncode == 1

    def found():
        denied = [record for record in export(server) if record["outcome"] == "denied"]
        levels = {one["details"]["level"] for one in denied if one["act"] == "level.erase"}
        return levels == {"north", "south"}

    assert eventually(found)


def test_a_level_s_protections_are_recorded(server):
    ask(server, "level", "create", "kept", "--rank", 3, "--approvals", 2, "--no-export")
    made = [record for record in export(server) if record["act"] == "level.create"][-1]
    facts = made["details"]
    assert (facts["level"], facts["label"]) == ("kept", "s3")
    assert (facts["approvals"], facts["exportable"], facts["audit_data"]) == ("2", "false", "false")


def test_denials_of_data_are_recorded_and_counted(server):
    ask(server, "level", "create", "high", "--rank", 9)
    ask(server, "bucket", "create", "high", "--level", "high")
    options = ["--clearance", "default", "--roles", "data-user", "--json"]
    made = json.loads(ask(server, "subject", "create", "low", *options))
    key = made["access_key_id"]
    s3 = s3_client(server, credentials=(key, made["secret_access_key"]))
    for _ in range(10):
        with refused("NoSuchBucket"):
            s3.list_objects_v2(Bucket="high")

    def found():
        return [record for record in export(server) if record.get("access_key_id") == key]

    (denied,) = eventually(found)
    assert (denied["act"], denied["outcome"]) == ("bucket.use", "denied")
    assert denied["details"]["bucket"] == "high"
