"""Answers as they were recorded of AWS, where no other test asks for them."""

import re
from html import unescape

import pytest
import requests

from harness import policies, raw
from harness.clients import refused
from harness.lists import own

ENABLED = {"Status": "Enabled"}
NAMESPACE = b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
NO_VERSION = "This operation does not accept a version-id."


def element(body, name):
    found = re.search(f"<{name}>(.*?)</{name}>".encode(), body)
    return found and unescape(found[1].decode())


def argument(body):
    return tuple(element(body, name) for name in ("Code", "ArgumentName", "ArgumentValue"))


@pytest.fixture
def versioned(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=ENABLED)
    return bucket


def entries(*rows):
    """The body that deletes these, and its header."""
    body = "".join(f"<Object>{row}</Object>" for row in rows)
    body = f"<Delete>{body}</Delete>".encode()
    return {"query": "delete", "body": body, "headers": raw.md5_of(body)}


# Deletions of many


def test_an_entry_that_is_there_twice_is_one(server, s3, versioned):
    first = s3.put_object(Bucket=versioned, Key="a", Body=b"1")["VersionId"]
    key = "<Key>a</Key>"
    path = f"/{versioned}"
    # SDKs send the element empty where there is no version.
    twice = entries(key, key, key + "<VersionId></VersionId>")
    status, _, told = raw.send(server, "POST", path, **twice)
    assert status == 200 and told.count(b"<Deleted>") == 1, told
    assert len(s3.list_object_versions(Bucket=versioned)["DeleteMarkers"]) == 1
    for version in (first, "null"):
        named = key + f"<VersionId>{version}</VersionId>"
        status, _, told = raw.send(server, "POST", path, **entries(named, named))
        assert status == 200 and told.count(b"<Deleted>") == 1, told
    absent = "<Key>b</Key><ETag>x</ETag>"
    told = raw.send(server, "POST", path, **entries(absent, absent))[2]
    assert told.count(b"<Error>") == 1, told


def test_entries_that_differ_are_each_their_own(server, s3, versioned):
    first = s3.put_object(Bucket=versioned, Key="a", Body=b"1")["VersionId"]
    rows = ("<Key>a</Key>", f"<Key>a</Key><VersionId>{first}</VersionId>", "<Key>b</Key>")
    told = raw.send(server, "POST", f"/{versioned}", **entries(*rows))[2]
    assert told.count(b"<Deleted>") == 3, told
    assert "Versions" not in s3.list_object_versions(Bucket=versioned)


# Versions and lists


def test_a_list_is_put_to_no_delete_marker(server, s3, versioned):
    own(s3, versioned, "BucketOwnerPreferred")
    s3.put_object(Bucket=versioned, Key="a", Body=b"1")
    s3.delete_object(Bucket=versioned, Key="a")
    asked = {"query": "acl", "headers": {"x-amz-acl": "private"}}
    status, headers, told = raw.send(server, "PUT", f"/{versioned}/a", **asked)
    assert (status, element(told, "Code")) == (405, "MethodNotAllowed"), told
    assert (element(told, "Method"), element(told, "ResourceType")) == ("PUT", "DeleteMarker")
    assert (headers["allow"], headers["x-amz-delete-marker"]) == ("DELETE", "true")
    with refused("NoSuchKey", 404):
        s3.get_object_acl(Bucket=versioned, Key="a")
    with refused("NoSuchKey", 404):
        s3.put_object_acl(Bucket=versioned, Key="never", ACL="private")


def test_lists_tell_the_version_that_they_are_of(s3, versioned):
    own(s3, versioned, "BucketOwnerPreferred")
    where = {"Bucket": versioned, "Key": "a"}
    versions = [s3.put_object(**where, Body=b"1")["VersionId"] for _ in range(2)]

    def told(answer):
        return answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-version-id")

    assert told(s3.get_object_acl(**where)) == versions[1]
    assert told(s3.put_object_acl(**where, ACL="private")) == versions[1]
    first = {"VersionId": versions[0]}
    assert told(s3.get_object_acl(**where, **first)) == versions[0]
    assert told(s3.put_object_acl(**where, **first, ACL="private")) == versions[0]


