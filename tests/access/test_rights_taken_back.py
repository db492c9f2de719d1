"""What was taken back is not used past the acknowledgement of that, whatever runs beside it."""

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from botocore.exceptions import ClientError

from harness.clients import refused
from harness.lists import block, controls, id_of, own, told
from harness.policies import account_of, arn, put, statement, user
from harness.raw import connect, receive, request_head, signed_headers

ROUNDS = 30
SHELF = "rights-taken-back"


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def shelf(ann):
    """A bucket where lists count."""
    name = f"{SHELF}-{random.randrange(10**9)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    block(ann, name)
    return name


def outcome(call, **arguments):
    """What a call answers; none where it is refused."""
    try:
        return call(**arguments)
    except ClientError:
        return None


def race(pool, arrange, attack, defend, has_won):
    """How many of some rounds the attack won, which began about when the defence did."""
    won = 0
    for index in range(ROUNDS):
        arrange(index)
        attacking = pool.submit(attack, index)
        time.sleep(random.random() * 0.01)
        defend(index)
        attacking.result()
        won += bool(has_won(index))
    return won


def test_a_list_is_not_changed_by_leave_of_the_object_that_was_replaced(ann, guest, shelf, pool):
    grantee = f"id={id_of(guest)}"

    def place(index):
        return {"Bucket": shelf, "Key": f"k{index}"}

    def reads_secret(index):
        answer = outcome(guest.get_object, **place(index))
        return answer is not None and answer["Body"].read() == b"secret"

    won = race(
        pool,
        lambda i: ann.put_object(**place(i), Body=b"old", GrantWriteACP=grantee),
        lambda i: outcome(guest.put_object_acl, **place(i), GrantFullControl=grantee),
        lambda i: ann.put_object(**place(i), Body=b"secret"),
        reads_secret,
    )
    assert won == 0


def test_a_list_taken_back_gives_no_other_list(ann, guest, shelf, pool):
    grantee, owner = f"id={id_of(guest)}", f"id={id_of(ann)}"
    of_object = {"Bucket": shelf, "Key": "k"}
    won = race(
        pool,
        lambda _: ann.put_object(**of_object, Body=b"secret", GrantWriteACP=grantee),
        lambda _: outcome(guest.put_object_acl, **of_object, GrantFullControl=grantee),
        lambda _: ann.put_object_acl(**of_object, ACL="private"),
        lambda _: outcome(guest.get_object, **of_object),
    )
    assert won == 0
    given = {"GrantWriteACP": grantee, "GrantFullControl": owner}
    won = race(
        pool,
        lambda _: ann.put_bucket_acl(Bucket=shelf, **given),
        lambda _: outcome(guest.put_bucket_acl, Bucket=shelf, GrantFullControl=grantee),
        lambda _: ann.put_bucket_acl(Bucket=shelf, ACL="private"),
        lambda _: outcome(guest.get_bucket_acl, Bucket=shelf),
    )
    assert won == 0


def test_a_policy_taken_back_gives_no_other_policy(ann, guest, pool):
    name = f"{SHELF}-policy"
    ann.create_bucket(Bucket=name)
    by = user(account_of(ann), "guest")
    all_of_it = statement("Allow", by, ["s3:*"], arn(name), arn(name, "*"))
    taken = json.dumps({"Version": "2012-10-17", "Statement": [all_of_it]})
    won = race(
        pool,
        lambda _: put(ann, name, statement("Allow", by, ["s3:PutBucketPolicy"], arn(name))),
        lambda _: outcome(guest.put_bucket_policy, Bucket=name, Policy=taken),
        lambda _: ann.delete_bucket_policy(Bucket=name),
        lambda _: outcome(guest.list_objects_v2, Bucket=name),
    )
    assert won == 0


