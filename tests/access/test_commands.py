"""The commands themselves: what scripts rely on, tables, errors, and both ways to the server."""

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.administration import ask, client_of, from_afar, make_subject, refused, run
from harness.auditing import eventually
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.server import BINARY, Server, clean_environment, coffer

MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def output(*words, **options):
    done = coffer(*words, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_pinned_commands(own_server):
    """Word for word as scripts use them."""
    server = own_server().start()
    folder = server.data
    output("--data", folder, "level", "create", "secret", "--rank", "2")
    levels = json.loads(output("--data", folder, "level", "list", "--json"))
    assert [(level["name"], level["rank"]) for level in levels] == [("default", 0), ("secret", 2)]
    output("--data", folder, "bucket", "create", "three", "--level", "secret")
    made = json.loads(
        output("--data", folder, "subject", "create", "NAME", "--clearance", "default..secret",
               "--json")
    )  # fmt: skip
    credentials = made["access_key_id"], made["secret_access_key"]
    client = s3_client(server, credentials=credentials)
    client.put_object(Bucket="three", Key="a", Body=b"c")
    assert client.get_object(Bucket="three", Key="a")["Body"].read() == b"c"
    assert client.get_bucket_location(Bucket="three")["LocationConstraint"] == "secret"
    assert [found["Name"] for found in client.list_buckets()["Buckets"]] == ["three"]
    receipt = json.loads(output("--data", folder, "level", "erase", "secret", "--yes", "--json"))
    assert receipt["erased"]["level"]["name"] == "secret"
    with s3_refused("NoSuchBucket", 404):
        client.get_object(Bucket="three", Key="a")
    (server.folder / "receipt.json").write_text(json.dumps(receipt))
    key = output("--data", folder, "receipt", "key").split()[-1]
    output("receipt", "verify", server.folder / "receipt.json", "--key", key)


def test_json_of_levels(server):
    made = ask(server, "level", "create", "vault", "--rank", "3", "--categories", "c7,c1.c3",
               "--no-export", "--approvals", "2", "--audit-data")  # fmt: skip
    assert re.fullmatch("[0-9a-f]{32}", made.pop("id"))
    assert MOMENT.match(made.pop("created_at"))
    assert made == {
        "name": "vault", "label": "s3:c1.c3,c7", "rank": 3, "categories": "c1.c3,c7",
        "no_export": True, "approvals": 2, "audit_data": True, "public": False,
        "erase_breaks_locks": False, "sealed_transfer": False,
        "imported": False,
        "generation": 1, "export_count": 0, "bucket_count": 0,
    }  # fmt: skip
    run(server, "bucket", "create", "in-the-vault", "--level", "vault")
    shown = ask(server, "level", "show", "vault")
    assert shown["bucket_count"] == 1
    assert shown in ask(server, "level", "list")


def test_json_of_buckets(server):
    made = ask(server, "bucket", "create", "json-bucket")
    assert re.fullmatch("[0-9a-f]{32}", made.pop("id")) and MOMENT.match(made.pop("created_at"))
    assert made == {
        "name": "json-bucket", "level": "default", "label": "s0", "generation": 1,
        "etag": "random",
        "object_count": 0, "object_bytes": 0, "upload_count": 0, "upload_bytes": 0,
        "settings": {
            "versioning": "never", "policy": False, "public": False, "lifecycle_rules": 0,
            "cors": False,
        },
    }  # fmt: skip
    client = s3_client(server)
    client.put_object(Bucket="json-bucket", Key="a", Body=b"abc")
    assert "not empty" in refused(server, "bucket", "delete", "json-bucket")
    client.delete_object(Bucket="json-bucket", Key="a")
    assert ask(server, "bucket", "delete", "json-bucket") == {
        "name": "json-bucket", "deleted": True,
    }  # fmt: skip
    assert "no bucket json-bucket" in refused(server, "bucket", "show", "json-bucket")


def test_what_is_set_of_a_bucket_is_told(own_server):
    """Whose it is, versions, locks, policy and rules; also after a restart."""
    server = own_server().start()
    owner = client_of(server, "olga", "default")
    owner.create_bucket(Bucket="set", ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 3}}
    owner.put_object_lock_configuration(
        Bucket="set", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    expire = {"ID": "a", "Status": "Disabled", "Filter": {}, "Expiration": {"Days": 9}}
    owner.put_bucket_lifecycle_configuration(
        Bucket="set", LifecycleConfiguration={"Rules": [expire]}
    )
    origins = {"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"]}
    owner.put_bucket_cors(Bucket="set", CORSConfiguration={"CORSRules": [origins]})
    statement = {
        "Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject",
        "Resource": "arn:aws:s3:::set/*",
    }  # fmt: skip
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    owner.put_bucket_policy(Bucket="set", Policy=json.dumps(policy))
    expected = {
        "owner": "olga", "versioning": "enabled",
        "object_lock": {"mode": "compliance", "days": 3}, "policy": True, "public": False,
        "lifecycle_rules": 1, "cors": True,
    }  # fmt: skip
    assert ask(server, "bucket", "show", "set")["settings"] == expected
    assert ask(server, "bucket", "list")[0]["settings"] == expected
    told = [line.strip() for line in run(server, "bucket", "show", "set").splitlines()]
    for line in ("owner olga", "versions kept enabled", "lifecycle rules 1", "CORS rules yes",
                 "object lock yes; new objects for 3 days, by compliance",
                 "policy yes; who signs nothing is not let in"):  # fmt: skip
        assert line in [" ".join(shown.split()) for shown in told], told
    server.restart()
    owner.list_objects_v2(Bucket="set")
    assert ask(server, "bucket", "show", "set")["settings"] == expected
    run(server, "subject", "delete", "olga")
    assert "owner" not in ask(server, "bucket", "show", "set")["settings"]


