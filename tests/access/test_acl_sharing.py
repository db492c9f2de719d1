"""What access control lists grant, to whom, and what decides before them."""

import pytest
import requests

from harness.administration import ask, client_of, run
from harness.clients import refused
from harness.lists import ALL_USERS, block, id_of, own, told
from harness.policies import account_of, arn, put, read, statement, user

_count = iter(range(1, 1000))


@pytest.fixture
def shelf(ann):
    """A bucket of a tenant's where lists count, with two objects, and nothing is blocked."""
    name = f"shelf-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    block(ann, name)
    for key in ("a", "b"):
        ann.put_object(Bucket=name, Key=key, Body=b"content")
    return name


@pytest.fixture(scope="module")
def public_level(server):
    ask(server, "level", "create", "open", "--rank", "0", "--public", "--same-label")
    return "open"


@pytest.fixture
def site(public_level, ann):
    name = f"site-{next(_count)}"
    made = {"LocationConstraint": public_level}
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", CreateBucketConfiguration=made)
    block(ann, name)
    return name


def denied():
    return refused("AccessDenied", 403)


def test_an_objects_list_grants_just_what_it_says(ann, guest, shelf):
    grantee = f"id={id_of(guest)}"
    calls = {
        "GrantRead": lambda: read(guest, shelf, "a"),
        "GrantReadACP": lambda: guest.get_object_acl(Bucket=shelf, Key="a"),
        "GrantWriteACP": lambda: guest.put_object_acl(Bucket=shelf, Key="a", **given),
    }
    for given_name in calls:
        given = {given_name: grantee}
        ann.put_object_acl(Bucket=shelf, Key="a", **given)
        for name, call in calls.items():
            if name == given_name:
                call()
            else:
                with denied():
                    call()
        for call in (
            lambda: read(guest, shelf, "b"),
            lambda: guest.list_objects_v2(Bucket=shelf),
            lambda: guest.put_object(Bucket=shelf, Key="a", Body=b"x"),
            lambda: guest.delete_object(Bucket=shelf, Key="a"),
            lambda: guest.get_object_tagging(Bucket=shelf, Key="a"),
            lambda: guest.get_bucket_acl(Bucket=shelf),
            lambda: read(guest, shelf, "missing"),
        ):
            with denied():
                call()
    ann.put_object_acl(Bucket=shelf, Key="a", GrantFullControl=grantee)
    for call in calls.values():
        call()
    ann.put_object_acl(Bucket=shelf, Key="a", ACL="authenticated-read")
    assert read(guest, shelf, "a") == b"content"
    assert guest.head_object(Bucket=shelf, Key="a")["ContentLength"] == 7
    # What is written over it has a list of its own.
    ann.put_object(Bucket=shelf, Key="a", Body=b"new")
    with denied():
        read(guest, shelf, "a")


