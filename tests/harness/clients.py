"""boto3 clients, and the environment in which the command line clients run."""

import boto3
from botocore import handlers
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.server import clean_environment

REGION = "us-east-1"


def s3_client(server, *, credentials=None, endpoint=None, validate=True, **config):
    """A boto3 client that tries once, so that tests see what the server said first.

    `validate=False` sends what boto3 would refuse to send.
    """
    access_key_id, secret_access_key = credentials or server.credentials()
    settings = {
        "region_name": REGION,
        # boto3 presigns by version 2 otherwise; tests/s3/test_signatures.py does both.
        "signature_version": "s3v4",
        "retries": {"total_max_attempts": 1},
        "connect_timeout": 10,
        "read_timeout": 120,
        "max_pool_connections": 64,
        "parameter_validation": validate,
        "s3": {"addressing_style": "path"},
    }
    client = boto3.client(
        "s3",
        endpoint_url=endpoint or server.endpoint,
        verify=str(server.ca),
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret_access_key,
        config=Config(**(settings | config)),
    )
    if not validate:
        client.meta.events.unregister("before-parameter-build.s3", handlers.validate_bucket_name)
    return client


def upload_in_parts(client, bucket, key, bodies):
    """Stores an object of these parts."""
    name = {"Bucket": bucket, "Key": key}
    name["UploadId"] = client.create_multipart_upload(**name)["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        etag = client.upload_part(**name, PartNumber=number, Body=body)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    client.complete_multipart_upload(**name, MultipartUpload={"Parts": parts})


def client_environment(server, home):
    """For command line clients: no settings but where the server is and who we are."""
    access_key_id, secret_access_key = server.credentials()
    return clean_environment() | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": secret_access_key,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CA_BUNDLE": str(server.ca),
        "SSL_CERT_FILE": str(server.ca),
    }


class Refused:
    """Expects a ClientError, and keeps its status, code, message and headers."""

    def __init__(self, code=None, status=None):
        self.expected_code = code
        self.expected_status = status

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert kind is not None, f"was not refused; expected {self.expected_code}"
        if not issubclass(kind, ClientError):
            return False
        self.code = error.response["Error"]["Code"]
        self.message = error.response["Error"].get("Message", "")
        self.status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        self.headers = error.response["ResponseMetadata"]["HTTPHeaders"]
        self.response = error.response
        said = f"{self.status} {self.code}: {self.message}"
        assert self.expected_code in (None, self.code), said
        assert self.expected_status in (None, self.status), said
        return True


def refused(code=None, status=None):
    """`with refused("NoSuchKey", 404) as error:` fails unless the server says just that."""
    return Refused(code, status)


def drain(client, bucket):
    """Removes a bucket with all that is in it."""
    for upload in client.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = page.get("Versions", []) + page.get("DeleteMarkers", [])
        names = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in found]
        if names:
            client.delete_objects(Bucket=bucket, Delete={"Objects": names, "Quiet": True})
    client.delete_bucket(Bucket=bucket)
