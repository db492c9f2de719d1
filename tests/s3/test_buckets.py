"""Buckets: made, found, listed, removed."""

import threading

import pytest

from harness import raw
from harness.administration import ask, client_of
from harness.clients import refused, s3_client


def test_life_of_a_bucket(s3, server):
    s3.create_bucket(Bucket="life")
    assert s3.head_bucket(Bucket="life")["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert s3.get_bucket_location(Bucket="life")["LocationConstraint"] is None
    assert "life" in [found["Name"] for found in s3.list_buckets()["Buckets"]]
    s3.delete_bucket(Bucket="life")
    assert "life" not in [found["Name"] for found in s3.list_buckets()["Buckets"]]
    with refused(status=404):
        s3.head_bucket(Bucket="life")


def test_listing_is_sorted_and_dated(s3):
    names = ["sorted-b", "sorted-a", "sorted.c"]
    for name in names:
        s3.create_bucket(Bucket=name)
    listed = [b for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("sorted")]
    assert [b["Name"] for b in listed] == ["sorted-a", "sorted-b", "sorted.c"]
    assert all(b["CreationDate"].year >= 2025 for b in listed)
    for name in names:
        s3.delete_bucket(Bucket=name)


def test_a_bucket_made_twice_is_ours_already(s3, bucket):
    with refused("BucketAlreadyOwnedByYou", 409):
        s3.create_bucket(Bucket=bucket)


def test_a_bucket_that_another_made_is_there_already(s3, server, bucket):
    """Who is told that it has the bucket is who GetBucketAcl tells as its owner."""
    other = client_of(server, "takes-names", "default")
    with refused("BucketAlreadyExists", 409) as error:
        other.create_bucket(Bucket=bucket)
    assert error.response["Error"]["BucketName"] == bucket
    assert s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"] not in str(error.response)
    other.create_bucket(Bucket="taken-by-another")
    with refused("BucketAlreadyOwnedByYou", 409):
        other.create_bucket(Bucket="taken-by-another")
    with refused("BucketAlreadyExists", 409):
        s3.create_bucket(Bucket="taken-by-another")
    other.delete_bucket(Bucket="taken-by-another")
    # One that no subject made is of all who may do everything in it.
    ask(server, "bucket", "create", "of-all-who-may")
    for client in (s3, other):
        with refused("BucketAlreadyOwnedByYou", 409):
            client.create_bucket(Bucket="of-all-who-may")
    s3.delete_bucket(Bucket="of-all-who-may")


def test_missing_buckets(s3):
    for call in (
        lambda: s3.delete_bucket(Bucket="missing"),
        lambda: s3.list_objects_v2(Bucket="missing"),
        lambda: s3.put_object(Bucket="missing", Key="a", Body=b"a"),
        lambda: s3.get_object(Bucket="missing", Key="a"),
        lambda: s3.create_multipart_upload(Bucket="missing", Key="a"),
        lambda: s3.get_bucket_location(Bucket="missing"),
        lambda: s3.get_bucket_tagging(Bucket="missing"),
    ):
        with refused("NoSuchBucket", 404):
            call()


def test_a_bucket_with_objects_stays(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    words = (
        "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
    )
    with refused("BucketNotEmpty", 409) as error:
        s3.delete_bucket(Bucket=bucket)
    assert error.message == words
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"a"


def test_uploads_under_way_end_with_their_bucket(s3, server):
    """As on S3. Where there is an object, they go on."""
    s3.create_bucket(Bucket="unfinished")
    upload = s3.create_multipart_upload(Bucket="unfinished", Key="a")
    where = {"Bucket": "unfinished", "Key": "a", "UploadId": upload["UploadId"]}
    s3.upload_part(**where, PartNumber=1, Body=b"a" * 20_000)
    s3.put_object(Bucket="unfinished", Key="b", Body=b"b")
    with refused("BucketNotEmpty", 409):
        s3.delete_bucket(Bucket="unfinished")
    assert len(s3.list_parts(**where)["Parts"]) == 1
    s3.delete_object(Bucket="unfinished", Key="b")
    s3.delete_bucket(Bucket="unfinished")
    with refused("NoSuchBucket", 404):
        s3.list_parts(**where)
    assert server.blob_bytes_at_most(0)


def test_a_bucket_made_anew_is_empty(s3):
    s3.create_bucket(Bucket="anew")
    s3.put_object(Bucket="anew", Key="a", Body=b"a")
    s3.put_bucket_tagging(Bucket="anew", Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    s3.delete_object(Bucket="anew", Key="a")
    s3.delete_bucket(Bucket="anew")
    s3.create_bucket(Bucket="anew")
    assert s3.list_objects_v2(Bucket="anew")["KeyCount"] == 0
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket="anew")
    s3.delete_bucket(Bucket="anew")


def test_buckets_that_come_and_go_meanwhile(s3, server):
    """A bucket that is just being made or removed is there, or is not: nothing else is said."""
    stop, problems = threading.Event(), []

    def look():
        mine = s3_client(server)
        while not stop.is_set():
            try:
                for bucket in mine.list_buckets()["Buckets"]:
                    mine.list_objects_v2(Bucket=bucket["Name"])
            except mine.exceptions.NoSuchBucket:
                pass
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(40):
            s3.create_bucket(Bucket="comes-and-goes")
            s3.delete_bucket(Bucket="comes-and-goes")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []


def test_nothing_of_a_removed_bucket_stays_on_disk(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    before = {path.name for path in server.data.glob("buckets/*")}
    s3.create_bucket(Bucket="leaves")
    s3.put_object(Bucket="leaves", Key="a", Body=bytes(100_000))
    s3.delete_object(Bucket="leaves", Key="a")
    s3.delete_bucket(Bucket="leaves")
    server.stop()
    assert {path.name for path in server.data.glob("buckets/*")} == before


@pytest.mark.parametrize(
    "name",
    [
        "ab",
        "a" * 64,
        "Upper",
        "under_score",
        "-begins",
        "ends-",
        "two..dots",
        "192.168.5.4",
        "spa ce",
        "ümlaut",
        "xn--name",
        "sthree-name",
        "amzn-s3-demo-bucket",
        "name-s3alias",
        "name--ol-s3",
        "name.mrap",
        "name--use1-az4--x-s3",
        "name--table-s3",
    ],
)
def test_names_that_s3_refuses(server, name):
    with refused("InvalidBucketName", 400):
        s3_client(server, validate=False).create_bucket(Bucket=name)


def test_an_ownership_that_is_empty_is_none(server, s3):
    headers = {"x-amz-object-ownership": ""}
    status, _, answer = raw.send(server, "PUT", "/owned-by-a-slip", headers=headers)
    assert status == 400 and b"<Code>InvalidArgument</Code>" in answer, answer
    assert b"<ArgumentName>x-amz-object-ownership</ArgumentName>" in answer
    with refused("404"):
        s3.head_bucket(Bucket="owned-by-a-slip")


def test_a_bucket_that_has_a_name_of_aws_is_one_like_others(server, s3):
    name = "name.mrap"
    ask(server, "bucket", "create", name)
    s3.put_object(Bucket=name, Key="a", Body=b"x")
    assert s3.get_object(Bucket=name, Key="a")["Body"].read() == b"x"
    s3.delete_object(Bucket=name, Key="a")
    s3.delete_bucket(Bucket=name)


def test_location_constraints(s3):
    s3.create_bucket(
        Bucket="located", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    s3.delete_bucket(Bucket="located")
