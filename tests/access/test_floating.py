"""Subjects whose clearance is a range: nothing they read high is copied low."""

import json

import pytest
from botocore.exceptions import ClientError

from harness.administration import ask, make_subject, refused, run
from harness.clients import s3_client

LOW, HIGH = "low", "high"


@pytest.fixture
def levels(own_server):
    """A server with a level `secret`, and a bucket and an object low and high."""
    server = own_server().start()
    ask(server, "level", "create", "secret", "--rank", "2")
    for bucket, level in [(LOW, "default"), (HIGH, "secret")]:
        ask(server, "bucket", "create", bucket, "--level", level)
        filler = s3_client(server, credentials=make_subject(server, f"of-{level}", level))
        filler.put_object(Bucket=bucket, Key="there", Body=b"x")
    return server


def denied(client, **put):
    with pytest.raises(ClientError) as caught:
        client.put_object(**{"Bucket": LOW, "Key": "copy", "Body": b"y", **put})
    error = caught.value.response["Error"]
    assert error["Code"] == "AccessDenied", error
    return error["Message"]


def test_what_was_read_high_is_not_written_low(levels):
    server = levels
    credentials = make_subject(server, "ann", "default..secret")
    client = s3_client(server, credentials=credentials)
    client.put_object(Bucket=LOW, Key="early", Body=b"y")
    client.get_object(Bucket=HIGH, Key="there")["Body"].read()
    message = denied(client)
    assert "secret" in message and "coffer subject settle" in message
    client.put_object(Bucket=HIGH, Key="copy", Body=b"y")

    server.kill()
    server.start()
    client = s3_client(server, credentials=credentials)
    denied(client)
    assert ask(server, "subject", "show", "ann")["read"] == "secret"
    assert "has read secret" in run(server, "subject", "list")

    settled = ask(server, "subject", "settle", "ann")
    assert "read" not in settled
    client.put_object(Bucket=LOW, Key="late", Body=b"y")


def test_a_refusal_that_tells_what_is_stored_is_a_reading(levels):
    """A quota's tells how much there is, and a lock's what is locked."""
    server = levels
    high = s3_client(server, credentials=make_subject(server, "hal", "secret"))
    secret = {"LocationConstraint": "secret"}
    high.create_bucket(
        Bucket="held", CreateBucketConfiguration=secret, ObjectLockEnabledForBucket=True
    )
    put = high.put_object(Bucket="held", Key="a", Body=b"x", ObjectLockLegalHoldStatus="ON")
    locked = {"Bucket": "held", "Key": "a", "VersionId": put["VersionId"]}
    tries = {
        "ann": lambda client: client.put_object(Bucket=HIGH, Key="more", Body=b"y"),
        "ben": lambda client: client.create_multipart_upload(Bucket=HIGH, Key="parts"),
        "bob": lambda client: client.delete_object(**locked),
    }
    run(server, "quota", "set", "bucket", HIGH, "--objects", "1", "--uploads", "0")
    for name, attempt in tries.items():
        client = s3_client(server, credentials=make_subject(server, name, "default..secret"))
        client.put_object(Bucket=LOW, Key=name, Body=b"y")
        with pytest.raises(ClientError) as caught:
            attempt(client)
        assert caught.value.response["Error"]["Code"] in ("QuotaExceeded", "AccessDenied")
        assert "secret" in denied(client), name


def test_what_a_policy_refuses_is_a_reading(levels):
    """Who wrote the policy says by it what is to be known at its level."""
    server = levels
    hal = s3_client(server, credentials=make_subject(server, "hal", "secret"))
    hal.create_bucket(Bucket="told", CreateBucketConfiguration={"LocationConstraint": "secret"})
    account = hal.list_buckets()["Owner"]["DisplayName"]
    ann = s3_client(server, credentials=make_subject(server, "ann", "default..secret"))
    statement = {
        "Effect": "Deny", "Principal": {"AWS": f"arn:aws:iam::{account}:user/ann"},
        "Action": "s3:PutObject", "Resource": "arn:aws:s3:::told/yes*",
    }  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    hal.put_bucket_policy(Bucket="told", Policy=policy)
    ann.put_object(Bucket="told", Key="no", Body=b"y")
    ann.put_object(Bucket=LOW, Key="still", Body=b"y")
    denied(ann, Bucket="told", Key="yes")
    assert "secret" in denied(ann)


