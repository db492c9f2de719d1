"""The client of examples/: written from docs/SEALED-TRANSFER.md alone, so that it proves it."""

import os
import subprocess
import sys

from harness.content import MIB, PART_MIN_BYTES, content
from harness.raw import metric
from harness.server import ROOT, clean_environment

EXAMPLE = ROOT / "examples/sealed_transfer.py"


def run(serving, verb, name, path):
    access_key_id, secret = serving.credentials()
    keys = {"AWS_ACCESS_KEY_ID": access_key_id, "AWS_SECRET_ACCESS_KEY": secret}
    return subprocess.run(
        [sys.executable, EXAMPLE, verb, f"{serving.endpoint}/open/{name}", str(path)],
        env=clean_environment() | keys | {"AWS_CA_BUNDLE": os.fspath(serving.ca)},
        capture_output=True,
        timeout=60,
        check=False,
    )


def done(serving, *words):
    ran = run(serving, *words)
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
    name = {"Bucket": "open", "Key": "parts"}
    upload = client.create_multipart_upload(**name)["UploadId"]
    parts = [
        {
            "PartNumber": number,
            "ETag": client.upload_part(**name, UploadId=upload, PartNumber=number, Body=body)[
                "ETag"
            ],
        }
        for number, body in enumerate([first, last], 1)
    ]
    client.complete_multipart_upload(**name, UploadId=upload, MultipartUpload={"Parts": parts})
    client.put_object(Bucket="open", Key="small", Body=b"small")
    sent = metric(serving, "coffer_transfer_sent_bytes_total")
    for key, body in (("parts", first + last), ("small", b"small")):
        done(serving, "get", key, tmp_path / key)
        assert (tmp_path / key).read_bytes() == body
    grown = metric(serving, "coffer_transfer_sent_bytes_total") - sent
    assert grown > len(first + last), "what lies in blobs came sealed"


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
