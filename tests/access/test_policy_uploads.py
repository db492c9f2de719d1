"""What policies see of the parts of an upload: what a part's own request says, as on AWS."""

from harness.clients import refused
from harness.policies import arn, put, statement, user

TAG = "s3:RequestObjectTag/team"


def test_parts_are_asked_for_without_what_the_upload_was_begun_with(ann, guest, shared, account):
    writer, objects = user(account, "guest"), arn(shared, "*")
    where = {"Bucket": shared, "Key": "new"}

    def allow(*statements):
        tagging = statement("Allow", writer, ["s3:PutObjectTagging"], objects)
        put(ann, shared, tagging, *statements)

    def puts(**condition):
        return statement("Allow", writer, ["s3:PutObject"], objects, Condition=condition)

    def part(upload):
        return guest.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"x")

    tagged = puts(StringEquals={TAG: "red"})
    allow(tagged)
    guest.put_object(**where, Body=b"x", Tagging="team=red")
    with refused("AccessDenied", 403):
        guest.create_multipart_upload(**where, Tagging="team=blue")
    upload = guest.create_multipart_upload(**where, Tagging="team=red")["UploadId"]
    with refused("AccessDenied", 403):
        part(upload)
    # A statement of its own for what belongs to an upload, or a condition on what is sent alone.
    allow(tagged, puts(Bool={"s3:ObjectCreationOperation": "false"}))
    part(upload)
    allow(puts(StringEqualsIfExists={TAG: "red"}))
    sent = {"Parts": [{"PartNumber": 1, "ETag": part(upload)["ETag"]}]}
    guest.complete_multipart_upload(**where, UploadId=upload, MultipartUpload=sent)
    tags = ann.get_object_tagging(**where)["TagSet"]
    assert tags == [{"Key": "team", "Value": "red"}]


def test_principals_that_are_none_are_refused(ann, shared, account):
    """And ids are taken as they are: see test_policy_owners.py."""
    for none in (
        "AIDAEXAMPLEOFANUSER01",
        "f" * 31,
        "F" * 32,
        "f" * 64,
        f"arn:aws:iam::{account}:user/not-there",
        f"arn:aws:iam::{account}:role/guest",
        "arn:aws:iam::999999999999:root",
        "",
    ):
        with refused("MalformedPolicy", 400) as error:
            put(ann, shared, statement("Allow", none, ["s3:GetObject"], arn(shared, "*")))
        assert error.message.startswith("Invalid principal in policy"), none
    put(ann, shared, statement("Allow", "f" * 32, ["s3:GetObject"], arn(shared, "*")))
