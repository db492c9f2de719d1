"""Two custodians, exports to another server, rotation under load, and root keys that move."""

import json
import shutil
import threading
import time

import pytest

from harness.clients import refused, s3_client
from harness.content import content
from harness.custodian import WAITS, ask, ask_as, run, subject, with_input
from harness.server import coffer

# An identity of age for tests, and its recipient.
IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"


@pytest.fixture
def running(own_server):
    server = own_server().start()
    return server, s3_client(server)


def recipient():
    """The recipient of `IDENTITY`: X25519 of its bytes, in Bech32 (BIP 173)."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    charset = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

    def regroup(values, width, into):
        number, bits, out = 0, 0, []
        for value in values:
            number, bits = (number << width) | value, bits + width
            while bits >= into:
                bits -= into
                out.append((number >> bits) & ((1 << into) - 1))
        return out + ([(number << (into - bits)) & ((1 << into) - 1)] if bits and into == 5 else [])

    def polymod(values):
        check = 1
        for value in values:
            top = check >> 25
            check = (check & 0x1FFFFFF) << 5 ^ value
            for bit, generator in enumerate(
                (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
            ):
                check ^= generator if (top >> bit) & 1 else 0
        return check

    digits = [charset.index(letter) for letter in IDENTITY.lower().rsplit("1", 1)[1]][:-6]
    secret = bytes(regroup(digits, 5, 8)[:32])
    public = X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    data = regroup(public, 8, 5)
    expanded = [ord(letter) >> 5 for letter in "age"] + [0] + [ord(letter) & 31 for letter in "age"]
    check = polymod(expanded + data + [0] * 6) ^ 1
    return "age1" + "".join(
        charset[value] for value in data + [(check >> 5 * (5 - place)) & 31 for place in range(6)]
    )


def two_custodians(server):
    return [subject(server, name, roles=("key-custodian",)) for name in ("ada", "grace")]


def test_a_level_of_two_custodians_is_erased_by_two(running):
    server, s3 = running
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label", "--approvals", "2")
    ask(server, "bucket", "create", "of-secret", "--level", "secret")
    s3.put_object(Bucket="of-secret", Key="object", Body=b"goes")
    ada, grace = two_custodians(server)
    nobody = subject(server, "nobody")
    denied = ask_as(server, nobody, "level", "erase", "secret", "--yes", "--json", expect=1)
    assert "access denied" in denied
    request = ask_as(server, ada, "level", "erase", "secret", "--yes", "--json", expect=WAITS)
    assert request["wants"] == "level.erase" and request["approvals"] == 2
    assert s3.get_object(Bucket="of-secret", Key="object")["Body"].read() == b"goes"
    listed = ask_as(server, grace, "request", "list", "--json")
    assert [row["id"] for row in listed] == [request["id"]]
    approve = ("request", "approve", request["id"], "--yes", "--json")
    own = ask_as(server, ada, *approve, expect=1)
    assert "another custodian" in own
    withdrawn = ask_as(server, grace, "request", "withdraw", request["id"], "--json")
    assert withdrawn == {"id": request["id"], "withdrawn": True}
    late = ask_as(server, grace, *approve, expect=1)
    assert "no such request" in late
    request = ask_as(server, ada, "level", "erase", "secret", "--yes", "--json", expect=WAITS)
    server.restart()
    receipt = ask_as(server, grace, "request", "approve", request["id"], "--yes", "--json")
    people = [(person["name"], person["role"]) for person in receipt["performed_by"]]
    ids = [ask(server, "subject", "show", key)["id"] for key, _ in (ada, grace)]
    assert people == list(zip(ids, ("requested", "approved"), strict=True))
    assert [person["subject"] for person in receipt["performed_by"]] == ["ada", "grace"]
    with refused("NoSuchBucket"):
        s3_client(server).get_object(Bucket="of-secret", Key="object")


def commands_of(server, credentials):
    """Runs commands as the holder of an access key, and gives the finished processes."""
    ask_as(server, credentials, "request", "list", "--json")  # writes the profile
    profile = ("--credentials", server.folder / f"{credentials[0]}.ini")
    reach = ("--endpoint", server.admin_endpoint, "--ca", server.ca, *profile)
    return lambda *words, **options: coffer(*words, *reach, **options)


def test_what_waits_is_no_success_and_no_file(running):
    """A script that keeps what it gets can't take a request for a receipt or for a backup."""
    server, _ = running
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label", "--approvals", "3")
    ask(server, "bucket", "create", "of-secret", "--level", "secret")
    ada, grace = map(lambda who: commands_of(server, who), two_custodians(server))
    for words, wants in [
        (("level", "erase", "secret", "--yes"), "level.erase"),
        (("bucket", "erase", "of-secret", "--yes"), "bucket.erase"),
        (("key", "export", "secret", "--to", recipient()), "key.export"),
    ]:
        asked = ada(*words)
        assert (asked.returncode, asked.stdout) == (WAITS, b""), asked
        assert b"it waits for approval" in asked.stderr and wants.encode() in asked.stderr
    for request in json.loads(ada("request", "list", "--json").stdout):
        approved = grace("request", "approve", request["id"], "--yes")
        assert (approved.returncode, approved.stdout) == (WAITS, b""), approved
    assert ask(server, "level", "show", "secret")["export_count"] == 0
    assert ask(server, "bucket", "show", "of-secret")["level"] == "secret"


