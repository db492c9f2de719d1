"""Object names: up to 1,024 bytes of UTF-8 of any content."""

import pytest

from harness.clients import refused

NAMES = [
    "plain",
    "with space",
    " leading and trailing ",
    "a+b%20c%2Fd",
    "a//b///c/",
    "/begins/with/slash",
    "//",
    ".",
    "..",
    "./a/../b",
    "a/./b/../c",
    "question?mark&and=equals#hash",
    '<xml>&amp;"quotes"\'',
    "ümlaut/日本語/🗝️",
    "e\u0301 is not \u00e9",
    "\u00a0no-break\u2028line-separator",
    "back\\slash",
    "tab\tand\nnewline\rreturn",
    "control\x01\x1f\x7f",
    "colon:semicolon;comma,at@dollar$",
    "{curly}[square]|pipe^caret`tick~tilde",
    "x" * 1024,
    "é" * 512,
    "a/" * 512,
    "-rf",
    "*",
    "%",
    "%00",
    "%2e%2e%2f",
    "CON",
    "soap;uploads&partNumber=1",
]

NOT_FOR_XML = ["control\x01\x1f\x7f"]
"""S3 puts these into XML as `&#x1;`, which boto3 can't read; only listings can be encoded."""


@pytest.fixture(scope="module")
def filled(s3):
    s3.create_bucket(Bucket="names")
    for index, name in enumerate(NAMES):
        s3.put_object(Bucket="names", Key=name, Body=f"{index}".encode())
    return "names"


@pytest.mark.parametrize("index", range(len(NAMES)))
def test_a_name_is_kept_as_it_is(s3, filled, index):
    got = s3.get_object(Bucket=filled, Key=NAMES[index])
    assert got["Body"].read() == f"{index}".encode()


def test_names_are_listed_as_they_are(s3, filled):
    listed = [found["Key"] for found in s3.list_objects_v2(Bucket=filled)["Contents"]]
    assert listed == sorted(NAMES, key=str.encode)
    listed = [found["Key"] for found in s3.list_objects(Bucket=filled)["Contents"]]
    assert listed == sorted(NAMES, key=str.encode)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_works_everywhere(s3, bucket, name):
    s3.put_object(Bucket=bucket, Key="source", Body=b"1")
    s3.copy_object(Bucket=bucket, Key=name, CopySource={"Bucket": bucket, "Key": "source"})
    s3.copy_object(Bucket=bucket, Key="target", CopySource={"Bucket": bucket, "Key": name})
    tags = {"TagSet": [{"Key": "k", "Value": "v"}]}
    s3.put_object_tagging(Bucket=bucket, Key=name, Tagging=tags)
    if name in NOT_FOR_XML:
        s3.delete_object(Bucket=bucket, Key=name)
        return
    upload = s3.create_multipart_upload(Bucket=bucket, Key=name)
    assert upload["Key"] == name
    assert s3.list_multipart_uploads(Bucket=bucket)["Uploads"][0]["Key"] == name
    where = {"Bucket": bucket, "Key": name, "UploadId": upload["UploadId"]}
    part = s3.upload_part(**where, PartNumber=1, Body=b"2")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    assert s3.complete_multipart_upload(**where, MultipartUpload=parts)["Key"] == name
    assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == b"2"
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name}]})
    assert answer["Deleted"][0]["Key"] == name
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key=name)


@pytest.mark.parametrize("name", ["x" * 1025, "é" * 513])
def test_longer_names_are_refused(s3, bucket, name):
    with refused("KeyTooLongError", 400):
        s3.put_object(Bucket=bucket, Key=name, Body=b"a")
    with refused("KeyTooLongError", 400):
        s3.create_multipart_upload(Bucket=bucket, Key=name)