def test_json_of_subjects(server):
    made = ask(server, "subject", "create", "json.subject")
    secret = made.pop("secret_access_key")
    assert len(secret) == 40 and re.fullmatch("CF[A-Z2-7]{18}", made["access_key_id"])
    key_id = made.pop("access_key_id")
    shown = ask(server, "subject", "show", "json.subject")
    assert shown == made and secret not in run(server, "subject", "list", "--json")
    [key] = made.pop("access_keys")
    created = made.pop("created_at")
    assert key == {"id": key_id, "state": "active", "created_at": created}
    assert MOMENT.match(created) and re.fullmatch("[0-9a-f]{32}", made.pop("id"))
    assert made == {
        "name": "json.subject", "clearance": "s0", "roles": ["data-user"], "all_buckets": True,
        "grants": [], "disabled": False, "trusted": False,
    }  # fmt: skip


def test_generations_are_told(own_server):
    """Of the keystore, of each level's key, of a bucket's; and which was destroyed."""
    server = own_server().start()
    run(server, "level", "create", "turned", "--rank", "4")
    run(server, "bucket", "create", "of-turned", "--level", "turned")
    turned = ask(server, "level", "rotate", "turned")
    assert (turned["replaced_generation"], turned["replaced_destroyed"]) == (1, True)
    told = run(server, "level", "rotate", "turned")
    assert "generation 2 of the key of level turned is destroyed" in told, told
    assert "so is the older one of its bucket's" in told, told
    status = ask(server, "keystore", "status")
    assert {"level": "turned", "generation": 3} in status["level_keys"]
    lines = [line.split() for line in run(server, "keystore", "status").splitlines()]
    assert ["turned", "3"] in lines
    assert ["keystore", "generation", str(status["generation"])] in lines
    assert ask(server, "bucket", "show", "of-turned")["generation"] == 3
    assert ["key", "generation", "3"] in [
        line.split() for line in run(server, "bucket", "show", "of-turned").splitlines()
    ]
    rotated = run(server, "keystore", "rotate")
    assert rotated.startswith("the old root key is destroyed"), rotated
    root = ask(server, "keystore", "rotate")
    assert root["replaced_destroyed"] and root["generation"] > status["generation"]


def test_secrets_are_in_no_log(server):
    _, secret = make_subject(server, "unlogged", "default")
    assert secret not in server.log()