def test_who_may_write_replaces_and_deletes_nothing_of_others(ann, guest, shelf, pool):
    grantee, owner = f"id={id_of(guest)}", f"id={id_of(ann)}"
    ann.put_bucket_acl(Bucket=shelf, GrantWrite=grantee, GrantFullControl=owner)

    def place(kind, index):
        return {"Bucket": shelf, "Key": f"{kind}{index}"}

    def is_lost(kind, index):
        answer = outcome(ann.get_object, **place(kind, index))
        return answer is None or answer["Body"].read() != b"ann's"

    won = race(
        pool,
        lambda _: None,
        lambda i: outcome(guest.put_object, **place("new", i), Body=b"guest's"),
        lambda i: ann.put_object(**place("new", i), Body=b"ann's"),
        # Guest's may come first, and then is replaced; it never comes last.
        lambda i: is_lost("new", i),
    )
    assert won == 0
    won = race(
        pool,
        lambda i: guest.put_object(**place("old", i), Body=b"guest's"),
        lambda i: outcome(guest.delete_object, **place("old", i)),
        lambda i: ann.put_object(**place("old", i), Body=b"ann's"),
        lambda i: is_lost("old", i),
    )
    assert won == 0


def test_lists_of_others_and_owners_alone_are_never_both_in_force(ann, shelf, pool):
    enforced = controls("BucketOwnerEnforced")

    def arrange(_):
        own(ann, shelf, "ObjectWriter")
        ann.put_bucket_acl(Bucket=shelf, ACL="private")

    def are_both(_):
        found = ann.get_bucket_ownership_controls(Bucket=shelf)["OwnershipControls"]
        own(ann, shelf, "ObjectWriter")
        return found == enforced and len(told(ann.get_bucket_acl(Bucket=shelf))) > 1

    won = race(
        pool,
        arrange,
        lambda _: outcome(ann.put_bucket_acl, Bucket=shelf, ACL="authenticated-read"),
        lambda _: outcome(
            ann.put_bucket_ownership_controls, Bucket=shelf, OwnershipControls=enforced
        ),
        are_both,
    )
    assert won == 0


def test_no_public_list_arrives_after_the_block(ann, shelf, pool):
    """Neither with a put that was under way nor with an upload that was begun before."""
    seen = {}

    def place(index):
        return {"Bucket": shelf, "Key": f"k{index}"}

    def defend(index):
        block(ann, shelf, "BlockPublicAcls")
        seen[index] = outcome(ann.head_object, **place(index))

    won = race(
        pool,
        lambda _: block(ann, shelf),
        lambda i: outcome(ann.put_object, **place(i), Body=b"x", ACL="public-read"),
        defend,
        lambda i: seen[i] is None and outcome(ann.head_object, **place(i)),
    )
    assert won == 0
    block(ann, shelf)
    upload = {"Bucket": shelf, "Key": "parts"}
    begun = ann.create_multipart_upload(**upload, ACL="public-read")
    upload["UploadId"] = begun["UploadId"]
    etag = ann.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]
    parts = {"Parts": [{"ETag": etag, "PartNumber": 1}]}
    block(ann, shelf, "BlockPublicAcls")
    with refused("AccessDenied", 403):
        ann.complete_multipart_upload(**upload, MultipartUpload=parts)
    with refused("404", 404):
        ann.head_object(Bucket=shelf, Key="parts")
    block(ann, shelf)
    ann.complete_multipart_upload(**upload, MultipartUpload=parts)


def test_what_tags_let_read_is_what_is_read(server, ann, guest):
    name = f"{SHELF}-tags"
    ann.create_bucket(Bucket=name)
    by, objects = user(account_of(ann), "guest"), arn(name, "*")

    def having(value):
        return {"Condition": {"StringEquals": {"s3:ExistingObjectTag/public": value}}}

    policies = [
        [statement("Allow", by, ["s3:GetObject"], objects, **having("yes"))],
        [
            statement("Allow", by, ["s3:GetObject"], objects),
            statement("Deny", by, ["s3:GetObject"], objects, **having("no")),
        ],
    ]
    place = {"Bucket": name, "Key": "k"}
    # Signed once and sent often: what is looked for happens once in some hundred times.
    read = guest.generate_presigned_url("get_object", Params=place)
    bodies = {"yes": b"public", "no": b"SECRET"}
    writes = [
        (ann.generate_presigned_url("put_object", Params={**place, "Tagging": f"public={value}"}),
         {"x-amz-tagging": f"public={value}"}, body)
        for value, body in bodies.items()
    ]  # fmt: skip

    def session():
        session = requests.Session()
        session.trust_env, session.verify = False, str(server.ca)
        return session

    def read_on(end):
        reader, seen = session(), Counter()
        while time.monotonic() < end:
            answer = reader.get(read)
            seen[answer.content if answer.ok else answer.status_code] += 1
        return seen

    def write_on(end):
        writer = session()
        while time.monotonic() < end:
            for url, headers, body in writes:
                assert writer.put(url, data=body, headers=headers).ok

    for statements in policies:
        put(ann, name, *statements)
        end = time.monotonic() + 4
        with ThreadPoolExecutor(5) as many:
            reading = [many.submit(read_on, end) for _ in range(3)]
            writing = [many.submit(write_on, end) for _ in range(2)]
            seen = sum((one.result() for one in reading), Counter())
            for one in writing:
                one.result()
        assert seen[b"public"] and not seen[b"SECRET"], seen


