"""GET of sealed bytes: the same objects, and who gets keys for how long."""

import time

import httpx
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from harness import raw, sealed
from harness.administration import ask, make_subject
from harness.auditing import export
from harness.clients import refused, s3_client, upload_in_parts
from harness.content import MIB, PART_MIN_BYTES, content
from harness.policies import arn, put, statement

FILM = content(8 * MIB, "film")


@pytest.fixture(scope="module", autouse=True)
def film(client):
    client.put_object(Bucket="open", Key="film", Body=FILM, ContentType="video/mp4")


def test_objects_of_any_length_are_what_was_put(serving, client):
    # The catalog's limit is 16 KiB; then around the ends of chunks.
    for size in (16_385, 32_767, 32_768, 32_769, 1_000_000):
        body = content(size, "length")
        client.put_object(Bucket="open", Key="length", Body=body)
        assert sealed.get(serving, "/open/length") == body


def test_ranges_are_those_of_a_get(serving, client):
    for asked in ("0-0", "16383-16384", "100-", "-1", "5000000-7000000", "8388607-99999999"):
        asked = {"range": f"bytes={asked}"}
        status, headers, document = sealed.ask_for(serving, "/open/film", headers=asked)
        told = client.get_object(Bucket="open", Key="film", Range=asked["range"])
        assert (status, headers["content-range"]) == (206, told["ContentRange"])
        assert int(headers["x-coffer-transfer-length"]) == told["ContentLength"]
        got = sealed.opened(document, sealed.fetch(serving, document))
        assert got == told["Body"].read(), asked
    status, _, body = sealed.ask_for(serving, "/open/film", headers={"range": "bytes=9000000-"})
    assert (status, sealed.refused_code(body)) == (416, "InvalidRange")


def test_parts_and_ranges_across_them(serving, client):
    bodies = [content(PART_MIN_BYTES, 1), content(PART_MIN_BYTES + 16_384, 2), content(777, 3)]
    upload_in_parts(client, "open", "parts", bodies)
    whole = b"".join(bodies)
    assert sealed.get(serving, "/open/parts") == whole
    for number, body in enumerate(bodies, 1):
        assert sealed.get(serving, "/open/parts", query=f"partNumber={number}") == body
    for start, end in ((PART_MIN_BYTES - 1, PART_MIN_BYTES), (4_000_000, len(whole) - 1)):
        asked = {"range": f"bytes={start}-{end}"}
        assert sealed.get(serving, "/open/parts", headers=asked) == whole[start : end + 1]


@pytest.mark.large
def test_an_object_of_many_parts_comes_in_several_transfers(serving, client):
    bodies = [content(PART_MIN_BYTES, number % 3) for number in range(259)]
    upload_in_parts(client, "open", "many", bodies)
    got, done = b"", 0
    while done < len(bodies) * PART_MIN_BYTES:
        document = sealed.offer(serving, "/open/many", headers={"range": f"bytes={done}-"})
        assert document["range"][0] == done and len(document["segments"]) <= 256
        got += sealed.opened(document, sealed.fetch(serving, document))
        done = document["range"][1]
    assert got == b"".join(bodies)
    client.delete_object(Bucket="open", Key="many")


def test_versions_and_conditions_are_those_of_a_get(serving, client):
    sealed.make_bucket(serving, "kept", "open")
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="kept", VersioningConfiguration=enabled)
    old, new = content(50_000, "old"), content(60_000, "new")
    first = client.put_object(Bucket="kept", Key="doc", Body=old)
    second = client.put_object(Bucket="kept", Key="doc", Body=new)
    assert sealed.get(serving, "/kept/doc") == new
    assert sealed.get(serving, "/kept/doc", query=f"versionId={first['VersionId']}") == old
    cases = {"if-match": (first, 412), "if-none-match": (second, 304)}
    for header, (stored, expected) in cases.items():
        answer = sealed.ask_for(serving, "/kept/doc", headers={header: stored["ETag"]})
        assert answer[0] == expected
    assert sealed.get(serving, "/kept/doc", headers={"if-match": second["ETag"]}) == new


def test_what_is_told_of_an_object_is_what_a_get_tells(serving, client):
    headers = {"x-amz-checksum-mode": "ENABLED"}
    _, said, document = sealed.ask_for(serving, "/open/film", headers=headers)
    told = client.get_object(Bucket="open", Key="film", ChecksumMode="ENABLED")
    told["Body"].close()
    assert said["etag"] == told["ETag"]
    assert said["x-amz-checksum-crc32"] == told["ChecksumCRC32"]
    assert (said["content-type"], said["cache-control"]) == ("application/json", "no-store")
    assert document["headers"] == {"content-type": "video/mp4"}