def test_lists_tell_no_version_where_there_are_none(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    answer = s3.get_object_acl(Bucket=bucket, Key="a")
    assert "x-amz-version-id" not in answer["ResponseMetadata"]["HTTPHeaders"]


@pytest.mark.parametrize("version", ["", "abc", "null"])
def test_a_version_is_refused_where_none_is_taken(server, s3, bucket, version):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="b")["UploadId"]
    source = {"x-amz-copy-source": f"{bucket}/a"}
    part = f"partNumber=1&uploadId={upload}"
    for method, path, query, headers in (
        ("PUT", "/b", part, {}),
        ("PUT", "/b", part, source),
        ("POST", "/c", "uploads", {}),
        ("GET", "/b", f"uploadId={upload}", {}),
        ("DELETE", "/b", f"uploadId={upload}", {}),
        ("PUT", "/a", "", {}),
        ("PUT", "/a", "", source),
        ("PUT", "/c", "renameObject", {"x-amz-rename-source": "a"}),
        ("GET", "", "", {}),
        ("GET", "", "list-type=2", {}),
        ("GET", "", "versions", {}),
        ("GET", "", "uploads", {}),
        ("GET", "", "versioning", {}),
        ("DELETE", "", "", {}),
    ):
        query += f"&versionId={version}" if query else f"versionId={version}"
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, method, f"/{bucket}{path}", **asked)
        assert (status, argument(told)) == (
            400,
            ("InvalidArgument", "versionId", version),
        ), (method, path, query, told)
        assert element(told, "Message") == NO_VERSION, (method, path, query)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    assert len(s3.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1
    assert "Parts" not in s3.list_parts(Bucket=bucket, Key="b", UploadId=upload)


@pytest.mark.parametrize("version", ["", "abc"])
def test_a_version_of_a_source_is_told_as_part_of_its_header(server, s3, bucket, version):
    s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="b")["UploadId"]
    headers = {"x-amz-copy-source": f"{bucket}/a?versionId={version}"}
    for query in ("", f"partNumber=1&uploadId={upload}"):
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, "PUT", f"/{bucket}/b", **asked)
        expected = ("InvalidArgument", "x-amz-copy-source", version)
        assert (status, argument(told)) == (400, expected), told


def test_that_deleting_takes_no_second_factor_is_told_once_it_was_put(s3, bucket):
    def told_after(configuration):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=configuration)
        told = s3.get_bucket_versioning(Bucket=bucket)
        return told["Status"], told.get("MFADelete")

    assert told_after(ENABLED) == ("Enabled", None)
    assert told_after(ENABLED | {"MFADelete": "Disabled"}) == ("Enabled", "Disabled")
    assert told_after({"Status": "Suspended"}) == ("Suspended", "Disabled")
    with refused("MalformedXML"):
        wrong = ENABLED | {"MFADelete": "Off"}
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=wrong)


def test_a_condition_with_an_attribute_is_not_passed_over(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    typed = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="xsd:string"'
    for condition in (f'<ETag {typed}>"other"</ETag>', f"<Size {typed}>5abc</Size>"):
        body = f"<Delete><Object><Key>a</Key>{condition}</Object></Delete>".encode()
        asked = {"query": "delete", "body": body, "headers": raw.md5_of(body)}
        status, _, told = raw.send(server, "POST", f"/{bucket}", **asked)
        assert (status, element(told, "Code")) == (400, "MalformedXML"), told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


# Addresses


@pytest.mark.parametrize("name", ["%zz", "%", "a%2", "%C3%"])
def test_an_address_that_is_not_encoded_is_none(server, s3, bucket, name):
    """It was stored as it is written, and meant the same object as one that is encoded."""
    for method in ("PUT", "GET", "DELETE"):
        status, _, told = raw.send(server, method, f"/{bucket}/{name}")
        assert (status, element(told, "Code")) == (400, "InvalidURI"), told
        assert element(told, "Message") == "Couldn't parse the specified URI."
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


# Forms


@pytest.mark.parametrize("query", ["t=1", "x-id=PostObject", "X-Amz-Signature=0", "%zz=1"])
def test_the_address_of_a_form_has_no_query(server, s3, bucket, query):
    form = s3.generate_presigned_post(bucket, "a")
    sent = {"data": form["fields"], "files": {"file": b"x"}, "verify": str(server.ca)}
    for address in (form["url"], f"{server.endpoint}/no-such-bucket"):
        answer = requests.post(f"{address}?{query}", **sent, timeout=60)
        name = query.partition("=")[0]
        expected = ("InvalidArgument", name, "null")
        assert (answer.status_code, argument(answer.content)) == (400, expected), answer.text
        words = "Query String Parameters not allowed on POST requests."
        assert element(answer.content, "Message") == words
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    assert requests.post(form["url"] + "?", **sent, timeout=60).status_code == 204


def test_the_key_of_a_form_has_a_length(server, s3, bucket):
    form = s3.generate_presigned_post(bucket, "a")
    sent = {"data": form["fields"] | {"key": ""}, "files": {"file": b"x"}}
    answer = requests.post(form["url"], **sent, verify=str(server.ca), timeout=60)
    expected = ("InvalidArgument", "key", "")
    assert (answer.status_code, argument(answer.content)) == (400, expected), answer.text
    words = "User key must have a length greater than 0."
    assert element(answer.content, "Message") == words


# Documents


def test_documents_have_the_namespace_of_s3(server, s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=ENABLED)
    lockable = {"ObjectLockEnabled": "Enabled"}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=lockable)
    s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    s3.put_object_legal_hold(Bucket=bucket, Key="a", LegalHold={"Status": "OFF"})
    everything = policies.arn(bucket, "*")
    policies.put(s3, bucket, policies.statement("Deny", "*", ["s3:RestoreObject"], everything))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="b")["UploadId"]
    source = {"x-amz-copy-source": f"{bucket}/a"}
    for method, path, query, headers, root in (
        ("GET", "", "object-lock", {}, "ObjectLockConfiguration"),
        ("GET", "", "encryption", {}, "ServerSideEncryptionConfiguration"),
        ("GET", "", "ownershipControls", {}, "OwnershipControls"),
        ("GET", "", "publicAccessBlock", {}, "PublicAccessBlockConfiguration"),
        ("GET", "", "policyStatus", {}, "PolicyStatus"),
        ("GET", "/a", "legal-hold", {}, "LegalHold"),
        ("PUT", "/c", "", source, "CopyObjectResult"),
        ("PUT", "/b", f"partNumber=1&uploadId={upload}", source, "CopyPartResult"),
    ):
        if root == "CopyObjectResult":
            s3.delete_bucket_policy(Bucket=bucket)
        asked = {"query": query, "headers": headers}
        status, _, told = raw.send(server, method, f"/{bucket}{path}", **asked)
        assert status == 200 and b"<" + root.encode() + NAMESPACE in told, told


