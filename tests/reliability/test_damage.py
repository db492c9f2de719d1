"""Damage on disk: an error, never wrong data; counted, and found by `coffer verify`."""

import json
import shutil

import pytest
from botocore.exceptions import ClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from urllib3.exceptions import ProtocolError

from harness import raw
from harness.clients import s3_client
from harness.content import CHUNK_BYTES, PART_MIN_BYTES, content
from harness.server import StartError, coffer

BUCKET = "damaged"
SEALED_CHUNK_BYTES = CHUNK_BYTES + 16
HEADER_BYTES = 56
CHUNKS = 40
SIZE_BYTES = CHUNKS * CHUNK_BYTES + 1000
SEALED_BYTES = HEADER_BYTES + CHUNKS * SEALED_CHUNK_BYTES + 1000 + 16


@pytest.fixture(scope="module")
def blob(server, s3):
    """The file of the object `victim`."""
    s3.create_bucket(Bucket=BUCKET)
    before = set(server.blob_files())
    s3.put_object(Bucket=BUCKET, Key="victim", Body=content(SIZE_BYTES))
    (path,) = set(server.blob_files()) - before
    assert path.stat().st_size == SEALED_BYTES
    return path


@pytest.fixture
def restored(blob):
    """Puts the blob back as it was."""
    sealed = blob.read_bytes()
    yield blob
    blob.write_bytes(sealed)


def flip(path, offset, mask=1):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


def chunk_offset(index, inside=0):
    return HEADER_BYTES + index * SEALED_CHUNK_BYTES + inside


def fetch(server, name, first=None, last=None):
    """Status, what came before the end or the break, and whether all that was announced came.

    A connection that breaks before the head went out has the status 0.
    """
    path = f"/{BUCKET}/{name}"
    headers = {} if first is None else {"range": f"bytes={first}-{last}"}
    signed = raw.signed_headers(server, "GET", path, headers=headers)
    with raw.connect(server) as connection:
        connection.sendall(raw.request_head("GET", path, signed | {"connection": "close"}))
        received = b""
        try:
            while piece := connection.recv(1 << 16):
                received += piece
        except OSError:
            pass
    if not received:
        return 0, b"", False
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    whole = len(body) == int(fields["content-length"])
    return int(lines[0].split()[1]), body, whole


