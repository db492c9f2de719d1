"""What grants leave out, no list of the subject's own gives back, and no action goes around."""

import datetime

import pytest

from harness.administration import ask, client_of, run
from harness.clients import refused
from harness.lists import block, id_of
from harness.policies import account_of, arn, put, read, statement, user

_count = iter(range(1, 1000))


def denied():
    return refused("AccessDenied", 403)


@pytest.fixture
def shelf(ann):
    name = f"narrow-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", ObjectLockEnabledForBucket=True)
    block(ann, name)
    ann.put_object(Bucket=name, Key="a", Body=b"content")
    return name


def settings(client, bucket):
    """What takes the rights to write and to delete."""
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "x/"}, "Expiration": {"Days": 9}}
    keep = {"Mode": "GOVERNANCE", "RetainUntilDate": later}
    return {
        "PutBucketVersioning": lambda: client.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
        ),
        "PutBucketObjectLockConfiguration": lambda: client.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
        ),
        "PutLifecycleConfiguration": lambda: client.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [rule]}
        ),
        "PutObjectLegalHold": lambda: client.put_object_legal_hold(
            Bucket=bucket, Key="a", LegalHold={"Status": "OFF"}
        ),
        "PutObjectRetention": lambda: client.put_object_retention(
            Bucket=bucket, Key="a", Retention=keep
        ),
    }


def test_one_right_of_two_sets_nothing_where_a_bucket_is_shared(server, ann, shelf):
    for rights in ("delete", "write"):
        name = f"{rights}-{shelf}"
        narrow = client_of(server, name, "default", "--grant", f"{shelf}={rights}")
        for call in settings(narrow, shelf).values():
            with denied():
                call()
        with denied():
            narrow.delete_bucket_lifecycle(Bucket=shelf)
        both = client_of(server, f"both-{name}", "default", "--grant", f"{shelf}=write,delete")
        for call in settings(both, shelf).values():
            call()
        # An action that the policy names needs no right besides.
        account, both_arns = account_of(ann), (arn(shelf), arn(shelf, "*"))
        allow = [f"s3:{action}" for action in settings(narrow, shelf)]
        put(ann, shelf, statement("Allow", user(account, name), allow, *both_arns))
        for call in settings(narrow, shelf).values():
            call()
        ann.delete_bucket_policy(Bucket=shelf)


def everything(client, bucket, own):
    """What an owner might do in a bucket of its own, or with an object of its own."""
    me = f"id={id_of(client)}"
    return {
        "list": lambda: client.list_objects_v2(Bucket=bucket),
        "read": lambda: read(client, bucket, own),
        "acl": lambda: client.get_object_acl(Bucket=bucket, Key=own),
        "give": lambda: client.put_object_acl(Bucket=bucket, Key=own, GrantFullControl=me),
        "bucket acl": lambda: client.get_bucket_acl(Bucket=bucket),
        "give all": lambda: client.put_bucket_acl(Bucket=bucket, GrantFullControl=me),
        "put": lambda: client.put_object(Bucket=bucket, Key="new", Body=b"x"),
        "replace": lambda: client.put_object(Bucket=bucket, Key="bobs", Body=b"x"),
        "delete": lambda: client.delete_object(Bucket=bucket, Key=own),
    }


def allowed(calls):
    done = set()
    for name, call in calls.items():
        try:
            call()
            done.add(name)
        except Exception as error:
            assert error.response["Error"]["Code"] == "AccessDenied", (name, error)
    return done


def test_an_owner_has_no_more_than_its_grants(server, own, bob):
    cara = client_of(server, "cara", "default")
    cara.create_bucket(Bucket="caras", ObjectOwnership="ObjectWriter")
    block(cara, "caras")
    bob.create_bucket(Bucket="bobs", ObjectOwnership="ObjectWriter")
    block(bob, "bobs")
    bob.put_object(Bucket="caras", Key="bobs", Body=b"b")
    for bucket in ("caras", "bobs"):
        cara.put_object(Bucket=bucket, Key="own", Body=b"o", ACL="authenticated-read")
    cara.put_bucket_acl(Bucket="caras", ACL="authenticated-read")
    for grants, expected in (
        ([f"{own}=read"], set()),
        (["caras=read", "bobs=read"], {"read", "acl", "bucket acl"}),
        (["caras=list", "bobs=list"], {"list"}),
    ):
        words = [word for grant in grants for word in ("--grant", grant)]
        run(server, "subject", "set", "cara", *words)
        assert allowed(everything(cara, "caras", "own")) == expected, grants
        # Nor in another's, of what it has written there.
        in_bobs = expected - {"replace"}
        assert allowed(everything(cara, "bobs", "own")) == in_bobs, grants
    # What others give it, it has: that is what lists are for.
    bob.put_object_acl(Bucket="caras", Key="bobs", GrantRead=f"id={id_of(cara)}")
    assert read(cara, "caras", "bobs") == b"b"
    me = f"id={id_of(cara)}"
    bob.put_bucket_acl(Bucket="bobs", GrantWrite=me)
    cara.put_object(Bucket="bobs", Key="own", Body=b"again")
    assert read(cara, "bobs", "own") == b"again"
    # And no grants that name buckets: all that it owns.
    run(server, "subject", "set", "cara", "--all-buckets")
    assert allowed(everything(cara, "caras", "own")) == set(everything(cara, "caras", "own"))


def test_who_may_only_write_does_not_read_back(server, ann, shelf):
    writer = client_of(server, f"w-{shelf}", "default", "--grant", f"{shelf}=write")
    for given in ({}, {"ACL": "authenticated-read"}):
        writer.put_object(Bucket=shelf, Key="w", Body=b"w", **given)
        for call in (
            lambda: read(writer, shelf, "w"),
            lambda: writer.get_object_acl(Bucket=shelf, Key="w"),
        ):
            with denied():
                call()
    assert read(ann, shelf, "w") == b"w"