def test_what_does_not_come_sealed_comes_as_ever(serving, client):
    client.put_object(Bucket="open", Key="small", Body=b"small")
    ask(serving, "bucket", "create", "closed")
    client.put_object(Bucket="closed", Key="film", Body=FILM)
    for path, query, body in (
        ("/open/small", "", b"small"),
        ("/closed/film", "", FILM),
        ("/open/film", "response-content-type=text/plain", FILM),
    ):
        status, headers, got = sealed.ask_for(serving, path, query=query)
        assert (status, got) == (200, body) and "x-coffer-transfer" not in headers, path
    for bucket, expected in (("open", "1"), ("closed", None)):
        status, headers, _ = raw.send(serving, "HEAD", f"/{bucket}")
        assert (status, headers.get("x-coffer-sealed-transfer")) == (200, expected)


def test_a_ticket_is_good_once_and_for_reading_alone(serving):
    document = sealed.offer(serving, "/open/film")
    ticket = document["ticket"]
    message = b"x" * document["bytes"]
    assert sealed.request(serving, "PUT", ticket, message)[0] == 404
    assert sealed.opened(document, sealed.fetch(serving, document)) == FILM
    assert sealed.request(serving, "GET", ticket)[0] == 404
    assert sealed.commit(serving, "/open/copy", ticket)[0] == 404
    assert sealed.request(serving, "GET", ticket[:-1])[0] == 404
    assert len({sealed.offer(serving, "/open/film")["ticket"] for _ in range(5)}) == 5


def test_what_replaces_or_deletes_an_object_leaves_a_ticket_its_bytes(serving, client):
    client.put_object(Bucket="open", Key="gone", Body=FILM)
    documents = [sealed.offer(serving, "/open/gone") for _ in range(2)]
    client.put_object(Bucket="open", Key="gone", Body=b"other")
    assert sealed.opened(documents[0], sealed.fetch(serving, documents[0])) == FILM
    client.delete_object(Bucket="open", Key="gone")
    assert sealed.opened(documents[1], sealed.fetch(serving, documents[1])) == FILM
    assert sealed.ask_for(serving, "/open/gone")[0] == 404


# What ends a transfer, in a bucket of its own: each returns what does.


def level_is_erased(serving, name, _):
    ask(serving, "level", "erase", name, "--yes")


def bucket_is_erased(serving, name, _):
    ask(serving, "bucket", "erase", name, "--yes")


def subject_is_disabled(serving, name, _):
    ask(serving, "subject", "disable", name)


def subject_is_deleted(serving, name, _):
    ask(serving, "subject", "delete", name)


def key_is_removed(serving, name, credentials):
    ask(serving, "subject", "key", "delete", credentials[0])


def policy_denies(serving, name, _):
    deny = statement("Deny", "*", ["s3:GetObject", "s3:PutObject"], arn(name, "*"))
    put(s3_client(serving), name, deny)


ENDS = [
    level_is_erased,
    bucket_is_erased,
    subject_is_disabled,
    subject_is_deleted,
    key_is_removed,
    policy_denies,
]


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_transfer(serving, client, end):
    name = end.__name__.replace("_", "-")
    sealed.make_bucket(serving, name)
    client.put_object(Bucket=name, Key="film", Body=FILM)
    credentials = make_subject(serving, name, "default..s0")
    path = f"/{name}/film"
    waiting = sealed.offer(serving, path, credentials=credentials)
    arrived = sealed.arrive(serving, f"/{name}/new", FILM[:50_000], credentials=credentials)
    streaming = sealed.offer(serving, path, credentials=credentials)
    with sealed.Slow(serving, streaming) as stream:
        end(serving, name, credentials)
        began = time.monotonic()
        assert sealed.request(serving, "GET", waiting["ticket"])[0] == 404
        time.sleep(max(0, began + 1 - time.monotonic()))
        was_reset, received = stream.rest()
    assert received < streaming["bytes"], "the stream went on"
    assert was_reset, "what the kernel held went on"
    answer = sealed.commit(serving, f"/{name}/new", arrived, credentials=credentials)
    assert answer[0] in (403, 404), answer


