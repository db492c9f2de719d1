"""Access keys: several of one subject, ended one by one, and rotated with an overlap; new names."""

import json
import time

import pytest

from harness import raw
from harness.administration import ask, client_of, from_afar, make_subject, refused, run
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.content import KIB, MIB, content

BUCKET = "keyed"
BIG_BYTES = 64 * MIB


@pytest.fixture(scope="module", autouse=True)
def bucket(server, s3):
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="object", Body=b"content")
    s3.put_object(Bucket=BUCKET, Key="big", Body=content(BIG_BYTES))


def another_key(server, name, *more):
    made = ask(server, "subject", "key", "create", name, *more)
    return made["access_key_id"], made["secret_access_key"]


def states(server, name):
    return {key["id"]: key["state"] for key in ask(server, "subject", "key", "list", name)}


def test_all_keys_of_a_subject_do_the_same(server):
    one = make_subject(server, "several", "default", "--grant", f"{BUCKET}=read")
    other = another_key(server, "several")
    for credentials in (one, other):
        client = s3_client(server, credentials=credentials)
        assert client.get_object(Bucket=BUCKET, Key="object")["Body"].read() == b"content"
        with s3_refused("AccessDenied", 403):
            client.put_object(Bucket=BUCKET, Key="new", Body=b"x")
    run(server, "subject", "set", "several", "--grant", f"{BUCKET}=read,write")
    for credentials in (one, other):
        s3_client(server, credentials=credentials).put_object(Bucket=BUCKET, Key="n", Body=b"x")
    run(server, "subject", "disable", "several")
    for credentials in (one, other):
        with s3_refused("InvalidAccessKeyId", 403):
            s3_client(server, credentials=credentials).list_buckets()


@pytest.mark.parametrize("how", ["disable", "delete", "expire"])
def test_a_key_ends_alone(server, how):
    name = f"ends.{how}"
    one = make_subject(server, name, "default")
    other = another_key(server, name)
    if how == "expire":
        run(server, "subject", "key", "set", one[0], "--expires", "2s")
        time.sleep(2.2)
    else:
        run(server, "subject", "key", how, one[0])
    with s3_refused("InvalidAccessKeyId", 403):
        s3_client(server, credentials=one).list_buckets()
    s3_client(server, credentials=other).list_buckets()
    told = {"disable": "disabled", "expire": "expired"}
    expected = {other[0]: "active"} | ({one[0]: told[how]} if how in told else {})
    assert states(server, name) == expected
    if how == "disable":
        run(server, "subject", "key", "enable", one[0])
    elif how == "expire":
        run(server, "subject", "key", "set", one[0], "--expires", "2099-12-31 18:30")
        shown = ask(server, "subject", "key", "list", name)
        assert "2099-12-31T18:30:00.000Z" in [row.get("expires_at") for row in shown]
        run(server, "subject", "key", "set", one[0], "--expires", "never")
    else:
        assert "no access key" in refused(server, "subject", "key", "enable", one[0])
        return
    s3_client(server, credentials=one).list_buckets()


@pytest.mark.parametrize("how", ["disable", "delete", "expires", "rotate"])
def test_what_is_under_way_ends_with_its_key_and_no_other(server, how):
    name = f"under-way.{how}"
    one = make_subject(server, name, "default")
    other = another_key(server, name)
    connections = []
    for credentials in (one, other):
        headers = raw.signed_headers(server, "GET", f"/{BUCKET}/big", credentials=credentials)
        connection = raw.connect(server)
        connection.sendall(raw.request_head("GET", f"/{BUCKET}/big", headers))
        assert connection.recv(KIB).startswith(b"HTTP/1.1 200 ")
        connections.append(connection)
    if how == "rotate":
        run(server, "subject", "key", "rotate", name, "--overlap", "0s")
    elif how == "expires":
        run(server, "subject", "key", "set", one[0], "--expires", "2s")
        time.sleep(2)
    else:
        run(server, "subject", "key", how, one[0])
    time.sleep(1)
    received = [drain(connection) for connection in connections]
    assert received[0] < BIG_BYTES / 2, received
    assert (received[1] > BIG_BYTES - MIB) == (how != "rotate"), received


def drain(connection):
    received = 0
    connection.settimeout(5)
    try:
        while piece := connection.recv(MIB):
            received += len(piece)
            if received > BIG_BYTES - MIB:
                break
    except OSError:
        pass  # reset, or an end without TLS's farewell
    connection.close()
    return received