def test_approving_an_erase_asks_for_the_name(running):
    server, _ = running
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label", "--approvals", "2")
    ask(server, "bucket", "create", "of-secret", "--level", "secret")
    ada, grace = map(lambda who: commands_of(server, who), two_custodians(server))
    for what, name in [("bucket", "of-secret"), ("level", "secret")]:
        asked = ada(what, "erase", name, "--yes", "--json")
        approve = ("request", "approve", json.loads(asked.stdout)["id"])
        for typed in (b"", b"yes\n"):
            refused_one = grace(*approve, input=typed)
            assert refused_one.returncode == 2 and b"nothing was erased" in refused_one.stderr
        assert ask(server, what, "show", name)
        done = grace(*approve, input=name.encode() + b"\n")
        assert done.returncode == 0 and b"erased" in done.stdout, done.stderr
        gone = coffer("--data", server.data, what, "show", name)
        assert gone.returncode == 1


def test_an_export_that_can_t_be_kept_is_not_made(running, tmp_path):
    """Nothing is counted, no approval is used up, and no file is touched."""
    server, _ = running
    out = tmp_path / "secret.age"
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label", "--approvals", "2")
    ada, grace = map(lambda who: commands_of(server, who), two_custodians(server))
    export = ("key", "export", "secret", "--to", recipient())
    asked = ada(*export, "--out", out, "--json")
    assert asked.returncode == WAITS and not out.exists()
    approve = ("request", "approve", json.loads(asked.stdout)["id"])
    out.write_text("precious")
    for words in (approve, ("key", "export", "default", "--to", recipient())):
        kept = grace(*words, "--out", out)
        assert kept.returncode == 2 and b"nothing was asked for" in kept.stderr, kept
        assert out.read_text() == "precious"
    unclear = grace(*approve, "--json")
    assert unclear.returncode == 2 and b"--out" in unclear.stderr
    assert [row["export_count"] for row in ask(server, "level", "list")] == [0, 0]
    out.unlink()
    done = grace(*approve, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "level": "secret", "recipients": [recipient()], "file": str(out),
        "bytes": out.stat().st_size,
    }  # fmt: skip
    assert out.stat().st_mode & 0o777 == 0o600
    # The server refuses: the file that was made for it goes.
    missing = coffer("--data", server.data, "key", "export", "none", "--to", recipient(),
                     "--out", tmp_path / "none.age")  # fmt: skip
    assert missing.returncode == 1 and not (tmp_path / "none.age").exists()