def test_a_copy_that_compares_asks_to_read(ann, guest):
    name = "copy-compares"
    ann.create_bucket(Bucket=name)
    for key in ("source", "target"):
        ann.put_object(Bucket=name, Key=key, Body=b"s")
    who = user(account_of(ann), "guest")
    writes = statement("Allow", who, ["s3:PutObject"], arn(name, "target"))
    reads = statement("Allow", who, ["s3:GetObject"], arn(name, "source"))
    put(ann, name, writes, reads)
    copy = {"Bucket": name, "Key": "target", "CopySource": f"{name}/source"}
    for etag in ('"bad"', "*", ann.head_object(Bucket=name, Key="target")["ETag"]):
        with denied():
            guest.copy_object(**copy, IfMatch=etag)
    guest.copy_object(**copy)
    put(ann, name, writes, reads, statement("Allow", who, ["s3:GetObject"], arn(name, "target")))
    with refused("PreconditionFailed", 412):
        guest.copy_object(**copy, IfMatch='"bad"')


def test_tags_are_counted_for_those_who_may_read_them(ann, guest):
    name = "tags-counted"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    ann.put_object(Bucket=name, Key="a", Body=b"x", Tagging="p=q", GrantRead=f"id={id_of(guest)}")

    def counted(client):
        got = client.get_object(Bucket=name, Key="a")
        headed = client.head_object(Bucket=name, Key="a")
        header = headed["ResponseMetadata"]["HTTPHeaders"].get("x-amz-tagging-count")
        assert str(got.get("TagCount")) == str(header)
        return got.get("TagCount")

    assert counted(ann) == 1
    assert counted(guest) is None
    # A copy that would take them along is refused as before, and does not leave them out.
    ann.put_bucket_acl(Bucket=name, GrantWrite=f"id={id_of(guest)}")
    with denied():
        guest.copy_object(Bucket=name, Key="copy", CopySource=f"{name}/a")
    who = user(account_of(ann), "guest")
    put(ann, name, statement("Allow", who, ["s3:GetObjectTagging"], arn(name, "*")))
    assert counted(guest) == 1


@pytest.fixture(scope="module")
def public_level(server):
    ask(server, "level", "create", "open-narrow", "--rank", "0", "--public", "--same-label")
    return "open-narrow"


def test_a_public_policy_that_is_restricted_keeps_the_public_from_lists(
    ann, guest, nobody, public_level
):
    name = "restricted-site"
    made = {"LocationConstraint": public_level}
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", CreateBucketConfiguration=made)
    block(ann, name)
    ann.put_object(Bucket=name, Key="p", Body=b"p", ACL="public-read")
    ann.put_bucket_acl(Bucket=name, ACL="public-read")
    put(ann, name, statement("Allow", "*", ["s3:GetObject"], arn(name, "other")))
    assert read(nobody, name, "p") == b"p"
    block(ann, name, "RestrictPublicBuckets")
    for call in (
        lambda: read(nobody, name, "p"),
        lambda: nobody.list_objects_v2(Bucket=name),
    ):
        with denied():
            call()
    assert read(guest, name, "p") == b"p"
    # It is about public policies alone.
    who = user(account_of(ann), "guest")
    put(ann, name, statement("Allow", who, ["s3:GetObject"], arn(name, "other")))
    assert read(nobody, name, "p") == b"p"


def test_a_bucket_is_said_to_be_public_where_its_list_or_policy_is(server, ann, public_level):
    name = "said-public"
    made = {"LocationConstraint": public_level}
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", CreateBucketConfiguration=made)
    block(ann, name)

    def is_public():
        (row,) = [row for row in ask(server, "bucket", "list") if row["name"] == name]
        return row["settings"]["public"]

    assert is_public() is False
    ann.put_bucket_acl(Bucket=name, ACL="authenticated-read")
    assert is_public() is False
    ann.put_bucket_acl(Bucket=name, ACL="public-read")
    assert is_public() is True
    block(ann, name, "IgnorePublicAcls")
    assert is_public() is False
    put(ann, name, statement("Allow", "*", ["s3:GetObject"], arn(name, "*")))
    assert is_public() is True
    block(ann, name, "RestrictPublicBuckets")
    assert is_public() is False


def test_a_look_at_a_shared_bucket_is_a_reading(server):
    ask(server, "level", "create", "above", "--rank", "2", "--same-label")
    high = client_of(server, "of-above", "above")
    low = client_of(server, "of-below", "default")
    low.create_bucket(Bucket="below")
    for name, more in (("by-list", {"ObjectOwnership": "ObjectWriter"}), ("by-policy", {})):
        made = {"LocationConstraint": "above"}
        high.create_bucket(Bucket=name, CreateBucketConfiguration=made, **more)
    look = statement("Allow", "*", ["s3:ListBucket", "s3:GetBucketLocation", "s3:GetBucketAcl"])
    block(high, "by-policy")
    put(high, "by-policy", look | {"Resource": arn("by-policy")})
    for bucket in ("by-list", "by-policy"):
        for operation in ("head_bucket", "get_bucket_location", "get_bucket_acl"):
            name = f"floats-{bucket}-{operation}".replace("_", "-")
            client = client_of(server, name, "default..above")
            client.put_object(Bucket="below", Key="k", Body=b"before")
            getattr(client, operation)(Bucket=bucket)
            with denied():
                client.put_object(Bucket="below", Key="k", Body=b"after")