def test_a_null_version_behind_another_is_its_owners(ann, guest, shelf):
    """Where a bucket keeps no more versions, a write or a marker takes the null version's place."""
    grantee, owner = f"id={id_of(guest)}", f"id={id_of(ann)}"
    ann.put_bucket_acl(Bucket=shelf, GrantWrite=grantee, GrantFullControl=owner)

    def keep(status):
        ann.put_bucket_versioning(Bucket=shelf, VersioningConfiguration={"Status": status})

    def read_null(key):
        return ann.get_object(Bucket=shelf, Key=key, VersionId="null")["Body"].read()

    for key in ("hidden", "behind"):
        ann.put_object(Bucket=shelf, Key=key, Body=b"ann's")
    guest.put_object(Bucket=shelf, Key="own", Body=b"guest's")
    keep("Enabled")
    ann.delete_object(Bucket=shelf, Key="hidden")
    # Ann's null version is behind one of guest's.
    newer = outcome(guest.put_object, Bucket=shelf, Key="behind", Body=b"guest's")
    assert newer is None
    by = user(account_of(ann), "guest")
    put(ann, shelf, statement("Allow", by, ["s3:PutObject"], arn(shelf, "behind")))
    guest.put_object(Bucket=shelf, Key="behind", Body=b"guest's")
    ann.delete_bucket_policy(Bucket=shelf)
    keep("Suspended")
    with refused("AccessDenied", 403):
        guest.put_object(Bucket=shelf, Key="hidden", Body=b"x")
    for attempt in (guest.put_object, guest.delete_object):
        with refused("AccessDenied", 403):
            attempt(Bucket=shelf, Key="behind")
    for key in ("hidden", "behind"):
        assert read_null(key) == b"ann's"
    # Its own is guest's to replace and to hide; and so is all ann's, who owns the bucket.
    guest.put_object(Bucket=shelf, Key="own", Body=b"again")
    guest.delete_object(Bucket=shelf, Key="own")
    ann.put_object(Bucket=shelf, Key="hidden", Body=b"new")
    ann.delete_object(Bucket=shelf, Key="behind")
    assert read_null("hidden") == b"new"


@pytest.mark.parametrize("kind", ["policy", "ownership"])
def test_an_upload_goes_on_where_the_first_policy_lets_it(server, s3, kind):
    """It began when nothing was to be asked; the owner may before and after."""
    bucket = f"first-{kind}"
    s3.create_bucket(Bucket=bucket)
    length = 300_000
    signed = signed_headers(
        server, "PUT", f"/{bucket}/long", headers={"content-length": str(length)}
    )
    with connect(server) as connection:
        head = request_head("PUT", f"/{bucket}/long", signed)
        connection.sendall(head + b"x" * (length // 2))
        time.sleep(0.3)
        if kind == "policy":
            who = user(account_of(s3), "first")
            put(s3, bucket, statement("Allow", who, ["s3:*"], arn(bucket), arn(bucket, "*")))
        else:
            own(s3, bucket, "ObjectWriter")
        connection.sendall(b"x" * (length - length // 2))
        status, _, body = receive(connection, "PUT")
    assert status == 200, body
    assert s3.head_object(Bucket=bucket, Key="long")["ContentLength"] == length
