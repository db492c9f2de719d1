"""Subjects: grants, roles, and access keys that end, also in the middle of a request."""

import base64
import json
import socket
import threading
import time

import pytest

from harness import raw
from harness.administration import ask, client_of, from_afar, make_subject, refused, run
from harness.clients import REGION, s3_client
from harness.clients import refused as s3_refused
from harness.content import KIB, MIB, content

BUCKET = "shared"
BIG_BYTES = 64 * MIB


@pytest.fixture(scope="module", autouse=True)
def buckets(server, s3):
    for name in (BUCKET, "other"):
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="object", Body=b"content")
    s3.put_object(Bucket=BUCKET, Key="big", Body=content(BIG_BYTES))


def rights_of(client, bucket=BUCKET):
    """Which of the four rights a client turns out to have."""
    found = []
    for right, operation in [
        ("read", lambda: client.get_object(Bucket=bucket, Key="object")["Body"].read()),
        ("write", lambda: client.put_object(Bucket=bucket, Key="new", Body=b"x")),
        ("list", lambda: client.list_objects_v2(Bucket=bucket)),
        ("delete", lambda: client.delete_object(Bucket=bucket, Key="new")),
    ]:
        try:
            operation()
            found.append(right)
        except client.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "AccessDenied", error
    return ",".join(found)


@pytest.mark.parametrize("granted", ["read", "write", "list", "delete", "read,list,delete"])
def test_grants_allow_what_they_say(server, s3, granted):
    name = "granted." + granted.replace(",", ".")
    client = client_of(server, name, "default", "--grant", f"{BUCKET}={granted}")
    assert rights_of(client) == granted
    assert [found["Name"] for found in client.list_buckets()["Buckets"]] == [BUCKET]
    with s3_refused("NoSuchBucket", 404):
        client.get_object(Bucket="other", Key="object")
    with s3_refused("AccessDenied", 403):
        client.create_bucket(Bucket="a-new-one")


def test_a_page_of_no_rows_needs_the_right_to_list_too(server):
    writer = client_of(server, "writes-only", "default", "--grant", f"{BUCKET}=write")
    upload = writer.create_multipart_upload(Bucket=BUCKET, Key="part-by-part")["UploadId"]
    for ask_for in (
        lambda client: client.list_objects_v2(Bucket=BUCKET, MaxKeys=0),
        lambda client: client.list_objects(Bucket=BUCKET, MaxKeys=0),
        lambda client: client.list_object_versions(Bucket=BUCKET, MaxKeys=0),
        lambda client: client.list_multipart_uploads(Bucket=BUCKET, MaxUploads=0),
        lambda client: client.list_parts(
            Bucket=BUCKET, Key="part-by-part", UploadId=upload, MaxParts=0
        ),
    ):
        with s3_refused("AccessDenied", 403):
            ask_for(writer)
        assert not ask_for(s3_client(server))["IsTruncated"]
    writer.abort_multipart_upload(Bucket=BUCKET, Key="part-by-part", UploadId=upload)


@pytest.mark.parametrize("granted", ["write", "list"])
def test_how_much_a_bucket_holds_is_told_to_those_who_may_list(server, tmp_path, granted):
    credentials = make_subject(
        server, f"counts-{granted}", "default", "--grant", f"{BUCKET}={granted}"
    )
    shown = from_afar(server, credentials, "bucket", "show", BUCKET, "--json", folder=tmp_path)
    assert ("object_count" in json.loads(shown.stdout)) == (granted == "list"), shown


def test_reading_is_needed_to_copy_from_and_writing_to_copy_to(server):
    reader = client_of(server, "copies-from", "default", "--grant", f"{BUCKET}=read")
    with s3_refused("AccessDenied", 403):
        reader.copy_object(Bucket=BUCKET, Key="copy", CopySource=f"{BUCKET}/object")
    writer = client_of(
        server, "copies-to", "default", "--grant", f"{BUCKET}=write", "--grant", "other=read"
    )
    writer.copy_object(Bucket=BUCKET, Key="copy", CopySource="other/object")
    with s3_refused("AccessDenied", 403):
        writer.copy_object(Bucket=BUCKET, Key="copy", CopySource=f"{BUCKET}/object")


