"""Whose a bucket is, and whom its policy names."""

import json

from harness.administration import ask, client_of, make_subject, run
from harness.clients import refused, s3_client
from harness.lists import id_of
from harness.policies import ALL, arn, put, read, statement, user


def test_the_owner_that_is_expected_is_the_account(s3, bucket, account):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a", ExpectedBucketOwner=account)
    s3.copy_object(
        Bucket=bucket,
        Key="b",
        CopySource=f"{bucket}/a",
        ExpectedBucketOwner=account,
        ExpectedSourceBucketOwner=account,
    )
    for wrong in ("000000000000", "111122223333"):
        for call, more in [
            (s3.get_object, {"Key": "a"}),
            (s3.head_bucket, {}),
            (s3.put_bucket_policy, {"Policy": "{}"}),
            (s3.list_objects_v2, {}),
            (s3.delete_object, {"Key": "a"}),
        ]:
            with refused(None, 403):
                call(Bucket=bucket, ExpectedBucketOwner=wrong, **more)
        with refused("AccessDenied", 403):
            s3.copy_object(
                Bucket=bucket,
                Key="c",
                CopySource=f"{bucket}/a",
                ExpectedSourceBucketOwner=wrong,
            )
    # Of operations that are refused, either may be told.
    with refused("AccessDenied", 403):
        s3.get_object_torrent(Bucket=bucket, Key="a", ExpectedBucketOwner=wrong)
    with refused("NotImplemented", 501):
        s3.get_bucket_abac(Bucket=bucket, ExpectedBucketOwner=wrong)
    assert read(s3, bucket, "a") == b"a"


def test_an_owner_locked_out_by_its_own_deny_still_has_the_policy(ann, bob, shared):
    put(ann, shared, statement("Deny", "*", ALL, arn(shared), arn(shared, "*")))
    for client in (ann, bob):
        with refused("AccessDenied", 403):
            read(client, shared)
        with refused("AccessDenied", 403):
            client.list_objects_v2(Bucket=shared)
        with refused("AccessDenied", 403):
            client.delete_bucket(Bucket=shared)
    assert json.loads(ann.get_bucket_policy(Bucket=shared)["Policy"])["Statement"]
    for call in (
        lambda: bob.get_bucket_policy(Bucket=shared),
        lambda: bob.delete_bucket_policy(Bucket=shared),
    ):
        with refused("AccessDenied", 403):
            call()
    ann.delete_bucket_policy(Bucket=shared)
    assert read(ann, shared) == b"content"
    with refused("NoSuchBucketPolicy", 404):
        ann.get_bucket_policy(Bucket=shared)
    with refused("NoSuchBucketPolicy", 404):
        ann.get_bucket_policy_status(Bucket=shared)


def test_who_may_say_who_may(server, ann, bob, shared, account):
    """The owner, and those whom the policy lets: not all who may write."""
    allow = statement("Allow", user(account, "bob"), ["s3:GetObject"], arn(shared, "*"))
    with refused("AccessDenied", 403):
        put(bob, shared, allow)
    put(ann, shared, allow)
    with refused("AccessDenied", 403):
        put(bob, shared, allow)
    with refused("AccessDenied", 403):
        bob.delete_public_access_block(Bucket=shared)
    put(
        ann,
        shared,
        statement("Allow", user(account, "bob"), ["s3:PutBucketPolicy"], arn(shared)),
    )
    put(bob, shared, allow)
    # A bucket that no subject has made belongs to all who may do everything in it.
    ask(server, "bucket", "create", "nobodys")
    some = client_of(server, "some", "default", "--grant", "nobodys=read,write")
    with refused("AccessDenied", 403):
        put(some, "nobodys", statement("Deny", "*", ["s3:GetObject"], arn("nobodys", "*")))
    put(bob, "nobodys", statement("Deny", "*", ["s3:GetObject"], arn("nobodys", "*")))
    ann.delete_bucket_policy(Bucket="nobodys")


def test_a_bucket_of_a_subject_that_is_gone_is_nobodys(server, bob):
    gone = client_of(server, "gone", "default")
    gone.create_bucket(Bucket="left-behind")
    deny = statement("Deny", "*", ["s3:PutObject"], arn("left-behind", "*"))
    put(gone, "left-behind", deny)
    with refused("AccessDenied", 403):
        bob.delete_bucket_policy(Bucket="left-behind")
    run(server, "subject", "delete", "gone")
    bob.delete_bucket_policy(Bucket="left-behind")


