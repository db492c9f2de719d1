"""Older copies of files, put back while the server is stopped: found, named, and refused until they
are accepted on purpose."""

import json
import shutil
import time

import pytest

from harness.administration import client_of, make_subject, run
from harness.clients import s3_client
from harness.rollback import refusal
from harness.server import coffer


def copy(server, *names, folder="kept"):
    """Keeps files and folders of a stopped server, with the logs of its databases."""
    kept = server.folder / folder
    shutil.rmtree(kept, ignore_errors=True)
    for name in names:
        for path in sorted(server.data.glob(f"{name}*")):
            to = kept / path.relative_to(server.data)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, to)
            elif path.is_file():
                shutil.copy2(path, to)
    return kept


def put_back(server, kept):
    """Puts back what was kept, as somebody would who may write the folder."""
    for path in sorted(kept.rglob("*")):
        if not path.is_file():
            continue
        to = server.data / path.relative_to(kept)
        if to.name == "system.db" or to.name == "catalog.db":
            for suffix in ("-wal", "-shm"):
                (to.parent / (to.name + suffix)).unlink(missing_ok=True)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    for folder in kept.iterdir():
        if folder.name == "audit":
            for path in (server.data / "audit").iterdir():
                if not (folder / path.name).exists():
                    path.unlink()


def accept(server):
    """Starts once with the option that accepts, and then without it."""
    server.arguments.append("--accept-rollback")
    server.start()
    server.arguments.remove("--accept-rollback")
    shown = run(server, "audit", "show", "--json")
    server.restart()
    return shown


def is_refused(s3):
    try:
        s3.list_buckets()
    except s3.exceptions.ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    return False


@pytest.mark.parametrize("how", ["disable", "delete"])
def test_an_access_key_does_not_come_back(own_server, how):
    server = own_server().start()
    s3 = client_of(server, "eve", "default..default")
    s3.create_bucket(Bucket="mine")
    server.stop()
    kept = copy(server, "system.db")
    server.start()
    run(server, "subject", how, "eve")
    run(server, "keystore", "rotate")
    assert is_refused(s3)
    server.stop()
    put_back(server, kept)
    line = refusal(server)
    assert "system.db is an older copy" in line and "commit" in line, line
    # Neither kind of looking calls it sound, and reading goes on.
    looked = coffer("offline", "ls", "--data", server.data)
    assert looked.returncode == 0 and b"mine" in looked.stdout
    assert b"ROLLBACK" in looked.stderr and b"system.db" in looked.stderr
    proven = coffer("prove", "--data", server.data, "--no-canary")
    assert proven.returncode == 1 and b"ROLLBACK: system.db" in proven.stdout, proven
    # Older is not damaged, and neither is sound.
    verified = coffer("verify", "--data", server.data, text=True)
    assert verified.returncode == 1 and "ROLLBACK: system.db" in verified.stdout, verified
    assert "damaged" not in verified.stdout and "DAMAGED" not in verified.stdout, verified
    assert "all opens, and 1 older than is known (ROLLBACK)" in verified.stdout, verified
    verified = coffer("verify", "--data", server.data, "--json", text=True)
    *_, older, done = map(json.loads, verified.stdout.splitlines())
    assert older["event"] == "rollback" and "system.db" in older["what"], older
    assert (done["damage_count"], done["rollback_count"]) == (0, 1), done
    shown = accept(server)
    assert '"rollback.accept"' in shown and '"system.db"' in shown
    assert not is_refused(s3), "that is what was accepted"
    proven = coffer("prove", "--data", server.data, "--no-canary")
    assert b"ROLLBACK" not in proven.stdout


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_what_is_put_back_under_a_running_server_is_not_held(own_server, ends):
    server = own_server().start()
    s3 = client_of(server, "eve", "default..default")
    time.sleep(3)  # The anchor holds it.
    kept = copy(server, "system.db")
    run(server, "subject", "disable", "eve")
    for path in kept.iterdir():
        with open(server.data / path.name, "r+b") as put:
            put.truncate(put.write(path.read_bytes()))
    refused = coffer(
        "--data", server.data, "level", "create", "other", "--rank", "1", "--same-label"
    )
    assert refused.returncode == 1 and b"ROLLBACK: system.db" in refused.stderr, refused.stderr
    time.sleep(5)
    assert "ROLLBACK: system.db" in server.log(), "it is told without an act, too"
    assert is_refused(s3)
    getattr(server, ends)()
    assert "system.db is an older copy" in refusal(server)


def test_the_log_of_the_database_alone_is_missed_too(own_server):
    server = own_server().start()
    client_of(server, "eve", "default..default")
    time.sleep(0.1)
    server.kill()
    kept = copy(server, "system.db")
    assert (kept / "system.db-wal").exists()
    server.start()
    run(server, "subject", "disable", "eve")
    server.kill()
    put_back(server, kept)
    assert "system.db is an older copy" in refusal(server)


def test_a_receipt_does_not_vanish(own_server):
    server = own_server().start()
    run(server, "level", "create", "gone", "--rank", "1", "--same-label")
    server.stop()
    kept = copy(server, "system.db", "anchor")
    server.start()
    run(server, "level", "erase", "gone", "--yes")
    assert len(run(server, "receipt", "list").splitlines()) >= 1
    server.stop()
    put_back(server, kept)
    line = refusal(server)
    assert "system.db" in line and "anchor" in line


