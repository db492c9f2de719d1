"""What an auditor finds in the audit log, and how much of it there is."""

import json
import time

from harness.auditing import ask, eventually, export, make_level
from harness.clients import refused, s3_client


def test_records_are_found_by_what_they_say(own_server, tmp_path):
    """By time, act, subject, bucket and outcome, all at once; also when the server is stopped."""
    server = own_server().start()
    make_level(server, "secret")
    made = json.loads(
        ask(server, "subject", "create", "reader", "--clearance", "default", "--json")
    )
    for bucket in ("one", "other"):
        ask(server, "bucket", "create", bucket, "--level", "secret")
    s3 = s3_client(server, credentials=(made["access_key_id"], made["secret_access_key"]))
    for bucket in ("one", "other"):
        with refused("NoSuchBucket"):
            s3.get_object(Bucket=bucket, Key="object")
    eventually(lambda: len(export(server, "--act", "bucket.use")) == 2)
    records = export(server)
    since = next(one["time"] for one in records if one["act"] == "bucket.create")

    def check():
        for words, wanted in [
            (("--act", "bucket"), lambda one: one["act"].startswith("bucket.")),
            (("--act", "level.create"), lambda one: one["act"] == "level.create"),
            (("--outcome", "denied"), lambda one: one["outcome"] == "denied"),
            (("--bucket", "one"), lambda one: one.get("details", {}).get("bucket") == "one"),
            (("--since", since), lambda one: one["time"] >= since),
            (("--until", since), lambda one: one["time"] < since),
            (("--since", "1970-01-02"), lambda one: True),
            (("--until", "1970-01-02"), lambda one: False),
            (
                ("--subject", "reader"),
                lambda one: (
                    "reader" in (one.get("actor_name"), one.get("details", {}).get("subject"))
                ),
            ),
        ]:  # fmt: skip
            expected = [one for one in records if wanted(one)]
            until = ("--until", "9999-01-01") if "--until" not in words else ()
            found = [one for one in export(server, *words, *until) if one in records]
            assert found == expected, words
        both = ("--subject", made["access_key_id"], "--outcome", "denied", "--act", "bucket.use")
        [first, second] = export(server, *both)
        assert export(server, *both, "--bucket", "other") == [second]
        assert second["actor_name"] == "reader" and first["details"]["bucket"] == "one"
        last = ask(server, "audit", "show", *both, "--last", 1, "--json")
        assert [json.loads(line) for line in last.splitlines()] == [second]
        assert "reader" in ask(server, "audit", "show", *both).splitlines()[0]
        assert ask(server, "audit", "show", "--subject", "nobody") == ""
        ask(server, "audit", "show", "--since", "yesterday", code=2)
        # Which would be a record's number, and find nothing.
        ask(server, "audit", "show", "--since", since[:10].replace("-", ""), code=2)
        assert ask(server, "audit", "show", "--since", since[:10])
        ask(server, "audit", "show", "--outcome", "good", code=2)

    check()
    ask(server, "subject", "delete", "reader")
    check_deleted = export(server, "--subject", "reader", "--act", "bucket.use")
    assert len(check_deleted) == 2, "its name stands in the records"
    assert server.stop() == 0
    records = [one for one in records if one in export(server)]
    last = ask(server, "audit", "show", "--act", "bucket", "--last", 2, "--json")
    assert len(last.splitlines()) == 2
    assert [json.loads(line)["act"] for line in last.splitlines()] == ["bucket.use"] * 2


def test_refusals_that_repeat_are_counted(own_server):
    """Whoever has an access key fills no disk by asking for what can't be done."""
    server = own_server().start()
    made = json.loads(ask(server, "subject", "create", "user", "--clearance", "default", "--json"))
    s3 = s3_client(server, credentials=(made["access_key_id"], made["secret_access_key"]))
    s3.create_bucket(Bucket="there")
    s3.put_object(Bucket="there", Key="object", Body=b"stays")
    log = server.data / "audit" / "00000001.log"

    def repeat(code, times, **options):
        for _ in range(times):
            with refused(code):
                options["call"](Bucket="there")

    repeat("BucketAlreadyOwnedByYou", 1, call=s3.create_bucket)
    repeat("BucketNotEmpty", 1, call=s3.delete_bucket)
    eventually(lambda: len(export(server, "--outcome", "failed")) == 2)
    before = log.stat().st_size
    repeat("BucketAlreadyOwnedByYou", 50, call=s3.create_bucket)
    repeat("BucketNotEmpty", 50, call=s3.delete_bucket)
    time.sleep(1.5)
    assert log.stat().st_size - before < 2_000, "nothing is written for each"
    assert server.stop() == 0
    failed = export(server, "--outcome", "failed", "--subject", "user")
    details = [(one["act"], one["details"]) for one in failed]
    told = [(act, detail["reason"], detail.get("repeated")) for act, detail in details]
    assert sorted(told, key=str) == [
        ("bucket.create", "exists", "50"), ("bucket.create", "exists", None),
        ("bucket.delete", "not empty", "50"), ("bucket.delete", "not empty", None),
    ]  # fmt: skip
    assert {one["actor_name"] for one in failed} == {"user"}