FLIPS = {
    "salt": 0,
    "commitment": 30,
    "first byte": chunk_offset(0),
    "tag of the first chunk": chunk_offset(0, CHUNK_BYTES + 3),
    "second chunk": chunk_offset(1, 77),
    "middle": chunk_offset(CHUNKS // 2, 5000),
    "tag in the middle": chunk_offset(CHUNKS // 2, CHUNK_BYTES + 15),
    "last chunk": chunk_offset(CHUNKS, 10),
    "last tag": SEALED_BYTES - 1,
}


@pytest.mark.parametrize("place", FLIPS)
def test_a_flipped_bit_is_never_served(server, restored, place):
    counted = raw.metric(server, "coffer_damage_total")
    flip(restored, FLIPS[place])
    status, body, whole = fetch(server, "victim")
    bad_chunk = max(0, FLIPS[place] - HEADER_BYTES) // SEALED_CHUNK_BYTES
    if status in (0, 200):
        assert not whole, "the connection must break"
        assert body == content(SIZE_BYTES)[: len(body)]
        assert len(body) <= bad_chunk * CHUNK_BYTES, "nothing of the bad chunk may be given out"
    else:
        assert status == 500 and whole
        assert b"<Code>InternalError</Code>" in body and b"did not open" in body
        assert bad_chunk <= 16, "an error is possible only before the body began"
    assert raw.metric(server, "coffer_damage_total") > counted


def damage_told(server):
    return [line for line in server.log().splitlines() if "ERROR stored data is damaged" in line]


def test_boto3_sees_an_error(s3, restored):
    flip(restored, FLIPS["middle"])
    with pytest.raises((ClientError, ProtocolError, BotoConnectionError, Exception)) as caught:
        s3.get_object(Bucket=BUCKET, Key="victim")["Body"].read()
    assert "IncompleteRead" in repr(caught.value) or isinstance(caught.value, ClientError)


def test_ranges_beside_the_damage_are_served(server, restored):
    flip(restored, FLIPS["middle"])
    bad = CHUNKS // 2
    expected = content(SIZE_BYTES)
    for first, last in ((0, bad * CHUNK_BYTES - 1), ((bad + 1) * CHUNK_BYTES, SIZE_BYTES - 1)):
        status, body, whole = fetch(server, "victim", first, last)
        assert (status, whole) == (206, True)
        assert body == expected[first : last + 1]
    status, body, whole = fetch(server, "victim", bad * CHUNK_BYTES + 5, bad * CHUNK_BYTES + 6)
    assert status == 500 or not whole
    assert expected[bad * CHUNK_BYTES + 5 : bad * CHUNK_BYTES + 7] not in body[:2]


@pytest.mark.parametrize(
    "change",
    ["truncated to a chunk", "truncated by a byte", "truncated to nothing", "longer", "missing"],
)
def test_files_of_another_length(server, restored, change):
    sealed = restored.read_bytes()
    match change:
        case "truncated to a chunk":
            restored.write_bytes(sealed[: chunk_offset(CHUNKS)])
        case "truncated by a byte":
            restored.write_bytes(sealed[:-1])
        case "truncated to nothing":
            restored.write_bytes(b"")
        case "longer":
            restored.write_bytes(sealed + b"\0")
        case "missing":
            restored.unlink()
    counted = raw.metric(server, "coffer_damage_total")
    status, body, whole = fetch(server, "victim")
    assert status == 500 or (not whole and body == content(SIZE_BYTES)[: len(body)])
    assert raw.metric(server, "coffer_damage_total") > counted


def test_chunks_and_files_that_change_places(server, s3, restored):
    s3.put_object(Bucket=BUCKET, Key="other", Body=content(SIZE_BYTES, "other"))
    (other,) = [
        path
        for path in server.blob_files()
        if path != restored and path.stat().st_size == SEALED_BYTES
    ]
    mine, theirs = restored.read_bytes(), other.read_bytes()
    restored.write_bytes(theirs)
    other.write_bytes(mine)
    for name in ("victim", "other"):
        status, body, _ = fetch(server, name)
        assert status in (0, 500) or body == b""
    other.write_bytes(theirs)
    first, second = chunk_offset(1), chunk_offset(2)
    swapped = bytearray(mine)
    swapped[first:second], swapped[second : second + SEALED_CHUNK_BYTES] = (
        mine[second : second + SEALED_CHUNK_BYTES],
        mine[first:second],
    )
    restored.write_bytes(swapped)
    status, body, whole = fetch(server, "victim")
    assert status == 500 or (not whole and body == content(SIZE_BYTES)[: len(body)])
    s3.delete_object(Bucket=BUCKET, Key="other")


def test_a_damaged_part_spoils_its_part_only(server, s3):
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    where = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload}
    before = set(server.blob_files())
    parts, paths = [], []
    for number in (1, 2):
        body = content(PART_MIN_BYTES, number)
        part = s3.upload_part(**where, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
        paths += sorted(set(server.blob_files()) - before - set(paths))
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    flip(paths[1], HEADER_BYTES + 5)
    status, body, whole = fetch(server, "parts")
    assert (status, whole) == (200, False)
    assert body == content(PART_MIN_BYTES, 1)[: len(body)]
    got = s3.get_object(Bucket=BUCKET, Key="parts", PartNumber=1)
    assert got["Body"].read() == content(PART_MIN_BYTES, 1)
    s3.delete_object(Bucket=BUCKET, Key="parts")


def test_verify_names_what_is_damaged(server, s3, restored):
    clean = coffer("verify", "--data", server.data)
    assert clean.returncode == 0, clean.stderr
    flip(restored, FLIPS["last tag"])
    counted = raw.metric(server, "coffer_damage_total")
    found = coffer("verify", "--data", server.data, "--json")
    assert found.returncode == 1, found.stderr
    events = [json.loads(line) for line in found.stdout.splitlines()]
    damage = [event for event in events if event["event"] == "damage"]
    assert [(event["bucket"], event["name"]) for event in damage] == [(BUCKET, "victim")]
    assert events[-1]["event"] == "done" and events[-1]["damage_count"] == 1
    assert raw.metric(server, "coffer_damage_total") > counted
    shown = coffer("verify", "--data", server.data)
    assert shown.returncode == 1
    assert b"victim" in shown.stdout + shown.stderr and BUCKET.encode() in shown.stdout
    # Names are for the operator who asks, not for the log.
    assert "victim" not in server.log()


# The databases: everything is stored, the server stopped, a bit flipped.


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A data folder of a stopped server, to be copied."""
    from harness.server import Server

    running = Server(tmp_path_factory.mktemp("stopped")).start()
    s3 = s3_client(running)
    s3.create_bucket(Bucket=BUCKET)
    for name, size_bytes in OBJECTS.items():
        s3.put_object(
            Bucket=BUCKET,
            Key=name,
            Body=content(size_bytes, name),
            Metadata={"colour": name},
        )
    assert running.stop() == 0
    yield running
    running.close()


OBJECTS = {f"object-{index}": 500 * index for index in range(60)}


def answers(server):
    """Asks for everything; every answer must be right or an error."""
    # Our own comparison, not boto3's checksums, is to find wrong data.
    s3 = s3_client(server, response_checksum_validation="when_required")
    errors = 0
    try:
        listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        assert {row["Key"]: row["Size"] for row in listed} == OBJECTS
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500, error.response
        errors += 1
    for name, size_bytes in OBJECTS.items():
        try:
            got = s3.get_object(Bucket=BUCKET, Key=name)
            assert got["Metadata"] == {"colour": name}
            assert got["Body"].read() == content(size_bytes, name)
        except ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500, error.response
            errors += 1
    return errors


def serve_copy(own_server, stopped, name, damage):
    """A server on a copy of the folder, damaged; what it said where it refuses to start."""
    server = own_server(name)
    shutil.copytree(stopped.data, server.data)
    damage(server.data)
    try:
        return server.start(), None
    except StartError as error:
        return server, error


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


@pytest.mark.parametrize("pattern", ["buckets/*/catalog.db", "system.db"])
def test_flipped_bits_in_databases(own_server, stopped, pattern):
    size_bytes = only(stopped.data, pattern).stat().st_size
    pages = size_bytes // 4096
    places = {0, 15, 16, 100, 4095, size_bytes - 1}
    places |= {page * 4096 + 1000 for page in range(0, pages, max(1, pages // 12))}
    seen = 0
    for number, offset in enumerate(sorted(places)):
        server, refusal = serve_copy(
            own_server,
            stopped,
            f"flip-{number}",
            lambda data, at=offset: flip(only(data, pattern), at),
        )
        if refusal:
            assert "panicked" not in refusal.log
            seen += 1
            continue
        errors = answers(server)
        assert "panicked" not in server.log()
        if "catalog" in pattern and errors:
            assert raw.metric(server, "coffer_damage_total") >= errors, offset
            (told,) = damage_told(server)
            bucket = only(server.data, "buckets/*").name
            assert bucket in told and "object-" not in server.log()
        if "catalog" in pattern and errors == 0:
            # The page that holds the bit was not needed; verify looks at every page.
            assert coffer("verify", "--data", server.data).returncode == 1, offset
            errors = 1
        seen += errors > 0
        server.close()
    assert seen >= len(places) // 2 if "system" in pattern else seen == len(places)


@pytest.mark.parametrize("offset", [0, 9, 20, 60, 150])
def test_a_damaged_copy_of_the_keystore_is_mended(own_server, stopped, offset):
    for slot_bytes in (0, 4 << 20):
        server, refusal = serve_copy(
            own_server,
            stopped,
            f"keystore-{slot_bytes}",
            lambda data, at=slot_bytes + offset: flip(data / "keystore", at),
        )
        assert refusal is None, refusal
        assert answers(server) == 0
        copy = "CopyB" if slot_bytes else "CopyA"
        told = [line for line in server.log().splitlines() if "has been repaired" in line]
        assert len(told) == 1 and copy in told[0], server.log()
        assert server.stop() == 0
        mended = (server.data / "keystore").read_bytes()
        assert mended[:100] == mended[4 << 20 : (4 << 20) + 100], "both copies are whole again"
        shutil.rmtree(server.data)


def test_two_damaged_copies_are_refused(own_server, stopped):
    def damage(data):
        for slot_bytes in (0, 4 << 20):
            flip(data / "keystore", slot_bytes + 80)

    _, refusal = serve_copy(own_server, stopped, "both", damage)
    assert refusal is not None
    assert "keystore" in refusal.log and "panicked" not in refusal.log
    assert "coffer key import" in refusal.log, "the way back through an export"


def test_a_changed_root_key_is_refused(own_server, stopped):
    def damage(data):
        path = data / "root.key"
        text = path.read_text()
        at = len(text.rstrip()) - 5
        # Another digit: "A" for "a" would be the same key.
        path.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])

    _, refusal = serve_copy(own_server, stopped, "root", damage)
    assert refusal is not None
    assert "root" in refusal.log and "panicked" not in refusal.log