def test_tables(server):
    run(server, "level", "create", "tabled", "--rank", "4")
    lines = run(server, "level", "list").splitlines()
    heading = (
        "LEVEL LABEL BUCKETS GENERATION EXPORTS PUBLIC BREAKS LOCKS SEALED TRANSFER CREATED (UTC)"
    )
    assert lines[0].split() == heading.split()
    row = next(line for line in lines if line.startswith("tabled"))
    assert row.split()[1:6] == ["s4", "0", "1", "0", "no"]
    assert row.index("s4") == lines[0].index("LABEL")
    text = run(server, "subject", "create", "tabled")
    assert "secret access key" in text and "not shown again" in text
    assert "tabled" in run(server, "subject", "list")
    assert "LEVEL" in run(server, "bucket", "list")


def test_a_label_of_another_level_is_said_twice(server):
    run(server, "level", "create", "one", "--rank", "5", "--categories", "c5")
    again = ["level", "create", "other", "--rank", "5", "--categories", "c5"]
    assert "level one has the label s5:c5 already" in refused(server, *again)
    assert "other" not in run(server, "level", "list")
    assert ask(server, *again, "--same-label")["label"] == "s5:c5"
    run(server, "level", "create", "apart", "--rank", "5", "--categories", "c6")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["level", "create", "default", "--rank", "1"], "already"),
        (["level", "create", "Bad", "--rank", "1"], "a level's name"),
        (["level", "create", "x", "--rank", "1", "--approvals", "0"], "approvals"),
        (["level", "create", "x", "--rank", "1", "--categories", "c1024"], "c0 to c1023"),
        (["level", "create", "x", "--rank", "0"], "level default has the label s0 already"),
        (["level", "show", "../../etc"], "no level"),
        (["bucket", "create", "Bad"], "name of a new bucket"),
        (["bucket", "create", "good", "--level", "nowhere"], "no level"),
        (["subject", "create", "bad name"], "subject's name"),
        (["subject", "create", "x", "--clearance", "nowhere"], "clearance"),
        (["subject", "create", "x", "--clearance", "s2..s1"], "dominate"),
        (["subject", "create", "x", "--roles", "king"], "role"),
        (["subject", "create", "x", "--grant", "of-nothing=read"], "bucket"),
        (["subject", "create", "first"], "already"),
        (["subject", "delete", "nobody"], "no subject"),
        (["subject", "set", "first", "--revoke", "of-nothing"], ""),
    ],
)
def test_errors_are_one_line(server, words, told):
    assert told in refused(server, *words)


@pytest.mark.parametrize(
    "words",
    [
        ["level", "create", "x"],
        ["level", "create", "x", "--rank", "16"],
        ["subject", "create", "x", "--grant", "bucket"],
        ["subject", "create", "x", "--expires", "soon"],
        ["subject", "set", "first"],
        ["serve", "--endpoint", "https://127.0.0.1:1"],
        ["level", "list", "--endpoint", "http://127.0.0.1:1"],
        ["key", "export", "default", "--to", "age1", "--json"],
    ],
)
def test_what_was_typed_wrong_is_told_before_anybody_is_asked(server, words):
    done = coffer("--data", server.data, *words)
    assert done.returncode == 2, done
    is_json = "--json" in words
    assert done.stderr.startswith(b'{"error":' if is_json else b"error: "), done.stderr


def test_without_a_server(tmp_path):
    done = coffer("--data", tmp_path, "level", "list")
    assert done.returncode == 1 and b"no server runs on" in done.stderr