def test_principals_are_subjects_and_not_names(server, ann, own, shared, account):
    meant = make_subject(server, "meant", "default", "--grant", f"{own}=read")
    put(
        ann,
        shared,
        statement("Allow", user(account, "meant"), ["s3:GetObject"], arn(shared, "*")),
    )
    client = s3_client(server, credentials=meant)
    assert read(client, shared) == b"content"
    ask(server, "subject", "rename", "meant", "renamed")
    assert read(client, shared) == b"content"
    shown = json.loads(ann.get_bucket_policy(Bucket=shared)["Policy"])
    assert shown["Statement"][0]["Principal"] == {"AWS": user(account, "renamed")}
    later = client_of(server, "meant", "default", "--grant", f"{own}=read")
    with refused("NoSuchBucket", 404):
        read(later, shared)
    run(server, "subject", "delete", "renamed")
    again = client_of(server, "renamed", "default", "--grant", f"{own}=read")
    with refused("NoSuchBucket", 404):
        read(again, shared)
    shown = json.loads(ann.get_bucket_policy(Bucket=shared)["Policy"])
    assert len(shown["Statement"][0]["Principal"]["AWS"]) == 32
    # What was read can be put back as it is, and means no one who is there.
    ann.put_bucket_policy(Bucket=shared, Policy=json.dumps(shown))
    assert json.loads(ann.get_bucket_policy(Bucket=shared)["Policy"]) == shown
    with refused("NoSuchBucket", 404):
        read(again, shared)


def principals(client, bucket):
    policy = json.loads(client.get_bucket_policy(Bucket=bucket)["Policy"])
    return policy["Statement"][0]["Principal"]


def test_a_tenant_learns_nothing_of_another_tenants_subjects(server, account):
    """Neither that they are there, nor how they are called, nor that they are gone."""
    for number, level in enumerate(("north", "south"), 1):
        ask(server, "level", "create", level, "--rank", "1", "--categories", f"c{number}")
    north = client_of(server, "north-one", "north")
    make_subject(server, "north-two", "north")
    stranger = make_subject(server, "south-one", "south")
    stranger_id = id_of(s3_client(server, credentials=stranger))
    reader = client_of(server, "reads-all", "default..north", "--trusted")
    overseer = client_of(server, "overseer", "north", "--roles", "data-user,auditor")
    make_subject(server, "keeper", "north", "--roles", "system-administrator")
    bucket = "norths"
    at_north = {"LocationConstraint": "north"}
    north.create_bucket(
        Bucket=bucket, CreateBucketConfiguration=at_north, ObjectOwnership="ObjectWriter"
    )

    def allow(who):
        put(north, bucket, statement("Allow", who, ["s3:GetObject"], arn(bucket, "*")))

    said = set()
    for name in ("south-one", "no-one-at-all", "keeper", "first"):
        with refused("MalformedPolicy", 400) as error:
            allow(user(account, name))
        said.add(error.message.replace(name, "NAME"))
    assert len(said) == 1 and "user/NAME; it is *" in said.pop()
    allow(user(account, "north-two"))
    assert principals(north, bucket) == {"AWS": user(account, "north-two")}
    assert principals(reader, bucket) == {"AWS": user(account, "north-two")}
    # Ids are taken as they are, of those who are there as of all others, also in lists.
    for some_id in (stranger_id, "f" * 32):
        allow(some_id)
        assert principals(north, bucket) == {"AWS": some_id}
        north.put_bucket_acl(Bucket=bucket, GrantRead=f"id={some_id}")
    allow(stranger_id)
    assert principals(overseer, bucket) == {"AWS": user(account, "south-one")}
    ask(server, "subject", "rename", "south-one", "south-new")
    assert principals(north, bucket) == {"AWS": stranger_id}
    # No policy lets that one in.
    with refused("NoSuchBucket", 404):
        s3_client(server, credentials=stranger).get_object(Bucket=bucket, Key="a")
    run(server, "subject", "delete", "south-new")
    assert principals(north, bucket) == {"AWS": stranger_id}
    allow(stranger_id)


def test_a_policy_outlives_a_crash(own_server):
    server = own_server().start()
    first = s3_client(server)
    account = first.list_buckets()["Owner"]["DisplayName"]
    first.create_bucket(Bucket="kept")
    first.put_object(Bucket="kept", Key="open/a", Body=b"content")
    put(
        first,
        "kept",
        statement("Deny", "*", ["s3:GetObject"], arn("kept", "*")),
    )
    server.kill()
    server.start()
    first = s3_client(server)
    assert first.list_buckets()["Owner"]["DisplayName"] == account
    with refused("AccessDenied", 403):
        read(first, "kept")
    assert "Deny" in first.get_bucket_policy(Bucket="kept")["Policy"]
    first.delete_bucket_policy(Bucket="kept")
    server.kill()
    server.start()
    assert read(s3_client(server), "kept") == b"content"