def test_keys_are_rotated_with_an_overlap(server):
    old = make_subject(server, "rotates", "default")
    off = another_key(server, "rotates")
    brief = another_key(server, "rotates", "--expires", "2s")
    run(server, "subject", "key", "disable", off[0])
    made = ask(server, "subject", "key", "rotate", "rotates", "--overlap", "3s")
    new = made["access_key_id"], made["secret_access_key"]
    by_id = {key["id"]: key for key in made["access_keys"]}
    assert set(by_id) == {old[0], off[0], brief[0], new[0]}
    assert "expires_at" not in by_id[new[0]] and "expires_at" not in by_id[off[0]]
    assert by_id[brief[0]]["expires_at"] < by_id[old[0]]["expires_at"]
    for credentials in (old, new):
        s3_client(server, credentials=credentials).list_buckets()
    time.sleep(3.2)
    with s3_refused("InvalidAccessKeyId", 403):
        s3_client(server, credentials=old).list_buckets()
    s3_client(server, credentials=new).list_buckets()
    assert states(server, "rotates") == {
        old[0]: "expired", off[0]: "disabled", brief[0]: "expired", new[0]: "active"
    }  # fmt: skip


def test_there_are_8_keys_and_a_new_one_takes_the_place_of_an_expired_one(server):
    first = make_subject(server, "collects", "default")
    brief = another_key(server, "collects", "--expires", "2s")
    for _ in range(6):
        another_key(server, "collects")
    time.sleep(2.1)
    another_key(server, "collects")
    found = states(server, "collects")
    assert len(found) == 8 and brief[0] not in found and first[0] in found
    assert "8 access keys" in refused(server, "subject", "key", "create", "collects")
    assert states(server, "collects") == found


def test_a_renamed_subject_keeps_what_it_has(server):
    name = "before"
    credentials = make_subject(server, name, "default", "--grant", f"{BUCKET}=read,list")
    before = ask(server, "subject", "show", name)
    client = s3_client(server, credentials=credentials)
    headers = raw.signed_headers(server, "GET", f"/{BUCKET}/big", credentials=credentials)
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("GET", f"/{BUCKET}/big", headers))
        assert connection.recv(KIB).startswith(b"HTTP/1.1 200 ")
        after = ask(server, "subject", "rename", name, "after")
        assert drain(connection) > BIG_BYTES - MIB, "it goes on"
    assert after == before | {"name": "after"}
    assert client.get_object(Bucket=BUCKET, Key="object")["Body"].read() == b"content"
    assert "there is no subject before" in refused(server, "subject", "show", name)
    for known in ("after", after["id"], credentials[0]):
        assert ask(server, "subject", "show", known) == after
    make_subject(server, name, "default")
    assert "already" in refused(server, "subject", "rename", "after", name)
    for bad in (after["id"], credentials[0]):
        assert "can't look like" in refused(server, "subject", "rename", "after", bad)
    records = [json.loads(line) for line in run(server, "audit", "export").splitlines()]
    renamed = [one for one in records if one["act"] == "subject.rename"]
    assert any(one["details"].get("subject_id") == after["id"] for one in renamed)
    assert {one["outcome"] for one in renamed} >= {"begun", "done"}


def test_records_tell_subject_and_key(server):
    one = make_subject(server, "audited", "default", "--roles", "system-administrator")
    other = another_key(server, "audited")
    subject_id = ask(server, "subject", "show", "audited")["id"]
    for credentials in (one, other):
        with s3_refused("AccessDenied", 403):
            s3_client(server, credentials=credentials).list_buckets()
    time.sleep(1.5)

    def of(text):
        found = run(server, "audit", "export", "--subject", text).splitlines()
        return [json.loads(line) for line in found]

    for text in ("audited", subject_id):
        keys = {one.get("access_key_id") for one in of(text) if one["actor"] == subject_id}
        assert keys == {one[0], other[0]}, text
    assert {row["access_key_id"] for row in of(other[0]) if "access_key_id" in row} == {other[0]}
    names = {row["actor_name"] for row in of(subject_id) if row["actor"] == subject_id}
    assert names == {"audited"}


