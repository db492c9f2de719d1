"""Values of conditions on writes: those that are taken, and those that are not implemented."""

import pytest

from harness.clients import refused
from harness.content import content

OTHER = '"another"'


@pytest.fixture
def stored(s3, bucket):
    """An object's bucket and entity tag."""
    etag = s3.put_object(Bucket=bucket, Key="a", Body=content(50_000))["ETag"]
    return bucket, etag


def test_conditions_that_are_not_implemented_are_told_by_their_headers(s3, stored):
    bucket, etag = stored
    where = {"Bucket": bucket, "Key": "a"}
    upload = where | {"UploadId": s3.create_multipart_upload(**where)["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=b"b")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    value = "We don't accept the provided value of {} header for this API"
    several = "Multiple conditional request headers present in the request"
    for condition, header, why in (
        ({"IfNoneMatch": etag}, "If-None-Match", value),
        ({"IfNoneMatch": OTHER}, "If-None-Match", value),
        ({"IfMatch": f"{etag}, {OTHER}"}, "If-Match", value),
        ({"IfMatch": etag, "IfNoneMatch": "*"}, "If-Match,If-None-Match", several),
    ):
        for write in (
            lambda condition: s3.put_object(**where, Body=b"b", **condition),
            lambda condition: s3.copy_object(Bucket=bucket, Key="b", CopySource=where, **condition),
            lambda condition: s3.complete_multipart_upload(
                **upload, MultipartUpload=parts, **condition
            ),
        ):
            with refused("NotImplemented", 501) as error:
                write(condition)
            told = error.response["Error"]
            assert (told["Header"], told["additionalMessage"]) == (header, why.format(header))
            words = "A header you provided implies functionality that is not implemented"
            assert error.message.startswith(words)
    assert s3.head_object(**where)["ETag"] == etag
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_whatever_is_there_may_be_what_a_write_wants(s3, stored):
    """AWS takes `If-Match: *` on deletions alone; here it is a condition of writes as well."""
    bucket, _ = stored
    where = {"Bucket": bucket, "Key": "a"}
    missing = {"Bucket": bucket, "Key": "missing"}
    upload = where | {"UploadId": s3.create_multipart_upload(**where)["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=b"parts")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    s3.put_object(Bucket=bucket, Key="b", Body=b"copied")
    s3.put_object(**where, Body=b"put", IfMatch="*")
    assert s3.get_object(**where)["Body"].read() == b"put"
    s3.copy_object(**where, CopySource={"Bucket": bucket, "Key": "b"}, IfMatch="*")
    assert s3.get_object(**where)["Body"].read() == b"copied"
    s3.complete_multipart_upload(**upload, MultipartUpload=parts, IfMatch="*")
    assert s3.get_object(**where)["Body"].read() == b"parts"
    s3.delete_object(**where, IfMatch="*")
    for call in (
        lambda: s3.put_object(**where, Body=b"b", IfMatch="*"),
        lambda: s3.delete_object(**where, IfMatch="*"),
        lambda: s3.put_object(**missing, Body=b"b", IfMatch="*"),
    ):
        with refused("NoSuchKey", 404):
            call()
