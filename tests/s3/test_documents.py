"""XML bodies: read as XML, whatever way it is written in."""

import base64
import binascii
import hashlib

import pytest

from harness.clients import refused
from harness.content import PART_MIN_BYTES, content
from harness.raw import md5_of, send

EMOJI = "grin \U0001f600.txt"


def delete(server, bucket, document):
    body = document.encode()
    return send(server, "POST", f"/{bucket}", query="delete=", body=body, headers=md5_of(body))


def names(s3, bucket):
    return {found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


@pytest.mark.parametrize(
    ("written", "doomed"),
    [
        ("x<![CDATA[y]]>z", "xyz"),
        ("<![CDATA[x&amp;<z>]]>", "x&amp;<z>"),
        ("x<!-- y -->z", "xz"),
        ("x<?y y?>z", "xz"),
        ("grin &#x1F600;.txt", EMOJI),
        ("grin &#128512;.txt", EMOJI),
        ("grin \U0001f600.txt", EMOJI),
        ("&lt;&amp;&gt;&quot;&apos;", "<&>\"'"),
        ("&amp;lt;", "&lt;"),
        ("a&#13;b&#1;", "a\rb\x01"),
        (" x ", " x "),
    ],
)
def test_the_name_that_is_written_is_deleted(server, s3, bucket, written, doomed):
    others = {"xyz", "xz", "x", "z", "y", "grin .txt", "x&amp;<z>", "&lt;", "<"} - {doomed}
    for name in others | {doomed}:
        s3.put_object(Bucket=bucket, Key=name, Body=b"x")
    document = f"<Delete><Object><Key>{written}</Key></Object></Delete>"
    status, _, body = delete(server, bucket, document)
    assert status == 200 and b"<Error>" not in body, body
    assert names(s3, bucket) == others


def test_prolog_prefixes_and_namespaces(server, s3, bucket):
    for name in ("a", "b"):
        s3.put_object(Bucket=bucket, Key=name, Body=b"x")
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    document = (
        f'\ufeff<?xml version="1.0" encoding="utf-8"?>\n<!-- c -->\n'
        f'<s3:Delete xmlns:s3="{space}">\n <s3:Object><s3:Key>a</s3:Key></s3:Object>'
        "<s3:Quiet>true</s3:Quiet></s3:Delete>\n"
    )
    status, _, body = delete(server, bucket, document)
    assert status == 200 and b"<Deleted>" not in body, body
    assert names(s3, bucket) == {"b"}


@pytest.mark.parametrize(
    "document",
    [
        "<Delete><Object><Key>a</Key></Object>",
        "<Delete><Object><Key>a</Key></Object></Delete><Delete/>",
        '<!DOCTYPE d [<!ENTITY n "a">]><Delete><Object><Key>&n;</Key></Object></Delete>',
        "<!DOCTYPE Delete><Delete><Object><Key>a</Key></Object></Delete>",
        "<Delete><Object><Key>a&#xD800;</Key></Object></Delete>",
        "<s:Delete><Object><Key>a</Key></Object></s:Delete>",
        '<?xml version="1.0" encoding="UTF-16"?><Delete><Object><Key>a</Key></Object></Delete>',
        "<Delete>" + "<x>" * 100 + "</x>" * 100 + "<Object><Key>a</Key></Object></Delete>",
        "no XML",
    ],
)
def test_what_is_malformed_deletes_nothing(server, s3, bucket, document):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")
    status, _, body = delete(server, bucket, document)
    assert status == 400 and b"<Code>MalformedXML</Code>" in body, body
    assert names(s3, bucket) == {"a"}


def test_an_empty_version_is_none(server, s3, bucket):
    for name in ("a", "b", "c"):
        s3.put_object(Bucket=bucket, Key=name, Body=b"x")
    document = (
        "<Delete><Object><Key>a</Key><VersionId></VersionId></Object>"
        "<Object><Key>b</Key><VersionId/></Object>"
        "<Object><Key>c</Key><VersionId>7</VersionId></Object></Delete>"
    )
    status, _, body = delete(server, bucket, document)
    assert status == 200 and body.count(b"<Deleted>") == 2, body
    assert b"<Code>NoSuchVersion</Code>" in body
    assert names(s3, bucket) == {"c"}


def test_digests_are_those_of_the_document_as_it_came(server, s3, bucket):
    document = b"<Delete><Object><Key>x<![CDATA[y]]></Key></Object></Delete>"
    for name in ("x", "xy"):
        s3.put_object(Bucket=bucket, Key=name, Body=b"x")
    for body, expected in [(b"another", 400), (document, 200)]:
        status, _, answer = send(
            server, "POST", f"/{bucket}", query="delete=", body=document, headers=md5_of(body)
        )
        assert status == expected, answer
        assert expected == 200 or b"<Code>BadDigest</Code>" in answer, answer
    assert names(s3, bucket) == {"x"}


def test_other_documents_are_read_as_well(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")
    tags = "<Tagging><TagSet><Tag><Key>k<![CDATA[ey]]></Key><Value>&#x20000;</Value></Tag>"
    body = f"{tags}</TagSet></Tagging>".encode()
    for path in (f"/{bucket}", f"/{bucket}/a"):
        status, _, answer = send(server, "PUT", path, query="tagging=", body=body)
        assert status in (200, 204), answer
    expected = [{"Key": "key", "Value": "\U00020000"}]
    assert s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"] == expected
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == expected

    upload = s3.create_multipart_upload(Bucket=bucket, Key="b")["UploadId"]
    where = {"Bucket": bucket, "Key": "b", "UploadId": upload}
    etags = [
        s3.upload_part(**where, PartNumber=number, Body=content(PART_MIN_BYTES, number))["ETag"]
        for number in (1, 2)
    ]
    parts = "".join(
        f"<Part><PartNumber>{n}</PartNumber><ETag><![CDATA[{etag}]]></ETag></Part>"
        for n, etag in enumerate(etags, 1)
    )
    document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    status, _, answer = send(
        server, "POST", f"/{bucket}/b", query=f"uploadId={upload}", body=document
    )
    assert status == 200, answer
    assert s3.head_object(Bucket=bucket, Key="b")["ContentLength"] == 2 * PART_MIN_BYTES


def test_no_bucket_is_made_elsewhere_than_its_document_says(server, s3):
    """CDATA passed over meant no constraint, which is the default level."""
    document = (
        b"<CreateBucketConfiguration><LocationConstraint><![CDATA[absent]]></LocationConstraint>"
        b"</CreateBucketConfiguration>"
    )
    status, _, body = send(server, "PUT", "/made-elsewhere", body=document)
    assert status == 400 and b"<Code>InvalidLocationConstraint</Code>" in body, body
    with refused("404"):
        s3.head_bucket(Bucket="made-elsewhere")
    prefixed = (
        b'<c:CreateBucketConfiguration xmlns:c="c"><c:Tags><c:Tag><c:Key><![CDATA[a]]></c:Key>'
        b"<c:Value>b&#x2B;c</c:Value></c:Tag></c:Tags></c:CreateBucketConfiguration>"
    )
    status, _, body = send(server, "PUT", "/made-here", body=prefixed)
    assert status == 200, body
    [tag] = s3.get_bucket_tagging(Bucket="made-here")["TagSet"]
    assert tag == {"Key": "a", "Value": "b+c"}
    s3.delete_bucket(Bucket="made-here")


def test_a_deletion_comes_with_a_digest_of_its_document(server, s3, bucket):
    document = b"<Delete><Object><Key>a</Key></Object></Delete>"
    crc32, other = (
        base64.b64encode(binascii.crc32(text).to_bytes(4)).decode() for text in (document, b"other")
    )
    chunked = {
        "content-encoding": "aws-chunked",
        "x-amz-trailer": "x-amz-checksum-crc32",
        "x-amz-decoded-content-length": str(len(document)),
    }

    def delete(headers, body=document, **more):
        s3.put_object(Bucket=bucket, Key="a", Body=b"x")
        path = f"/{bucket}"
        status, _, told = send(
            server, "POST", path, query="delete=", body=body, headers=headers, **more
        )
        assert (names(s3, bucket) == set()) is (status == 200), told
        return status, told

    def trailing(value):
        body = f"{len(document):x}\r\n".encode() + document
        body += f"\r\n0\r\nx-amz-checksum-crc32:{value}\r\n\r\n".encode()
        return delete(chunked, body, payload_hash="STREAMING-UNSIGNED-PAYLOAD-TRAILER")

    signed = hashlib.sha256(document).hexdigest()
    for more in ({}, {"payload_hash": signed}):
        status, told = delete({}, **more)
        assert status == 400 and b"<Code>InvalidRequest</Code>" in told
        assert b"Missing required header for this request: Content-MD5" in told
    assert delete(md5_of(document))[0] == 200
    assert delete({"x-amz-checksum-crc32": crc32})[0] == 200
    assert delete({"x-amz-checksum-crc32": other})[0] == 400
    assert trailing(crc32)[0] == 200
    assert trailing(other)[0] == 400


@pytest.mark.parametrize(
    ("query", "document"),
    [
        (
            "publicAccessBlock=",
            "<PublicAccessBlockConfiguration><BlockPublicAcl>true</BlockPublicAcl>"
            "</PublicAccessBlockConfiguration>",
        ),
        ("tagging=", "<Tagging><TagSet><tag><Key>a</Key><Value>b</Value></tag></TagSet></Tagging>"),
        ("tagging=", "<Tagging><Tags><Tag><Key>a</Key><Value>b</Value></Tag></Tags></Tagging>"),
        (
            "versioning=",
            "<VersioningConfiguration><Status>Suspended</Status><Mfa>x</Mfa>"
            "</VersioningConfiguration>",
        ),
        (
            "object-lock=",
            "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rules>"
            "<DefaultRetention><Mode>COMPLIANCE</Mode><Days>2</Days></DefaultRetention></Rules>"
            "</ObjectLockConfiguration>",
        ),
        ("", "<CreateBucketConfiguration><LocationConstraints>a</LocationConstraints>"),
    ],
)
def test_a_name_that_s3_does_not_have_changes_nothing(server, s3, bucket, query, document):
    """Passed over, it took away what its document was to set."""
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    blocks = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    path = f"/{bucket}"
    if not query:
        path, document = "/made-by-a-slip", f"{document}</CreateBucketConfiguration>"
    body = document.encode()
    status, _, answer = send(server, "PUT", path, query=query, body=body, headers=md5_of(body))
    assert status == 400 and b"<Code>MalformedXML</Code>" in answer, answer
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "k", "Value": "v"}]
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == blocks
    with refused("404"):
        s3.head_bucket(Bucket="made-by-a-slip")