def test_who_says_who_may_use_a_bucket_has_read_there(levels):
    """Also where nothing had been said: that is told by what is taken."""
    server = levels

    def no_deletion(name):
        deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject"}
        deny["Resource"] = f"arn:aws:s3:::{name}/*"
        return json.dumps({"Version": "2012-10-17", "Statement": [deny]})

    sayings = {
        "block": lambda client, name: client.delete_public_access_block(Bucket=name),
        "own": lambda client, name: client.put_bucket_ownership_controls(
            Bucket=name, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
        ),
        "list": lambda client, name: client.put_bucket_acl(
            Bucket=name, ACL="bucket-owner-full-control"
        ),
        "deny": lambda client, name: client.put_bucket_policy(
            Bucket=name, Policy=no_deletion(name)
        ),
        "none": lambda client, name: client.delete_bucket_policy(Bucket=name),
    }
    for subject, say in sayings.items():
        client = s3_client(server, credentials=make_subject(server, subject, "default..secret"))
        name = f"said-{subject}"
        place = {"LocationConstraint": "secret"}
        client.create_bucket(Bucket=name, CreateBucketConfiguration=place)
        client.put_object(Bucket=LOW, Key=subject, Body=b"y")
        say(client, name)
        assert "secret" in denied(client), subject


@pytest.mark.parametrize("blocks", [True, False])
def test_whether_a_public_policy_is_taken_is_a_reading(levels, blocks):
    """Whom the owner's blocks keep out is said at the bucket's level."""
    server = levels
    hal = s3_client(server, credentials=make_subject(server, "hal", "secret"))
    kinds = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
    said = dict.fromkeys(kinds, blocks)
    hal.put_public_access_block(Bucket=HIGH, PublicAccessBlockConfiguration=said)
    ann = s3_client(server, credentials=make_subject(server, "ann", "default..secret"))
    everyone = {
        "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{HIGH}/*",
    }  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": [everyone]})
    if blocks:
        with pytest.raises(ClientError, match="BlockPublicPolicy"):
            ann.put_bucket_policy(Bucket=HIGH, Policy=policy)
    else:
        ann.put_bucket_policy(Bucket=HIGH, Policy=policy)
    assert "secret" in denied(ann)


@pytest.mark.parametrize("ownership", ["BucketOwnerEnforced", "ObjectWriter"])
@pytest.mark.parametrize("of", ["object", "bucket"])
def test_whether_lists_count_is_a_reading(levels, ownership, of):
    server = levels
    hal = s3_client(server, credentials=make_subject(server, "hal", "secret"))
    controls = {"Rules": [{"ObjectOwnership": ownership}]}
    hal.put_bucket_ownership_controls(Bucket=HIGH, OwnershipControls=controls)
    ann = s3_client(server, credentials=make_subject(server, "ann", "default..secret"))
    with pytest.raises(ClientError) as caught:
        if of == "object":
            ann.put_object_acl(Bucket=HIGH, Key="absent", ACL="authenticated-read")
        else:
            ann.put_bucket_acl(Bucket=HIGH, ACL="authenticated-read")
    is_off = ownership == "BucketOwnerEnforced"
    code = caught.value.response["Error"]["Code"]
    assert (code == "AccessControlListNotSupported") == is_off, code
    assert "secret" in denied(ann)


