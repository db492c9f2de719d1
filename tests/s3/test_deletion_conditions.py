"""Conditions on the entries of DeleteObjects."""

import base64
import datetime
import hashlib

import pytest

from harness import raw


def test_entries_of_a_deletion_have_conditions_of_their_own(s3, bucket):
    rows = []
    for key in ("a", "b", "c", "d"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"12345")
        rows.append(s3.head_object(Bucket=bucket, Key=key))
    at = rows[0]["LastModified"]
    wanted = [
        {"Key": "a", "Size": 5, "ETag": rows[0]["ETag"], "LastModifiedTime": at},
        {"Key": "b", "Size": 6},
        {"Key": "c", "LastModifiedTime": at - datetime.timedelta(days=1)},
        {"Key": "d", "ETag": "other"},
        {"Key": "never-was", "Size": 1},
    ]
    told = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted})
    assert [row["Key"] for row in told["Deleted"]] == ["a", "never-was"]
    failed = {row["Key"]: row["Code"] for row in told["Errors"]}
    assert failed == dict.fromkeys("bcd", "PreconditionFailed")
    left = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert [row["Key"] for row in left] == ["b", "c", "d"]


def test_each_entry_of_a_deletion_is_told_what_stood_when_it_was_judged(s3, bucket):
    """A later entry that deletes the name makes nothing else of the refusal of an earlier one."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"there")
    wanted = [{"Key": "a", "ETag": "other"}, {"Key": "a"}, {"Key": "a", "ETag": "another"}]
    told = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted})
    assert [row["Key"] for row in told["Deleted"]] == ["a"]
    assert [row["Code"] for row in told["Errors"]] == ["PreconditionFailed", "NoSuchKey"]


@pytest.mark.parametrize(
    ("etag", "code"),
    [("W/{etag}", "InvalidArgument"), ('"*"', "PreconditionFailed"), ("", "InvalidArgument")],
)
def test_tags_of_entries_are_read_as_headers_are(server, s3, bucket, etag, code):
    etag = etag.format(etag=s3.put_object(Bucket=bucket, Key="a", Body=b"kept")["ETag"])
    deleted = raw.send(server, "DELETE", f"/{bucket}/a", headers={"if-match": etag})
    assert deleted[0] in (400, 412) and code.encode() in deleted[2]
    entry = f"<Object><Key>a</Key><ETag>{etag}</ETag></Object>"
    document = f"<Delete><Object><Key>b</Key></Object>{entry}</Delete>".encode()
    headers = {"content-md5": base64.b64encode(hashlib.md5(document).digest()).decode()}
    asked = {"query": "delete=", "headers": headers, "body": document}
    status, _, told = raw.send(server, "POST", f"/{bucket}", **asked)
    assert status == 200 and f"<Code>{code}</Code>".encode() in told
    assert b"<Deleted><Key>b</Key></Deleted>" in told
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"
    there = {"Objects": [{"Key": "a", "ETag": "*"}]}
    assert s3.delete_objects(Bucket=bucket, Delete=there)["Deleted"][0]["Key"] == "a"