def test_exports_of_such_a_level_take_two_as_well(running, tmp_path):
    server, _ = running
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label", "--approvals", "2")
    ada, grace = two_custodians(server)
    out = tmp_path / "secret.age"
    export = ("key", "export", "secret", "--to", recipient(), "--out", out)
    asked = commands_of(server, ada)(*export)
    assert asked.returncode == WAITS and not out.exists(), asked.stderr
    (request,) = ask_as(server, grace, "request", "list", "--json")
    ask_as(server, grace, "request", "approve", request["id"], "--out", out)
    assert out.read_bytes().startswith(b"-----BEGIN AGE ENCRYPTED FILE-----")
    assert ask(server, "level", "show", "secret")["export_count"] == 1


def test_a_level_moves_to_another_server_with_its_bucket(own_server, tmp_path):
    here, there = own_server("here").start(), own_server("there").start()
    s3 = s3_client(here)
    options = ("--rank", "0", "--same-label", "--sealed-transfer")
    ask(here, "level", "create", "moving", *options)
    ask(here, "bucket", "create", "of-moving", "--level", "moving")
    body = content(300_000, "moving")
    s3.put_object(Bucket="of-moving", Key="large", Body=body)
    s3.put_object(Bucket="of-moving", Key="small", Body=b"small")
    run(here, "key", "export", "moving", "--to", recipient(), "--out", tmp_path / "moving.age")
    folder = ask(here, "bucket", "show", "of-moving")["id"]
    here.stop()
    shutil.copytree(here.data / "buckets" / folder, there.data / "buckets" / folder)
    identity = tmp_path / "identity"
    identity.write_text(f"# a comment\n{IDENTITY}\n")
    command = ("key", "import", tmp_path / "moving.age", "--identity", identity, "--as", "arrived")
    refused = coffer("--data", there.data, *command)
    assert refused.returncode == 1 and b"--same-label" in refused.stderr, refused.stderr
    assert [level["name"] for level in ask(there, "level", "list")] == ["default"]
    imported = ask(there, *command, "--same-label")
    assert imported["level"] == "arrived"
    assert [(row["name"], row["state"]) for row in imported["buckets"]] == [
        ("of-moving", "adopted")
    ]
    left = {"owner", "grants", "policy", "cors", "lifecycle", "quota"}
    assert left < set(imported["buckets"][0]["left_behind"])
    s3 = s3_client(there)
    assert s3.get_object(Bucket="of-moving", Key="large")["Body"].read() == body
    there.restart()
    assert s3_client(there).get_object(Bucket="of-moving", Key="small")["Body"].read() == b"small"
    arrived = ask(there, "level", "show", "arrived")
    assert arrived["imported"] and arrived["sealed_transfer"]


def test_a_level_that_is_never_exported_is_not(running):
    server, _ = running
    ask(server, "level", "create", "fixed", "--rank", "0", "--same-label", "--no-export")
    done = coffer("--data", server.data, "key", "export", "fixed", "--to", recipient())
    assert done.returncode != 0 and b"fixed" in done.stderr and done.stdout == b""


class Load:
    """Puts and gets, beside whatever a test does, and sees to it that nothing fails."""

    def __init__(self, server, bucket):
        self.server, self.bucket, self.failures, self.count = server, bucket, [], 0
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(2)]

    def _run(self, number):
        s3 = s3_client(self.server)
        stored = {}
        try:
            while not self.stop.is_set():
                name = f"load-{number}-{len(stored) % 40}"
                stored[name] = content(20_000 + len(stored), name + str(len(stored)))
                s3.put_object(Bucket=self.bucket, Key=name, Body=stored[name])
                for known in list(stored)[-3:]:
                    got = s3.get_object(Bucket=self.bucket, Key=known)["Body"].read()
                    assert got == stored[known]
                self.count += 1
            for known, body in stored.items():
                assert s3.get_object(Bucket=self.bucket, Key=known)["Body"].read() == body
        except Exception as error:  # noqa: BLE001 - told when the load ends
            self.failures.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        time.sleep(0.3)
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures[0]
        assert self.count > 5


