"""Uploads in parts where lists count: whose they are, and what a list lets do to them."""

import pytest

from harness.administration import ask, client_of, run
from harness.clients import refused
from harness.lists import block, id_of
from harness.policies import account_of, arn, put, read, statement, user

_count = iter(range(1, 1000))


@pytest.fixture
def shelf(ann, guest):
    """A bucket where lists count, and the guest may write and list by its list alone."""
    name = f"parts-{next(_count)}"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    block(ann, name)
    grantee = f"id={id_of(guest)}"
    ann.put_bucket_acl(Bucket=name, GrantWrite=grantee, GrantRead=grantee)
    return name


def denied():
    return refused("AccessDenied", 403)


def begin(client, bucket, key, **given):
    upload = client.create_multipart_upload(Bucket=bucket, Key=key, **given)["UploadId"]
    return {"Bucket": bucket, "Key": key, "UploadId": upload}


def part(client, upload, body):
    sent = client.upload_part(**upload, PartNumber=1, Body=body)
    return {"Parts": [{"PartNumber": 1, "ETag": sent["ETag"]}]}


def test_a_list_lets_no_one_into_the_uploads_of_others(ann, bob, guest, shelf):
    ann.put_object(Bucket="elsewhere", Key="a", Body=b"evil")
    for owner in (ann, bob):
        upload = begin(owner, shelf, "k", ACL="authenticated-read")
        good = part(owner, upload, b"good")
        for call in (
            lambda upload=upload: part(guest, upload, b"evil"),
            lambda upload=upload: guest.upload_part_copy(
                **upload, PartNumber=1, CopySource="elsewhere/a"
            ),
            lambda upload=upload, good=good: guest.complete_multipart_upload(
                **upload, MultipartUpload=good
            ),
            lambda upload=upload: guest.abort_multipart_upload(**upload),
            lambda upload=upload: guest.list_parts(**upload),
        ):
            with denied():
                call()
        owner.complete_multipart_upload(**upload, MultipartUpload=good)
        assert read(owner, shelf, "k") == b"good"
        ann.delete_object(Bucket=shelf, Key="k")


def test_who_uploads_by_a_list_or_a_policy_has_its_own_uploads(ann, guest, shelf):
    upload = begin(guest, shelf, "mine")
    good = part(guest, upload, b"good")
    assert [row["PartNumber"] for row in guest.list_parts(**upload)["Parts"]] == [1]
    guest.abort_multipart_upload(**upload)
    with refused("NoSuchUpload", 404):
        guest.list_parts(**upload)
    upload = begin(guest, shelf, "mine")
    good = part(guest, upload, b"good")
    guest.complete_multipart_upload(**upload, MultipartUpload=good)
    assert read(guest, shelf, "mine") == b"good"
    # The bucket's owner may end what others have begun, and a deny goes before.
    upload = begin(guest, shelf, "mine")
    ann.list_parts(**upload)
    no_end = statement("Deny", "*", ["s3:AbortMultipartUpload"], arn(shelf, "*"))
    put(ann, shelf, no_end)
    with denied():
        guest.abort_multipart_upload(**upload)
    ann.delete_bucket_policy(Bucket=shelf)
    ann.abort_multipart_upload(**upload)
    # Who may write no more has nothing of it any more.
    upload = begin(guest, shelf, "mine")
    ann.put_bucket_acl(Bucket=shelf, ACL="private")
    for call in (guest.abort_multipart_upload, guest.list_parts):
        with denied():
            call(**upload)
    writes = statement("Allow", user(account_of(ann), "guest"), ["s3:PutObject"], arn(shelf, "*"))
    put(ann, shelf, writes)
    guest.list_parts(**upload)
    guest.abort_multipart_upload(**upload)


def test_who_signs_nothing_has_no_upload_of_others(server, ann, nobody):
    ask(server, "level", "create", "open-parts", "--rank", "0", "--public", "--same-label")
    made = {"LocationConstraint": "open-parts"}
    name = "public-parts"
    ann.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", CreateBucketConfiguration=made)
    block(ann, name)
    ann.put_bucket_acl(Bucket=name, ACL="public-read-write")
    upload = begin(ann, name, "k")
    good = part(ann, upload, b"good")
    with denied():
        part(nobody, upload, b"evil")
    with denied():
        nobody.complete_multipart_upload(**upload, MultipartUpload=good)
    own = begin(nobody, name, "n")
    nobody.complete_multipart_upload(**own, MultipartUpload=part(nobody, own, b"n"))
    assert read(ann, name, "n") == b"n"


def test_an_upload_is_told_with_who_began_it(server, ann, bob, guest, shelf):
    ann.create_bucket(Bucket="plain-parts")
    for bucket in ("plain-parts", shelf):
        upload = begin(bob, bucket, "k")
        (row,) = ann.list_multipart_uploads(Bucket=bucket)["Uploads"]
        parts = ann.list_parts(**upload)
        for told in (row, parts):
            assert told["Initiator"]["ID"] == id_of(bob)
        bob.abort_multipart_upload(**upload)
    # Its object is to be the bucket owner's: who began it is another one.
    upload = begin(bob, "plain-parts", "k")
    assert ann.list_parts(**upload)["Owner"]["ID"] == id_of(ann)
    passing = client_of(server, "passing-uploader", "default")
    upload = begin(passing, shelf, "left")
    run(server, "subject", "delete", "passing-uploader")
    assert ann.list_parts(**upload)["Initiator"]["ID"] == id_of(ann)
