"""Access control lists are off, as in a new bucket of AWS: what the owner has is what there is."""

import pytest

from harness.administration import client_of
from harness.clients import refused
from harness.policies import account_of, put, statement

FULL = "FULL_CONTROL"


def owner_of(s3, bucket):
    return s3.get_bucket_acl(Bucket=bucket)["Owner"]


def listed(owner, permission=FULL):
    grantee = {"Type": "CanonicalUser", "ID": owner}
    return {
        "Owner": {"ID": owner},
        "Grants": [{"Grantee": grantee, "Permission": permission}],
    }


def test_the_owner_has_full_control(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    me = s3.list_buckets()["Owner"]
    for answer in (s3.get_bucket_acl(Bucket=bucket), s3.get_object_acl(Bucket=bucket, Key="a")):
        assert answer["Owner"] == me
        (grant,) = answer["Grants"]
        assert grant == {"Grantee": me | {"Type": "CanonicalUser"}, "Permission": FULL}


def test_lists_of_the_owner_alone_are_taken(s3, bucket):
    owner = owner_of(s3, bucket)["ID"]
    for acl in ("private", "bucket-owner-full-control"):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", ACL=acl)
        s3.put_object_acl(Bucket=bucket, Key="a", ACL=acl)
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    s3.put_bucket_acl(Bucket=bucket, AccessControlPolicy=listed(owner))
    s3.put_object_acl(Bucket=bucket, Key="a", AccessControlPolicy=listed(owner))


@pytest.mark.parametrize(
    "given",
    [
        {"ACL": "public-read"},
        {"ACL": "authenticated-read"},
        {"GrantRead": "id=someone"},
        {"GrantFullControl": 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'},
    ],
)
def test_other_lists_are_not_supported(s3, bucket, given):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for call in (
        lambda: s3.put_object(Bucket=bucket, Key="b", Body=b"b", **given),
        lambda: s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/a", **given),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key="b", **given),
        lambda: s3.put_object_acl(Bucket=bucket, Key="a", **given),
        lambda: s3.put_bucket_acl(Bucket=bucket, **given),
    ):
        with refused("AccessControlListNotSupported", 400):
            call()
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    with refused("InvalidBucketAclWithObjectOwnership", 400):
        s3.create_bucket(Bucket="never", **given)
    assert "never" not in [found["Name"] for found in s3.list_buckets()["Buckets"]]


def test_documents_that_give_to_others_are_not_supported(s3, bucket):
    owner = owner_of(s3, bucket)["ID"]
    for policy in (listed(owner, "READ"), listed("0" * 32), listed(owner) | {"Grants": []}):
        with refused("AccessControlListNotSupported", 400):
            s3.put_bucket_acl(Bucket=bucket, AccessControlPolicy=policy)
    with refused("MissingSecurityHeader", 400):
        s3.put_bucket_acl(Bucket=bucket)
    with refused("InvalidArgument", 400):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", ACL="nonsense")
    with refused("NoSuchKey", 404):
        s3.put_object_acl(Bucket=bucket, Key="missing", ACL="private")


def test_a_private_bucket_can_be_made(s3):
    s3.create_bucket(Bucket="made-private", ACL="private")
    s3.delete_bucket(Bucket="made-private")
    with refused("InvalidArgument", 400):
        s3.create_bucket(Bucket="made-private", ACL="nonsense")


def test_ownership_is_the_buckets_owners(s3, bucket):
    def controls(ownership):
        return {"Rules": [{"ObjectOwnership": ownership}]}

    enforced = controls("BucketOwnerEnforced")
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=enforced)
    told = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
    assert told == enforced
    for other in ("BucketOwnerPreferred", "ObjectWriter"):
        with refused("NotImplemented", 501):
            s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=controls(other))
    with refused("NotImplemented", 501):
        s3.delete_bucket_ownership_controls(Bucket=bucket)


def test_others_say_nothing_of_it(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    bob = client_of(server, "bob", "default")
    assert owner_of(bob, bucket) == s3.list_buckets()["Owner"]
    enforced = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    for call in (
        lambda: bob.put_bucket_acl(Bucket=bucket, ACL="private"),
        lambda: bob.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=enforced),
    ):
        with refused("AccessDenied", 403):
            call()
    who = f"arn:aws:iam::{account_of(s3)}:user/bob"
    deny = [f"s3:{name}" for name in ("GetBucketAcl", "GetObjectAcl", "PutObjectAcl")]
    arns = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    put(s3, bucket, statement("Deny", who, deny, *arns))
    for call in (
        lambda: bob.get_bucket_acl(Bucket=bucket),
        lambda: bob.get_object_acl(Bucket=bucket, Key="a"),
        lambda: bob.put_object_acl(Bucket=bucket, Key="a", ACL="private"),
    ):
        with refused("AccessDenied", 403):
            call()
    s3.delete_bucket_policy(Bucket=bucket)
