"""PUT of sealed bytes: the same objects, and nothing left of what is not taken."""

import base64
import hashlib
import socket
import threading
import time

import pytest

from harness import raw, sealed
from harness.administration import ask, make_subject
from harness.clients import refused, s3_client
from harness.content import MIB, PART_MIN_BYTES, content
from harness.policies import arn, put, statement


def read(client, key, bucket="open", **more):
    return client.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def test_objects_of_any_length_are_what_any_client_reads(serving, client):
    for size in (16_385, 32_767, 32_768, 32_769, 5 * MIB + 1):
        body = content(size, "length")
        told = {"content-type": "video/mp4", "x-amz-meta-place": "here", "x-amz-tagging": "a=b"}
        sealed.put(serving, "/open/length", body, headers=told)
        answer = client.get_object(Bucket="open", Key="length")
        assert answer["Body"].read() == body
        assert (answer["ContentType"], answer["Metadata"]) == ("video/mp4", {"place": "here"})
        assert (answer["ContentLength"], answer["TagCount"]) == (size, 1)
        assert sealed.get(serving, "/open/length") == body
        assert read(client, "length", Range="bytes=16000-20000") == body[16000:20001]


def test_checksums_are_those_of_the_plaintext(serving, client):
    body = content(100_000, "sum")
    sha256 = base64.b64encode(hashlib.sha256(body).digest()).decode()
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    right = {"x-amz-checksum-sha256": sha256, "content-md5": md5}
    for announced in ({"x-amz-checksum-algorithm": "SHA256", "content-md5": md5}, {}):
        ticket = sealed.arrive(serving, "/open/sum", body, headers=announced)
        status, headers, _ = sealed.commit(serving, "/open/sum", ticket, headers=right)
        assert (status, headers["x-amz-checksum-sha256"]) == (200, sha256)
        assert headers["etag"] == f'"{hashlib.md5(body).hexdigest()}"'
    held = serving.blob_bytes()
    other = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    for wrong in ({"x-amz-checksum-sha256": other}, {"content-md5": other[:22] + "=="}):
        ticket = sealed.arrive(serving, "/open/sum", body)
        status, _, answer = sealed.commit(serving, "/open/sum", ticket, headers=wrong)
        assert status == 400 and sealed.refused_code(answer) in ("BadDigest", "InvalidDigest")
        # That was it, of whatever kind the checksum was.
        assert sealed.commit(serving, "/open/sum", ticket, headers=right)[0] == 404
    assert read(client, "sum") == body and serving.blob_bytes_at_most(held)


def test_a_commit_that_a_quota_refuses_uses_its_ticket_up(serving):
    sealed.make_bucket(serving, "narrow", "open")
    ticket = sealed.arrive(serving, "/narrow/doc", content(20_000))
    ask(serving, "quota", "set", "bucket", "narrow", "--bytes", 10_000)
    status, _, answer = sealed.commit(serving, "/narrow/doc", ticket)
    assert (status, sealed.refused_code(answer)) == (403, "QuotaExceeded")
    ask(serving, "quota", "remove", "bucket", "narrow")
    assert sealed.commit(serving, "/narrow/doc", ticket)[0] == 404
    sealed.put(serving, "/narrow/doc", content(20_000))


def test_conditions_and_versions_are_those_of_a_put(serving, client):
    sealed.make_bucket(serving, "kept", "open")
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="kept", VersioningConfiguration=enabled)
    bodies = [content(20_000, number) for number in range(3)]
    once = {"if-none-match": "*"}
    first = sealed.put(serving, "/kept/doc", bodies[0], headers=once)
    ticket = sealed.arrive(serving, "/kept/doc", bodies[1])
    assert sealed.commit(serving, "/kept/doc", ticket, headers=once)[0] == 412
    assert sealed.commit(serving, "/kept/doc", ticket)[0] == 404, "it was good once"
    second = sealed.put(serving, "/kept/doc", bodies[2], headers={"if-match": first["etag"]})
    assert first["x-amz-version-id"] != second["x-amz-version-id"]
    assert read(client, "doc", "kept", VersionId=first["x-amz-version-id"]) == bodies[0]
    assert read(client, "doc", "kept") == bodies[2]


