"""Every operation that an SDK knows answers as docs/S3.md says."""

import json
import re

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from harness.clients import s3_client
from harness.server import ROOT

WORDS = ("works", "as never set", "refused")

# It has an address of its own, at AWS alone.
ELSEWHERE = {"WriteGetObjectResponse"}
ARN = "arn:aws:s3:::"
EVERYBODY = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetBucketWebsite"}
# No SDK has a call for it: tests/s3/test_forms.py.
WITHOUT_CALL = {"PostObject"}


def documented():
    """What the document says of each operation."""
    rows = re.findall(r"(?m)^\| ([\w, ]+) \| ([\w ]+) \|", (ROOT / "docs/S3.md").read_text())
    return {name: word for names, word in rows for name in names.split(", ") if word != "here"}


def least(shape):
    """The least that a parameter may be."""
    match shape.type_name:
        case "structure":
            return {name: least(shape.members[name]) for name in shape.required_members}
        case "list":
            return [least(shape.member)]
        case "string":
            return shape.enum[0] if shape.enum else "a"
        case "boolean":
            return False
        case "timestamp":
            return 1_900_000_000
        case "blob":
            return b"a"
        case "map":
            return {}
        case _:
            return 1


@pytest.fixture(scope="module")
def lenient(server):
    return s3_client(server, validate=False)


def test_all_operations_are_documented(lenient):
    known = set(lenient.meta.service_model.operation_names)
    told = documented()
    assert set(told) == known - ELSEWHERE | WITHOUT_CALL
    assert set(told.values()) == set(WORDS)


@pytest.mark.parametrize("name", sorted(set(documented()) - WITHOUT_CALL))
def test_an_operation(s3, bucket, lenient, name):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    model = lenient.meta.service_model.operation_model(name)
    parameters = least(model.input_shape) if model.input_shape else {}
    if "Bucket" in parameters:
        parameters["Bucket"] = "made-" + bucket if name == "CreateBucket" else bucket
    if name == "PutBucketPolicy":
        parameters["Policy"] = json.dumps({"Statement": [EVERYBODY | {"Resource": ARN + bucket}]})
    if name == "PutBucketOwnershipControls":
        rules = [{"ObjectOwnership": "BucketOwnerEnforced"}]
        parameters["OwnershipControls"] = {"Rules": rules}
    if name == "PutBucketCors":
        rule = {"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]}
        parameters["CORSConfiguration"] = {"CORSRules": [rule]}
    if name == "PutBucketVersioning":
        parameters["VersioningConfiguration"] = {"Status": "Enabled"}
    status, code = 200, None
    try:
        getattr(lenient, xform_name(name))(**parameters)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = error.response["Error"]["Code"]
    match documented()[name]:
        case "refused":
            # A document that is looked at first may be malformed: it has the least there is.
            assert (status, code) in ((501, "NotImplemented"), (400, "MalformedXML"))
        case "as never set":
            assert status in (200, 404) or code == "InvalidRequest"
        case "works":
            assert status < 500 and code != "MethodNotAllowed"
