"""Catalogs and blobs open with nothing but docs/FORMAT.md and Python."""

import base64
import re
from pathlib import Path

import pytest

from harness.checksums import ALGORITHMS, COMPOSITE, checksum, composite, raw_checksum
from harness.clients import s3_client
from harness.content import PART_MIN_BYTES, content
from harness.keys import format_reader

ROOT = Path(__file__).resolve().parents[2]

# The museum's four checksums of format 5 are made up: "sum" in Base64, whatever the algorithm.
NEW_IN_MUSEUM = ("md5", "sha512", "xxhash128", "xxhash3")


def section():
    """The document's section "Catalog"."""
    return (ROOT / "docs/FORMAT.md").read_text().split("## Catalog\n")[1].split("\n## ")[0]


def reader():
    """The program in that section."""
    (block,) = section().split("```python\n")[1:]
    return block.split("```")[0]


def listed_algorithms():
    """The words for algorithms that the section lists: all, and those that format 5 brought."""
    listed = re.search(r"`algorithm` is one of (.*?); `kind` is", section(), re.DOTALL)[1]
    old, new = listed.split("and in format 5 also")
    new = re.findall(r"`(\w+)`", new)
    return re.findall(r"`(\w+)`", old) + new, new


def decode_checksum(text):
    """Algorithm, kind, value and number of parts, as the section says of `checksum`."""
    algorithm, kind, value = text.split(" ")
    assert algorithm in listed_algorithms()[0], text
    assert kind in ("full-object", "composite"), text
    parts = None
    if kind == "composite":
        value, parts = value.split("-")
        parts = int(parts)
    return algorithm, kind, base64.b64decode(value, validate=True), parts


def test_the_reader_of_the_format_reads_every_object(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = {}
    exec(reader(), found)
    sizes = {name: len(data) for name, data in found["objects"].items()}
    whole = {"4 KiB": 4096, "a/large": 40_000, "a/small": 31, "empty": 0, "of parts": 5300}
    sums = dict.fromkeys(NEW_IN_MUSEUM, 3)
    assert sizes == whole | {"versions": 13, "locked": 11} | sums
    rows = found["catalog"].execute("SELECT name, checksum, lock FROM object")
    kept = {name.decode(): (text and decode_checksum(text), lock) for name, text, lock in rows}
    crc = bytes.fromhex("ae8b14860a799888")
    of_crc = {name: (("crc64nvme", "full-object", crc, None), None) for name in whole}
    without = {name: (None, None) for name in ("4 KiB", "a/large", "empty", "versions")}
    # A hold that was taken off; and one beside retention for compliance.
    new = {name: ((name, "full-object", b"sum", None), 8) for name in NEW_IN_MUSEUM}
    assert kept == of_crc | without | new | {"locked": (None, 2 + 4)}


def test_the_format_lists_the_checksums_that_there_are():
    words, new = listed_algorithms()
    assert sorted(words) == sorted(name.lower() for name in ALGORITHMS)
    assert set(NEW_IN_MUSEUM) < set(new)


def put_in_parts(s3, algorithm, bodies):
    """An object of two parts, with the checksum of their checksums."""
    where = {"Bucket": "sums", "Key": f"{algorithm} of parts"}
    begun = s3.create_multipart_upload(**where, ChecksumAlgorithm=algorithm)
    where["UploadId"] = begun["UploadId"]
    parts, field = [], f"Checksum{algorithm}"
    for number, body in enumerate(bodies, 1):
        value = {field: checksum(algorithm, body)}
        part = s3.upload_part(**where, PartNumber=number, Body=body, **value)
        parts.append({"PartNumber": number, "ETag": part["ETag"]} | value)
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


@pytest.fixture
def filled(own_server):
    """A stopped server's folder, with an object of each checksum there is, and their contents."""
    server = own_server()
    whole = {f"{name} whole": content(20_000, at) for at, name in enumerate(ALGORITHMS)}
    bodies = [content(PART_MIN_BYTES, 1), content(9, 2)]
    s3 = s3_client(server.start())
    s3.create_bucket(Bucket="sums")
    for name in ALGORITHMS:
        data = whole[f"{name} whole"]
        value = {f"Checksum{name}": checksum(name, data)}
        s3.put_object(Bucket="sums", Key=f"{name} whole", Body=data, **value)
    for name in COMPOSITE:
        put_in_parts(s3, name, bodies)
    assert server.stop() == 0
    return server.data, whole, bodies


def open_folder(data, monkeypatch):
    """What the section's program finds in the only bucket of a stopped server's folder."""
    keys = {}
    monkeypatch.chdir(data)
    exec(format_reader().replace('Path("coffer-data")', 'Path(".")'), keys)
    [(bucket_id, catalog_key)] = keys["catalog_keys"].items()
    found = {}
    monkeypatch.chdir(ROOT)
    exec(reader(), found)
    found["FOLDER"] = data / "buckets" / bucket_id.hex()
    found["BUCKET_ID"], found["CATALOG_KEY"] = bucket_id, catalog_key
    found["BUCKET_KEY"] = keys["bucket_keys"][bucket_id, 1]
    begin = reader().index("catalog = open_catalog")
    exec(reader()[begin : reader().index("assert objects")], found)
    return found


def test_the_reader_of_the_format_reads_every_checksum_a_server_wrote(filled, monkeypatch):
    data, whole, bodies = filled
    found = open_folder(data, monkeypatch)
    in_parts = {f"{name} of parts": b"".join(bodies) for name in COMPOSITE}
    assert found["objects"] == whole | in_parts

    kept = dict(found["catalog"].execute("SELECT name, checksum FROM object"))
    for name in ALGORITHMS:
        text = kept[f"{name} whole".encode()]
        value = raw_checksum(name, whole[f"{name} whole"])
        assert decode_checksum(text) == (name.lower(), "full-object", value, None)
    blobs = """SELECT blob.checksum FROM blob JOIN object ON object_id = id WHERE name = ?
               ORDER BY part_number"""
    for name in COMPOSITE:
        key = f"{name} of parts".encode()
        assert kept[key] == f"{name.lower()} composite {composite(name, bodies)}"
        assert decode_checksum(kept[key])[3] == 2
        parts = [decode_checksum(text) for [text] in found["catalog"].execute(blobs, [key])]
        values = [raw_checksum(name, body) for body in bodies]
        assert parts == [(name.lower(), "full-object", value, None) for value in values]


def test_the_reader_of_the_format_finds_damage_in_a_catalog(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = {}
    exec(reader(), found)
    file = (found["FOLDER"] / "catalog.db").read_bytes()
    for at in range(5, len(file), 997):
        altered = bytearray(file)
        altered[at] ^= 1
        try:
            found["open_catalog"](bytes(altered), found["CATALOG_KEY"])
        except ValueError as error:
            number = 1 if at < 16 else at // 4096 + 1
            assert str(error) == f"page {number} is damaged"
        else:
            raise AssertionError(f"the bit flipped at {at} was not found")