@pytest.mark.parametrize("wrong", [b"\xff{}", b'{"Version":"2012-10-17","Id":"\xff"}'])
def test_a_policy_that_is_no_text(server, bucket, wrong):
    asked = {"query": "policy", "body": wrong}
    status, _, told = raw.send(server, "PUT", f"/{bucket}", **asked)
    assert (status, element(told, "Code")) == (400, "MalformedPolicy"), told


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("accelerate", "<AccelerateConfiguration>{}</AccelerateConfiguration>"),
        ("requestPayment", "<RequestPaymentConfiguration>{}</RequestPaymentConfiguration>"),
    ],
)
def test_settings_that_are_none(server, bucket, query, document):
    name, others = {
        "accelerate": ("Status", ("Enabled", "Suspended")),
        "requestPayment": ("Payer", ("Requester", "BucketOwner")),
    }[query]
    for value, expected in zip((*others, "Sometimes", ""), (501, 200, 400, 400), strict=True):
        body = document.format(f"<{name}>{value}</{name}>").encode()
        asked = {"query": query, "body": body, "headers": raw.md5_of(body)}
        status, _, told = raw.send(server, "PUT", f"/{bucket}", **asked)
        assert status == expected, told
        assert expected != 400 or element(told, "Code") == "MalformedXML", told


# Headers


@pytest.mark.parametrize("length", ["abc", "-5", "+5", ""])
def test_a_decoded_length_that_is_none(server, s3, bucket, length):
    headers = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": length}
    asked = {"headers": headers, "payload_hash": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    body = b"5\r\nhello\r\n0\r\n\r\n"
    status, _, told = raw.send(server, "PUT", f"/{bucket}/a", body=body, **asked)
    assert (status, element(told, "Code")) == (411, "MissingContentLength"), told
    assert "x-amz-decoded-content-length" in element(told, "Message")
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_metadata_without_a_name_is_counted(server, s3, bucket):
    headers = {"x-amz-meta-": "v", "x-amz-meta-a": "b"}
    asked = {"headers": headers, "body": b"x"}
    assert raw.send(server, "PUT", f"/{bucket}/a", **asked)[0] == 200
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "a"})
    for key in ("a", "copy"):
        for told in (
            s3.head_object(Bucket=bucket, Key=key),
            s3.get_object(Bucket=bucket, Key=key),
        ):
            assert (told["Metadata"], told["MissingMeta"]) == ({"a": "b"}, 1)
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", Metadata={"a": "b"})
    assert "MissingMeta" not in s3.head_object(Bucket=bucket, Key="a")
