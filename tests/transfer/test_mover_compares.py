"""What coffer get compares with what the server tells, and how few requests it needs."""

import base64
import hashlib
import http.server
import urllib.parse
import zlib

import pytest
from boto3.s3.transfer import TransferConfig

from harness import raw, sealed
from harness.content import MIB, content, digest, write_file
from harness.mover import Mover, answering

PART = 5 * MIB


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def in_parts(s3, bucket, key, bodies, algorithm):
    """Stores an object of parts, which have a checksum each."""
    name = {"Bucket": bucket, "Key": key}
    upload = s3.create_multipart_upload(
        **name, ChecksumAlgorithm=algorithm, ChecksumType="COMPOSITE"
    )["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        stored = s3.upload_part(
            **name, UploadId=upload, PartNumber=number, Body=body, ChecksumAlgorithm=algorithm
        )
        parts.append(
            {
                "PartNumber": number,
                "ETag": stored["ETag"],
                f"Checksum{algorithm}": stored[f"Checksum{algorithm}"],
            }
        )
    return s3.complete_multipart_upload(**name, UploadId=upload, MultipartUpload={"Parts": parts})[
        f"Checksum{algorithm}"
    ]


@pytest.mark.parametrize("algorithm", ["SHA256", "SHA1", "CRC32", "CRC32C"])
def test_checksums_of_parts_are_formed_again(mover, s3, bucket, tmp_path, algorithm):
    # Of different lengths, and not those of pieces that are fetched.
    bodies = [content(PART + 1, 1), content(7 * MIB, 2), content(PART, 3), content(100, 4)]
    composite = in_parts(s3, bucket, "parts", bodies, algorithm)
    assert composite.endswith("-4")
    got = mover.done("get", f"s3://{bucket}/parts", tmp_path / "target")
    assert got["checksum"] == f"{algorithm} {composite}"
    assert (got["verified"], got["checked"]) == (True, "part_checksums")
    assert (tmp_path / "target").read_bytes() == b"".join(bodies)
    out, told = mover.run("get", f"s3://{bucket}/parts", "-", "--json")
    assert out == b"".join(bodies)
    assert composite in told
    assert '"checked":"part_checksums"' in told


def test_uploads_of_the_aws_sdk_are_compared(mover, s3, bucket, tmp_path):
    source = write_file(tmp_path / "source", 23 * MIB)
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=6 * MIB)
    for algorithm in ("SHA256", "CRC32", "CRC64NVME"):
        more = {"ChecksumAlgorithm": algorithm}
        s3.upload_file(str(source), bucket, "x", Config=config, ExtraArgs=more)
        got = mover.done("get", f"s3://{bucket}/x", tmp_path / "target")
        assert got["checksum"].split()[0] == algorithm
        assert got["verified"] is True
        assert digest(tmp_path / "target") == digest(source)


