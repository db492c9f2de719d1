"""The client of examples/: written from docs/SEALED-TRANSFER.md alone, so that it proves it."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from harness import sealed
from harness.clients import upload_in_parts
from harness.content import CHUNK_BYTES, MIB, PART_MIN_BYTES, content
from harness.raw import metric
from harness.server import ROOT, clean_environment
from harness.watching import Watching

# What the object holds is these bytes, however a client would show them.
PACKED = gzip.compress(b"small")
EXAMPLE = ROOT / "examples/sealed_transfer.py"


def run(serving, verb, name, path, bucket=None):
    access_key_id, secret = serving.credentials()
    keys = {"AWS_ACCESS_KEY_ID": access_key_id, "AWS_SECRET_ACCESS_KEY": secret}
    url = f"{bucket or serving.endpoint + '/open'}/{name}"
    return subprocess.run(
        [sys.executable, EXAMPLE, verb, url, str(path)],
        env=clean_environment() | keys | {"AWS_CA_BUNDLE": os.fspath(serving.ca)},
        capture_output=True,
        timeout=120,
        check=False,
    )


def done(serving, *words, **options):
    ran = run(serving, *words, **options)
    assert ran.returncode == 0, ran.stderr.decode()


def test_it_puts_what_any_client_reads(serving, client, tmp_path):
    path = tmp_path / "in"
    received = metric(serving, "coffer_transfer_received_bytes_total")
    for size in (0, 100, 16_385, 3 * MIB + 7):
        path.write_bytes(content(size, "example"))
        done(serving, "put", "a%20b", path)
        answer = client.get_object(Bucket="open", Key="a b", ChecksumMode="ENABLED")
        assert answer["Body"].read() == path.read_bytes()
        assert "ChecksumSHA256" in answer
    grown = metric(serving, "coffer_transfer_received_bytes_total") - received
    assert 3 * MIB < grown < 4 * MIB, "what is larger than the catalog takes went sealed"


def test_it_gets_what_any_client_wrote(serving, client, tmp_path):
    first, last = content(PART_MIN_BYTES, 1), content(20_000, 2)
    upload_in_parts(client, "open", "parts", [first, last])
    client.put_object(Bucket="open", Key="small", Body=b"small")
    sent = metric(serving, "coffer_transfer_sent_bytes_total")
    client.put_object(Bucket="open", Key="empty", Body=b"")
    client.put_object(Bucket="open", Key="gzip", Body=PACKED, ContentEncoding="gzip")
    gotten = (("parts", first + last), ("small", b"small"), ("empty", b""), ("gzip", PACKED))
    for key, body in gotten:
        done(serving, "get", key, tmp_path / key)
        assert (tmp_path / key).read_bytes() == body
    grown = metric(serving, "coffer_transfer_sent_bytes_total") - sent
    assert grown > len(first + last), "what lies in blobs came sealed"


@pytest.mark.large
def test_it_asks_for_the_rest_of_the_version_that_it_began(serving, client, tmp_path):
    """An object of more parts than a ticket holds, which is replaced before it asks again."""
    sealed.make_bucket(serving, "kept", "open")
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="kept", VersioningConfiguration=enabled)
    bodies = [content(PART_MIN_BYTES, number % 3) for number in range(259)]
    upload_in_parts(client, "kept", "many", bodies)
    asked = []

    def replaces(method, path):
        if method == "GET":
            asked.append(path)
            if len(asked) == 2:
                client.put_object(Bucket="kept", Key="many", Body=b"replaced")

    with Watching(serving) as between:
        between.before = replaces
        done(serving, "get", "many", tmp_path / "out", bucket=f"{between.endpoint}/kept")
    assert len(asked) == 2
    assert (tmp_path / "out").read_bytes() == b"".join(bodies)


def test_lengths_in_the_specification_add_up():
    text = (ROOT / "docs/SEALED-TRANSFER.md").read_text()
    got, sent = (json.loads(part.split("```")[0]) for part in text.split("```json")[1:3])
    [segment] = got["segments"]
    start, end = got["range"]
    assert segment["bytes"] == end - start
    # Each chunk has a tag, also the last one, which is empty here.
    chunks = segment["bytes"] // CHUNK_BYTES
    assert segment["sealed_bytes"] == segment["bytes"] + 16 * (chunks + 1)
    assert got["bytes"] == segment["sealed_bytes"]
    assert sent["bytes"] == got["bytes"] + sealed.HEADER


def test_it_is_as_short_as_it_says():
    lines = EXAMPLE.read_text().splitlines()
    assert "in 60 lines" in (ROOT / "docs/SEALED-TRANSFER.md").read_text()
    assert len(lines) <= 60 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("words", [["--help"], [], ["list", "https://a/b/c", "file"]])
def test_it_says_how_it_is_used(words):
    ran = subprocess.run([sys.executable, EXAMPLE, *words], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stderr.startswith("sealed_transfer.py get|put https://")
    assert "Traceback" not in ran.stderr


def test_it_says_what_it_is_refused(serving, tmp_path):
    ran = run(serving, "get", "nothing", tmp_path / "out")
    assert ran.returncode == 1 and b"404" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_it_follows_to_a_port_with_tls(speaking, tmp_path):
    path = tmp_path / "in"
    path.write_bytes(content(3 * MIB + 7, "example"))
    received = metric(speaking, "coffer_transfer_received_bytes_total")
    done(speaking, "put", "film", path)
    done(speaking, "get", "film", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == path.read_bytes()
    assert metric(speaking, "coffer_transfer_received_bytes_total") - received > 3 * MIB