def test_a_buckets_list_grants_just_what_it_says(ann, guest, shelf):
    grantee = f"id={id_of(guest)}"
    ann.put_bucket_acl(Bucket=shelf, GrantRead=grantee)
    assert guest.list_objects_v2(Bucket=shelf)["KeyCount"] == 2
    guest.head_bucket(Bucket=shelf)
    with denied():
        read(guest, shelf, "a")
    with refused("NoSuchKey", 404):
        read(guest, shelf, "missing")
    with denied():
        guest.put_object(Bucket=shelf, Key="g", Body=b"g")
    ann.put_bucket_acl(Bucket=shelf, GrantWrite=grantee)
    guest.put_object(Bucket=shelf, Key="g", Body=b"g", ACL="bucket-owner-read")
    with denied():
        guest.list_objects_v2(Bucket=shelf)
    # The writer owns it: it may replace it and its list, and nothing of others.
    assert read(guest, shelf, "g") == b"g"
    guest.put_object(Bucket=shelf, Key="g", Body=b"g2")
    guest.put_object_acl(Bucket=shelf, Key="g", ACL="public-read")
    with denied():
        guest.put_object(Bucket=shelf, Key="a", Body=b"x")
    with denied():
        guest.delete_object(Bucket=shelf, Key="a")
    upload = guest.create_multipart_upload(Bucket=shelf, Key="m", ACL="bucket-owner-full-control")
    sent = {"Bucket": shelf, "Key": "m", "UploadId": upload["UploadId"]}
    tag = guest.upload_part(**sent, PartNumber=1, Body=b"m")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    guest.complete_multipart_upload(**sent, MultipartUpload=parts)
    both = sorted([(id_of(guest), "FULL_CONTROL"), (id_of(ann), "FULL_CONTROL")])
    assert told(guest.get_object_acl(Bucket=shelf, Key="m")) == both
    guest.delete_object(Bucket=shelf, Key="g")
    removed = guest.delete_objects(Bucket=shelf, Delete={"Objects": [{"Key": "m"}, {"Key": "a"}]})
    assert [row["Key"] for row in removed["Deleted"]] == ["m"]
    assert [row["Code"] for row in removed["Errors"]] == ["AccessDenied"]
    ann.put_bucket_acl(Bucket=shelf, GrantReadACP=grantee, GrantWriteACP=grantee)
    assert told(guest.get_bucket_acl(Bucket=shelf))
    guest.put_bucket_acl(Bucket=shelf, ACL="private")
    with denied():
        guest.get_bucket_acl(Bucket=shelf)


def test_versions_are_shared_one_by_one(ann, guest, shelf):
    ann.put_bucket_versioning(Bucket=shelf, VersioningConfiguration={"Status": "Enabled"})
    grantee = f"id={id_of(guest)}"
    first = ann.put_object(Bucket=shelf, Key="v", Body=b"1", GrantRead=grantee)["VersionId"]
    second = ann.put_object(Bucket=shelf, Key="v", Body=b"2")["VersionId"]
    with denied():
        read(guest, shelf, "v")
    get = {"Bucket": shelf, "Key": "v"}
    assert guest.get_object(**get, VersionId=first)["Body"].read() == b"1"
    with denied():
        guest.get_object(**get, VersionId=second)
    source = get | {"VersionId": first}
    ann.put_bucket_acl(Bucket=shelf, GrantWrite=grantee)
    guest.copy_object(Bucket=shelf, Key="copy", CopySource=source)
    with denied():
        guest.copy_object(Bucket=shelf, Key="copy", CopySource=get)


def test_who_owns_an_object_says_who_else_may_use_it(ann, bob, shelf):
    bob.put_object(Bucket=shelf, Key="bobs", Body=b"b")
    # Both may write there, by their clearances; neither gives away what is the other's.
    for client, key in ((ann, "bobs"), (bob, "a")):
        with denied():
            client.put_object_acl(Bucket=shelf, Key=key, ACL="public-read")
    bob.put_object_acl(Bucket=shelf, Key="bobs", ACL="public-read")
    with denied():
        bob.put_bucket_acl(Bucket=shelf, ACL="public-read")
    with denied():
        own(bob, shelf, "BucketOwnerEnforced")


def test_what_belongs_to_one_who_is_gone_is_the_buckets_owners(server, ann, guest, shelf):
    passing = client_of(server, "passing", "default")
    passing.put_object(Bucket=shelf, Key="left", Body=b"l", GrantRead=f"id={id_of(guest)}")
    assert read(guest, shelf, "left") == b"l"
    with denied():
        ann.put_object_acl(Bucket=shelf, Key="left", ACL="private")
    run(server, "subject", "delete", "passing")
    owners = {row["Key"]: row["Owner"]["ID"] for row in ann.list_objects(Bucket=shelf)["Contents"]}
    assert owners["left"] == id_of(ann)
    ann.put_object_acl(Bucket=shelf, Key="left", ACL="private")
    with denied():
        read(guest, shelf, "left")