def answered(server, operation):
    """How many requests of an operation were answered."""
    _, text = raw.get_admin(server, "/metrics")
    lines = [line for line in text.splitlines() if line.startswith("coffer_s3_requests_total")]
    ours = [line for line in lines if f'operation="{operation}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in ours)


def test_small_objects_of_a_folder_take_a_request_each(mover, server, s3, bucket, tmp_path):
    for number in range(30):
        body = content(number * 1000, number)
        more = {"ChecksumAlgorithm": "SHA256"} if number % 2 else {}
        s3.put_object(Bucket=bucket, Key=f"p/{number}", Body=body, **more)
    in_parts(s3, bucket, "p/parts", [content(PART, 1), content(9, 2)], "SHA256")
    s3.put_object(Bucket=bucket, Key="p/large", Body=content(17 * MIB))
    before = {name: answered(server, name) for name in ("GetObject", "HeadObject")}
    events = mover.events("get", "-r", f"s3://{bucket}/p/", tmp_path / "into")
    after = {name: answered(server, name) for name in before}
    # The large one: a head, and two pieces.
    assert after["GetObject"] - before["GetObject"] == 31 + 2
    assert after["HeadObject"] - before["HeadObject"] == 1
    done = [event for event in events if event["event"] == "done"]
    assert len(done) == 32
    assert all(event["verified"] for event in done)
    for number in range(30):
        assert (tmp_path / f"into/{number}").read_bytes() == content(number * 1000, number)


def test_small_objects_of_a_folder_come_sealed(server, tmp_path, s3):
    sealed.make_bucket(server, "sealed-folder")
    mover = Mover(server, tmp_path / "home")
    for size in (100, 20_000, MIB):
        s3.put_object(Bucket="sealed-folder", Key=f"p/{size}", Body=content(size))
    before = answered(server, "HeadObject")
    events = mover.events("get", "-r", "s3://sealed-folder/p/", tmp_path / "into")
    assert answered(server, "HeadObject") == before
    ways = {event["bytes"]: event["transfer"] for event in events if event["event"] == "done"}
    # The smallest lies in the catalog.
    assert ways == {100: "tls", 20_000: "sealed", MIB: "sealed"}
    for size in (100, 20_000, MIB):
        assert (tmp_path / f"into/{size}").read_bytes() == content(size)


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """An S3 service with one object, of parts, that tells what the test has it tell."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        server = self.server
        if "partNumber" in query:
            if server.lists != "heads":
                return self.answer(400, b"")
            return self.answer(206, server.bodies[int(query["partNumber"][0]) - 1])
        return self.answer(200, b"".join(server.bodies), server.told)

    def do_GET(self):
        query = urllib.parse.parse_qs(
            urllib.parse.urlsplit(self.path).query, keep_blank_values=True
        )
        body = b"".join(self.server.bodies)
        if "attributes" in query:
            return self.attributes()
        if "list-type" in query:
            return self.answer(200, listing(body))
        if span := self.headers.get("range"):
            first, last = map(int, span.removeprefix("bytes=").split("-"))
            told = {"content-range": f"bytes {first}-{last}/{len(body)}"}
            return self.answer(206, body[first : last + 1], told | (self.server.told or {}))
        return self.answer(200, body, self.server.told)

    def attributes(self):
        """A page of one part after the other."""
        if self.server.lists != "attributes":
            return self.answer(501, b"<Error><Code>NotImplemented</Code></Error>")
        after = int(self.headers.get("x-amz-part-number-marker", 0))
        size = len(self.server.bodies[after])
        more = after + 1 < len(self.server.bodies)
        page = (
            f"<R><ETag>e</ETag><ObjectParts><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"<NextPartNumberMarker>{after + 1}</NextPartNumberMarker>"
            f"<Part><PartNumber>{after + 1}</PartNumber><Size>{size}</Size></Part>"
            "</ObjectParts></R>"
        )
        return self.answer(200, page.encode())

    def answer(self, status, body, headers=None):
        self.server.asked.append((self.command, self.path))
        self.send_response(status)
        headers = {"etag": '"e"', "content-length": str(len(body))} | (headers or {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


def listing(body):
    size = len(body)
    contents = f"<Contents><Key>p/x</Key><Size>{size}</Size><ETag>e</ETag></Contents>"
    return f"<ListBucketResult>{contents}</ListBucketResult>".encode()


BODIES = [b"one", b"twotwo", b"3" * 70_000]


def composite(bodies):
    sums = b"".join(zlib.crc32(body).to_bytes(4) for body in bodies)
    value = base64.b64encode(zlib.crc32(sums).to_bytes(4)).decode()
    return {"x-amz-checksum-crc32": f"{value}-{len(bodies)}", "x-amz-checksum-type": "COMPOSITE"}


@pytest.fixture
def elsewhere(tmp_path):
    state = {"bodies": BODIES, "told": {}, "lists": "nothing", "asked": []}
    with answering(Elsewhere, **state) as service:
        yield service, Mover.elsewhere(service, tmp_path / "home")


@pytest.mark.parametrize("lists", ["attributes", "heads"])
@pytest.mark.parametrize("way", ["file", "stream", "folder"])
def test_lengths_of_parts_are_found(elsewhere, tmp_path, lists, way):
    service, mover = elsewhere
    service.told, service.lists = composite(BODIES), lists
    target = tmp_path / "into/x"
    target.parent.mkdir()
    commands = {
        "file": ("get", "s3://b/p/x", target),
        "stream": ("get", "s3://b/p/x", "-"),
        "folder": ("get", "-r", "s3://b/p/", target.parent),
    }
    out, told = mover.run(*commands[way], "--json")
    assert '"checked":"part_checksums"' in out.decode(errors="replace") + told
    assert '"verified":true' in out.decode(errors="replace") + told
    if way != "stream":
        assert target.read_bytes() == b"".join(BODIES)
    # Something else than was stored, of the same length.
    service.bodies = [b"one", b"twoTwo", b"3" * 70_000]
    target.unlink(missing_ok=True)
    _, told = mover.run(*commands[way], code=1)
    assert "does not have the object's checksum (CRC32" in told
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("way", ["file", "stream"])
def test_an_entity_tag_of_parts_is_formed_again(elsewhere, tmp_path, way):
    """Services without checksums make it of the MD5s of parts; some make it otherwise."""
    service, mover = elsewhere
    sums = b"".join(hashlib.md5(body).digest() for body in BODIES)
    tag = f"{hashlib.md5(sums).hexdigest()}-{len(BODIES)}"
    service.told, service.lists = {"etag": f'"{tag}"'}, "heads"
    target = tmp_path / "target"
    to = target if way == "file" else "-"
    out, told = mover.run("get", "s3://b/p/x", to, "--json")
    said = out.decode(errors="replace") + told
    assert '"checked":"part_checksums"' in said and '"verified":true' in said
    if way == "file":
        assert target.read_bytes() == b"".join(BODIES)
    # Of the same shape, and nothing of these bytes: no proof, and no error.
    service.told = {"etag": f'"{"0" * 32}-{len(BODIES)}"'}
    out, told = mover.run("get", "s3://b/p/x", to, "--json")
    said = out.decode(errors="replace") + told
    assert '"checked":"length"' in said and '"verified":false' in said
    assert "tells no checksum, and its ETag is none" in said
    # Encrypted by a key of KMS, an ETag is never one: no part is asked for.
    service.told |= {"x-amz-server-side-encryption": "aws:kms"}
    service.asked.clear()
    out, told = mover.run("get", "s3://b/p/x", to, "--json")
    assert '"checked":"length"' in out.decode(errors="replace") + told
    assert not any("partNumber" in path for _, path in service.asked)


def test_what_can_not_be_compared_is_told(elsewhere, tmp_path):
    service, mover = elsewhere
    target = tmp_path / "target"
    for headers, why in (
        (composite(BODIES), "tells no lengths of the parts"),
        ({}, "tells no checksum"),
    ):
        service.told = headers
        _, told = mover.run("get", "s3://b/p/x", target)
        assert f"only the length was compared: the server {why}" in told
        got = mover.done("get", "s3://b/p/x", target)
        assert (got["verified"], got["checked"]) == (False, "length")
        assert target.read_bytes() == b"".join(BODIES)
    whole = hashlib.sha256(b"".join(BODIES)).digest()
    service.told = {"x-amz-checksum-sha256": base64.b64encode(whole).decode()}
    got = mover.done("get", "s3://b/p/x", target)
    assert (got["verified"], got["checked"]) == (True, "checksum")


def test_an_object_that_grew_since_it_was_listed(elsewhere, tmp_path, monkeypatch):
    service, mover = elsewhere
    large = content(40 * MIB)
    service.bodies = [large]
    whole = hashlib.sha256(large).digest()
    service.told = {"x-amz-checksum-sha256": base64.b64encode(whole).decode()}
    monkeypatch.setattr(f"{__name__}.listing", lambda _, listing=listing: listing(b"small"))
    mover.run("get", "-r", "s3://b/p/", tmp_path / "into")
    assert (tmp_path / "into/x").read_bytes() == large
    # One that was begun, a look at what is there now, and then pieces.
    assert [command for command, _ in service.asked].count("HEAD") <= 2
