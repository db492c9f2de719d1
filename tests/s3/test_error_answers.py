"""What errors tell beside their codes: what S3's tell, and nothing that the client has not sent."""

import base64
import hashlib
import xml.etree.ElementTree as ET

import pytest

from harness import raw
from harness.clients import refused, s3_client


def details(error):
    """The elements of an error, but for its code and message."""
    return {
        name: text
        for name, text in error.response["Error"].items()
        if name not in ("Code", "Message")
    }


def elements(body):
    return {child.tag: child.text for child in ET.fromstring(body)}


def versioned(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)


def test_what_is_not_there_is_named(s3, bucket):
    with refused("NoSuchKey", 404) as error:
        s3.get_object(Bucket=bucket, Key="a b/ä<")
    assert details(error) == {"Key": "a b/ä<", "Resource": f"/{bucket}/a b/ä<"}
    headers = error.headers
    metadata = error.response["ResponseMetadata"]
    assert (metadata["RequestId"], metadata["HostId"]) == (
        headers["x-amz-request-id"],
        headers["x-amz-id-2"],
    )
    with refused("NoSuchBucket", 404) as error:
        s3.list_objects_v2(Bucket="no-such-bucket")
    assert details(error) == {"BucketName": "no-such-bucket", "Resource": "/no-such-bucket"}
    with refused("NoSuchTagSet", 404) as error:
        s3.get_bucket_tagging(Bucket=bucket)
    assert details(error) == {"BucketName": bucket, "Resource": f"/{bucket}"}
    upload = "0" * 32
    with refused("NoSuchUpload", 404) as error:
        s3.abort_multipart_upload(Bucket=bucket, Key="a", UploadId=upload)
    assert details(error) == {"UploadId": upload, "Resource": f"/{bucket}/a"}


def test_a_version_that_is_gone_and_a_marker_are_told(s3, bucket):
    versioned(s3, bucket)
    gone = s3.put_object(Bucket=bucket, Key="a", Body=b"a")["VersionId"]
    marker = s3.delete_object(Bucket=bucket, Key="a")["VersionId"]
    s3.delete_object(Bucket=bucket, Key="a", VersionId=gone)
    resource = f"/{bucket}/a"
    with refused("NoSuchVersion", 404) as error:
        s3.get_object(Bucket=bucket, Key="a", VersionId=gone)
    assert details(error) == {"Key": "a", "VersionId": gone, "Resource": resource}
    with refused("MethodNotAllowed", 405) as error:
        s3.get_object(Bucket=bucket, Key="a", VersionId=marker)
    kind = {"Method": "GET", "ResourceType": "DeleteMarker"}
    assert details(error) == kind | {"Resource": resource}


def test_a_copy_does_not_tell_which_of_its_names_is_not_there(s3, bucket):
    with refused("NoSuchKey", 404) as error:
        s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": bucket, "Key": "absent"})
    assert details(error) == {"Resource": f"/{bucket}/b"}


@pytest.mark.parametrize(("kind", "path"), [("BUCKET", "/{bucket}"), ("OBJECT", "/{bucket}/a")])
def test_a_method_is_told_of_what_it_was_not_allowed(server, bucket, kind, path):
    status, _, body = raw.send(server, "PATCH", path.format(bucket=bucket))
    told = elements(body)
    assert (status, told["Code"]) == (405, "MethodNotAllowed"), body
    assert (told["Method"], told["ResourceType"]) == ("PATCH", kind)


@pytest.mark.parametrize(
    ("method", "query", "headers", "code"),
    [
        ("PUT", "uploadId=x", {}, (405, "MethodNotAllowed")),
        ("GET", "uploads=", {}, (400, "InvalidRequest")),
        ("GET", "versions=", {}, (400, "InvalidRequest")),
        ("GET", "", {"x-amz-copy-source": "bucket/object"}, (400, "InvalidArgument")),
        ("DELETE", "", {"x-amz-copy-source": "bucket/object"}, (400, "InvalidArgument")),
        ("PUT", "", {"x-amz-copy-source": "bucket/%ZZ"}, (400, "InvalidArgument")),
        ("PUT", "", {"x-amz-copy-source": "bucket/%1"}, (400, "InvalidArgument")),
    ],
)
def test_what_stands_at_another_place_is_refused(server, s3, bucket, method, query, headers, code):
    s3.put_object(Bucket=bucket, Key="a", Body=b"kept")
    status, _, body = raw.send(server, method, f"/{bucket}/a", query=query, headers=headers)
    assert (status, elements(body)["Code"]) == code, body
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"kept"