def test_what_is_spared_of_many_deletions_is_a_reading(levels):
    """Each of them tells a bit of whose it is that is there."""
    server = levels
    hal = s3_client(server, credentials=make_subject(server, "hal", "secret"))
    made = {"LocationConstraint": "secret"}
    hal.create_bucket(
        Bucket="told", CreateBucketConfiguration=made, ObjectOwnership="BucketOwnerPreferred"
    )
    grant = ("--grant", f"{LOW}=read,write")
    credentials = make_subject(server, "ann", "default..secret", *grant)
    ann = s3_client(server, credentials=credentials)
    owner = hal.list_buckets()["Owner"]
    canned = {"1": "bucket-owner-full-control", "0": "private"}
    write = {"GrantWrite": f"id={ann.list_buckets()['Owner']['ID']}"}
    hal.put_bucket_acl(Bucket="told", GrantFullControl=f"id={owner['ID']}", **write)
    for index, bit in enumerate("0110"):
        writer = hal if bit == "1" else ann
        writer.put_object(Bucket="told", Key=f"k{index}", Body=b"x", ACL=canned[bit])
    ann.put_object(Bucket=LOW, Key="still", Body=b"y")
    doomed = {"Objects": [{"Key": f"k{index}"} for index in range(4)]}
    answer = ann.delete_objects(Bucket="told", Delete=doomed)
    assert [one["Key"] for one in answer["Errors"]] == ["k1", "k2"], answer
    assert "secret" in denied(ann)


def test_an_upload_in_parts_is_no_reading_and_takes_no_right_to_list(levels):
    server = levels
    ann = s3_client(server, credentials=make_subject(server, "ann", "default..secret"))
    upload_in_parts(ann, HIGH)
    ann.put_object(Bucket=LOW, Key="still", Body=b"y")
    grant = ("--grant", f"{HIGH}=write")
    writer = s3_client(server, credentials=make_subject(server, "will", "secret", *grant))
    upload_in_parts(writer, HIGH)
    with pytest.raises(ClientError, match="AccessDenied"):
        writer.list_multipart_uploads(Bucket=HIGH)


def upload_in_parts(client, bucket):
    """With the checksums that boto3 sends of its own accord."""
    name = {"Bucket": bucket, "Key": "parts"}
    name["UploadId"] = client.create_multipart_upload(**name)["UploadId"]
    etag = client.upload_part(**name, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    client.complete_multipart_upload(**name, MultipartUpload=parts)


def test_trust_is_named_everywhere(levels):
    server = levels
    client = s3_client(
        server, credentials=make_subject(server, "tess", "default..secret", "--trusted")
    )
    client.get_object(Bucket=HIGH, Key="there")["Body"].read()
    client.put_object(Bucket=LOW, Key="copy", Body=b"y")
    assert ask(server, "subject", "show", "tess")["trusted"] is True
    for words in [("list",), ("show", "tess")]:
        assert "(trusted)" in run(server, "subject", *words), words
    records = [json.loads(line) for line in run(server, "audit", "show", "--json").splitlines()]
    made = [record for record in records if record["details"].get("subject") == "tess"]
    assert all(record["details"]["trusted"] == "true" for record in made) and made
    ask(server, "subject", "set", "tess", "--floating")
    denied(client)  # what it read while it was trusted counts now
    message = refused(server, "subject", "set", "tess", "--clearance", "secret", "--trusted")
    assert "range" in message


def test_a_long_upload_and_a_completion_are_asked_again(levels):
    server = levels
    client = s3_client(server, credentials=make_subject(server, "ann", "default..secret"))
    upload = client.create_multipart_upload(Bucket=LOW, Key="parts")["UploadId"]
    part = client.upload_part(Bucket=LOW, Key="parts", UploadId=upload, PartNumber=1, Body=b"y")
    client.list_objects_v2(Bucket=HIGH)
    with pytest.raises(ClientError, match="AccessDenied"):
        client.complete_multipart_upload(
            Bucket=LOW, Key="parts", UploadId=upload,
            MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
        )  # fmt: skip
    ask(server, "subject", "settle", "ann")
    client.complete_multipart_upload(
        Bucket=LOW, Key="parts", UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )  # fmt: skip


@pytest.fixture
def told(levels):
    """A bucket above with versions and lists, in which a floating subject is an owner's equal; the
    client of one who is cleared for it, and one of a subject that floats."""
    hal = s3_client(levels, credentials=make_subject(levels, "hal", "secret"))
    ann = s3_client(levels, credentials=make_subject(levels, "ann", "default..secret"))
    made = {"LocationConstraint": "secret"}
    ann.create_bucket(Bucket="told", CreateBucketConfiguration=made)
    ann.put_object(Bucket=LOW, Key="free", Body=b"y")
    return hal, ann


def suspended(hal, bucket):
    for status in ("Enabled", "Suspended"):
        versioning = {"Status": status}
        hal.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=versioning)


