"""`verify = "later"`: stored as it came, opened by the server itself, and told until then."""

import base64
import hashlib
import time

import pytest

from harness import raw, sealed
from harness.auditing import export
from harness.clients import refused, s3_client
from harness.content import MIB, PART_MIN_BYTES, content
from harness.server import Server, coffer


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("later")
    with Server(folder, config='verify = "later"\n') as running:
        sealed.make_bucket(running, "open")
        yield running
        assert running.stop() == 0, running.log()
        assert "panicked" not in running.log(), running.log()


def told(body):
    return {"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(body).digest()).decode()}


def head(serving, path, **given):
    return raw.send(serving, "HEAD", path, **given)[1]


def verdict(serving, path, seconds=10):
    """What HEAD says once it says something else than that it waits."""
    end = time.monotonic() + seconds
    while (said := head(serving, path).get("x-coffer-stored")) == "unverified":
        assert time.monotonic() < end, "it waits for ever"
        time.sleep(0.02)
    return said


def spoilt(document, body):
    """A message whose header is right, and whose second chunk is not."""
    message = bytearray(sealed.seal(document, body))
    message[56 + 16_400 + 5] ^= 1
    return bytes(message)


def test_what_is_whole_is_told_to_be_unverified_and_then_verified(serving, client):
    body = content(3 * MIB, "whole")
    headers = sealed.put(serving, "/open/whole", body, headers=told(body))
    assert headers["x-coffer-stored"] == "unverified"
    assert headers["x-amz-checksum-sha256"] == told(body)["x-amz-checksum-sha256"]
    assert verdict(serving, "/open/whole") is None
    answer = client.get_object(Bucket="open", Key="whole", ChecksumMode="ENABLED")
    assert answer["Body"].read() == body
    assert sealed.get(serving, "/open/whole") == body


def test_what_does_not_open_is_stored_and_never_given_out(serving, client):
    body = content(MIB, "spoilt")
    failed = raw.metric(serving, "coffer_damage_total")
    document = sealed.announced(serving, "/open/spoilt", len(body))
    message = spoilt(document, body)
    assert sealed.request(serving, "PUT", document["ticket"], message)[0] == 204
    answer = sealed.commit(serving, "/open/spoilt", document["ticket"], headers=told(body))
    assert (answer[0], answer[1]["x-coffer-stored"]) == (200, "unverified")
    assert verdict(serving, "/open/spoilt") == "damaged"
    with refused("InternalError", 500):
        client.get_object(Bucket="open", Key="spoilt")
    assert sealed.ask_for(serving, "/open/spoilt")[0] == 500
    assert raw.metric(serving, "coffer_damage_total") == failed + 1
    assert "damaged" in serving.log()
    client.delete_object(Bucket="open", Key="spoilt")
    assert head(serving, "/open/spoilt").get("x-coffer-stored") is None


def test_a_checksum_that_is_not_the_one_told_is_damage(serving, client):
    body = content(100_000, "sum")
    headers = sealed.put(serving, "/open/sum", body, headers=told(b"other"))
    assert headers["x-coffer-stored"] == "unverified"
    assert verdict(serving, "/open/sum") == "damaged"
    with refused("InternalError", 500):
        client.get_object(Bucket="open", Key="sum")
    sealed.put(serving, "/open/sum", body, headers=told(body))
    assert verdict(serving, "/open/sum") is None
    assert client.get_object(Bucket="open", Key="sum")["Body"].read() == body


def test_a_verification_names_what_has_another_checksum(own_server):
    server = own_server(config='verify = "later"\n').start()
    sealed.make_bucket(server, "open")
    body = content(100_000, "named")
    sealed.put(server, "/open/named", body, headers=told(b"other"))
    sealed.put(server, "/open/sound", body, headers=told(body))
    assert verdict(server, "/open/named") == "damaged"
    assert verdict(server, "/open/sound") is None
    for runs in (True, False):
        if not runs:
            assert server.stop() == 0
        done = coffer("--data", server.data, "verify")
        said = (done.stdout + done.stderr).decode()
        assert done.returncode != 0 and "named" in said and "open/sound" not in said, said
    server.start()
    s3_client(server).delete_object(Bucket="open", Key="named")
    assert coffer("--data", server.data, "verify").returncode == 0


def test_what_can_not_be_compared_later_is_opened_at_once(serving):
    body = content(100_000, "once")
    md5 = {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}
    for more in ({}, md5, md5 | told(body)):
        headers = sealed.put(serving, "/open/once", body, headers=more)
        assert "x-coffer-stored" not in headers
    wrong = {"content-md5": base64.b64encode(bytes(16)).decode()}
    ticket = sealed.arrive(serving, "/open/once", body)
    assert sealed.commit(serving, "/open/once", ticket, headers=wrong)[0] == 400
    document = sealed.announced(serving, "/open/never", len(body))
    message = spoilt(document, body)
    assert sealed.request(serving, "PUT", document["ticket"], message)[0] == 204
    assert sealed.commit(serving, "/open/never", document["ticket"])[0] >= 400
    assert raw.send(serving, "HEAD", "/open/never")[0] == 404


def test_header_and_length_are_looked_at_all_the_same(serving):
    body = content(50_000)
    held = serving.blob_bytes()
    document = sealed.announced(serving, "/open/header", len(body))
    message = bytearray(sealed.seal(document, body))
    message[30] ^= 1
    assert sealed.request(serving, "PUT", document["ticket"], bytes(message))[0] == 422
    document = sealed.announced(serving, "/open/header", len(body))
    message = sealed.seal(document, body)
    assert sealed.request(serving, "PUT", document["ticket"], message[:-1])[0] == 400
    assert serving.blob_bytes_at_most(held)


def test_a_part_makes_the_whole_object_damaged(serving, client):
    name = {"Bucket": "open", "Key": "parts"}
    upload = client.create_multipart_upload(**name, ChecksumAlgorithm="SHA256")["UploadId"]
    bodies, parts = [content(PART_MIN_BYTES, 1), content(20_000, 2)], []
    for number, body in enumerate(bodies, 1):
        query = f"partNumber={number}&uploadId={upload}"
        document = sealed.announced(serving, "/open/parts", len(body), query=query)
        message = spoilt(document, body) if number == 1 else sealed.seal(document, body)
        assert sealed.request(serving, "PUT", document["ticket"], message)[0] == 204
        answer = sealed.commit(
            serving, "/open/parts", document["ticket"], query=query, headers=told(body)
        )
        assert (answer[0], answer[1]["x-coffer-stored"]) == (200, "unverified")
        parts.append(
            {
                "PartNumber": number,
                "ETag": answer[1]["etag"],
                "ChecksumSHA256": told(body)["x-amz-checksum-sha256"],
            }
        )
    client.complete_multipart_upload(**name, UploadId=upload, MultipartUpload={"Parts": parts})
    assert verdict(serving, "/open/parts") == "damaged"


def test_no_copy_takes_what_is_found_damaged_meanwhile(serving, client):
    body = content(2 * PART_MIN_BYTES, "raced")
    source, copy = {"Bucket": "open", "Key": "raced"}, {"Bucket": "open", "Key": "copied"}
    upload = client.create_multipart_upload(**copy)["UploadId"]
    part = {**copy, "UploadId": upload, "PartNumber": 1, "CopySource": source}
    far = {"CopySourceRange": f"bytes={PART_MIN_BYTES}-{2 * PART_MIN_BYTES - 1}"}
    for _ in range(3):
        document = sealed.announced(serving, "/open/raced", len(body))
        message = spoilt(document, body)
        assert sealed.request(serving, "PUT", document["ticket"], message)[0] == 204
        assert (
            sealed.commit(serving, "/open/raced", document["ticket"], headers=told(body))[0] == 200
        )
        said = "unverified"
        while said == "unverified":
            said = head(serving, "/open/raced").get("x-coffer-stored")
            for more in ({}, far):
                with refused("InternalError", 500):
                    client.upload_part_copy(**part, **more)
            with refused("InternalError", 500):
                client.copy_object(**copy, CopySource=source)
        assert said == "damaged"
    assert "Parts" not in client.list_parts(**copy, UploadId=upload)
    assert raw.send(serving, "HEAD", "/open/copied")[0] == 404


def test_a_kill_forgets_nothing(own_server):
    server = own_server(config='verify = "later"\n').start()
    sealed.make_bucket(server, "open")
    body = content(200_000)
    for number in range(20):
        sealed.put(server, f"/open/whole-{number}", body, headers=told(body))
    document = sealed.announced(server, "/open/spoilt", len(body))
    message = spoilt(document, body)
    assert sealed.request(server, "PUT", document["ticket"], message)[0] == 204
    answer = sealed.commit(server, "/open/spoilt", document["ticket"], headers=told(body))
    assert answer[0] == 200
    server.kill()
    server.start()
    # A verdict from before the kill stands, but its record may have waited in memory.
    comes_after = head(server, "/open/spoilt")["x-coffer-stored"] == "unverified"
    assert verdict(server, "/open/spoilt", 30) == "damaged"
    for number in range(20):
        assert verdict(server, f"/open/whole-{number}") is None
    assert s3_client(server).get_object(Bucket="open", Key="whole-7")["Body"].read() == body
    # What was found stays so; the audit log has it within a minute, or by a stop.
    server.restart()
    assert head(server, "/open/spoilt")["x-coffer-stored"] == "damaged"
    places = [row["details"]["what"] for row in export(server, "--act", "storage.damage")]
    assert not comes_after or any("does not open" in what for what in places), places