def test_everyone_is_let_in_by_lists_in_public_levels_alone(ann, nobody, shelf, site):
    for bucket in (shelf, site):
        ann.put_object(Bucket=bucket, Key="p", Body=b"public", ACL="public-read")
        ann.put_object(Bucket=bucket, Key="q", Body=b"q", ACL="authenticated-read")
    assert read(nobody, site, "p") == b"public"
    for bucket, key in [(shelf, "p"), (shelf, "q"), (site, "q"), (site, "missing")]:
        with denied():
            read(nobody, bucket, key)
    for call in (
        lambda: nobody.list_objects_v2(Bucket=site),
        lambda: nobody.put_object(Bucket=site, Key="n", Body=b"n"),
        lambda: nobody.get_object_acl(Bucket=site, Key="p"),
    ):
        with denied():
            call()
    ann.put_bucket_acl(Bucket=site, ACL="public-read-write")
    assert nobody.list_objects_v2(Bucket=site)["KeyCount"] == 2
    with refused("NoSuchKey", 404):
        read(nobody, site, "missing")
    nobody.put_object(Bucket=site, Key="n", Body=b"n")
    # It is the bucket's owner's, and only that one says who may use it.
    (row,) = ann.list_objects(Bucket=site, Prefix="n")["Contents"]
    assert row["Owner"]["ID"] == id_of(ann)
    with denied():
        nobody.put_object(Bucket=site, Key="o", Body=b"n", ACL="public-read")
    everyone = f'uri="{ALL_USERS}"'
    ann.put_object_acl(Bucket=site, Key="p", GrantFullControl=everyone)
    ann.put_bucket_acl(Bucket=site, GrantFullControl=everyone)
    assert told(nobody.get_bucket_acl(Bucket=site))
    for call in (
        lambda: nobody.put_object_acl(Bucket=site, Key="p", ACL="private"),
        lambda: nobody.put_bucket_acl(Bucket=site, ACL="private"),
    ):
        with denied():
            call()


def test_blocks_decide_on_public_lists(ann, guest, nobody, site):
    ann.put_object(Bucket=site, Key="p", Body=b"public", ACL="public-read")
    ann.put_bucket_acl(Bucket=site, ACL="public-read")
    block(ann, site, "BlockPublicAcls")
    for public in ({"ACL": "public-read"}, {"GrantRead": f"uri={ALL_USERS}"}):
        for call in (
            lambda public=public: ann.put_object(Bucket=site, Key="x", Body=b"x", **public),
            lambda public=public: ann.put_object_acl(Bucket=site, Key="p", **public),
            lambda public=public: ann.put_bucket_acl(Bucket=site, **public),
            lambda public=public: ann.create_multipart_upload(Bucket=site, Key="x", **public),
            lambda public=public: ann.copy_object(
                Bucket=site, Key="x", CopySource=f"{site}/p", **public
            ),
        ):
            with denied():
                call()
    # What is there stays as it is.
    assert read(nobody, site, "p") == b"public"
    block(ann, site, "IgnorePublicAcls")
    ann.put_object(Bucket=site, Key="x", Body=b"x", ACL="public-read")
    for client, key in ((nobody, "p"), (nobody, "x"), (guest, "p")):
        with denied():
            read(client, site, key)
    own_alone = [(id_of(ann), "FULL_CONTROL")]
    assert told(ann.get_bucket_acl(Bucket=site)) == own_alone
    assert told(ann.get_object_acl(Bucket=site, Key="p")) == own_alone
    ann.put_object_acl(Bucket=site, Key="x", GrantRead=f"id={id_of(guest)}")
    assert read(guest, site, "x") == b"x"
    # It is about policies.
    block(ann, site, "RestrictPublicBuckets", "BlockPublicPolicy")
    assert read(nobody, site, "p") == b"public"


def test_a_policys_deny_goes_before_a_list(ann, guest, nobody, site):
    ann.put_object(Bucket=site, Key="p", Body=b"public", ACL="public-read")
    put(ann, site, statement("Deny", "*", ["s3:GetObject"], arn(site, "*")))
    for client in (guest, nobody):
        with denied():
            read(client, site, "p")
    # A policy that lets one in leaves the others to the lists.
    account = account_of(ann)
    writes = statement("Allow", user(account, "guest"), ["s3:PutObject"], arn(site, "*"))
    put(ann, site, writes)
    assert read(nobody, site, "p") == b"public"
    guest.put_object(Bucket=site, Key="g", Body=b"g")
    # By leave to write alone, no list is given along.
    with denied():
        guest.put_object(Bucket=site, Key="h", Body=b"g", ACL="public-read")