@pytest.mark.parametrize("many", [False, True])
def test_what_a_deleted_version_was_is_a_reading(told, many):
    """Its answer tells a delete marker from an object."""
    hal, ann = told
    suspended(hal, HIGH)
    hal.delete_object(Bucket=HIGH, Key="marked")
    if many:
        null = {"Key": "marked", "VersionId": "null"}
        gone = ann.delete_objects(Bucket=HIGH, Delete={"Objects": [null]})["Deleted"][0]
    else:
        gone = ann.delete_object(Bucket=HIGH, Key="marked", VersionId="null")
    assert gone["DeleteMarker"] is True
    assert "secret" in denied(ann)


@pytest.mark.parametrize("ownership", ["BucketOwnerEnforced", "ObjectWriter"])
@pytest.mark.parametrize("asks", ["put", "upload"])
def test_whether_a_list_is_taken_is_a_reading(told, ownership, asks):
    _, ann = told
    secret = {"LocationConstraint": "secret"}
    ann.create_bucket(Bucket="lists", ObjectOwnership=ownership, CreateBucketConfiguration=secret)
    ann.put_object(Bucket=LOW, Key="still free", Body=b"y")
    ann.put_object(Bucket="lists", Key="x", ACL="private")
    ann.put_object(Bucket=LOW, Key="free as before", Body=b"y")
    ask_for = ann.put_object if asks == "put" else ann.create_multipart_upload
    with pytest.raises(ClientError):
        ask_for(Bucket="lists", Key="x", ACL="public-read")
    assert "secret" in denied(ann)


def test_whether_lists_can_be_turned_off_is_a_reading(told):
    """It is refused while the bucket's list gives something to others."""
    _, ann = told
    for ownership in ("ObjectWriter", "BucketOwnerEnforced"):
        rule = {"Rules": [{"ObjectOwnership": ownership}]}
        ann.put_bucket_ownership_controls(Bucket="told", OwnershipControls=rule)
    assert "secret" in denied(ann)


def test_the_quota_of_a_subject_tells_no_number_of_other_buckets(levels):
    hal = s3_client(levels, credentials=make_subject(levels, "hal", "secret"))
    low = s3_client(levels, credentials=make_subject(levels, "lou", "default"))
    ann = s3_client(levels, credentials=make_subject(levels, "ann", "default..secret"))
    ann.create_bucket(Bucket="mine")
    ann.create_bucket(Bucket="above", CreateBucketConfiguration={"LocationConstraint": "secret"})
    run(levels, "quota", "set", "subject", "ann", "--bytes", "1000")
    hal.put_object(Bucket="above", Key="s", Body=b"x" * 97)
    with pytest.raises(ClientError) as caught:
        low.put_object(Bucket="mine", Key="p", Body=b"y" * 1001)
    error = caught.value.response["Error"]
    assert error["Code"] == "QuotaExceeded"
    assert "97" not in error["Message"] and "1000 bytes" in error["Message"], error
