"""Commands that tell something to a reader that has read enough, as `head` has."""

import json
import os
import subprocess

import pytest

from harness.administration import ask, run
from harness.clients import s3_client
from harness.server import BINARY, clean_environment


def told_to_none(*words):
    """What a command says and ends with whose standard output is read by none any more."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [BINARY, *map(str, words)],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr.decode()


@pytest.fixture
def own(own_server):
    return own_server().start()


@pytest.fixture
def receipt(own, tmp_path):
    """That of an erase, and the key that verifies it."""
    s3 = s3_client(own)
    for bucket in ("doomed", "kept"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="kept", Key="k", Body=b"x")
    ask(own, "bucket", "erase", "doomed", "--yes")
    [listed] = ask(own, "receipt", "list")
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(ask(own, "receipt", "show", listed["id"])))
    return path, run(own, "receipt", "key").strip()


def test_they_end_quietly(own, receipt):
    path, key = receipt
    data = ("--data", own.data)
    run(own, "replica", "add", "far", f"file://{path.parent}/copy")
    for words in (
        ("receipt", "verify", path, "--key", key),
        ("receipt", "list", *data),
        ("receipt", "list", "--json", *data),
        ("level", "list", *data),
        ("bucket", "list", *data),
        ("subject", "list", *data),
        ("replica", "list", *data),
        ("audit", "show", *data),
        ("ls", *data),
        ("ls", "s3://kept", *data),
        ("ls", "--versions", "s3://kept", *data),
        ("completions", "bash"),
    ):
        assert told_to_none(*words) == (0, ""), words


def test_what_was_done_is_told_as_done(own, receipt):
    code, said = told_to_none("level", "create", "new", "--rank", "7", "--data", own.data)
    assert code == 1 and "it was done" in said, said


def test_a_receipt_that_is_none_is_told_all_the_same(own, receipt):
    path, key = receipt
    forged = json.loads(path.read_text())
    forged["erased"]["what"] = "level"
    path.write_text(json.dumps(forged))
    code, said = told_to_none("receipt", "verify", path, "--key", key)
    assert code == 1 and "NOT GENUINE" in said, said