def test_keys_rotate_under_load(running):
    server, s3 = running
    s3.create_bucket(Bucket="busy")
    for number in range(300):
        s3.put_object(Bucket="busy", Key=f"old-{number}", Body=content(17_000, str(number)))
    with Load(server, "busy"):
        rotation = ask(server, "level", "rotate", "default")
        assert rotation["keys_done"] >= 300 and rotation["buckets_done"] == 1
        assert rotation["replaced_generation"] == 1 and rotation["replaced_destroyed"]
        before = ask(server, "keystore", "status")["generation"]
        root = ask(server, "keystore", "rotate")
        assert root["replaced_destroyed"] and root["generation"] > before
        told = run(server, "bucket", "rotate", "busy")
        assert "generation 2 of the key of bucket busy is destroyed" in told
    assert ask(server, "level", "show", "default")["generation"] == 2
    bucket = ask(server, "bucket", "show", "busy")
    assert bucket["generation"] == 3 and "older_generation" not in bucket
    status = ask(server, "keystore", "status")
    assert status["rotating_bucket_count"] == 0
    assert status["level_keys"] == [{"level": "default", "generation": 2}]
    for number in range(0, 300, 29):
        body = s3.get_object(Bucket="busy", Key=f"old-{number}")["Body"].read()
        assert body == content(17_000, str(number))
    assert coffer("--data", server.data, "verify").returncode == 0


def test_the_root_key_moves_from_source_to_source_under_load(token_with_pin, running):
    server, s3 = running
    s3.create_bucket(Bucket="busy")
    s3.put_object(Bucket="busy", Key="object", Body=b"stays")
    with Load(server, "busy"):
        with_input(
            server, b"correct horse battery staple\n", "keystore", "move", "--to", "passphrase"
        )
        assert ask(server, "keystore", "status")["source"] == "passphrase"
        ask(server, "keystore", "move", "--to", token_with_pin)
        assert ask(server, "keystore", "status")["category"] == "Purge"
        ask(server, "keystore", "move", "--to", f"keyring:test-{server.port}")
        assert not (server.data / "root.key").exists()
        ask(server, "keystore", "move", "--to", "file")
    server.restart()
    assert s3_client(server).get_object(Bucket="busy", Key="object")["Body"].read() == b"stays"
    same = coffer("--data", server.data, "keystore", "move", "--to", "file")
    assert same.returncode != 0


def test_with_a_token_a_copy_from_before_the_erase_opens_no_more(
    own_server, token_with_pin, tmp_path
):
    server = own_server(arguments=["--root-key", token_with_pin]).start()
    s3 = s3_client(server)
    ask(server, "level", "create", "secret", "--rank", "0", "--same-label")
    ask(server, "bucket", "create", "of-secret", "--level", "secret")
    s3.create_bucket(Bucket="kept")
    for bucket in ("of-secret", "kept"):
        s3.put_object(Bucket=bucket, Key="object", Body=content(40_000, bucket))
    server.stop()
    backup = tmp_path / "backup"
    shutil.copytree(server.data, backup, ignore=shutil.ignore_patterns("admin.sock"))
    read = coffer("--data", backup, "offline", "cat", "of-secret", "object")
    assert read.stdout == content(40_000, "of-secret"), "before the erase the copy opens"

    server.start()
    receipt = ask(server, "level", "erase", "secret", "--yes")
    assert receipt["method"]["category"] == "Purge"
    server.stop()
    for bucket in ("of-secret", "kept"):
        read = coffer("--data", backup, "offline", "cat", bucket, "object")
        assert read.returncode != 0 and read.stdout == b"", "the copy opens no more"
    read = coffer("--data", server.data, "offline", "cat", "kept", "object")
    assert read.stdout == content(40_000, "kept")
    server.start()
    got = s3_client(server).get_object(Bucket="kept", Key="object")["Body"].read()
    assert got == content(40_000, "kept")