def test_custodians_sign_in_with_any_of_their_keys(server, tmp_path):
    one = make_subject(server, "remote", "default", "--roles", "system-administrator")
    other = another_key(server, "remote")
    for credentials in (one, other):
        done = from_afar(server, credentials, "subject", "list", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    # A key that ends itself gets the answer.
    done = from_afar(
        server, other, "subject", "key", "disable", other[0], "--json", folder=tmp_path
    )
    assert done.returncode == 0 and json.loads(done.stdout)["state"] == "disabled", done.stderr
    assert from_afar(server, other, "subject", "list", folder=tmp_path).returncode == 1
    assert from_afar(server, one, "subject", "list", folder=tmp_path).returncode == 0


@pytest.mark.parametrize("roles", ["data-user", "key-custodian,auditor"])
def test_only_system_administrators_make_and_end_keys(server, tmp_path, roles):
    name = f"may-not.{roles.split(',')[0]}"
    credentials = make_subject(server, name, "default", "--roles", roles)
    for words in (
        ["create", name], ["rotate", name, "--overlap", "1h"], ["disable", credentials[0]],
        ["set", credentials[0], "--expires", "never"], ["delete", credentials[0]],
    ):  # fmt: skip
        done = from_afar(server, credentials, "subject", "key", *words, folder=tmp_path)
        said = b"error: access denied: who has the role system-administrator may do this\n"
        assert (done.returncode, done.stderr) == (1, said), words
    # Its own it may see.
    done = from_afar(server, credentials, "subject", "key", "list", name, "--json", folder=tmp_path)
    assert [key["id"] for key in json.loads(done.stdout)] == [credentials[0]]
    assert states(server, name) == {credentials[0]: "active"}


def test_keys_survive_a_restart(own_server):
    server = own_server().start()
    one = make_subject(server, "kept", "default")
    other = another_key(server, "kept", "--expires", "2099-01-01T00:00:00Z")
    run(server, "subject", "key", "disable", one[0])
    before = ask(server, "subject", "show", "kept")
    server.restart()
    assert ask(server, "subject", "show", "kept") == before
    with s3_refused("InvalidAccessKeyId", 403):
        s3_client(server, credentials=one).list_buckets()
    s3_client(server, credentials=other).list_buckets()


def test_an_older_system_db_revives_no_key(own_server):
    server = own_server().start()
    stolen = make_subject(server, "stolen", "default")
    kept = another_key(server, "stolen")
    server.stop()
    older = (server.data / "system.db").read_bytes()
    server.start()
    run(server, "subject", "key", "disable", stolen[0])
    server.stop()
    newer = (server.data / "system.db").read_bytes()
    (server.data / "system.db").write_bytes(older)
    with pytest.raises(Exception, match="system.db"):
        server.start()
    (server.data / "system.db").write_bytes(newer)
    server.start()
    with s3_refused("InvalidAccessKeyId", 403):
        s3_client(server, credentials=stolen).list_buckets()
    s3_client(server, credentials=kept).list_buckets()


def test_what_was_read_counts_for_every_key(server):
    run(server, "level", "create", "higher", "--rank", "7")
    run(server, "bucket", "create", "upper", "--level", "higher")
    one = make_subject(server, "floats", "default..higher")
    other = another_key(server, "floats")
    low, high = (s3_client(server, credentials=credentials) for credentials in (one, other))
    low.put_object(Bucket=BUCKET, Key="down", Body=b"x")
    high.put_object(Bucket="upper", Key="plan", Body=b"plan")
    high.get_object(Bucket="upper", Key="plan")["Body"].read()
    with s3_refused("AccessDenied", 403):
        low.put_object(Bucket=BUCKET, Key="down", Body=b"x")
    run(server, "subject", "rename", "floats", "floated")
    assert ask(server, "subject", "show", "floated")["read"] == "higher"
    with s3_refused("AccessDenied", 403):
        low.put_object(Bucket=BUCKET, Key="down", Body=b"x")


def test_a_table_tells_keys(server):
    client_of(server, "tells", "default")
    another_key(server, "tells", "--expires", "2099-01-01T00:00:00Z")
    listed = run(server, "subject", "key", "list", "tells").splitlines()
    assert listed[0].split() == [
        "ACCESS",
        "KEY",
        "ID",
        "STATE",
        "EXPIRES",
        "(UTC)",
        "CREATED",
        "(UTC)",
    ]
    assert "2099-01-01 00:00:00" in listed[2] and "active" in listed[1]
    shown = run(server, "subject", "show", "tells")
    assert "(until 2099-01-01" in shown