def test_grants_change(server):
    client = client_of(server, "changes", "default")
    assert rights_of(client) == "read,write,list,delete"
    run(server, "subject", "set", "changes", "--grant", f"{BUCKET}=read")
    assert rights_of(client) == "read"
    shown = ask(server, "subject", "set", "changes", "--grant", "other=list", "--revoke", BUCKET)
    assert shown["grants"] == [{"bucket": "other", "rights": ["list"]}]
    assert not shown["all_buckets"]
    with s3_refused("NoSuchBucket", 404):
        client.get_object(Bucket=BUCKET, Key="object")
    run(server, "subject", "set", "changes", "--revoke", "other")
    assert client.list_buckets()["Buckets"] == []
    run(server, "subject", "set", "changes", "--all-buckets")
    assert rights_of(client) == "read,write,list,delete"


def test_grants_end_with_their_bucket(server, s3):
    s3.create_bucket(Bucket="passing")
    client = client_of(server, "passer", "default", "--grant", "passing=read,list")
    client.list_objects_v2(Bucket="passing")
    s3.delete_bucket(Bucket="passing")
    s3.create_bucket(Bucket="passing")
    with s3_refused("NoSuchBucket", 404):
        client.list_objects_v2(Bucket="passing")
    assert ask(server, "subject", "show", "passer")["grants"] == []
    s3.delete_bucket(Bucket="passing")


def test_only_data_users_use_data(server):
    """Whoever looks after keys or the server sees no data, whatever its clearance."""
    for role in ("system-administrator", "key-custodian", "auditor"):
        client = client_of(server, f"only.{role}", "default", "--roles", role)
        for bucket in (BUCKET, "of-nothing"):
            with s3_refused("AccessDenied", 403):
                client.get_object(Bucket=bucket, Key="object")
            with s3_refused("AccessDenied", 403):
                client.put_object(Bucket=bucket, Key="object", Body=b"x")
        with s3_refused("AccessDenied", 403):
            client.list_buckets()


def test_roles_do_what_is_theirs(server, tmp_path):
    """Over HTTPS each role can do its own acts and no others."""
    acts = {
        "system-administrator": ["subject", "create", "made-by-{}"],
        "key-custodian": ["level", "create", "made-by-{}", "--rank", "3"],
    }
    for role in ("data-user", "system-administrator", "key-custodian", "auditor"):
        credentials = make_subject(server, f"acts.{role}", "default", "--roles", role)
        for needed, words in acts.items():
            words = [word.format(role) for word in words]
            done = from_afar(server, credentials, *words, folder=tmp_path)
            assert (done.returncode == 0) == (role == needed), (role, words, done.stderr)
            if role != needed:
                said = f"error: access denied: who has the role {needed} may do this\n"
                assert done.stderr.decode() == said


def test_the_owner_of_the_folder_is_never_locked_out(server):
    run(server, "subject", "set", "first", "--roles", "data-user", "--yes")
    run(server, "subject", "set", "first", "--roles",
        "data-user,system-administrator,key-custodian,auditor")  # fmt: skip


def test_disabled_and_enabled(server):
    client = client_of(server, "switched", "default")
    client.list_buckets()
    assert ask(server, "subject", "disable", "switched")["disabled"] is True
    with s3_refused("InvalidAccessKeyId", 403):
        client.list_buckets()
    assert ask(server, "subject", "enable", "switched")["disabled"] is False
    client.list_buckets()
    run(server, "subject", "delete", "switched")
    with s3_refused("InvalidAccessKeyId", 403):
        client.list_buckets()
    assert "there is no subject" in refused(server, "subject", "show", "switched")