def test_labels_go_before_lists(server, s3, guest):
    ask(server, "level", "create", "high", "--rank", "3", "--same-label")
    high = client_of(server, "high-one", "s0-s3", "--trusted")
    high.create_bucket(
        Bucket="high-lists",
        ObjectOwnership="ObjectWriter",
        CreateBucketConfiguration={"LocationConstraint": "high"},
    )
    block(high, "high-lists")
    high.put_bucket_acl(Bucket="high-lists", ACL="public-read-write")
    high.put_object(Bucket="high-lists", Key="a", Body=b"a", ACL="public-read")
    with refused("NoSuchBucket", 404):
        read(guest, "high-lists", "a")
    # Nor does it let one write down who may read there.
    ask(server, "bucket", "create", "unrelated", "--level", "high")
    low = client_of(server, "low-reader", "s3", "--grant", "unrelated=read")
    name = "low-lists"
    s3.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    block(s3, name)
    s3.put_bucket_acl(Bucket=name, ACL="public-read-write")
    s3.put_object(Bucket=name, Key="a", Body=b"a", ACL="public-read")
    assert read(low, name, "a") == b"a"
    with denied():
        low.put_object(Bucket=name, Key="b", Body=b"b")
    with denied():
        low.put_object_acl(Bucket=name, Key="a", ACL="private")


def test_lists_off_let_no_one_in_by_what_was_granted(ann, guest, shelf):
    ann.put_object_acl(Bucket=shelf, Key="a", ACL="authenticated-read")
    assert read(guest, shelf, "a") == b"content"
    own(ann, shelf, "BucketOwnerEnforced")
    with refused("NoSuchBucket", 404):
        read(guest, shelf, "a")
    own(ann, shelf, "BucketOwnerPreferred")
    assert read(guest, shelf, "a") == b"content"


def test_forms_give_lists(server, ann, nobody, site):
    form = ann.generate_presigned_post(
        site, "by-form", Fields={"acl": "public-read"}, Conditions=[{"acl": "public-read"}]
    )
    sent = requests.post(
        form["url"],
        data=form["fields"],
        files={"file": b"form"},
        verify=str(server.ca),
        timeout=30,
    )
    assert sent.status_code == 204, sent.text
    assert read(nobody, site, "by-form") == b"form"


def test_a_renamed_object_keeps_its_owner_and_list(ann, guest, shelf):
    def rename(client, source, target, **given):
        client.rename_object(Bucket=shelf, Key=target, RenameSource=source, **given)

    grantee = f"id={id_of(guest)}"
    ann.put_object_acl(Bucket=shelf, Key="a", GrantRead=grantee)
    before = ann.get_object_acl(Bucket=shelf, Key="a")
    rename(ann, "a", "moved")
    after = ann.get_object_acl(Bucket=shelf, Key="moved")
    assert (after["Owner"], told(after)) == (before["Owner"], told(before))
    assert read(guest, shelf, "moved") == b"content"
    # The name that it had gives nothing to what is put there.
    ann.put_object(Bucket=shelf, Key="a", Body=b"new")
    with denied():
        read(guest, shelf, "a")
    ann.put_bucket_acl(Bucket=shelf, GrantWrite=grantee)
    guest.put_object(Bucket=shelf, Key="g", Body=b"g")
    for source, target in (("moved", "mine"), ("b", "mine"), ("g", "b"), ("moved", "g")):
        with denied():
            rename(guest, source, target)
    assert read(ann, shelf, "b") == b"content"
    # Not the owner's of the bucket: it stays the writer's.
    rename(ann, "g", "g2")
    assert ann.list_objects_v2(Bucket=shelf, FetchOwner=True, Prefix="g2")["Contents"][0]["Owner"][
        "ID"
    ] == id_of(guest)