def test_what_did_not_hold_is_told(s3, bucket):
    where = {"Bucket": bucket, "Key": "a"}
    s3.put_object(**where, Body=b"abc")
    with refused("InvalidRange", 416) as error:
        s3.get_object(**where, Range="bytes=9-")
    told = details(error)
    assert (told["ActualObjectSize"], told["RangeRequested"]) == ("3", "bytes=9-")
    with refused("InvalidPartNumber", 416) as error:
        s3.get_object(**where, PartNumber=9)
    assert details(error)["PartNumberRequested"] == "9"
    for failed, ask in {
        "If-Match": lambda: s3.get_object(**where, IfMatch='"other"'),
        "If-None-Match": lambda: s3.put_object(**where, Body=b"d", IfNoneMatch="*"),
    }.items():
        with refused("PreconditionFailed", 412) as error:
            ask()
        assert details(error)["Condition"] == failed


def test_parts_that_can_not_be_put_together_are_told(s3, bucket):
    where = {"Bucket": bucket, "Key": "a"}
    upload = s3.create_multipart_upload(**where)["UploadId"]
    where["UploadId"] = upload
    etags = [s3.upload_part(**where, PartNumber=n, Body=b"few")["ETag"] for n in (1, 2)]
    parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, 1)]
    with refused("EntityTooSmall", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    told = details(error)
    assert (told["ProposedSize"], told["MinSizeAllowed"]) == ("3", "5242880")
    assert (told["PartNumber"], told["ETag"]) == ("1", etags[0].strip('"'))
    absent = [{"PartNumber": 7, "ETag": etags[0]}]
    with refused("InvalidPart", 400) as error:
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": absent})
    told = details(error)
    assert (told["PartNumber"], told["UploadId"]) == ("7", upload)
    assert told["ETag"] == etags[0].strip('"')


def test_arguments_are_told_by_name(server, s3, bucket):
    where = {"Bucket": bucket, "Key": "a"}
    for (name, value), ask in {
        ("versionId", "bad"): lambda: s3.get_object(**where, VersionId="bad"),
        ("max-keys", "-1"): lambda: s3.list_objects_v2(Bucket=bucket, MaxKeys=-1),
        ("continuation-token", "?"): lambda: s3.list_objects_v2(
            Bucket=bucket, ContinuationToken="?"
        ),
        ("partNumber", "0"): lambda: s3.upload_part(**where, PartNumber=0, UploadId="u", Body=b"a"),
        ("partNumber", "-1"): lambda: s3.get_object(**where, PartNumber=-1),
        ("partNumber", "10001"): lambda: s3.get_object(**where, PartNumber=10_001),
        ("x-amz-copy-source-range", "bytes=1-"): lambda: s3.upload_part_copy(
            **where,
            PartNumber=1,
            UploadId="u",
            CopySource={"Bucket": bucket, "Key": "a"},
            CopySourceRange="bytes=1-",
        ),
        ("x-amz-acl", "none"): lambda: s3.put_object(**where, Body=b"a", ACL="none"),
        ("x-amz-object-lock-legal-hold", "on"): lambda: s3.put_object(
            **where, Body=b"a", ObjectLockLegalHoldStatus="on"
        ),
    }.items():
        with refused("InvalidArgument", 400) as error:
            ask()
        told = details(error)
        assert (told["ArgumentName"], told["ArgumentValue"]) == (name, value)
        assert not [header for header in error.headers if header.startswith("x-coffer-")]
    status, _, body = raw.send(server, "HEAD", f"/{bucket}/a", query="partNumber=0")
    assert (status, body) == (400, b"")
    _, _, body = raw.send(server, "GET", f"/{bucket}", query="max-keys=few")
    told = elements(body)
    assert (told["ArgumentName"], told["ArgumentValue"]) == ("max-keys", "few")
    assert told["Message"] == "Provided max-keys not an integer or within integer range"
    with raw.connect(server) as connection:
        headers = {"host": "h", "authorization": "Bearer hidden"}
        connection.sendall(raw.request_head("GET", f"/{bucket}", headers))
        _, _, body = raw.receive(connection)
    assert elements(body)["ArgumentName"] == "Authorization"
    assert b"hidden" not in body


def test_digests_that_differ_are_told(server, bucket):
    announced = hashlib.sha256(b"other").hexdigest()
    path = f"/{bucket}/a"
    status, _, body = raw.send(server, "PUT", path, body=b"a", payload_hash=announced)
    told = elements(body)
    assert (status, told["Code"]) == (400, "XAmzContentSHA256Mismatch")
    assert told["ClientComputedContentSHA256"] == announced
    assert told["S3ComputedContentSHA256"] == hashlib.sha256(b"a").hexdigest()
    _, _, body = raw.send(server, "PUT", path, body=b"a", headers={"content-md5": "x"})
    told = elements(body)
    assert (told["Code"], told["Content-MD5"]) == ("InvalidDigest", "x")
    _, _, body = raw.send(server, "PUT", path, body=b"a", headers=raw.md5_of(b"other"))
    told = elements(body)
    assert told["Code"] == "BadDigest"
    assert told["Message"] == "The Content-MD5 you specified did not match what we received."
    # AWS has the one in digits, the other in Base64.
    assert told["ExpectedDigest"] == hashlib.md5(b"other").hexdigest()
    assert told["CalculatedDigest"] == raw.md5_of(b"a")["content-md5"]


def test_a_wrong_md5_of_a_part_or_a_document_is_told_as_well(s3, server, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    tags = b"<Tagging><TagSet></TagSet></Tagging>"
    for path, query, body in (
        (f"/{bucket}/a", f"partNumber=1&uploadId={upload}", b"a" * 20_000),
        (f"/{bucket}", "tagging=", tags),
    ):
        wrong = raw.md5_of(b"other")
        status, headers, told = raw.send(server, "PUT", path, query=query, body=body, headers=wrong)
        told = elements(told)
        assert (status, told["Code"]) == (400, "BadDigest")
        assert told["ExpectedDigest"] == hashlib.md5(b"other").hexdigest()
        assert told["CalculatedDigest"] == raw.md5_of(body)["content-md5"]
        assert not [header for header in headers if header.startswith("x-coffer-")]


def test_what_is_too_large_is_told_by_its_size(server, s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    most = 5 << 30
    for query in ("", f"partNumber=1&uploadId={upload}"):
        long = {"content-length": str(most + 1)}
        status, _, body = raw.send(server, "PUT", f"/{bucket}/a", query=query, headers=long)
        told = elements(body)
        assert (status, told["Code"]) == (400, "EntityTooLarge")
        assert (told["ProposedSize"], told["MaxSizeAllowed"]) == (str(most + 1), str(most))


def test_sizes_are_told_of_what_is_too_long(s3, bucket):
    with refused("KeyTooLongError", 400) as error:
        s3.put_object(Bucket=bucket, Key="k" * 1025, Body=b"a")
    told = details(error)
    assert (told["Size"], told["MaxSizeAllowed"]) == ("1025", "1024")
    with refused("MetadataTooLarge", 400) as error:
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", Metadata={"k": "v" * 2048})
    told = details(error)
    assert (told["Size"], told["MaxSizeAllowed"]) == ("2049", "2048")
    assert error.message == "Your metadata headers exceed the maximum allowed metadata size"


def test_what_was_meant_by_nothing_is_told(s3, server, bucket):
    with refused("InvalidArgument", 400) as error:
        s3.get_object(Bucket=bucket, Key="a", VersionId="")
    assert error.message == "Version id cannot be the empty string"
    for path, query, name in (
        (f"/{bucket}", "max-keys=blah", "max-keys"),
        (f"/{bucket}", "uploads&max-uploads=blah", "max-uploads"),
        (f"/{bucket}/a", "uploadId=0&max-parts=blah", "max-parts"),
        (f"/{bucket}", "max-keys=%2B5", "max-keys"),
        (f"/{bucket}/a", "partNumber=%2b1", "partNumber"),
    ):
        status, _, body = raw.send(server, "GET", path, query=query)
        words = f"Provided {name} not an integer or within integer range"
        assert (status, elements(body)["Message"]) == (400, words)


def test_a_wrong_signature_is_told_what_was_to_be_signed(server, bucket):
    access_key_id, secret = server.credentials()
    wrong = s3_client(server, credentials=(access_key_id, "wrong"))
    with refused("SignatureDoesNotMatch", 403) as error:
        wrong.get_object(Bucket=bucket, Key="a b")
    told = details(error)
    assert told["AWSAccessKeyId"] == access_key_id
    assert len(told["SignatureProvided"]) == 64
    to_sign = bytes.fromhex(told["StringToSignBytes"])
    canonical = bytes.fromhex(told["CanonicalRequestBytes"])
    assert to_sign.decode() == told["StringToSign"]
    assert canonical.decode() == told["CanonicalRequest"]
    assert to_sign.startswith(b"AWS4-HMAC-SHA256\n")
    assert to_sign.endswith(hashlib.sha256(canonical).hexdigest().encode())
    assert canonical.startswith(f"GET\n/{bucket}/a%20b\n".encode())
    # The right signature, which follows from what was told and the right secret, is not told.
    day = to_sign.split(b"\n")[1][:8].decode()
    right = raw.hmac_sha256(raw.signing_key(secret, day), to_sign.decode()).hex()
    assert right not in str(error.response)


def test_a_key_of_the_client_is_not_told(server, bucket):
    access_key_id, _ = server.credentials()
    wrong = s3_client(server, credentials=(access_key_id, "wrong"))
    key = b"k" * 32
    with refused("SignatureDoesNotMatch", 403) as error:
        wrong.put_object(
            Bucket=bucket, Key="a", Body=b"a", SSECustomerAlgorithm="AES256", SSECustomerKey=key
        )
    assert "StringToSign" in details(error)
    assert "CanonicalRequest" not in details(error)
    assert base64.b64encode(key).decode() not in str(error.response)


def test_an_access_key_that_is_none_is_told(server, bucket):
    with refused("InvalidAccessKeyId", 403) as error:
        s3_client(server, credentials=("AKNONE", "x")).get_object(Bucket=bucket, Key="a")
    assert details(error)["AWSAccessKeyId"] == "AKNONE"


def test_headers_that_are_too_long_are_refused_in_xml(server, bucket):
    path = f"/{bucket}/a"
    for method, body in (("PUT", b"a"), ("GET", b"")):
        long = {"x-long": "a" * 33_000}
        status, headers, told = raw.send(server, method, path, headers=long, body=body)
        assert (status, headers["content-type"]) == (400, "application/xml"), told
        told = elements(told)
        assert told["Code"] == "RequestHeaderSectionTooLarge"
        assert told["MaxSizeAllowed"] == str(32 << 10)
        assert told["RequestId"] == headers["x-amz-request-id"]
    status, _, told = raw.send(server, "PUT", path, headers={"x-long": "a" * 31_000}, body=b"a")
    assert status == 200, told


@pytest.mark.parametrize(
    "unread",
    [{f"x-many-{number}": "a" for number in range(300)}, {"x-long": "a" * 70_000}],
    ids=["many", "long"],
)
def test_headers_that_http_does_not_take_are_refused_in_xml(server, s3, bucket, unread):
    status, headers, told = raw.send(server, "PUT", f"/{bucket}/a", headers=unread, body=b"a")
    assert (status, headers["content-type"]) == (400, "application/xml"), told
    told = elements(told)
    assert told["Code"] == "RequestHeaderSectionTooLarge"
    assert told["RequestId"] == headers["x-amz-request-id"]
    # Behind other requests on the same connection as well.
    with raw.connect(server) as connection:
        for given, expected in (({}, 200), (unread, 400)):
            signed = raw.signed_headers(server, "GET", f"/{bucket}", headers=given)
            connection.sendall(raw.request_head("GET", f"/{bucket}", signed))
            assert raw.receive(connection)[0] == expected
    with refused("404", 404):
        s3.head_object(Bucket=bucket, Key="a")


@pytest.mark.parametrize(
    ("key", "query"),
    [
        ("", "max-keys=%01"),
        ("", "list-type=2&fetch-owner=%0B"),
        ("", "uploads=&max-uploads=%1F"),
        ("/k", "partNumber=%01"),
        ("/k", "response-expires=%02"),
        # And those that s3s passes on.
        ("/k", "versionId=%01"),
        ("", "list-type=2&continuation-token=%01"),
        ("", "encoding-type=%EF%BF%BF"),
    ],
)
def test_what_xml_can_not_hold_hides_no_code(server, s3, bucket, key, query):
    s3.put_object(Bucket=bucket, Key="k", Body=b"k")
    status, _, body = raw.send(server, "GET", f"/{bucket}{key}", query=query)
    assert status == 400 and elements(body)["Code"], body


@pytest.mark.parametrize(
    ("name", "told"),
    [("%01missing", "\ufffdmissing"), ("%EF%BF%BE", "\ufffd"), ("a%1F%0D%0A", "a\ufffd\r\n")],
)
def test_names_that_xml_can_not_hold_hide_no_code(server, bucket, name, told):
    path = f"/{bucket}/{name}"
    status, _, body = raw.send(server, "GET", path)
    said = elements(body)
    assert (status, said["Code"]) == (404, "NoSuchKey")
    assert (said["Key"], said["Resource"]) == (told, f"/{bucket}/{told}")
    status, _, body = raw.send(server, "PUT", path, headers={"if-match": '"none"'}, body=b"x")
    assert (status, elements(body)["Resource"]) == (404, f"/{bucket}/{told}")
    raw.send(server, "PUT", path, body=b"x")
    status, _, body = raw.send(server, "GET", path, headers={"range": "bytes=50-"})
    assert (status, elements(body)["Code"]) == (416, "InvalidRange")
    status, _, body = raw.send(server, "GET", f"/b{name}")
    assert status in (400, 404) and elements(body)["Resource"] == f"/b{told}"


def test_tags_behind_a_delete_marker(s3, bucket):
    """A marker has no tags and takes none: who asks for them hears of it, not of a missing name."""
    versioned(s3, bucket)
    where = {"Bucket": bucket, "Key": "a"}
    s3.put_object(**where, Body=b"a")
    marker = s3.delete_object(**where)["VersionId"]
    for call, options in (
        (s3.get_object_tagging, {}),
        (s3.put_object_tagging, {"Tagging": {"TagSet": []}}),
        (s3.delete_object_tagging, {}),
    ):
        for version in ({}, {"VersionId": marker}):
            with refused("MethodNotAllowed", 405) as error:
                call(**where, **options, **version)
            assert details(error)["ResourceType"] == "DeleteMarker"
            assert error.headers["x-amz-delete-marker"] == "true"
            assert error.headers["x-amz-version-id"] == marker


def test_refusals_name_the_version(s3, bucket):
    versioned(s3, bucket)
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    marker = s3.delete_object(Bucket=bucket, Key="a")["VersionId"]
    for call in (s3.get_object, s3.head_object):
        with refused(status=405) as error:
            call(Bucket=bucket, Key="a", VersionId=marker)
        assert error.headers["x-amz-version-id"] == marker
    wrong = "no <version>"
    doomed = {"Objects": [{"Key": "a", "VersionId": wrong}]}
    [failed] = s3.delete_objects(Bucket=bucket, Delete=doomed)["Errors"]
    assert (failed["Code"], failed["VersionId"]) == ("NoSuchVersion", wrong)