def test_no_part_is_lost_by_its_name(server, s3, bucket):
    where = {"Bucket": bucket, "Key": "a"}
    where["UploadId"] = s3.create_multipart_upload(**where)["UploadId"]
    rows = ""
    for number, name in [(1, "Part"), (2, "part")]:
        body = content(PART_MIN_BYTES, number)
        etag = s3.upload_part(**where, PartNumber=number, Body=body)["ETag"]
        rows += f"<{name}><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></{name}>"

    def complete(rows):
        document = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        query = f"uploadId={where['UploadId']}"
        return send(server, "POST", f"/{bucket}/a", query=query, body=document)

    status, _, answer = complete(rows)
    assert status == 400 and b"<Code>MalformedXML</Code>" in answer, answer
    assert complete(rows.replace("part>", "Part>"))[0] == 200
    assert s3.head_object(Bucket=bucket, Key="a")["ContentLength"] == 2 * PART_MIN_BYTES


@pytest.mark.parametrize(
    ("query", "document"),
    [
        (
            "uploadId=none",
            "<CompleteMultipartUpload>" + "<Part/>" * 300_000 + "</CompleteMultipartUpload>",
        ),
        ("delete=", "<Delete>" + "<Object><Key>a</Key></Object>" * 200_000 + "</Delete>"),
        (
            "delete=",
            "<Delete><Object>"
            + "".join(
                "<d " + " ".join(f'xmlns:p{15 * deep + i}="u"' for i in range(15)) + ">"
                for deep in range(29)
            )
            + "<a/>" * 1000
            + "</d>" * 29
            + "</Object></Delete>",
        ),
    ],
)
def test_more_than_any_client_writes_is_refused(server, bucket, query, document):
    body = document.encode()
    path = f"/{bucket}/a" if query.startswith("uploadId") else f"/{bucket}"
    status, _, answer = send(server, "POST", path, query=query, body=body, headers=md5_of(body))
    assert status == 400 and b"<Code>MalformedXML</Code>" in answer, answer