def test_an_export_s_record_does_not_vanish(own_server, tmp_path):
    server = own_server().start()
    run(server, "level", "create", "plans", "--rank", "1", "--same-label")
    server.stop()
    alone, together = copy(server, "audit", folder="alone"), copy(server, "audit", "system.db")
    server.start()
    recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
    run(server, "key", "export", "plans", "--to", recipient, "--out", tmp_path / "export")
    server.stop()
    for kept in (alone, together):
        now = copy(server, "audit", "system.db", folder="now")
        put_back(server, kept)
        line = refusal(server)
        assert "audit/ is an older copy" in line, line
        verified = coffer("audit", "verify", "--data", server.data)
        assert verified.returncode == 1, verified
        put_back(server, now)
        server.start()
        server.stop()
    put_back(server, together)
    shown = accept(server)
    assert '"audit/"' in shown
    server.kill()
    put_back(server, now)
    assert "audit/" in refusal(server), "what was put aside is not the newer one now"


def catalogs(server):
    found = server.data.glob("buckets/*/catalog.db")
    return sorted(path.relative_to(server.data) for path in found)


@pytest.mark.parametrize("with_anchor", [False, True])
@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_old_versions_of_objects_are_not_served(own_server, with_anchor, ends):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="plan", Body=b"old")
    server.stop()
    (catalog,) = catalogs(server)
    kept = copy(server, catalog, *(["anchor"] if with_anchor else []))
    server.start()
    s3.put_object(Bucket="mine", Key="plan", Body=b"new")
    if ends == "kill":
        time.sleep(5)
        if with_anchor:
            run(server, "level", "create", "other", "--rank", "1", "--same-label")
        server.kill()
    else:
        server.stop()
    put_back(server, kept)
    line = refusal(server)
    assert ("anchor is an older copy" if with_anchor else f"{catalog} is an older copy") in line
    shown = accept(server)
    assert '"rollback.accept"' in shown
    assert s3.get_object(Bucket="mine", Key="plan")["Body"].read() == b"old"
    s3.put_object(Bucket="mine", Key="plan", Body=b"newest")
    server.stop()
    server.start()
    assert s3.get_object(Bucket="mine", Key="plan")["Body"].read() == b"newest"


def test_a_missing_anchor_is_told(own_server):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="mine")
    server.stop()
    (server.data / "anchor").unlink()
    assert "anchor is missing" in refusal(server)
    accept(server)


def whole(server, folder):
    to = server.folder / folder
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(server.data, to, ignore=shutil.ignore_patterns("admin.sock"))
    return to


def put_back_whole(server, kept):
    shutil.rmtree(server.data)
    shutil.copytree(kept, server.data)


@pytest.mark.parametrize("kind", ["file elsewhere", "keyring", "token"])
def test_a_whole_folder_is_missed_by_who_holds_its_key(own_server, token_with_pin, tmp_path, kind):
    elsewhere = tmp_path / "stick"
    elsewhere.mkdir()
    source = {
        "file elsewhere": f"file:{elsewhere}/root.key",
        "keyring": "keyring",
        "token": token_with_pin,
    }[kind]
    server = own_server(arguments=["--root-key", source]).start()
    try:
        s3 = client_of(server, "eve", "default..default")
        s3.create_bucket(Bucket="mine")
        server.stop()
        kept = whole(server, "yesterday")
        server.start()
        run(server, "subject", "disable", "eve")
        server.kill()
        newest = whole(server, "newest")
        put_back_whole(server, kept)
        line = refusal(server)
        assert "keystore is an older copy" in line and "generation" in line, line
        looked = coffer("offline", "ls", "--data", server.data)
        assert looked.returncode == 0 and b"ROLLBACK: keystore" in looked.stderr, looked.stderr
        put_back_whole(server, newest)
        server.start()
        assert is_refused(s3)
        server.stop()
        put_back_whole(server, kept)
        shown = accept(server)
        assert '"rollback.accept"' in shown and '"keystore"' in shown
        assert not is_refused(s3)
        server.stop()
        for name in ("system.db", "anchor", "audit"):
            put_aside = copy(server, name, folder="now")
            part = server.folder / "part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            for path in newest.glob(f"{name}*"):
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, part / path.name)
            put_back(server, part)
            assert name in refusal(server), "what was put aside is not the newer one now"
            put_back(server, put_aside)
        server.start()
    finally:
        if server.process is None:
            put_back_whole(server, newest)
            server.arguments.append("--accept-rollback")
            server.start()
        if kind == "keyring":
            run(server, "keystore", "move", "--to", "file")


def test_a_source_that_holds_no_generation_any_more_is_told(own_server, tmp_path):
    source = f"file:{tmp_path}/root.key"
    server = own_server(arguments=["--root-key", source]).start()
    server.stop()
    (tmp_path / "root.key.generation").unlink()
    before = len(server.log())
    server.start()
    assert "does no more" in server.log()[before:]
    server.stop()
    assert (tmp_path / "root.key.generation").exists()


def test_kills_are_no_rollback(own_server):
    server = own_server().start()
    credentials = make_subject(server, "eve", "default..default")
    s3 = s3_client(server, credentials=credentials)
    s3.create_bucket(Bucket="mine")
    for turn in range(12):
        s3.put_object(Bucket="mine", Key="plan", Body=f"{turn}".encode())
        if turn % 3 == 0:
            run(server, "level", "create", f"level-{turn}", "--rank", "1", "--same-label")
        time.sleep(turn % 4)
        server.kill()
        server.start()
        body = s3.get_object(Bucket="mine", Key="plan")["Body"].read()
        assert body == f"{turn}".encode()
    assert "ROLLBACK" not in server.log()