def test_a_policy_that_lets_it_too_ends_no_transfer(serving, client):
    sealed.make_bucket(serving, "goes-on")
    client.put_object(Bucket="goes-on", Key="film", Body=FILM)
    objects = arn("goes-on", "*")
    elsewhere = {"NotIpAddress": {"aws:SourceIp": "127.0.0.0/8"}}
    put(client, "goes-on", statement("Deny", "*", ["s3:GetObject"], objects, Condition=elsewhere))
    document = sealed.offer(serving, "/goes-on/film")
    # It asks for what the one before did not.
    linked = {"StringLike": {"aws:Referer": "https://example.org/*"}}
    put(client, "goes-on", statement("Deny", "*", ["s3:GetObject"], objects, Condition=linked))
    assert sealed.opened(document, sealed.fetch(serving, document)) == FILM


def test_a_read_of_keys_marks_a_clearance_that_floats(own_server):
    server = own_server().start()
    same = ("--rank", 2, "--sealed-transfer")
    ask(server, "level", "create", "secret", *same)
    ask(server, "bucket", "create", "high", "--level", "secret")
    ask(server, "bucket", "create", "low")
    filler = s3_client(server, credentials=make_subject(server, "filler", "secret"))
    filler.put_object(Bucket="high", Key="film", Body=FILM)
    ann = make_subject(server, "ann", "default..secret")
    s3 = s3_client(server, credentials=ann)
    s3.put_object(Bucket="low", Key="before", Body=b"x")
    sealed.offer(server, "/high/film", credentials=ann)  # never fetched: the keys are out
    with refused("AccessDenied", 403):
        s3.put_object(Bucket="low", Key="after", Body=b"x")
    assert ask(server, "subject", "show", "ann")["read"] == "secret"


def test_a_release_is_recorded_counted_and_told_on_receipts(serving, client):
    sealed.make_bucket(serving, "watched", "watched", "--audit-data")
    client.put_object(Bucket="watched", Key="film", Body=FILM)
    released = raw.metric(serving, "coffer_data_keys_released_total")
    for _ in range(3):
        sealed.offer(serving, "/watched/film")
    sealed.announced(serving, "/watched/new", 20_000)
    assert raw.metric(serving, "coffer_data_keys_released_total") - released == 4
    told = [
        (record["act"], record["outcome"])
        for record in export(serving)
        if record["details"].get("bucket") == "watched" and record["act"].startswith("object.")
    ]
    assert told == [("object.write", "begun")] + 3 * [("object.read", "done")]
    receipt = ask(serving, "level", "erase", "watched", "--yes")
    assert any("4 " in line and "data key" in line for line in receipt["remaining"]), receipt


def test_no_secret_is_in_the_log_or_in_metrics(serving):
    document = sealed.offer(serving, "/open/film")
    sealed.fetch(serving, document)
    _, page = raw.get_admin(serving, "/metrics")
    secrets = [document["ticket"], document["segments"][0]["key"]]
    for text in (serving.log(), page):
        assert not any(secret in text for secret in secrets)


def signed_in_query(serving, method, path, query="", headers=None):
    """Sends a request that is signed in its query, its headers with it."""
    request = AWSRequest(method, f"{serving.endpoint}{path}?{query}", headers or {})
    keys = Credentials(*serving.credentials())
    S3SigV4QueryAuth(keys, "s3", "us-east-1", expires=60).add_auth(request)
    context = raw.tls_context(serving)
    return httpx.request(method, request.url, headers=headers, verify=context)


@pytest.mark.parametrize("length", ["+20000", "-1", "0x10", "2e4"])
def test_the_length_of_an_announcement_is_digits_alone(serving, length):
    headers = {"x-coffer-transfer-length": length}
    query = "coffer-transfer="
    assert raw.send(serving, "POST", "/open/new", query=query, headers=headers)[0] == 400


def test_keys_are_given_to_those_alone_who_sign_in_the_header(serving):
    wants = {"x-coffer-transfer": "sealed"}
    answer = signed_in_query(serving, "GET", "/open/film", headers=wants)
    assert (answer.status_code, answer.content) == (200, FILM)
    assert "x-coffer-transfer" not in answer.headers
    answer = signed_in_query(serving, "HEAD", "/open")
    assert answer.status_code == 200 and "x-coffer-sealed-transfer" not in answer.headers
    announces = {"x-coffer-transfer-length": "20000"}
    answer = signed_in_query(serving, "POST", "/open/new", "coffer-transfer=", announces)
    assert answer.json() == {"version": 1, "transfer": "tls"}
    url, context = f"{serving.endpoint}/open/new?coffer-transfer=", raw.tls_context(serving)
    assert httpx.post(url, headers=announces, verify=context).status_code == 403
