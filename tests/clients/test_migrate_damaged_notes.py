"""coffer migrate where what it noted of an upload in parts is damaged."""

import json

import pytest

from harness.content import MIB, write_file
from harness.migration import Migrator
from harness.mover import wait_for_lines


@pytest.fixture
def migrator(server, tmp_path):
    return Migrator(server, tmp_path / "home")


def other_sum(line):
    if line["line"] == "part":
        line["part"]["crc"] ^= 1


def no_length(line):
    if line["line"] == "begun":
        line["begun"]["part_bytes"] = 0


def other_length(line):
    if line["line"] == "begun":
        line["begun"]["part_bytes"] += 1


@pytest.mark.parametrize("damage", [other_sum, no_length, other_length])
def test_an_upload_whose_notes_are_damaged_begins_anew(migrator, s3, tmp_path, damage):
    bucket = f"damaged-{damage.__name__.replace('_', '-')}"
    folder = tmp_path / bucket
    folder.mkdir()
    large = write_file(folder / "large", 150 * MIB, bucket)
    command = ["migrate", folder, f"s3://{bucket}", "--jobs", "1"]
    process = migrator.start(*command)
    wait_for_lines(lambda: next(iter(migrator.ledgers()), None), 3, process)
    process.kill()
    process.communicate()
    [ledger] = migrator.ledgers()
    lines = [json.loads(line) for line in ledger.read_text().splitlines() if line]
    kinds = [line["line"] for line in lines if line["line"] != "found"]
    assert kinds[:3] == ["of", "begun", "part"]
    for line in lines:
        damage(line)
    ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = migrator.migrate(f"s3://{bucket}", source=folder)
    assert run.counts(bucket) == (1, 0, 0)
    assert s3.get_object(Bucket=bucket, Key="large")["Body"].read() == large.read_bytes()
    # None of the parts of before stays.
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
