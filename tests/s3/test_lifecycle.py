"""Lifecycle rules: what they may say, and what headers tell of them."""

import datetime

import pytest

from harness.clients import refused, s3_client
from harness.lifecycle import put, rule, set_rules
from harness.raw import send

MIDNIGHT = datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC)


def test_a_configuration_is_set_read_and_removed(s3, bucket):
    with refused("NoSuchLifecycleConfiguration", 404):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)
    tags = [{"Key": "k", "Value": "v"}, {"Key": "l", "Value": ""}]
    whole = {"Prefix": "p/", "Tags": tags, "ObjectSizeGreaterThan": 0, "ObjectSizeLessThan": 9}
    rules = [
        rule("days", {"Prefix": "a/"}, Expiration={"Days": 3}),
        rule("date", {"Tag": tags[0]}, Expiration={"Date": MIDNIGHT}),
        rule("markers", {"ObjectSizeLessThan": 8}, Expiration={"ExpiredObjectDeleteMarker": True}),
        rule(
            "versions",
            {"And": whole},
            NoncurrentVersionExpiration={"NoncurrentDays": 1, "NewerNoncurrentVersions": 100},
        ),
        rule("off", {}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7})
        | {"Status": "Disabled"},
    ]
    old = {"ID": "old", "Status": "Enabled", "Prefix": "o/", "Expiration": {"Days": 1}}
    rules[-1]["Filter"] = {"Prefix": ""}
    set_rules(s3, bucket, *rules, old)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [*rules, old]
    set_rules(s3, bucket, rules[0])
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [rules[0]]
    nameless = rule(Expiration={"Days": 1})
    del nameless["ID"]
    set_rules(s3, bucket, nameless, rules[0])
    named = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert named[0]["ID"] and named[0]["ID"] != named[1]["ID"]
    for _ in range(2):
        s3.delete_bucket_lifecycle(Bucket=bucket)
        with refused("NoSuchLifecycleConfiguration", 404):
            s3.get_bucket_lifecycle_configuration(Bucket=bucket)


def test_the_old_operation_is_the_same(s3, server, bucket):
    body = (
        b"<LifecycleConfiguration><Rule><ID>o</ID><Prefix>p</Prefix><Status>Enabled</Status>"
        b"<Expiration><Days>2</Days></Expiration></Rule></LifecycleConfiguration>"
    )
    s3.put_bucket_lifecycle(
        Bucket=bucket,
        LifecycleConfiguration={
            "Rules": [{"ID": "o", "Prefix": "p", "Status": "Enabled", "Expiration": {"Days": 2}}]
        },
    )
    assert s3.get_bucket_lifecycle(Bucket=bucket)["Rules"][0]["Prefix"] == "p"
    assert send(server, "PUT", f"/{bucket}", query="lifecycle=", body=body)[0] == 200


def test_ids_that_were_left_out_stay_and_collide_with_none(s3, bucket):
    def nameless(prefix):
        made = rule(where={"Prefix": prefix}, Expiration={"Days": 1})
        del made["ID"]
        return made

    set_rules(s3, bucket, nameless("a/"), nameless("b/"))
    first, second = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    for rules in ([second, nameless("c/")], [nameless("d/"), first, second]):
        set_rules(s3, bucket, *rules)
        told = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        assert len({rule["ID"] for rule in told}) == len(rules)
        for given, kept in zip(rules, told, strict=True):
            assert given.get("ID", kept["ID"]) == kept["ID"]


def test_a_thousand_rules_of_three_actions_are_taken(s3, bucket):
    rules = [
        rule(
            f"tenant-{number:04d}",
            {"Prefix": f"tenants/{number:04d}/"},
            Expiration={"Days": 30},
            NoncurrentVersionExpiration={"NoncurrentDays": 30},
            AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7},
        )
        for number in range(1000)
    ]
    set_rules(s3, bucket, *rules)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules


DAYS = {"Expiration": {"Days": 1}}
TAG = {"Key": "k", "Value": "v"}
TOO_LATE = datetime.datetime(2099, 1, 1, 1, tzinfo=datetime.UTC)
NONCURRENT = "NoncurrentVersionExpiration"
ABORT = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
WRONG = {
    "no rules": ([], "MalformedXML"),
    "too many": ([rule(f"r{i}", **DAYS) for i in range(1001)], "MalformedXML"),
    "same ids": ([rule(**DAYS), rule(**DAYS)], "InvalidArgument"),
    "long id": ([rule("i" * 256, **DAYS)], "InvalidArgument"),
    "no action": ([rule()], "InvalidRequest"),
    "no days": ([rule(Expiration={"Days": 0})], "InvalidArgument"),
    "days below 0": ([rule(Expiration={"Days": -1})], "InvalidArgument"),
    "days and date": ([rule(Expiration={"Days": 1, "Date": MIDNIGHT})], "MalformedXML"),
    "no midnight": ([rule(Expiration={"Date": TOO_LATE})], "InvalidArgument"),
    "markers and days": (
        [rule(Expiration={"Days": 1, "ExpiredObjectDeleteMarker": True})],
        "MalformedXML",
    ),
    "markers by tag": (
        [rule(where={"Tag": TAG}, Expiration={"ExpiredObjectDeleteMarker": True})],
        "InvalidRequest",
    ),
    "uploads by tag": ([rule(where={"Tag": TAG}, **ABORT)], "InvalidRequest"),
    "no days of uploads": (
        [rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 0})],
        "InvalidArgument",
    ),
    "no noncurrent days": ([rule(**{NONCURRENT: {"NoncurrentDays": 0}})], "InvalidArgument"),
    "only newer": ([rule(**{NONCURRENT: {"NewerNoncurrentVersions": 1}})], "MalformedXML"),
    "101 newer": (
        [rule(**{NONCURRENT: {"NoncurrentDays": 1, "NewerNoncurrentVersions": 101}})],
        "InvalidArgument",
    ),
    "two of a filter": (
        [rule(where={"Prefix": "a", "ObjectSizeLessThan": 5}, **DAYS)],
        "MalformedXML",
    ),
    "no filter": ([{"ID": "r", "Status": "Enabled"} | DAYS], "MalformedXML"),
    "filter and prefix": ([rule(**DAYS) | {"Prefix": "a"}], "MalformedXML"),
    "sizes": (
        [rule(where={"And": {"ObjectSizeGreaterThan": 5, "ObjectSizeLessThan": 5}}, **DAYS)],
        "InvalidArgument",
    ),
    "a tag twice": ([rule(where={"And": {"Tags": [TAG, TAG]}}, **DAYS)], "InvalidRequest"),
    "no status": ([rule(**DAYS) | {"Status": "enabled"}], "MalformedXML"),
    "transition": (
        [rule(Transitions=[{"Days": 1, "StorageClass": "GLACIER"}])],
        "NotImplemented",
    ),
    "noncurrent transition": (
        [rule(NoncurrentVersionTransitions=[{"NoncurrentDays": 1, "StorageClass": "GLACIER"}])],
        "NotImplemented",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_no_rules_may_say(server, bucket, what):
    lenient = s3_client(server, validate=False)
    rules, code = WRONG[what]
    with refused(code) as error:
        set_rules(lenient, bucket, *rules)
    assert error.message
    with refused("NoSuchLifecycleConfiguration", 404):
        lenient.get_bucket_lifecycle_configuration(Bucket=bucket)


def test_headers_tell_the_first_rule_that_ends_an_object(s3, bucket):
    assert "Expiration" not in put(s3, bucket, "a/b")[0]
    set_rules(
        s3,
        bucket,
        rule("later", Expiration={"Days": 30}),
        rule("über", {"Prefix": "a/"}, Expiration={"Days": 3}),
        rule("tagged", {"Tag": TAG}, Expiration={"Days": 1}),
        rule("uploads", **ABORT),
        rule("off", Expiration={"Days": 1}) | {"Status": "Disabled"},
    )
    now = datetime.datetime.now(datetime.UTC)
    told = put(s3, bucket, "a/b")[0]["Expiration"]
    due = (now + datetime.timedelta(days=4)).strftime("%a, %d %b %Y 00:00:00 GMT")
    assert told == f'expiry-date="{due}", rule-id="%C3%BCber"'
    assert s3.head_object(Bucket=bucket, Key="a/b")["Expiration"] == told
    assert s3.get_object(Bucket=bucket, Key="a/b")["Expiration"] == told
    copied = s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/a/b")
    assert 'rule-id="later"' in copied["Expiration"]
    tagged = put(s3, bucket, "a/t", Tagging="k=v&l=w")[0]
    assert 'rule-id="tagged"' in tagged["Expiration"]
    assert 'rule-id="tagged"' in s3.head_object(Bucket=bucket, Key="a/t")["Expiration"]
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a/u")
    due = (now + datetime.timedelta(days=2)).replace(hour=0, minute=0, second=0, microsecond=0)
    assert (upload["AbortDate"], upload["AbortRuleId"]) == (due, "uploads")
    place = {"Bucket": bucket, "Key": "a/u", "UploadId": upload["UploadId"]}
    parts = s3.list_parts(**place)
    assert (parts["AbortDate"], parts["AbortRuleId"]) == (due, "uploads")
    part = s3.upload_part(**place, PartNumber=1, Body=b"a")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    completed = s3.complete_multipart_upload(**place, MultipartUpload=parts)
    assert 'rule-id="%C3%BCber"' in completed["Expiration"]
    set_rules(s3, bucket, rule(Expiration={"Days": 2**31 - 1}))
    assert "Expiration" not in s3.head_object(Bucket=bucket, Key="a/b")
