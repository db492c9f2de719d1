"""What was passed over took away what it was to keep: text for elements, conditions, ranges."""

import datetime

import pytest

from harness.clients import refused
from harness.raw import md5_of, send

OLD = "Wed, 01 Jan 2020 00:00:00 GMT"


def code_of(answer):
    return answer.partition(b"<Code>")[2].partition(b"<")[0].decode()


def put(server, path, query, document, **headers):
    body = document.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, _, answer = send(
        server, "PUT", path, query=query, body=body, headers=md5_of(body) | named
    )
    return status, code_of(answer)


@pytest.mark.parametrize(
    "where",
    [
        "<Filter>logs/</Filter>",
        "<Filter><And>logs/<Prefix>o</Prefix><ObjectSizeGreaterThan>0</ObjectSizeGreaterThan>"
        "</And></Filter>",
        "<Filter><Prefix>logs/</Prefix>logs/</Filter>",
        "<Filter><![CDATA[logs/]]></Filter>",
    ],
)
def test_a_filter_of_text_is_none_for_all_objects(server, s3, bucket, where):
    s3.put_object(Bucket=bucket, Key="other", Body=b"x")
    rule = f"<ID>a</ID>{where}<Status>Enabled</Status><Expiration><Days>1</Days></Expiration>"
    document = f"<LifecycleConfiguration><Rule>{rule}</Rule></LifecycleConfiguration>"
    assert put(server, f"/{bucket}", "lifecycle=", document) == (400, "MalformedXML")
    assert "Expiration" not in s3.head_object(Bucket=bucket, Key="other")
    with refused("NoSuchLifecycleConfiguration", 404):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)


@pytest.mark.parametrize(
    "document", ["<TagSet>a=b</TagSet>", "a=b", "<TagSet><Tag>a</Tag></TagSet>"]
)
def test_tags_of_text_remove_none(server, s3, bucket, document):
    tags = [{"Key": "k", "Value": "v"}]
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", Tagging="k=v")
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    for path in (f"/{bucket}", f"/{bucket}/a"):
        told = put(server, path, "tagging=", f"<Tagging>{document}</Tagging>")
        assert told == (400, "MalformedXML")
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == tags
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags


def test_a_retention_of_text_removes_none(server, s3):
    s3.create_bucket(Bucket="locked-by-text", ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    where = {"Bucket": "locked-by-text", "Key": "a"}
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
    s3.put_object(**where, Body=b"x", **lock)
    told = put(
        server,
        "/locked-by-text/a",
        "retention=",
        "<Retention>GOVERNANCE until 2031</Retention>",
        x_amz_bypass_governance_retention="true",
    )
    assert told == (400, "MalformedXML")
    assert s3.head_object(**where)["ObjectLockMode"] == "GOVERNANCE"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("if-match", '"other"'),
        ("if-match", "*"),
        ("if-none-match", "*"),
        ("if-unmodified-since", OLD),
        ("if-modified-since", OLD),
        ("if-match", ""),
    ],
)
def test_a_deletion_of_many_has_no_condition_for_all(server, s3, bucket, name, value):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")
    body = b"<Delete><Object><Key>a</Key></Object></Delete>"
    headers = md5_of(body) | {name: value}
    status, _, answer = send(
        server, "POST", f"/{bucket}", query="delete=", body=body, headers=headers
    )
    assert (status, code_of(answer)) == (501, "NotImplemented")
    s3.head_object(Bucket=bucket, Key="a")


def test_an_entry_with_a_tag_of_what_is_not_there(s3, bucket):
    s3.put_object(Bucket=bucket, Key="there", Body=b"x")
    entries = [{"Key": "none", "ETag": '"x"'}, {"Key": "none", "ETag": "*"}]
    entries.append({"Key": "there", "ETag": '"x"'})
    told = s3.delete_objects(Bucket=bucket, Delete={"Objects": entries})["Errors"]
    codes = [row["Code"] for row in told]
    assert codes == ["NoSuchKey", "NoSuchKey", "PreconditionFailed"]
    s3.head_object(Bucket=bucket, Key="there")


def test_a_part_of_an_object_is_not_the_whole(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"0123456789")
    headers = {"content-range": "bytes 0-2/10"}
    status, _, answer = send(server, "PUT", f"/{bucket}/a", headers=headers, body=b"new")
    assert (status, code_of(answer)) == (400, "InvalidRequest")
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"0123456789"
