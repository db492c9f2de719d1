"""Access control lists: off in a new bucket, as on AWS, and whole where ownership says so."""

import pytest

from harness import raw
from harness.administration import client_of
from harness.clients import refused, s3_client
from harness.lists import (
    ALL_USERS,
    AUTHENTICATED,
    FULL,
    NO_BLOCKS,
    listed,
    own,
    owner_of,
    told,
)
from harness.policies import account_of, put, statement


def test_the_owner_has_full_control(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    me = s3.list_buckets()["Owner"]
    for answer in (s3.get_bucket_acl(Bucket=bucket), s3.get_object_acl(Bucket=bucket, Key="a")):
        assert answer["Owner"] == me
        (grant,) = answer["Grants"]
        assert grant == {"Grantee": me | {"Type": "CanonicalUser"}, "Permission": FULL}


def test_lists_of_the_owner_alone_are_taken(s3, bucket):
    owner = owner_of(s3, bucket)["ID"]
    full = "bucket-owner-full-control"
    for acl in ("private", full):
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", ACL=acl)
    s3.put_object_acl(Bucket=bucket, Key="a", ACL=full)
    s3.put_bucket_acl(Bucket=bucket, ACL=full)
    s3.put_bucket_acl(Bucket=bucket, AccessControlPolicy=listed(owner))
    s3.put_object_acl(Bucket=bucket, Key="a", AccessControlPolicy=listed(owner))


@pytest.mark.parametrize("prefix", ["xsi", "i"])
def test_the_type_of_a_grantee_has_any_prefix(server, s3, bucket, prefix):
    owner = f"<ID>{owner_of(s3, bucket)['ID']}</ID>"
    instance = f'xmlns:{prefix}="http://www.w3.org/2001/XMLSchema-instance"'
    grantee = f'<Grantee {instance} {prefix}:type="CanonicalUser">{owner}</Grantee>'
    grant = f"<Grant>{grantee}<Permission>FULL_CONTROL</Permission></Grant>"
    rows = f"<Owner>{owner}</Owner><AccessControlList>{grant}</AccessControlList>"
    body = f"<AccessControlPolicy>{rows}</AccessControlPolicy>".encode()
    sent = {"query": "acl=", "headers": raw.md5_of(body), "body": body}
    status, _, told_of_it = raw.send(server, "PUT", f"/{bucket}", **sent)
    assert status == 200, told_of_it


@pytest.mark.parametrize("acl", ["private", "aws-exec-read", "bucket-owner-read"])
def test_no_other_canned_list_is_put_where_lists_are_off(s3, bucket, acl):
    """Also where it gives nothing to others, as on AWS."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for call in (
        lambda: s3.put_object_acl(Bucket=bucket, Key="a", ACL=acl),
        lambda: s3.put_object_acl(Bucket=bucket, Key="missing", ACL=acl),
        lambda: s3.put_bucket_acl(Bucket=bucket, ACL=acl),
    ):
        with refused("AccessControlListNotSupported", 400):
            call()


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
        s3.put_object_acl(Bucket=bucket, Key="missing", ACL="bucket-owner-full-control")


def test_a_private_bucket_can_be_made(s3):
    s3.create_bucket(Bucket="made-private", ACL="private")
    s3.delete_bucket(Bucket="made-private")
    with refused("InvalidArgument", 400):
        s3.create_bucket(Bucket="made-private", ACL="nonsense")


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


@pytest.fixture(scope="module")
def bob(server):
    return client_of(server, "bob-of-lists", "default")


@pytest.fixture
def listed_bucket(s3, bucket):
    """A bucket where lists count, and nothing is blocked."""
    own(s3, bucket, "ObjectWriter")
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=NO_BLOCKS)
    return bucket


def test_ownership_is_set_told_and_removed(s3, bucket):
    def ownership():
        answer = s3.get_bucket_ownership_controls(Bucket=bucket)
        return answer["OwnershipControls"]["Rules"][0]["ObjectOwnership"]

    assert ownership() == "BucketOwnerEnforced"
    for one in ("BucketOwnerPreferred", "ObjectWriter", "BucketOwnerEnforced"):
        own(s3, bucket, one)
        assert ownership() == one
    s3.delete_bucket_ownership_controls(Bucket=bucket)
    with refused("OwnershipControlsNotFoundError", 404):
        ownership()
    # As of old, lists count then.
    s3.put_bucket_acl(Bucket=bucket, GrantRead=f"id={owner_of(s3, bucket)['ID']}")
    for bad in ([], [{"ObjectOwnership": "Mine"}]):
        with refused("MalformedXML", 400):
            s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls={"Rules": bad})


def test_a_bucket_is_made_with_ownership_and_a_list(server, s3, bob):
    me, other = (client.list_buckets()["Owner"]["ID"] for client in (s3, bob))
    made = {"Bucket": "made-with-lists", "ObjectOwnership": "ObjectWriter"}
    with refused("InvalidBucketAclWithBlockPublicAccessError", 400):
        s3.create_bucket(**made, ACL="public-read")
    with refused("InvalidArgument", 400):
        s3.create_bucket(**made, GrantRead=f"id={'f' * 31}")
    s3.create_bucket(**made, GrantRead=f'id="{other}"', GrantFullControl=f'id="{me}"')
    answer = s3.get_bucket_acl(Bucket=made["Bucket"])
    assert told(answer) == sorted([(me, FULL), (other, "READ")])
    assert answer["Owner"]["ID"] == me
    with refused("InvalidBucketAclWithObjectOwnership", 400):
        own(s3, made["Bucket"], "BucketOwnerEnforced")
    s3.put_bucket_acl(Bucket=made["Bucket"], ACL="private")
    own(s3, made["Bucket"], "BucketOwnerEnforced")
    s3.delete_bucket(Bucket=made["Bucket"])
    with refused("InvalidArgument", 400):
        s3_client(server, validate=False).create_bucket(Bucket="made", ObjectOwnership="Mine")


@pytest.mark.parametrize(
    ("canned", "others"),
    [
        ("private", []),
        ("aws-exec-read", []),
        ("public-read", [("AllUsers", "READ")]),
        ("public-read-write", [("AllUsers", "READ"), ("AllUsers", "WRITE")]),
        ("authenticated-read", [("AuthenticatedUsers", "READ")]),
        ("log-delivery-write", [("LogDelivery", "READ_ACP"), ("LogDelivery", "WRITE")]),
    ],
)
def test_canned_lists_are_what_they_stand_for(s3, listed_bucket, canned, others):
    bucket = listed_bucket
    me = owner_of(s3, bucket)["ID"]
    expected = sorted([*others, (me, FULL)])
    s3.put_bucket_acl(Bucket=bucket, ACL=canned)
    assert told(s3.get_bucket_acl(Bucket=bucket)) == expected
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", ACL=canned)
    s3.put_object(Bucket=bucket, Key="b", Body=b"b")
    s3.put_object_acl(Bucket=bucket, Key="b", ACL=canned)
    s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/a", ACL=canned)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="d", ACL=canned)["UploadId"]
    sent = s3.upload_part(Bucket=bucket, Key="d", UploadId=upload, PartNumber=1, Body=b"d")
    parts = {"Parts": [{"PartNumber": 1, "ETag": sent["ETag"]}]}
    s3.complete_multipart_upload(Bucket=bucket, Key="d", UploadId=upload, MultipartUpload=parts)
    for key in "abcd":
        assert told(s3.get_object_acl(Bucket=bucket, Key=key)) == expected, key
    # A copy does not take its source's list, and what is written over has none of before.
    s3.copy_object(Bucket=bucket, Key="e", CopySource=f"{bucket}/a")
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    for key in "ae":
        assert told(s3.get_object_acl(Bucket=bucket, Key=key)) == [(me, FULL)], key


def test_grants_in_headers_and_documents(s3, listed_bucket, bob):
    bucket = listed_bucket
    me, other = (client.list_buckets()["Owner"]["ID"] for client in (s3, bob))
    headers = {
        "GrantFullControl": f'id="{me}"',
        "GrantRead": f'id="{other}", uri="{ALL_USERS}"',
        "GrantReadACP": f"uri={AUTHENTICATED}",
        "GrantWriteACP": f'id="{other}"',
    }
    expected = sorted(
        [
            (me, FULL),
            (other, "READ"),
            ("AllUsers", "READ"),
            ("AuthenticatedUsers", "READ_ACP"),
            (other, "WRITE_ACP"),
        ]
    )
    s3.put_bucket_acl(Bucket=bucket, **headers)
    assert told(s3.get_bucket_acl(Bucket=bucket)) == expected
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", **headers)
    answer = s3.get_object_acl(Bucket=bucket, Key="a")
    assert told(answer) == expected
    # What was told can be put again, and grants alone leave the owner its list.
    document = {"Owner": answer["Owner"], "Grants": answer["Grants"]}
    s3.put_object_acl(Bucket=bucket, Key="a", AccessControlPolicy=document)
    assert told(s3.get_object_acl(Bucket=bucket, Key="a")) == expected
    s3.put_object_acl(Bucket=bucket, Key="a", AccessControlPolicy=document | {"Grants": []})
    assert told(s3.get_object_acl(Bucket=bucket, Key="a")) == []
    s3.put_object_acl(Bucket=bucket, Key="a", ACL="private")


def test_what_is_no_list_is_refused(server, s3, listed_bucket):
    bucket = listed_bucket
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")
    owner = owner_of(s3, bucket)["ID"]
    good = listed(owner)

    def document(grantee, permission="READ", who=owner):
        grants = [{"Grantee": grantee, "Permission": permission}]
        return {"AccessControlPolicy": {"Owner": {"ID": who}, "Grants": grants}}

    user = {"Type": "CanonicalUser", "ID": owner}
    many = good | {"Grants": good["Grants"] * 101}
    raw = s3_client(server, validate=False)
    for given, code, status in [
        (document(user | {"ID": "f" * 31}), "InvalidArgument", 400),
        (document(user | {"ID": "F" * 32}), "InvalidArgument", 400),
        (document(user | {"ID": "0" * 32}), "InvalidArgument", 400),
        (document(user | {"ID": "someone"}), "InvalidArgument", 400),
        (document({"Type": "Group", "URI": "http://example.org"}), "InvalidArgument", 400),
        (document(user, who="f" * 32), "AccessDenied", 403),
        (document(user, "EAT"), "MalformedACLError", 400),
        (
            document({"Type": "AmazonCustomerByEmail", "EmailAddress": "a@example.org"}),
            "MethodNotAllowed",
            405,
        ),
        ({"AccessControlPolicy": many}, "MalformedACLError", 400),
        ({"AccessControlPolicy": good, "ACL": "private"}, "UnexpectedContent", 400),
        ({"ACL": "private", "GrantRead": f"id={owner}"}, "InvalidRequest", 400),
        ({"GrantRead": "emailAddress=a@example.org"}, "MethodNotAllowed", 405),
        ({"GrantRead": f"id={'f' * 31}"}, "InvalidArgument", 400),
        ({"GrantRead": "nonsense"}, "InvalidArgument", 400),
        ({}, "MissingSecurityHeader", 400),
    ]:
        with refused(code, status):
            raw.put_object_acl(Bucket=bucket, Key="a", **given)
        with refused(code, status):
            raw.put_bucket_acl(Bucket=bucket, **given)
    just = good | {"Grants": good["Grants"] * 100}
    s3.put_object_acl(Bucket=bucket, Key="a", AccessControlPolicy=just)
    assert len(s3.get_object_acl(Bucket=bucket, Key="a")["Grants"]) == 100
    with refused("NoSuchKey", 404):
        s3.put_object_acl(Bucket=bucket, Key="missing", ACL="private")


def test_each_version_has_its_list(s3, listed_bucket):
    bucket = listed_bucket
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    me = owner_of(s3, bucket)["ID"]
    first, second = (
        s3.put_object(Bucket=bucket, Key="a", Body=b"a", ACL=acl)["VersionId"]
        for acl in ("public-read", "private")
    )

    def of(**which):
        return told(s3.get_object_acl(Bucket=bucket, Key="a", **which))

    public = sorted([("AllUsers", "READ"), (me, FULL)])
    assert (of(), of(VersionId=first), of(VersionId=second)) == (
        [(me, FULL)],
        public,
        [(me, FULL)],
    )
    s3.put_object_acl(Bucket=bucket, Key="a", VersionId=first, ACL="authenticated-read")
    assert of(VersionId=first) == sorted([("AuthenticatedUsers", "READ"), (me, FULL)])
    assert of() == [(me, FULL)]
    s3.delete_object(Bucket=bucket, Key="a", VersionId=second)
    assert of() == of(VersionId=first)
    s3.delete_object(Bucket=bucket, Key="a")
    with refused("NoSuchKey", 404):
        of()


def test_owners_are_told_as_they_are(s3, bucket, bob):
    me, other = (client.list_buckets()["Owner"] for client in (s3, bob))
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    bob.put_object(Bucket=bucket, Key="enforced", Body=b"1")
    own(s3, bucket, "BucketOwnerPreferred")
    bob.put_object(Bucket=bucket, Key="given", Body=b"1", ACL="bucket-owner-full-control")
    bob.put_object(Bucket=bucket, Key="kept", Body=b"1")
    own(s3, bucket, "ObjectWriter")
    bob.put_object(Bucket=bucket, Key="full", Body=b"1", ACL="bucket-owner-full-control")
    bob.put_object(Bucket=bucket, Key="read", Body=b"1", ACL="bucket-owner-read")
    bob.create_multipart_upload(Bucket=bucket, Key="upload")
    owners = {"enforced": me, "given": me, "kept": other, "full": other, "read": other}
    versions = s3.list_object_versions(Bucket=bucket)["Versions"]
    for rows in (
        s3.list_objects(Bucket=bucket)["Contents"],
        s3.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"],
        versions,
    ):
        assert {row["Key"]: row["Owner"] for row in rows} == owners
    (upload,) = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert upload["Owner"] == other and upload["Initiator"] == other
    both = sorted([(me["ID"], FULL), (other["ID"], FULL)])
    assert told(s3.get_object_acl(Bucket=bucket, Key="full")) == both
    assert told(s3.get_object_acl(Bucket=bucket, Key="read")) == sorted(
        [(me["ID"], "READ"), (other["ID"], FULL)]
    )
    assert told(s3.get_object_acl(Bucket=bucket, Key="given")) == [(me["ID"], FULL)]
    # Where lists don't count, all is the bucket's owner's; where they do again, it is as it was.
    own(s3, bucket, "BucketOwnerEnforced")
    assert {row["Owner"]["ID"] for row in s3.list_objects(Bucket=bucket)["Contents"]} == {me["ID"]}
    assert told(s3.get_object_acl(Bucket=bucket, Key="full")) == [(me["ID"], FULL)]
    own(s3, bucket, "ObjectWriter")
    assert told(s3.get_object_acl(Bucket=bucket, Key="full")) == both
