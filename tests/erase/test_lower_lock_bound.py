"""A bound of days that was lowered holds for what was set before as well."""

import datetime

import pytest
from botocore.exceptions import ClientError

from harness.clients import s3_client


def test_neither_defaults_nor_uploads_of_before_lock_for_longer(own_server):
    with own_server() as server:
        s3 = s3_client(server)
        for bucket in ("kept", "short"):
            s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
        for bucket, days in (("kept", 3650), ("short", 5)):
            default = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": days}}
            settings = {"ObjectLockEnabled": "Enabled", "Rule": default}
            s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=settings)
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3000)
        upload = {"Bucket": "kept", "Key": "long"}
        lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
        begun = s3.create_multipart_upload(**upload, **lock)
        upload["UploadId"] = begun["UploadId"]
        etag = s3.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]
        server.stop()
        settings = server.folder / "bound.toml"
        settings.write_text("lock-max-days = 5\n")
        server.arguments += ["--config", str(settings)]
        server.start()
        s3 = s3_client(server)
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        for refused in (
            lambda: s3.put_object(Bucket="kept", Key="a", Body=b"a"),
            lambda: s3.complete_multipart_upload(**upload, MultipartUpload=parts),
        ):
            with pytest.raises(ClientError, match="5 days"):
                refused()
        s3.put_object(Bucket="short", Key="a", Body=b"a")
