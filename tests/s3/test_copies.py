"""Copies inside the server."""

import threading

import pytest

from harness import raw
from harness.administration import ask
from harness.clients import drain, refused, s3_client
from harness.content import MIB, content


@pytest.fixture
def source(s3, bucket):
    s3.put_object(
        Bucket=bucket,
        Key="dir/söurce +1",
        Body=content(MIB),
        ContentType="text/x-source",
        Metadata={"colour": "blue"},
        Tagging="k=v",
    )
    return {"Bucket": bucket, "Key": "dir/söurce +1"}


def test_a_copy_has_everything(s3, bucket, source):
    s3.create_bucket(Bucket="copy-target")
    answer = s3.copy_object(Bucket="copy-target", Key="b", CopySource=source)["CopyObjectResult"]
    got = s3.get_object(Bucket="copy-target", Key="b")
    assert got["Body"].read() == content(MIB)
    assert got["ContentType"] == "text/x-source"
    assert got["Metadata"] == {"colour": "blue"}
    assert got["ETag"] == answer["ETag"]
    tags = s3.get_object_tagging(Bucket="copy-target", Key="b")["TagSet"]
    assert tags == [{"Key": "k", "Value": "v"}]
    s3.delete_object(**source)
    assert s3.get_object(Bucket="copy-target", Key="b")["Body"].read() == content(MIB)
    s3.delete_object(Bucket="copy-target", Key="b")
    s3.delete_bucket(Bucket="copy-target")


def test_directives(s3, bucket, source):
    s3.copy_object(
        Bucket=bucket,
        Key="b",
        CopySource=source,
        MetadataDirective="REPLACE",
        ContentType="text/x-new",
        Metadata={"size": "big"},
        TaggingDirective="REPLACE",
        Tagging="n=1",
    )
    head = s3.head_object(Bucket=bucket, Key="b")
    assert (head["ContentType"], head["Metadata"]) == ("text/x-new", {"size": "big"})
    tags = s3.get_object_tagging(Bucket=bucket, Key="b")["TagSet"]
    assert tags == [{"Key": "n", "Value": "1"}]
    # Without the directive, what the request says of metadata is not taken.
    s3.copy_object(Bucket=bucket, Key="c", CopySource=source, Metadata={"size": "big"})
    assert s3.head_object(Bucket=bucket, Key="c")["Metadata"] == {"colour": "blue"}


def test_an_object_onto_itself(s3, bucket, source):
    with refused("InvalidRequest", 400):
        s3.copy_object(**source, CopySource=source)
    s3.copy_object(
        **source, CopySource=source, MetadataDirective="REPLACE", Metadata={"new": "yes"}
    )
    got = s3.get_object(**source)
    assert (got["Body"].read(), got["Metadata"]) == (content(MIB), {"new": "yes"})


def test_missing_sources(s3, bucket, source):
    with refused("NoSuchKey", 404):
        s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": bucket, "Key": "missing"})
    with refused("NoSuchBucket", 404):
        s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": "missing", "Key": "a"})
    for nonsense in ("", "no-slash", "/", "%ff/%ff", f"{bucket}/"):
        with refused(status=400):
            s3.copy_object(Bucket=bucket, Key="b", CopySource=nonsense)


def test_a_copy_of_parts_is_whole(s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    where = {"Bucket": bucket, "Key": "parts", "UploadId": upload}
    bodies = [content(5 * MIB, 1), content(3 * MIB, 2)]
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(**where, PartNumber=n, Body=body)["ETag"]}
        for n, body in enumerate(bodies, 1)
    ]
    s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": bucket, "Key": "parts"})
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"".join(bodies)


def test_a_copy_is_of_one_object(server, s3):
    """Its bytes, metadata and tags, while others take the source's name."""
    # Reads are recorded there before they are answered, which takes its time.
    ask(server, "level", "create", "watched", "--rank", 0, "--same-label", "--audit-data")
    ask(server, "bucket", "create", "watched", "--level", "watched")
    stop = threading.Event()

    def put(client, who):
        told = {"Tagging": f"who={who}", "Metadata": {"who": who}}
        client.put_object(Bucket="watched", Key="source", Body=who.encode(), **told)

    def replace():
        client = s3_client(server)
        while not stop.is_set():
            for who in "ab":
                put(client, who)

    put(s3, "a")
    writer = threading.Thread(target=replace)
    writer.start()
    copies = [f"copy-{number}" for number in range(100)]
    try:
        for name in copies:
            s3.copy_object(Bucket="watched", Key=name, CopySource="watched/source")
    finally:
        stop.set()
        writer.join()
    for name in copies:
        where = {"Bucket": "watched", "Key": name}
        got = s3.get_object(**where)
        [tag] = s3.get_object_tagging(**where)["TagSet"]
        assert got["Body"].read().decode() == got["Metadata"]["who"] == tag["Value"]
    drain(s3, "watched")


@pytest.mark.parametrize("name", ["a%2Bb%20c", "a%2Bb+c", "a%2Bb c"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_styles_of_source(server, s3, bucket, slash, name):
    s3.put_object(Bucket=bucket, Key="a+b c", Body=b"a")
    headers = {"x-amz-copy-source": f"{slash}{bucket}/{name}"}
    assert raw.send(server, "PUT", f"/{bucket}/b", headers=headers)[0] == 200
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"a"


@pytest.mark.parametrize("name", ["1.2.3", "a.b-c"])
def test_from_buckets_of_any_name(server, s3, bucket, name):
    """Dots in a name are no sign of a host."""
    ask(server, "bucket", "create", name)
    s3.put_object(Bucket=name, Key="a", Body=content(5 * MIB))
    source = {"Bucket": name, "Key": "a"}
    s3.copy_object(Bucket=bucket, Key="b", CopySource=source)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="c")["UploadId"]
    where = {"Bucket": bucket, "Key": "c", "UploadId": upload}
    part = s3.upload_part_copy(**where, PartNumber=1, CopySource=source)["CopyPartResult"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**where, MultipartUpload=parts)
    for copied in ("b", "c"):
        assert s3.get_object(Bucket=bucket, Key=copied)["Body"].read() == content(5 * MIB)
    with refused("NoSuchKey", 404):
        s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": name, "Key": "missing"})
    s3.delete_object(**source)
    s3.delete_bucket(Bucket=name)


@pytest.mark.parametrize("state", ["Enabled", "Suspended"])
def test_an_earlier_version_onto_its_own_key(s3, bucket, state):
    """How AWS says that earlier versions are restored."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = s3.put_object(Bucket=bucket, Key="a", Body=b"old")["VersionId"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"new")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": state})
    source = {"Bucket": bucket, "Key": "a"}
    if state == "Suspended":
        with refused("InvalidRequest", 400):
            s3.copy_object(Bucket=bucket, Key="a", CopySource=source)
    copied = s3.copy_object(Bucket=bucket, Key="a", CopySource=source | {"VersionId": old})
    assert copied["CopySourceVersionId"] == old
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"old"
    # The null version, which is replaced by itself.
    if state == "Suspended":
        s3.copy_object(Bucket=bucket, Key="a", CopySource=source | {"VersionId": "null"})
        assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"old"
