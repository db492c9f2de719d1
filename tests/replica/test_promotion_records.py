"""What the audit log of a promoted standby says of its promotion."""

import base64
import json
import os
import threading
import time

from harness.administration import run
from harness.standbys import promote, promotions, serves_writes


def test_a_promotion_is_in_the_audit_log_once(followed):
    promoted = promote(followed)
    serves_writes(followed)
    [record] = promotions(followed)
    assert record["actor"] == f"local:{os.getuid()}", record
    details = record["details"]
    assert details["without_copy"] == "false", record
    assert details["head"] == promoted["head"].partition(":")[0], record
    assert details["as_of"] == promoted["as_of"], record
    followed.arguments = []
    followed.restart()
    assert promotions(followed) == [record]
    run(followed, "audit", "verify")


def promoted_record(standby):
    """Promotes it; what `backup.json` has in between, which the start after it goes by."""
    path, caught = standby.data / "backup.json", []

    def watch():
        end = time.monotonic() + 60
        while not caught and time.monotonic() < end:
            text = path.read_text() if path.exists() else ""
            caught.extend([text] if '"promotion"' in text and text.endswith("\n") else [])
            time.sleep(0.005)

    watching = threading.Thread(target=watch)
    watching.start()
    promote(standby)
    serves_writes(standby)
    watching.join()
    return caught[0]


def test_a_start_that_was_ended_half_way_records_no_promotion_twice(followed):
    text = promoted_record(followed)
    [record] = promotions(followed)
    said = json.loads(text)["promotion"]
    assert b"local:" not in base64.b64decode(said), "it is sealed"
    for again in (text, text.replace(said, said[:-12] + "AAAA" + said[-8:])):
        followed.stop()
        (followed.data / "backup.json").write_text(again)
        (followed.data / "backup.json").chmod(0o600)
        followed.arguments = ["--accept-rollback"]
        followed.start()
        assert promotions(followed) == [record]
        assert not (followed.data / "backup.json").exists()
    assert "promotion does not open" in followed.log()