def test_the_same_over_https(server, tmp_path):
    credentials = server.credentials()
    done = from_afar(server, credentials, "level", "list", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ask(server, "level", "list")
    done = from_afar(server, credentials, "verify", "--json", folder=tmp_path)
    assert done.returncode == 0 and b'"event":"done"' in done.stdout, done.stderr


def test_over_https_without_right_or_reach(server, tmp_path):
    access_key_id, secret = make_subject(server, "reach", "default")
    done = from_afar(server, (access_key_id, secret), "subject", "list", "--json", folder=tmp_path)
    assert [subject["name"] for subject in json.loads(done.stdout)] == ["reach"]
    place = ["--endpoint", server.admin_endpoint, "--credentials", tmp_path / "profile"]
    done = coffer(*place, "level", "list")
    assert done.returncode == 1 and b"cannot be reached" in done.stderr, done.stderr
    done = coffer("--endpoint", server.admin_endpoint, "--ca", server.ca, "level", "list")
    assert done.returncode != 0 and b"needs an access key" in done.stderr, done.stderr
    done = from_afar(server, (access_key_id, secret + "x"), "level", "list", folder=tmp_path)
    assert done.returncode == 1 and b"not right" in done.stderr, done.stderr


# Users that own nothing here.
SERVING_USER = 65534
OTHER_USER = 65533


@contextlib.contextmanager
def acting_as(user):
    """Does as another user what the kernel asks the effective user for."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


def answer_of_socket(server, user):
    """What the socket in the data folder answers a user."""
    with acting_as(user), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(server.data / "admin.sock"))
        with contextlib.suppress(ConnectionError):  # it may be closed before it is asked
            connection.sendall(b"GET /v1/levels HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(4096):
                answer += piece
        return answer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_the_socket_is_for_the_owner_and_root():
    """Also where somebody has loosened the modes of the folder and of the socket."""
    folder = Path(tempfile.mkdtemp())  # pytest's own are shut to other users
    os.chown(folder, SERVING_USER, SERVING_USER)
    server = Server(folder, user=SERVING_USER)
    try:
        server.start()
        for user in (SERVING_USER, 0):
            assert answer_of_socket(server, user).startswith(b"HTTP/1.1 200 "), user
        with pytest.raises(PermissionError):
            answer_of_socket(server, OTHER_USER)
        for path in (folder, server.data):
            path.chmod(0o777)
        with pytest.raises(PermissionError):
            answer_of_socket(server, OTHER_USER)
        (server.data / "admin.sock").chmod(0o777)
        assert answer_of_socket(server, OTHER_USER) == b""
        assert answer_of_socket(server, SERVING_USER).startswith(b"HTTP/1.1 200 ")
        eventually(lambda: "another user's connection" in server.log())
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_guessing_is_slowed_down(own_server):
    server = own_server().start()
    context = ssl.create_default_context(cafile=str(server.ca))

    def status(user, password):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.admin_port, context=context, timeout=10
        )
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        connection.request("GET", "/v1/levels", headers={"Authorization": f"Basic {pair}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    user, password = server.credentials()
    assert status(user, password) == 200
    assert [status(user, "my guess") for _ in range(10)] == [401] * 10
    assert status(user, password) == 429
    assert ask(server, "level", "list"), "the socket is not shut"
    assert "my guess" not in server.log() and "a sign-in failed" in server.log()


def test_an_act_whose_answer_is_lost_says_that_it_was_done(own_server):
    with own_server() as server, open("/dev/full", "wb") as full:

        def lost(*words, out=full):
            done = subprocess.run(
                [BINARY, *words, "--data", server.data],
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=60,
                env=clean_environment(),
                check=False,
            )
            return done.returncode, done.stderr.decode()

        status, told = lost("subject", "create", "ann", "--clearance", "default")
        assert status == 1 and "it was done, and the answer could not be written" in told
        assert "coffer subject delete ann" in told and "No space left" in told
        assert "ann" in run(server, "subject", "list")
        run(server, "subject", "delete", "ann")
        status, told = lost("level", "create", "secret", "--rank", "2")
        assert status == 1 and "it was done" in told
        status, told = lost("level", "erase", "secret", "--yes", "--json")
        assert status == 1 and "it was done" in told
        assert "secret" not in run(server, "level", "list")
        status, told = lost("subject", "list")
        assert status == 1 and "it was done" not in told
        # What is answered once is not asked for where nobody would see it.
        status, told = lost("subject", "create", "bob", "--clearance", "default",
                            out=subprocess.DEVNULL)  # fmt: skip
        assert status == 2 and "nothing was asked for" in told
        line = f'"{BINARY}" subject create bob --clearance default --data "{server.data}" >&-'
        closed = subprocess.run(
            ["sh", "-c", line],
            stderr=subprocess.PIPE,
            timeout=60,
            env=clean_environment(),
            check=False,
        )
        assert closed.returncode == 2 and b"nothing was asked for" in closed.stderr
        assert "bob" not in run(server, "subject", "list")
