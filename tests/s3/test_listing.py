"""Listings, compared with a model."""

import random

import pytest

from harness import raw
from harness.clients import refused

NAMES = sorted(
    {
        *(f"a/{i}/{j}" for i in range(4) for j in range(6)),
        *(f"flat-{i:03}" for i in range(30)),
        "a",
        "a/",
        "a//b",
        "a/1",
        "b/ümlaut",
        "b/日本",
        "b/🗝",
        "b/\uffff",
        "c with space/+plus",
        "c with space/<&>",
        "d/\x01",
        "e-sep-1-sep-2",
        "e-sep-2-sep-3",
        "e-se",
        "zz",
    },
    key=str.encode,
)


@pytest.fixture(scope="module")
def filled(s3):
    s3.create_bucket(Bucket="listing")
    shuffled = NAMES.copy()
    random.Random(1).shuffle(shuffled)
    for name in shuffled:
        s3.put_object(Bucket="listing", Key=name, Body=name.encode())
    return "listing"


def model(prefix="", delimiter="", after=""):
    """Rows in order: (text, is it a prefix)."""
    rows = []
    for name in NAMES:
        if not name.startswith(prefix):
            continue
        at = name.find(delimiter, len(prefix)) if delimiter else -1
        row = (name[: at + len(delimiter)], True) if at >= 0 else (name, False)
        if row[0].encode() > after.encode() and row not in rows[-1:]:
            # A name that begins the listing may lie inside a prefix: S3 skips that prefix.
            rows.append(row)
    return rows


def rows_of(page):
    rows = [(found["Key"], False) for found in page.get("Contents", [])]
    rows += [(found["Prefix"], True) for found in page.get("CommonPrefixes", [])]
    return sorted(rows, key=lambda row: row[0].encode())


CASES = [
    (prefix, delimiter, limit)
    for prefix in ("", "a", "a/", "a/1", "b/", "e-", "c with", "nothing", "a/1/5")
    for delimiter in ("", "/", "-sep-", "1")
    for limit in (1, 3, 1000)
]


@pytest.mark.parametrize(("prefix", "delimiter", "limit"), CASES)
def test_version_2(s3, filled, prefix, delimiter, limit):
    expected = model(prefix, delimiter)
    rows, token = [], {}
    while True:
        page = s3.list_objects_v2(
            Bucket=filled, Prefix=prefix, Delimiter=delimiter, MaxKeys=limit, **token
        )
        found = rows_of(page)
        rows += found
        assert page["KeyCount"] == len(found) <= limit
        assert page["MaxKeys"] == limit
        assert page["IsTruncated"] == (len(rows) < len(expected))
        if not page["IsTruncated"]:
            assert "NextContinuationToken" not in page
            break
        assert len(found) == limit
        token = {"ContinuationToken": page["NextContinuationToken"]}
    assert rows == expected


@pytest.mark.parametrize(("prefix", "delimiter", "limit"), CASES)
def test_version_1(s3, filled, prefix, delimiter, limit):
    expected = model(prefix, delimiter)
    rows, marker = [], ""
    while True:
        page = s3.list_objects(
            Bucket=filled, Prefix=prefix, Delimiter=delimiter, MaxKeys=limit, Marker=marker
        )
        found = rows_of(page)
        rows += found
        assert page["IsTruncated"] == (len(rows) < len(expected))
        if not page["IsTruncated"]:
            break
        if delimiter:
            marker = page["NextMarker"]
            assert marker == found[-1][0]
        else:
            marker = found[-1][0]
    assert rows == expected


@pytest.mark.parametrize("after", ["a", "a/", "a/2/3", "b/ümlaut", "flat-015", "g", "zz", "zzz"])
def test_start_after(s3, filled, after):
    for prefix in ("", "a/", "flat"):
        page = s3.list_objects_v2(Bucket=filled, Prefix=prefix, StartAfter=after)
        assert rows_of(page) == model(prefix, "", after)
        assert page["StartAfter"] == after
        page = s3.list_objects(Bucket=filled, Prefix=prefix, Marker=after)
        assert rows_of(page) == model(prefix, "", after)


def test_zero_rows(s3, filled):
    page = s3.list_objects_v2(Bucket=filled, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"], rows_of(page)) == (0, False, [])


def test_more_than_a_page(s3, filled):
    page = s3.list_objects_v2(Bucket=filled, MaxKeys=5000)
    assert page["MaxKeys"] == 1000
    assert rows_of(page) == model()


def test_what_a_row_says(s3, filled):
    page = s3.list_objects_v2(Bucket=filled, Prefix="zz", FetchOwner=True)
    row = page["Contents"][0]
    head = s3.head_object(Bucket=filled, Key="zz")
    assert (row["ETag"], row["Size"]) == (head["ETag"], 2)
    assert row["LastModified"] == head["LastModified"]
    assert row["StorageClass"] == "STANDARD"
    assert row["Owner"]["ID"]
    assert "Owner" not in s3.list_objects_v2(Bucket=filled, Prefix="zz")["Contents"][0]


def test_names_without_encoding(server, filled):
    """Without encoding-type the XML itself carries the name."""
    status, _, body = raw.send(server, "GET", f"/{filled}", query="list-type=2&prefix=c%20with")
    assert (status, b"EncodingType" in body) == (200, False)
    assert b"<Key>c with space/+plus</Key>" in body
    assert b"<Key>c with space/&lt;&amp;&gt;</Key>" in body


@pytest.mark.parametrize("token", ["nonsense", "AAAA", "", "é"])
def test_tokens_of_others(s3, filled, token):
    with refused("InvalidArgument", 400):
        s3.list_objects_v2(Bucket=filled, ContinuationToken=token)


def test_wrong_numbers(server, filled):
    for query in ("list-type=2&max-keys=-1", "list-type=2&max-keys=many", "max-keys=99999999999"):
        status, _, body = raw.send(server, "GET", f"/{filled}", query=query)
        assert status == 400 and b"<Code>InvalidArgument</Code>" in body, (query, body)


def test_writes_between_pages(s3, bucket):
    for index in range(20):
        s3.put_object(Bucket=bucket, Key=f"{index:02}", Body=b"a")
    first = s3.list_objects_v2(Bucket=bucket, MaxKeys=10)
    s3.delete_object(Bucket=bucket, Key="09")
    s3.delete_object(Bucket=bucket, Key="10")
    s3.put_object(Bucket=bucket, Key="055", Body=b"a")
    s3.put_object(Bucket=bucket, Key="155", Body=b"a")
    rest = s3.list_objects_v2(Bucket=bucket, ContinuationToken=first["NextContinuationToken"])
    names = [row["Key"] for row in rest["Contents"]]
    assert names == ["11", "12", "13", "14", "15", "155", "16", "17", "18", "19"]


@pytest.mark.parametrize("form", ["", "list-type=2&", "versions&", "uploads&"])
def test_an_empty_delimiter_is_not_told(server, bucket, form):
    status, _, page = raw.send(server, "GET", f"/{bucket}", query=f"{form}delimiter=")
    assert status == 200 and b"<Delimiter" not in page, page
    status, _, page = raw.send(server, "GET", f"/{bucket}", query=f"{form}encoding-type=")
    assert status == 400 and b"<Code>InvalidArgument</Code>" in page, page
