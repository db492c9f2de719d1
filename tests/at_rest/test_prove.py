"""`coffer prove`: finds nothing in a sound folder, and everything that is planted."""

import contextlib
import json
import os
import shutil
import threading

import pytest

from harness.clients import s3_client
from harness.content import PART_MIN_BYTES, content
from harness.server import coffer

SLOT_BYTES = 4 << 20


def prove(server, *arguments, code=0):
    """What the command says, as its JSON has it."""
    where = ["--s3", server.endpoint] if server.process else []
    done = coffer("prove", "--data", server.data, "--json", *where, *arguments)
    assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
    proof = json.loads(done.stdout)
    assert proof["proven"] == (code != 1) and proof["failed"] == (code == 2)
    return proof


def fill(server):
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    for name, size_bytes in (("small", 3_000), ("large", 2_000_000), ("huge", 9_000_000)):
        s3.put_object(Bucket="mine", Key=name, Body=content(size_bytes))
    where = {"Bucket": "mine", "Key": "in parts"}
    where["UploadId"] = s3.create_multipart_upload(**where)["UploadId"]
    s3.upload_part(**where, PartNumber=1, Body=content(PART_MIN_BYTES))
    s3.upload_part(**where, PartNumber=2, Body=b"a part of few bytes")
    return s3


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The data folder of a server that was stopped."""
    from harness.server import Server

    server = Server(tmp_path_factory.mktemp("prove"))
    server.start()
    fill(server)
    server.stop()
    yield server
    server.close()


@pytest.fixture
def damaged(own_server, stopped):
    """A copy of that folder, to be damaged."""
    server = own_server("copy")
    shutil.copytree(stopped.data, server.data)
    return server


def found(proof, path):
    return [finding["what"] for finding in proof["findings"] if finding["path"] == path]


def blob(server, most=1 << 30):
    """The longest blob up to that size."""
    paths = [path for path in server.blob_files() if path.stat().st_size <= most]
    return max(paths, key=lambda path: path.stat().st_size)


def test_a_running_server(own_server):
    server = own_server().start()
    s3 = fill(server)
    proof = prove(server)
    assert proof["findings"] == [] and proof["not_checked"] == []
    assert proof["commitments"] == {"by": "the running server", "checked_count": 5}
    assert proof["canary"]["files_searched"] >= 8
    assert proof["canary"]["forms_searched"] == 5 * 8
    assert proof["files"]["blobs"] == 4 and proof["files"]["databases"] >= 2
    assert proof["page_count"] > 100
    design = {"root.key", "credentials", "tls/ca.key", "tls/server.key"}
    assert set(proof["readable_by_design"]) == design
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["mine"], "the canary is gone"
    assert len(server.blob_files()) == 4 or server.blob_bytes_at_most(20_000_000)
    assert server.stop() == 0 and "panicked" not in server.log()


def test_a_stopped_server(stopped):
    proof = prove(stopped)
    assert proof["findings"] == []
    assert proof["commitments"] == {
        "by": "this command, with the root key",
        "checked_count": 4,
    }
    assert proof["canary"] is None
    assert len(proof["not_checked"]) == 1 and "canary" in proof["not_checked"][0]


def test_while_it_is_written_to(own_server):
    """What comes and goes meanwhile is no finding."""
    server = own_server().start()
    fill(server)
    stop = threading.Event()
    failures = []

    def write(number):
        s3 = s3_client(server)
        try:
            while not stop.is_set():
                s3.put_object(Bucket="mine", Key=f"{number}", Body=content(300_000))
                s3.put_object(Bucket="mine", Key=f"small {number}", Body=content(2_000))
        except Exception as error:
            failures.append(error)

    def rotate():
        while not stop.is_set():
            done = coffer("--data", server.data, "keystore", "rotate")
            if done.returncode:
                failures.append(done.stderr)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    threads.append(threading.Thread(target=rotate))
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert prove(server)["findings"] == []
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_for_people(stopped):
    done = coffer("prove", "--data", stopped.data)
    text = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert "proven: " in text and "not checked" in text and "root.key" in text


def test_what_is_no_data_folder(tmp_path):
    done = coffer("prove", "--data", tmp_path)
    assert done.returncode == 2 and b"no keystore" in done.stderr


def test_without_a_root_key_commitments_are_not_compared(damaged):
    (damaged.data / "root.key").unlink()
    proof = prove(damaged)
    assert proof["commitments"] is None
    assert any("commitments" in what for what in proof["not_checked"])


def test_an_access_key_that_was_taken_over(own_server):
    server = own_server().start()
    server.credentials_path.unlink()
    proof = prove(server, code=2)
    assert proof["canary"] is None
    assert any("AWS_ACCESS_KEY_ID" in what for what in proof["not_checked"])


def test_an_unknown_file(damaged):
    (damaged.data / "buckets/notes.txt").write_text("where the recordings are")
    (damaged.data / "buckets/notes.txt").chmod(0o600)
    assert "no such file" in found(prove(damaged, code=1), "buckets/notes.txt")[0]


@pytest.mark.parametrize(
    ("name", "mode"), [("system.db", 0o644), ("keystore", 0o640), ("tls", 0o755), (".", 0o711)]
)
def test_a_loose_mode(damaged, name, mode):
    (damaged.data / name).chmod(mode)
    proof = prove(damaged, code=1)
    assert f"{mode:04o}" in found(proof, "" if name == "." else name)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else(damaged):
    os.chown(damaged.data / "credentials", 1, -1)
    assert "belongs to user 1" in found(prove(damaged, code=1), "credentials")[0]


def test_a_link_to_elsewhere(damaged, tmp_path):
    (tmp_path / "plain").write_text("x")
    path = blob(damaged)
    path.unlink()
    path.symlink_to(tmp_path / "plain")
    findings = found(prove(damaged, code=1), str(path.relative_to(damaged.data)))
    assert any("leads elsewhere" in what for what in findings)


def test_a_blob_swapped_by_plaintext(damaged):
    """Of the same length, so that only its bytes tell."""
    path = blob(damaged)
    text = b"The quick brown fox jumps over the lazy dog. "
    size_bytes = path.stat().st_size
    path.write_bytes((text * (size_bytes // len(text) + 1))[:size_bytes])
    findings = found(prove(damaged, code=1), str(path.relative_to(damaged.data)))
    assert any("not like ciphertext" in what for what in findings)
    assert any("header" in what for what in findings), "its commitment is compared as well"


def test_a_page_of_plaintext_within_a_blob(damaged):
    path = min(damaged.blob_files(), key=lambda path: abs(path.stat().st_size - 2_000_000))
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.seek(file.tell() - 4_000)
        file.write(b"as clear as day. " * 235)
    assert found(prove(damaged, code=1), str(path.relative_to(damaged.data)))


def test_a_blob_of_noise(damaged):
    """It looks like ciphertext, and only its commitment tells."""
    path = blob(damaged)
    path.write_bytes(content(path.stat().st_size))
    proof = prove(damaged, code=1)
    (what,) = found(proof, str(path.relative_to(damaged.data)))
    assert "header" in what


def test_a_blob_of_an_odd_length(damaged):
    path = blob(damaged)
    os.truncate(path, 56 + 16 + 16_384)
    proof = prove(damaged, code=1)
    assert any("length" in what for what in found(proof, str(path.relative_to(damaged.data))))


def test_a_swapped_blob_of_a_running_server(own_server):
    server = own_server().start()
    fill(server)
    path = blob(server)
    path.write_bytes(content(path.stat().st_size))
    proof = prove(server, code=1)
    assert any("bucket mine" in finding["what"] for finding in proof["findings"])


@pytest.mark.parametrize("fill_byte", [b"\0", None])
def test_a_catalog_that_is_not_sealed(damaged, fill_byte):
    (catalog,) = damaged.data.glob("buckets/*/catalog.db")
    size_bytes = catalog.stat().st_size
    plain = b"SQLite format 3\0" + bytes(size_bytes - 16)
    catalog.write_bytes(fill_byte * size_bytes if fill_byte else plain)
    findings = found(prove(damaged, code=1), str(catalog.relative_to(damaged.data)))
    assert any("not like ciphertext" in what or "not sealed" in what for what in findings)


def test_a_log_of_a_database_that_is_not_sealed(damaged):
    log = damaged.data / "system.db-wal"
    header = bytes.fromhex("377f0682002de21800001000") + bytes(20)
    log.write_bytes(header + bytes(24) + b"a page of plaintext ".ljust(4096, b"."))
    log.chmod(0o600)
    assert "not like ciphertext" in found(prove(damaged, code=1), "system.db-wal")[0]


def test_a_record_of_the_audit_log_that_is_not_sealed(damaged):
    (segment,) = damaged.data.glob("audit/*.log")
    log = bytearray(segment.read_bytes())
    sealed_bytes = int.from_bytes(log[72:76], "big")
    text = b'{"time_ms":1,"act":"level.erase","actor":"local:0","outcome":"done"}' * 300
    log[84 : 84 + sealed_bytes] = text[:sealed_bytes]
    segment.write_bytes(log)
    assert "not like ciphertext" in found(prove(damaged, code=1), "audit/00000001.log")[0]


def test_after_an_erase_and_under_a_passphrase(own_server, tmp_path, monkeypatch):
    """All kinds of files that there can be, in one folder."""
    (tmp_path / "coffer-passphrase").write_text("lantern-gravel-uncle-seventeen-otters")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    server = own_server().start()
    fill(server)
    for words in (
        ("level", "create", "secret", "--rank", "2"),
        ("bucket", "create", "doomed", "--level", "secret"),
        ("keystore", "move", "--to", "passphrase"),
        ("level", "erase", "secret", "--yes"),
        ("keystore", "rotate"),
    ):
        done = coffer("--data", server.data, *words)
        assert done.returncode == 0, done.stderr
    proof = prove(server)
    assert proof["findings"] == [] and proof["files"]["sealed root key"] == 1
    assert "root.key" not in proof["readable_by_design"]
    server.stop()
    assert "passphrase" in prove(server)["not_checked"][0]
    number = os.open(tmp_path / "coffer-passphrase", os.O_RDONLY)
    where = ["--data", server.data, "--json", "--passphrase-fd", number]
    opened = json.loads(coffer("prove", *where, pass_fds=[number]).stdout)
    os.close(number)
    assert opened["commitments"]["checked_count"] == 4


@pytest.mark.parametrize("at", [100, SLOT_BYTES + 100, SLOT_BYTES - 9])
def test_a_keystore_with_something_in_it(damaged, at):
    with (damaged.data / "keystore").open("r+b") as keystore:
        keystore.seek(at)
        keystore.write(b"secret")
    assert "copy" in found(prove(damaged, code=1), "keystore")[0]


def test_a_root_key_that_should_not_be_there(damaged):
    (damaged.data / "keystore.source").write_text(
        "coffer root-key source v1\npassphrase root.passphrase\n"
    )
    (damaged.data / "keystore.source").chmod(0o600)
    assert "elsewhere" in found(prove(damaged, code=1), "root.key")[0]


def test_a_canary_that_a_file_holds(own_server):
    """Something copies what passes by: the canary finds it, whatever it is written into."""
    server = own_server().start()
    fill(server)
    leak = server.data / "credentials.new"
    leak.touch(0o600)
    stop = threading.Event()

    def copy_names():
        """Notes the names of objects that are stored, in a file of a known name.

        Of every canary, for the one that it meets first may have been looked for by then; and a
        canary's bucket may go between two requests.
        """
        s3, noted = s3_client(server), set()
        while not stop.is_set():
            for bucket in s3.list_buckets()["Buckets"]:
                with contextlib.suppress(s3.exceptions.NoSuchBucket):
                    listed = s3.list_objects_v2(Bucket=bucket["Name"]).get("Contents", [])
                    names = {entry["Key"] for entry in listed} - noted
                    for name in names:
                        if name.startswith("canary/"):
                            with leak.open("ab") as file:
                                file.write(name.encode())
                    noted |= names

    thread = threading.Thread(target=copy_names)
    thread.start()
    try:
        for _ in range(20):
            done = coffer("prove", "--data", server.data, "--json", "--s3", server.endpoint)
            proof = json.loads(done.stdout)
            if found(proof, "credentials.new"):
                break
    finally:
        stop.set()
        thread.join()
    assert found(proof, "credentials.new") == ["it holds an object's name of the canary, plain"]
