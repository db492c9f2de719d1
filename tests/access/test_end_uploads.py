"""Multipart uploads that nobody finishes: what they keep, who ends them, and what is left."""

import itertools
import json
import re
import time

import pytest

from harness import raw
from harness.administration import ask, client_of, from_afar, make_subject, refused, run
from harness.auditing import export
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.content import MIB

BUCKET = "halves"


def begin(s3, key, parts, bucket=BUCKET):
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    for number in range(1, parts + 1):
        s3.upload_part(
            Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=b"p" * (5 * MIB)
        )
    return upload


def of(server, bucket=BUCKET):
    row = ask(server, "bucket", "show", bucket)
    return row["upload_count"], row["upload_bytes"], row.get("oldest_upload_at")


@pytest.fixture
def halves(own_server):
    with own_server() as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket=BUCKET)
        yield server, s3


def blob_files(server):
    return [path for path in server.data.glob("buckets/*/blobs/*/*") if path.is_file()]


def test_they_are_listed_with_their_age_and_ended_by_one_command(halves):
    server, s3 = halves
    s3.put_object(Bucket=BUCKET, Key="whole", Body=b"w" * MIB)
    assert of(server) == (0, 0, None)
    old = begin(s3, "a", 2)
    time.sleep(3)
    begin(s3, "b", 1)
    count, size, oldest = of(server)
    assert (count, size) == (2, 15 * MIB) and oldest
    table = run(server, "bucket", "list")
    assert "UPLOADS" in table and re.search(rf"{BUCKET} .* 2 +15\.7 MB +\d+s ", table), table

    dry = ask(server, "bucket", "end-uploads", BUCKET, "--older-than", "2s", "--dry-run")
    expected = {"bucket": BUCKET, "upload_count": 1, "upload_bytes": 10 * MIB, "dry_run": True}
    assert dry == [expected]
    assert of(server)[0] == 2 and len(blob_files(server)) == 4
    for age, became in (("2s", "would end"), ("1d", "none so old")):
        words = ("bucket", "end-uploads", "--all", "--older-than", age, "--dry-run")
        assert run(server, *words).splitlines()[1].endswith(became)
    told = refused(server, "bucket", "end-uploads", "--older-than", "2s")
    assert "name a bucket" in told and "--all" in told
    # A day is what is meant where no age is said.
    assert ask(server, "bucket", "end-uploads", BUCKET)[0]["upload_count"] == 0
    ended = ask(server, "bucket", "end-uploads", BUCKET, "--older-than", "2s")
    assert ended == [expected | {"dry_run": False}]
    assert of(server)[:2] == (1, 5 * MIB)
    assert [row["Key"] for row in s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]] == ["b"]
    with s3_refused("NoSuchUpload", 404):
        s3.upload_part(Bucket=BUCKET, Key="a", UploadId=old, PartNumber=3, Body=b"p")
    assert len(blob_files(server)) == 2

    s3.create_bucket(Bucket="other")
    begin(s3, "c", 1, "other")
    s3.create_bucket(Bucket="none")
    everywhere = ask(server, "bucket", "end-uploads", "--all", "--older-than", "0s")
    assert [row["bucket"] for row in everywhere] == [BUCKET, "other"]
    assert of(server)[0] == of(server, "other")[0] == 0
    assert len(blob_files(server)) == 1
    assert s3.get_object(Bucket=BUCKET, Key="whole")["Body"].read() == b"w" * MIB
    s3.delete_bucket(Bucket="other")

    records = export(server, "--act", "upload.end", "--bucket", BUCKET)
    done = [row["details"] for row in records if row["outcome"] == "done"]
    assert [(row["count"], row["bytes"]) for row in done] == [
        ("0", "0"),
        ("1", str(10 * MIB)),
        ("1", str(5 * MIB)),
    ]


def test_who_may_end_them(halves, tmp_path):
    server, s3 = halves
    begin(s3, "a", 1)
    numbers = itertools.count()

    def ends(*more):
        credentials = make_subject(server, f"who-{next(numbers)}", "default", *more)
        words = ("bucket", "end-uploads", BUCKET, "--older-than", "0s", "--json")
        return from_afar(server, credentials, *words, folder=tmp_path)

    for more in (
        ("--roles", "auditor"),
        ("--roles", "system-administrator"),
        ("--roles", "data-user", "--grant", f"{BUCKET}=read,list,delete"),
    ):
        told = ends(*more)
        assert told.returncode == 1 and b"access denied" in told.stderr.lower(), told
    # Whom the bucket is hidden from learns of none.
    ask(server, "level", "create", "secret", "--rank", "2")
    ask(server, "bucket", "create", "hidden", "--level", "secret")
    stranger = make_subject(server, "stranger", "default", "--roles", "data-user")
    words = ("bucket", "end-uploads", "hidden", "--dry-run")
    told = from_afar(server, stranger, *words, folder=tmp_path)
    assert told.returncode == 1 and b"there is no bucket hidden" in told.stderr, told
    assert of(server)[0] == 1
    for more in (
        ("--roles", "data-user", "--grant", f"{BUCKET}=write"),
        ("--roles", "key-custodian"),
    ):
        told = ends(*more)
        assert told.returncode == 0, told
        assert json.loads(told.stdout)[0]["upload_count"] == 1
        begin(s3, "a", 1)
    assert refused(server, "bucket", "end-uploads", "nowhere")
    told = run(server, "bucket", "end-uploads", BUCKET, "--older-than", "soon", expect=2)
    assert "such as 90m, 12h or 7d" in told


def test_levels_are_measured_by_id_and_without_names(halves):
    server, s3 = halves
    ask(server, "level", "create", "secret", "--rank", "2")
    ask(server, "bucket", "create", "deep", "--level", "secret")
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"a" * 1000)
    s3.put_object(Bucket=BUCKET, Key="b", Body=b"b" * 100_000)
    begin(s3, "c", 1)
    reader = client_of(server, "reader", "secret", "--roles", "data-user")
    reader.put_object(Bucket="deep", Key="d", Body=b"d" * 70)
    assert server.stop() == 0
    server.start()
    ids = {row["name"]: row["id"] for row in ask(server, "level", "list")}

    def figures():
        _, page = raw.get_admin(server, "/metrics")
        assert "secret" not in page and "deep" not in page
        rows = re.findall(r'(?m)^coffer_level_(\w+)\{level="(\w+)"\} (\d+)$', page)
        return {(name, level): int(value) for name, level, value in rows}

    expected = {
        ("buckets", ids["default"]): 1,
        ("objects", ids["default"]): 2,
        ("bytes", ids["default"]): 101_000,
        ("upload_bytes", ids["default"]): 5 * MIB,
        ("buckets", ids["secret"]): 1,
        ("objects", ids["secret"]): 1,
        ("bytes", ids["secret"]): 70,
        ("upload_bytes", ids["secret"]): 0,
    }
    deadline = time.monotonic() + 20
    while figures() != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert figures() == expected
