"""DeleteBucket where something else goes on: it removes all, or nothing."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import ClientError

from harness.clients import s3_client
from harness.policies import arn, put, statement, user


def begin_upload(s3, bucket, key):
    upload = {"Bucket": bucket, "Key": key}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    return upload, s3.upload_part(**upload, PartNumber=1, Body=b"x" * 20_000)["ETag"]


def told(call, **arguments):
    try:
        return call(**arguments)["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        return error.response["Error"]["Code"]


def test_a_refused_deletion_leaves_uploads_as_they_were(server):
    s3 = s3_client(server)
    for number in range(20):
        bucket = f"kept-{number}"
        s3.create_bucket(Bucket=bucket)
        upload, etag = begin_upload(s3, bucket, "long")
        with ThreadPoolExecutor(1) as pool:
            deleted = pool.submit(told, s3.delete_bucket, Bucket=bucket)
            time.sleep(random.random() * 0.02)
            stored = told(s3.put_object, Bucket=bucket, Key="x", Body=b"x")
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        completed = told(s3.complete_multipart_upload, **upload, MultipartUpload=parts)
        if deleted.result() == "BucketNotEmpty":
            assert (stored, completed) == (200, 200)
        else:
            assert deleted.result() == 204 and completed == "NoSuchBucket"
    s3.create_bucket(Bucket="full")
    s3.put_object(Bucket="full", Key="x", Body=b"x")
    upload, etag = begin_upload(s3, "full", "long")
    assert told(s3.delete_bucket, Bucket="full") == "BucketNotEmpty"
    assert s3.list_parts(**upload)["Parts"][0]["ETag"] == etag


def test_a_right_that_was_taken_back_deletes_no_bucket(ann, bob, account):
    for number in range(10):
        bucket = f"work-{number}"
        ann.create_bucket(Bucket=bucket)
        begin_upload(ann, bucket, "long")
        deletes = [arn(bucket)]
        put(ann, bucket, statement("Allow", user(account, "bob"), ["s3:DeleteBucket"], *deletes))
        with ThreadPoolExecutor(1) as pool:
            deleted = pool.submit(told, bob.delete_bucket, Bucket=bucket)
            time.sleep(random.random() * 0.02)
            denied = statement("Deny", user(account, "bob"), ["s3:DeleteBucket"], *deletes)
            try:
                put(ann, bucket, denied)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "NoSuchBucket"
                assert deleted.result() == 204
                continue
        # Acknowledged, so the bucket was not deleted before: nor is it after.
        assert deleted.result() != 204, "it was deleted by a right that had been taken back"
        assert ann.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