def test_expiry(server):
    client = client_of(server, "brief", "default", "--expires", "3s")
    client.list_buckets()
    time.sleep(3.2)
    with s3_refused("InvalidAccessKeyId", 403):
        client.list_buckets()
    run(server, "subject", "set", "brief", "--expires", "never")
    client.list_buckets()
    assert "past" in refused(server, "subject", "set", "brief", "--expires", "2020-01-01T00:00:00Z")


def test_subjects_survive_a_restart(own_server):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="kept")
    make_subject(
        server, "kept", "s0-s2:c1", "--grant", "kept=read,list", "--expires", "2099-01-01T00:00:00Z"
    )
    make_subject(server, "off", "default", "--roles", "auditor")
    run(server, "subject", "disable", "off")
    before = ask(server, "subject", "list")
    server.restart()
    assert ask(server, "subject", "list") == before
    kept = next(subject for subject in before if subject["name"] == "kept")
    assert kept["clearance"] == "s0-s2:c1" and kept["expires_at"] == "2099-01-01T00:00:00.000Z"
    assert kept["grants"] == [{"bucket": "kept", "rights": ["read", "list"]}]


# What is under way.


def small_buffers(server):
    """A TLS connection that the kernel buffers little for."""
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
    return raw.tls_context(server).wrap_socket(plain, server_hostname="127.0.0.1")


def end_it(server, name, how):
    if how == "expires":
        return  # by itself
    words = {"disable": ["disable", name], "delete": ["delete", name],
             "clearance": ["set", name, "--clearance", "s1"]}  # fmt: skip
    run(server, "subject", *words[how])


@pytest.mark.parametrize("how", ["disable", "delete", "clearance", "expires"])
@pytest.mark.parametrize("reads", [True, False], ids=["read slowly", "not read"])
def test_a_get_under_way_is_cut_off(server, how, reads):
    """The connection breaks within a second, long before the object's end."""
    name = f"get.{how}.{reads}".lower()
    expires = ["--expires", "2s"] if how == "expires" else []
    credentials = make_subject(server, name, "default", *expires)
    made = time.monotonic()
    headers = raw.signed_headers(server, "GET", f"/{BUCKET}/big", credentials=credentials)
    with small_buffers(server) as connection:
        connection.sendall(raw.request_head("GET", f"/{BUCKET}/big", headers))
        assert connection.recv(KIB).startswith(b"HTTP/1.1 200 ")
        end_it(server, name, how)
        if how == "expires":
            time.sleep(max(0.0, made + 2.0 - time.monotonic()))
        ended = time.monotonic()
        if not reads:
            time.sleep(1)
            assert raw.metric(server, "coffer_s3_requests_in_flight") == 0
        received = 0
        connection.settimeout(5)
        try:
            while piece := connection.recv(64 * KIB):
                received += len(piece)
                time.sleep(0.001)
        except OSError:
            pass  # reset, or an end without TLS's farewell
        assert time.monotonic() - ended < (2.5 if not reads else 1.2)
        assert received < BIG_BYTES / 2, received


@pytest.mark.parametrize("how", ["disable", "delete", "expires"])
def test_a_put_under_way_is_cut_off(server, s3, how):
    """A body that trickles in is refused within a second, and nothing is stored."""
    name = f"put.{how}"
    expires = ["--expires", "2s"] if how == "expires" else []
    credentials = make_subject(server, name, "default", *expires)
    key = f"put-{how}"
    headers = raw.signed_headers(
        server, "PUT", f"/{BUCKET}/{key}", credentials=credentials,
        headers={"content-length": str(MIB)},
    )  # fmt: skip
    made = time.monotonic()
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("PUT", f"/{BUCKET}/{key}", headers))
        connection.sendall(content(100 * KIB))
        time.sleep(0.3)
        end_it(server, name, how)
        if how == "expires":
            time.sleep(max(0.0, made + 2.0 - time.monotonic()))
        ended = time.monotonic()
        connection.settimeout(5)
        try:
            answer = connection.recv(KIB)
        except OSError:
            answer = b""
        assert time.monotonic() - ended < 1.2
        assert answer == b"" or answer.startswith(b"HTTP/1.1 403 "), answer
    with s3_refused("404", 404):
        s3.head_object(Bucket=BUCKET, Key=key)