def test_parts_that_came_either_way_make_one_object(serving, client):
    bodies = [content(PART_MIN_BYTES, 1), content(PART_MIN_BYTES, 2), content(20_001, 3)]
    name = {"Bucket": "open", "Key": "mixed"}
    name["UploadId"] = client.create_multipart_upload(**name)["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        if number == 2:
            etag = client.upload_part(**name, PartNumber=number, Body=body)["ETag"]
        else:
            query = f"partNumber={number}&uploadId={name['UploadId']}"
            etag = sealed.put(serving, "/open/mixed", body, query=query)["etag"]
        parts.append({"PartNumber": number, "ETag": etag})
    client.complete_multipart_upload(**name, MultipartUpload={"Parts": parts})
    whole = b"".join(bodies)
    assert read(client, "mixed") == whole and sealed.get(serving, "/open/mixed") == whole
    assert read(client, "mixed", PartNumber=3) == bodies[2]


def test_a_part_is_of_the_upload_that_was_announced(serving, client):
    name = {"Bucket": "open", "Key": "parts"}
    uploads = [client.create_multipart_upload(**name)["UploadId"] for _ in range(2)]
    query = f"partNumber=1&uploadId={uploads[0]}"
    ticket = sealed.arrive(serving, "/open/parts", content(20_000), query=query)
    for other in ("", f"partNumber=2&uploadId={uploads[0]}", f"partNumber=1&uploadId={uploads[1]}"):
        status, _, body = sealed.commit(serving, "/open/parts", ticket, query=other)
        assert (status, sealed.refused_code(body)) == (404, "NoSuchTransfer"), other
    assert sealed.commit(serving, "/open/parts", ticket, query=query)[0] == 200
    for wrong, expected in (
        (f"partNumber=0&uploadId={uploads[0]}", 400),
        (f"partNumber=10001&uploadId={uploads[0]}", 400),
        (f"uploadId={uploads[0]}", 400),
        ("partNumber=1", 400),
        ("partNumber=1&uploadId=none", 404),
    ):
        assert sealed.announce(serving, "/open/parts", 20_000, query=wrong)[0] == expected, wrong


def test_a_ticket_is_for_one_subject_and_name_and_good_once(serving, client):
    body = content(20_000)
    ann = make_subject(serving, "ann", "default..s0")
    ticket = sealed.arrive(serving, "/open/mine", body)
    for path, more in (("/open/yours", {}), ("/open/mine", {"credentials": ann})):
        status, _, answer = sealed.commit(serving, path, ticket, **more)
        assert (status, sealed.refused_code(answer)) == (404, "NoSuchTransfer")
    assert sealed.request(serving, "PUT", ticket, b"x")[0] == 404
    assert sealed.request(serving, "GET", ticket)[0] == 404
    status, _, answer = sealed.commit(serving, "/open/mine", ticket, body=b"body")
    assert (status, sealed.refused_code(answer)) == (400, "InvalidRequest")
    client.put_object(Bucket="open", Key="source", Body=b"another")
    source = {"x-amz-copy-source": "/open/source"}
    status, _, answer = sealed.commit(serving, "/open/mine", ticket, headers=source)
    assert (status, sealed.refused_code(answer)) == (400, "InvalidRequest")
    assert sealed.ask_for(serving, "/open/mine")[0] == 404, "nothing was copied"
    assert sealed.commit(serving, "/open/mine", ticket)[0] == 200
    assert sealed.commit(serving, "/open/mine", ticket)[0] == 404
    assert read(client, "mine") == body


def test_a_ticket_whose_bytes_have_not_come_commits_nothing(serving, client):
    document = sealed.announced(serving, "/open/never", 20_000)
    assert sealed.commit(serving, "/open/never", document["ticket"])[0] == 404
    for ticket in ("", "x", "A" * 43):
        assert sealed.commit(serving, "/open/never", ticket)[0] == 404
    with refused("NoSuchKey", 404):
        read(client, "never")


def test_a_commit_before_all_bytes_have_come_leaves_the_upload_good(serving, client):
    body = content(200_000, "early")
    document = sealed.announced(serving, "/open/early", len(body))
    with sealed.Dripping(serving, document, sealed.seal(document, body)) as stream:
        for count in (0, 10, 100_000):
            stream.send(count)
            status, _, answer = sealed.commit(serving, "/open/early", document["ticket"])
            assert (status, sealed.refused_code(answer)) == (404, "NoSuchTransfer")
        with refused("NoSuchKey", 404):
            read(client, "early")
        stream.send(document["bytes"])
        assert raw.receive(stream.socket, "PUT")[0] == 204
    assert sealed.commit(serving, "/open/early", document["ticket"])[0] == 200
    assert read(client, "early") == body


def test_what_is_small_or_may_not_is_told_at_once(serving, client):
    assert sealed.announce(serving, "/open/small", 16_384)[1] == {"version": 1, "transfer": "tls"}
    ask(serving, "bucket", "create", "closed")
    assert sealed.announce(serving, "/closed/big", MIB)[1]["transfer"] == "tls"
    for length, expected in (("", 400), ("-1", 400), ("many", 400), (5 << 40, 400)):
        assert sealed.announce(serving, "/open/big", length)[0] == expected, length
    assert sealed.announce(serving, "/none/big", MIB)[0] == 404
    reader = make_subject(serving, "reader", "default..s0", "--grant", "open=read")
    assert sealed.announce(serving, "/open/big", MIB, credentials=reader)[0] == 403


def flipped(message, at):
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


def test_what_does_not_open_is_refused_and_leaves_nothing(serving):
    body = content(200_000)
    held = serving.blob_bytes()
    damaged = raw.metric(serving, "coffer_transfers_total")
    chunk = 56 + 16_400
    edits = {
        "salt": lambda message: flipped(message, 0),
        "commitment": lambda message: flipped(message, 30),
        "a tag in the middle": lambda message: flipped(message, 56 + 5 * 16_400 - 1),
        "the last tag": lambda message: flipped(message, len(message) - 1),
        "two chunks swapped": lambda message: (
            message[:56] + message[chunk : chunk + 16_400] + message[56:chunk]
            + message[chunk + 16_400 :]
        ),
        "a chunk twice": lambda message: message[:chunk] + message[56 : len(message) - 16_400],
        "zeros": lambda message: bytes(len(message)),
    }  # fmt: skip
    for what, edit in edits.items():
        document = sealed.announced(serving, "/open/spoilt", len(body))
        message = edit(sealed.seal(document, body))
        assert len(message) == document["bytes"]
        status, text = sealed.request(serving, "PUT", document["ticket"], message)
        assert status == 422 and b"not sealed as it was to be" in text, what
        assert sealed.commit(serving, "/open/spoilt", document["ticket"])[0] == 404
    first, second = (sealed.announced(serving, "/open/spoilt", len(body)) for _ in range(2))
    message = sealed.seal(first, body)
    assert sealed.request(serving, "PUT", second["ticket"], message)[0] == 422, "another's"
    assert raw.metric(serving, "coffer_transfers_total") - damaged == len(edits) + 1
    assert serving.blob_bytes_at_most(held), "something is left"


def test_lengths_that_are_not_those_announced_are_refused(serving):
    document = sealed.announced(serving, "/open/length", 20_000)
    message = sealed.seal(document, content(20_000))
    chunked = {"transfer-encoding": "chunked"}
    assert sealed.request(serving, "PUT", document["ticket"], headers=chunked)[0] == 411
    # That took no ticket.
    assert sealed.request(serving, "PUT", document["ticket"], message + b"x")[0] == 400
    assert sealed.request(serving, "PUT", document["ticket"], message)[0] == 404


def test_a_stream_that_ends_early_leaves_nothing(serving):
    held = serving.blob_bytes()
    body = content(4 * MIB)
    for sent in (0, 10, 56, 20_000, 3 * MIB):
        document = sealed.announced(serving, "/open/cut", len(body))
        with sealed.Dripping(serving, document, sealed.seal(document, body)) as stream:
            stream.send(sent)
        assert sealed.commit(serving, "/open/cut", document["ticket"])[0] == 404
        assert sealed.request(serving, "PUT", document["ticket"], b"x")[0] == 404
    assert serving.blob_bytes_at_most(held)


def test_a_client_that_waits_is_told_to_go_on(serving, client):
    body = content(40_000)
    document = sealed.announced(serving, "/open/waits", len(body))
    message = sealed.seal(document, body)
    with socket.create_connection(("127.0.0.1", serving.data_port), timeout=10) as connection:
        head = f"PUT /transfer/{document['ticket']} HTTP/1.1\r\nExpect: 100-continue\r\n"
        connection.sendall(f"{head}Content-Length: {len(message)}\r\n\r\n".encode())
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(message)
        assert raw.receive(connection, "PUT")[0] == 204
    assert sealed.commit(serving, "/open/waits", document["ticket"])[0] == 200
    assert read(client, "waits") == body


def test_a_kill_before_the_commit_leaves_nothing_and_after_it_all(own_server):
    server = own_server().start()
    sealed.make_bucket(server, "open")
    body = content(MIB)
    sealed.put(server, "/open/kept", body)
    held = server.blob_bytes()
    ticket = sealed.arrive(server, "/open/lost", body)
    assert server.blob_bytes() > held
    server.kill()
    server.start()
    assert server.blob_bytes_at_most(held), "the sweep left what was not committed"
    assert sealed.commit(server, "/open/lost", ticket)[0] == 404
    assert read(s3_client(server), "kept") == body


def test_a_key_that_is_rotated_meanwhile_wraps_what_has_come(serving, client):
    sealed.make_bucket(serving, "rotated")
    body = content(30_000)
    ticket = sealed.arrive(serving, "/rotated/doc", body)
    ask(serving, "bucket", "rotate", "rotated")
    ask(serving, "level", "rotate", "rotated")
    assert sealed.commit(serving, "/rotated/doc", ticket)[0] == 200
    assert read(client, "doc", "rotated") == body


def level_is_erased(serving, name):
    ask(serving, "level", "erase", name, "--yes")


def subject_is_disabled(serving, name):
    ask(serving, "subject", "disable", name)


def policy_denies(serving, name):
    put(s3_client(serving), name, statement("Deny", "*", ["s3:PutObject"], arn(name, "*")))


@pytest.mark.parametrize("end", [level_is_erased, subject_is_disabled, policy_denies])
@pytest.mark.parametrize("is_fast", [False, True], ids=["dripping", "fast"])
def test_what_ends_a_transfer_under_way(serving, end, is_fast):
    """A client that sends as fast as it can is no less heard than one that drips."""
    name = f"{end.__name__.replace('_', '-')}-{'fast' if is_fast else 'slow'}"
    sealed.make_bucket(serving, name)
    credentials = make_subject(serving, name, "default..s0")
    size = 5 << 30 if is_fast else MIB
    document = sealed.announced(serving, f"/{name}/new", size, credentials=credentials)
    if not is_fast:
        message = sealed.seal(document, content(size))
        with sealed.Dripping(serving, document, message) as stream:
            stream.send(300_000)
            end(serving, name)
            assert stream.ends_within(1)
    else:
        ended = sending_without_end(serving, document)
        time.sleep(0.3)
        assert ended.is_alive(), "it ended by itself"
        end(serving, name)
        ended.join(2)
        assert not ended.is_alive(), "it went on"
    assert serving.blob_bytes_at_most(64 * MIB)
    ticket = document["ticket"]
    assert sealed.commit(serving, f"/{name}/new", ticket, credentials=credentials)[0] in (403, 404)


def sending_without_end(serving, document):
    """Sends what opens, as fast as it goes, until the server ends it."""
    chunks = sealed.chunks_without_end(document, 64)

    def send():
        with sealed.Dripping(serving, document, b"") as stream:
            try:
                for piece in chunks:
                    stream.socket.sendall(piece)
            except OSError:
                return

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def test_what_is_to_be_locked_needs_no_checksum_where_it_was_authenticated(serving, client):
    level = {"LocationConstraint": "open"}
    locked = {"Bucket": "locked", "ObjectLockEnabledForBucket": True}
    client.create_bucket(CreateBucketConfiguration=level, **locked)
    body, hold = content(50_000), {"x-amz-object-lock-legal-hold": "ON"}
    status, _, told = raw.send(serving, "PUT", "/locked/tls", body=body, headers=hold)
    assert (status, sealed.refused_code(told)) == (400, "InvalidRequest")
    sealed.put(serving, "/locked/sealed", body, headers=hold)
    held = client.get_object_legal_hold(Bucket="locked", Key="sealed")
    assert held["LegalHold"]["Status"] == "ON"
    assert read(client, "sealed", "locked") == body
