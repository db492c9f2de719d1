"""Object lock, as S3 documents it."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from harness import raw
from harness.checksums import checksum
from harness.clients import refused, s3_client

DAY = timedelta(days=1)


@pytest.fixture
def lockable(s3, bucket):
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=enabled)
    configure(s3, bucket)
    yield bucket
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for row in page.get("Versions", []):
            where = {"Bucket": bucket, "Key": row["Key"], "VersionId": row["VersionId"]}
            s3.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
            s3.delete_object(**where, BypassGovernanceRetention=True)


def configure(s3, bucket, mode=None, **length):
    configuration = {"ObjectLockEnabled": "Enabled"}
    if mode:
        configuration["Rule"] = {"DefaultRetention": {"Mode": mode} | length}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)
    return configuration


def soon(**delta):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**delta)


def governance(until):
    return {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}


def test_a_bucket_is_made_with_object_lock(s3):
    s3.create_bucket(Bucket="locked-from-birth", ObjectLockEnabledForBucket=True)
    told = s3.get_object_lock_configuration(Bucket="locked-from-birth")
    assert told["ObjectLockConfiguration"] == {"ObjectLockEnabled": "Enabled"}
    assert s3.get_bucket_versioning(Bucket="locked-from-birth")["Status"] == "Enabled"
    with refused("InvalidBucketState", 409) as error:
        suspended = {"Status": "Suspended"}
        s3.put_bucket_versioning(Bucket="locked-from-birth", VersioningConfiguration=suspended)
    assert error.message.startswith("An Object Lock configuration is present on this bucket")
    s3.put_bucket_versioning(
        Bucket="locked-from-birth", VersioningConfiguration={"Status": "Enabled"}
    )
    s3.delete_bucket(Bucket="locked-from-birth")


def test_a_bucket_without_versions_can_not_be_locked(s3, bucket):
    with refused("ObjectLockConfigurationNotFoundError", 404):
        s3.get_object_lock_configuration(Bucket=bucket)
    with refused("InvalidBucketState", 409) as error:
        configure(s3, bucket)
    assert error.message.startswith("Versioning must be 'Enabled' on the bucket")
    for options in (governance(soon(days=1)), {"ObjectLockLegalHoldStatus": "ON"}):
        with refused("InvalidRequest", 400):
            s3.put_object(Bucket=bucket, Key="a", Body=b"a", **options)
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    with refused("InvalidRequest", 400):
        s3.get_object_retention(Bucket=bucket, Key="a")
    # Programs that clear buckets ask for it everywhere.
    s3.delete_object(Bucket=bucket, Key="a", BypassGovernanceRetention=True)
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="a")


@pytest.mark.parametrize(
    ("mode", "length"),
    [("GOVERNANCE", {"Days": 1}), ("GOVERNANCE", {"Years": 2}), ("COMPLIANCE", {"Days": 3})],
)
def test_the_default_is_told(s3, lockable, mode, length):
    expected = configure(s3, lockable, mode, **length)
    told = s3.get_object_lock_configuration(Bucket=lockable)
    assert told["ObjectLockConfiguration"] == expected


@pytest.mark.parametrize(
    ("length", "code"),
    [
        ({"Days": 1, "Years": 1}, "MalformedXML"),
        ({}, "MalformedXML"),
        ({"Days": 0}, "InvalidArgument"),
        ({"Days": -1}, "InvalidArgument"),
        ({"Years": 101}, "InvalidArgument"),
        ({"Days": 36_501}, "InvalidArgument"),
        ({"Days": 3_651}, "InvalidArgument"),
    ],
)
def test_a_wrong_default_is_refused(s3, lockable, length, code):
    with refused(code, 400):
        configure(s3, lockable, "GOVERNANCE", **length)


def test_a_locked_version_can_not_be_deleted_and_a_marker_hides_it(s3, lockable):
    until = soon(days=1)
    put = s3.put_object(Bucket=lockable, Key="a", Body=b"kept", **governance(until))
    where = {"Bucket": lockable, "Key": "a", "VersionId": put["VersionId"]}
    for told in (s3.head_object(**where), s3.get_object(**where)):
        assert told["ObjectLockMode"] == "GOVERNANCE"
        assert told["ObjectLockRetainUntilDate"] == until
    assert s3.get_object_retention(**where)["Retention"] == {
        "Mode": "GOVERNANCE",
        "RetainUntilDate": until,
    }
    with refused("AccessDenied", 403):
        s3.delete_object(**where)
    [error] = s3.delete_objects(
        Bucket=lockable, Delete={"Objects": [{"Key": "a", "VersionId": put["VersionId"]}]}
    )["Errors"]
    assert (error["Code"], error["VersionId"]) == ("AccessDenied", put["VersionId"])
    marker = s3.delete_object(Bucket=lockable, Key="a")
    assert marker["DeleteMarker"], "a marker hides it"
    s3.delete_object(Bucket=lockable, Key="a", VersionId=marker["VersionId"])
    newer = s3.put_object(Bucket=lockable, Key="a", Body=b"newer")
    s3.delete_object(Bucket=lockable, Key="a", VersionId=newer["VersionId"])
    s3.delete_object(**where, BypassGovernanceRetention=True)
    assert "Versions" not in s3.list_object_versions(Bucket=lockable)


def test_governance_is_made_longer_by_all_and_shorter_by_few(s3, lockable):
    until = soon(days=2)
    put = s3.put_object(Bucket=lockable, Key="a", Body=b"kept", **governance(until))
    where = {"Bucket": lockable, "Key": "a", "VersionId": put["VersionId"]}
    longer = {"Mode": "GOVERNANCE", "RetainUntilDate": until + DAY}
    s3.put_object_retention(**where, Retention=longer)
    for shorter in ({"Mode": "GOVERNANCE", "RetainUntilDate": until}, {}):
        with refused("AccessDenied", 403):
            s3.put_object_retention(**where, Retention=shorter)
        s3.put_object_retention(**where, Retention=shorter, BypassGovernanceRetention=True)
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_retention(**where)
    for past in (soon(days=-1), soon()):
        with refused("InvalidArgument", 400):
            kept = {"Mode": "GOVERNANCE", "RetainUntilDate": past}
            s3.put_object_retention(**where, Retention=kept)
    with refused("InvalidArgument", 400):
        kept = {"Mode": "GOVERNANCE", "RetainUntilDate": soon(days=3_652)}
        s3.put_object_retention(**where, Retention=kept)


def test_compliance_stands_against_all_until_it_ends(s3, lockable):
    until = soon(seconds=3)
    options = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    put = s3.put_object(Bucket=lockable, Key="a", Body=b"kept", **options)
    where = {"Bucket": lockable, "Key": "a", "VersionId": put["VersionId"]}
    with refused("AccessDenied", 403):
        s3.delete_object(**where, BypassGovernanceRetention=True)
    for weaker in ({"Mode": "GOVERNANCE", "RetainUntilDate": until + DAY}, {}):
        with refused("AccessDenied", 403):
            s3.put_object_retention(**where, Retention=weaker, BypassGovernanceRetention=True)
    while datetime.now(UTC) < until + timedelta(seconds=0.2):
        pass
    s3.delete_object(**where)


def test_a_hold_stands_until_it_is_taken_off(s3, lockable):
    put = s3.put_object(Bucket=lockable, Key="a", Body=b"a", ObjectLockLegalHoldStatus="ON")
    where = {"Bucket": lockable, "Key": "a", "VersionId": put["VersionId"]}
    assert s3.head_object(**where)["ObjectLockLegalHoldStatus"] == "ON"
    assert s3.get_object_legal_hold(**where)["LegalHold"]["Status"] == "ON"
    with refused("AccessDenied", 403):
        s3.delete_object(**where, BypassGovernanceRetention=True)
    s3.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    assert s3.head_object(**where)["ObjectLockLegalHoldStatus"] == "OFF"
    assert s3.get_object_legal_hold(**where)["LegalHold"]["Status"] == "OFF"
    s3.delete_object(**where)


def test_a_hold_that_is_off_is_told_and_one_that_never_was_is_not(s3, lockable):
    never = {"Bucket": lockable, "Key": "never"}
    s3.put_object(**never, Body=b"a")
    kept = {"Bucket": lockable, "Key": "kept"}
    s3.put_object(**kept, Body=b"a", **governance(soon(days=1)))
    for where in (never, kept):
        assert "ObjectLockLegalHoldStatus" not in s3.head_object(**where)
        with refused("NoSuchObjectLockConfiguration", 404):
            s3.get_object_legal_hold(**where)
    off = {"Bucket": lockable, "Key": "off"}
    s3.put_object(**off, Body=b"a", ObjectLockLegalHoldStatus="OFF")
    s3.put_object_legal_hold(**kept, LegalHold={"Status": "OFF"})
    for where in (off, kept):
        assert s3.head_object(**where)["ObjectLockLegalHoldStatus"] == "OFF"
        assert s3.get_object_legal_hold(**where)["LegalHold"]["Status"] == "OFF"
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_retention(**off)
    assert s3.get_object_retention(**kept)["Retention"]["Mode"] == "GOVERNANCE"
    copied = s3.copy_object(**(never | {"Key": "copy"}), CopySource=off)
    assert copied["VersionId"]
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_legal_hold(**(never | {"Key": "copy"}))


def test_the_default_is_stamped_and_an_own_lock_goes_before_it(s3, lockable):
    configure(s3, lockable, "GOVERNANCE", Days=2)
    put = s3.put_object(Bucket=lockable, Key="a", Body=b"a")
    told = s3.get_object_retention(Bucket=lockable, Key="a")["Retention"]
    assert told["Mode"] == "GOVERNANCE"
    assert soon(days=2, seconds=-60) < told["RetainUntilDate"] <= soon(days=2, seconds=2)
    until = soon(days=1)
    s3.put_object(Bucket=lockable, Key="a", Body=b"b", **governance(until))
    told = s3.get_object_retention(Bucket=lockable, Key="a")["Retention"]
    assert told["RetainUntilDate"] == until
    source = {"Bucket": lockable, "Key": "a", "VersionId": put["VersionId"]}
    s3.copy_object(Bucket=lockable, Key="c", CopySource=source, **governance(until))
    assert s3.head_object(Bucket=lockable, Key="c")["ObjectLockRetainUntilDate"] == until
    marker = s3.delete_object(Bucket=lockable, Key="c")
    for asking in (s3.get_object_retention, s3.get_object_legal_hold):
        with refused("MethodNotAllowed", 405):
            asking(Bucket=lockable, Key="c", VersionId=marker["VersionId"])
    s3.delete_object(Bucket=lockable, Key="c", VersionId=marker["VersionId"])  # never locked


def test_an_upload_in_parts_is_locked_as_it_was_begun(s3, lockable):
    until = soon(days=1)
    where = {"Bucket": lockable, "Key": "a"}
    begun = s3.create_multipart_upload(**where, **governance(until))["UploadId"]
    etag = s3.upload_part(**where, UploadId=begun, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    s3.complete_multipart_upload(**where, UploadId=begun, MultipartUpload=parts)
    assert s3.head_object(**where)["ObjectLockRetainUntilDate"] == until
    begun = s3.create_multipart_upload(**where)["UploadId"]
    configure(s3, lockable, "GOVERNANCE", Days=5)
    etag = s3.upload_part(**where, UploadId=begun, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    s3.complete_multipart_upload(**where, UploadId=begun, MultipartUpload=parts)
    assert s3.head_object(**where)["ObjectLockRetainUntilDate"] > soon(days=4)


@pytest.mark.parametrize(
    "options",
    [
        {"ObjectLockMode": "GOVERNANCE"},
        {"ObjectLockRetainUntilDate": soon(days=1)},
        governance(soon(days=-1)),
        governance(soon(days=4_000)),
    ],
)
def test_half_a_lock_is_refused(s3, lockable, options):
    with refused("InvalidArgument", 400):
        s3.put_object(Bucket=lockable, Key="a", Body=b"a", **options)


@pytest.mark.parametrize("held", [True, False])
def test_bytes_that_are_to_be_locked_come_with_a_checksum(server, s3, lockable, held):
    path, body = f"/{lockable}/a", b"a"
    until = {
        "x-amz-object-lock-mode": "GOVERNANCE",
        "x-amz-object-lock-retain-until-date": f"{soon(days=1):%Y-%m-%dT%H:%M:%SZ}",
    }
    lock = {"x-amz-object-lock-legal-hold": "ON"} if held else until
    status, _, told = raw.send(server, "PUT", path, headers=lock, body=body)
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    assert b"Content-MD5" in told
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=lockable, Key="a")
    for proof in (raw.md5_of(body), {"x-amz-checksum-crc32": "6Le+Qw=="}):
        status, _, told = raw.send(server, "PUT", path, headers=lock | proof, body=body)
        assert status == 200, told


def test_bytes_that_the_bucket_s_default_locks_come_with_a_checksum(server, s3, lockable):
    path, body = f"/{lockable}/a", b"a"
    assert raw.send(server, "PUT", path, body=body)[0] == 200, "nothing is locked yet"
    configure(s3, lockable, "GOVERNANCE", Days=1)
    status, _, told = raw.send(server, "PUT", path, body=body)
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    assert b"Content-MD5" in told
    assert "ObjectLockMode" not in s3.head_object(Bucket=lockable, Key="a")
    for proof in (raw.md5_of(body), {"x-amz-checksum-crc32": "6Le+Qw=="}):
        status, _, told = raw.send(server, "PUT", path, headers=proof, body=body)
        assert status == 200, told
        assert s3.head_object(Bucket=lockable, Key="a")["ObjectLockMode"] == "GOVERNANCE"
    # What the server copies itself needs none, whole or as a part.
    source = {"Bucket": lockable, "Key": "a"}
    s3.copy_object(Bucket=lockable, Key="copy", CopySource=source)
    assert s3.head_object(Bucket=lockable, Key="copy")["ObjectLockMode"] == "GOVERNANCE"
    where = {"Bucket": lockable, "Key": "parts"}
    where["UploadId"] = s3.create_multipart_upload(**where)["UploadId"]
    s3.upload_part_copy(**where, PartNumber=1, CopySource=source)


@pytest.mark.parametrize("locked_by", ["retention", "hold", "default"])
def test_parts_that_are_to_be_locked_come_with_a_checksum(server, s3, lockable, locked_by):
    where, body = {"Bucket": lockable, "Key": "a"}, b"part"
    hold = {"ObjectLockLegalHoldStatus": "ON"}
    asked = {"retention": governance(soon(days=1)), "hold": hold, "default": {}}[locked_by]
    where["UploadId"] = s3.create_multipart_upload(**where, **asked)["UploadId"]

    def put(number, **headers):
        query = {"partNumber": str(number), "uploadId": where["UploadId"]}
        given = {"query": urlencode(query), "headers": headers, "body": body}
        return raw.send(server, "PUT", f"/{lockable}/a", **given)

    if locked_by == "default":
        assert put(1)[0] == 200, "nothing locks it yet"
        configure(s3, lockable, "GOVERNANCE", Days=1)
    status, _, told = put(1)
    assert status == 400 and b"<Code>InvalidRequest</Code>" in told, told
    assert b"Content-MD5" in told
    md5, crc = raw.md5_of(body), {"x-amz-checksum-crc32": checksum("CRC32", body)}
    for proof in (md5, crc):
        status, headers, told = put(1, **proof)
        assert status == 200, told
    parts = {"Parts": [{"PartNumber": 1, "ETag": headers["etag"]}]}
    s3.complete_multipart_upload(**where, MultipartUpload=parts)
    told = s3.head_object(Bucket=lockable, Key="a")
    assert "ObjectLockLegalHoldStatus" in told or told["ObjectLockMode"] == "GOVERNANCE"


def test_locks_stay_over_a_kill(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="bucket", ObjectLockEnabledForBucket=True)
    configure(s3, "bucket", "COMPLIANCE", Days=1)
    put = s3.put_object(Bucket="bucket", Key="a", Body=b"a")
    server.kill()
    server.start()
    s3 = s3_client(server)
    with refused("AccessDenied", 403):
        s3.delete_object(Bucket="bucket", Key="a", VersionId=put["VersionId"])
    configuration = s3.get_object_lock_configuration(Bucket="bucket")["ObjectLockConfiguration"]
    assert configuration["Rule"]["DefaultRetention"] == {"Mode": "COMPLIANCE", "Days": 1}