# Answers of the administration that last, and the role that each needs.
STREAMS = {
    "follow": ("GET", "/v1/audit/follow", None, "auditor"),
    # A minute for what is stored here.
    "verify": ("POST", "/v1/verify", {"rate": MIB}, "system-administrator"),
}


def begin(server, credentials, stream):
    """Asks for an answer that lasts; gives the connection once it has begun."""
    method, path, body, _ = STREAMS[stream]
    body = b"" if body is None else json.dumps(body).encode()
    user = base64.b64encode(":".join(credentials).encode()).decode()
    headers = {"host": "127.0.0.1", "authorization": f"Basic {user}",
               "content-type": "application/json", "content-length": len(body)}  # fmt: skip
    connection = raw.connect(server, port=server.admin_port)
    connection.sendall(raw.request_head(method, path, headers) + body)
    assert connection.recv(64 * KIB).startswith(b"HTTP/1.1 200 ")
    return connection


def seconds_to_end(connection, longest):
    """How long an answer goes on; None if it does for longer."""
    began = time.monotonic()
    connection.settimeout(longest)
    try:
        while connection.recv(64 * KIB):
            if time.monotonic() - began > longest:
                return None
    except TimeoutError:
        return None
    except OSError:
        pass  # reset
    return time.monotonic() - began


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("how", ["disable", "delete", "expires", "role", "clearance"])
def test_an_answer_that_lasts_is_cut_off(server, stream, how):
    """Whoever may not ask for it any more hears no more of it."""
    role = STREAMS[stream][3]
    name = f"{stream}.{how}"
    expires = ["--expires", "3s"] if how == "expires" else []
    credentials = make_subject(
        server, name, "default", "--roles", f"data-user,{role}", *expires
    )  # fmt: skip
    made = time.monotonic()
    with begin(server, credentials, stream) as connection:
        if how == "role":
            run(server, "subject", "set", name, "--roles", "data-user")
        else:
            end_it(server, name, how)
        if how == "expires":
            time.sleep(max(0.0, made + 3.0 - time.monotonic()))
        took = seconds_to_end(connection, 10)
    assert took is not None and took < 1.5, took


def test_another_role_ends_no_answer(server):
    credentials = make_subject(server, "promoted", "default", "--roles", "auditor")
    with begin(server, credentials, "follow") as connection:
        run(server, "subject", "set", "promoted", "--roles", "auditor,data-user")
        assert seconds_to_end(connection, 2) is None


@pytest.mark.parametrize("words", [["set", "--roles", "data-user"], ["disable"], ["delete"]])
def test_who_ends_itself_gets_the_answer(server, tmp_path, words):
    name = f"leaves.{words[0]}"
    credentials = make_subject(server, name, "default", "--roles", "system-administrator")
    act, *more = words
    done = from_afar(server, credentials, "subject", act, name, *more, "--json", folder=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["name"] == name, done.stderr
    after = from_afar(server, credentials, "subject", "create", "late", folder=tmp_path)
    assert after.returncode == 1


def test_others_go_on(server, s3):
    """Who is cut off takes nobody along."""
    credentials = make_subject(server, "goes", "default")
    bodies = []
    reader = threading.Thread(
        target=lambda: bodies.append(s3.get_object(Bucket=BUCKET, Key="big")["Body"].read())
    )
    reader.start()
    run(server, "subject", "disable", "goes")
    reader.join()
    assert bodies == [content(BIG_BYTES)]
    assert credentials[0] and REGION
