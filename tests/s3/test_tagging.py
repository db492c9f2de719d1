"""Tags of objects and buckets."""

import pytest

from harness.clients import refused
from harness.raw import md5_of, send

TAGS = [{"Key": "z", "Value": "1"}, {"Key": "a b", "Value": "ü=+"}, {"Key": "empty", "Value": ""}]


def test_object_tags(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging="z=1&a%20b=%C3%BC%3D%2B&empty=")
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == TAGS
    assert s3.get_object(Bucket=bucket, Key="a")["TagCount"] == 3
    etag = s3.head_object(Bucket=bucket, Key="a")["ETag"]
    changed = [{"Key": "only", "Value": "one"}]
    s3.put_object_tagging(Bucket=bucket, Key="a", Tagging={"TagSet": changed})
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == changed
    assert s3.head_object(Bucket=bucket, Key="a")["ETag"] == etag
    s3.delete_object_tagging(Bucket=bucket, Key="a")
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == []
    assert "TagCount" not in s3.get_object(Bucket=bucket, Key="a")


def test_tags_go_with_their_object(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging="k=v")
    s3.put_object(Bucket=bucket, Key="a", Body=b"b")
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == []
    with refused("NoSuchKey", 404):
        s3.get_object_tagging(Bucket=bucket, Key="missing")
    with refused("NoSuchKey", 404):
        s3.put_object_tagging(Bucket=bucket, Key="missing", Tagging={"TagSet": TAGS})


def test_bucket_tags(s3, bucket):
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)
    put = s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": TAGS})
    assert put["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == TAGS
    s3.delete_bucket_tagging(Bucket=bucket)
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": TAGS})
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": []})
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)


def test_names_of_aws_are_no_tags_of_buckets(s3, bucket):
    for key in ("aws:a", "AWS:a", "aWs:a"):
        with refused("InvalidTag", 400) as error:
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": key, "Value": "1"}]})
        assert error.response["Error"]["TagKey"] == key
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)


@pytest.mark.parametrize(
    "tags",
    [
        [{"Key": f"{n}", "Value": ""} for n in range(11)],
        [{"Key": "twice", "Value": "1"}, {"Key": "twice", "Value": "2"}],
        [{"Key": "x" * 129, "Value": ""}],
        [{"Key": "k", "Value": "x" * 257}],
        [{"Key": "k!", "Value": ""}],
        [{"Key": "k", "Value": "a&b"}],
        [{"Key": "k", "Value": "\n"}],
        [{"Key": "k", "Value": "a\tb"}],
        [{"Key": "aws:k", "Value": ""}],
        [{"Key": "AWS:k", "Value": ""}],
    ],
)
def test_tags_that_s3_refuses(s3, bucket, tags):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging="kept=1")
    with refused(status=400) as error:
        s3.put_object_tagging(Bucket=bucket, Key="a", Tagging={"TagSet": tags})
    assert error.code in ("InvalidTag", "BadRequest", "MalformedXML")
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == [
        {"Key": "kept", "Value": "1"}
    ]


def test_headers_that_are_no_tags(s3, bucket):
    many = "&".join(f"{n}=" for n in range(11))
    for header in (many, "aws:k=v", "Aws:k=v"):
        with refused("InvalidTag", 400):
            s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging=header)
    for header in ("k=v&k=w", "k=v,l=w", "=", "key%"):
        with refused("InvalidArgument", 400) as error:
            s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging=header)
        told = error.response["Error"]
        assert (told["ArgumentName"], told["ArgumentValue"]) == ("x-amz-tagging", header)
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")


def test_a_tag_has_a_value(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", Tagging="kept=1")
    for path in (f"/{bucket}", f"/{bucket}/a"):
        for tag, wanted in (("<Key>k</Key>", 400), ("<Key>k</Key><Value/>", None)):
            body = f"<Tagging><TagSet><Tag>{tag}</Tag></TagSet></Tagging>".encode()
            md5 = md5_of(body)
            status, _, told = send(server, "PUT", path, query="tagging=", headers=md5, body=body)
            if wanted:
                assert status == wanted and b"<Code>MalformedXML</Code>" in told, told
            else:
                assert status in (200, 204), told


def test_a_bucket_is_made_with_tags(server, s3):
    tags = [{"Key": "team", "Value": "north + east"}, {"Key": "cost", "Value": ""}]
    made = {"LocationConstraint": "default", "Tags": tags}
    s3.create_bucket(Bucket="tagged-at-birth", CreateBucketConfiguration=made)
    assert s3.get_bucket_tagging(Bucket="tagged-at-birth")["TagSet"] == tags
    server.kill()
    server.start()
    assert s3.get_bucket_tagging(Bucket="tagged-at-birth")["TagSet"] == tags
    s3.delete_bucket(Bucket="tagged-at-birth")
    s3.create_bucket(Bucket="no-tags", CreateBucketConfiguration={"Tags": []})
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket="no-tags")
    s3.delete_bucket(Bucket="no-tags")


def test_a_bucket_with_wrong_tags_is_not_made(s3):
    for tags in (
        [{"Key": "a", "Value": "1"}] * 2,
        [{"Key": "aws:a", "Value": "1"}],
        [{"Key": "AWS:a", "Value": "1"}],
        [{"Key": f"k{number}", "Value": ""} for number in range(51)],
    ):
        with refused("InvalidTag", 400):
            s3.create_bucket(Bucket="wrongly-tagged", CreateBucketConfiguration={"Tags": tags})
    with refused("404", 404):
        s3.head_bucket(Bucket="wrongly-tagged")
