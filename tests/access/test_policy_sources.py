"""Conditions of policies are asked of what an operation does, not of what is sent beside it."""

import base64
import hashlib
import random

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.administration import ask as command
from harness.administration import client_of, make_subject
from harness.clients import refused, s3_client
from harness.policies import arn, put, statement, user

_count = iter(range(1, 1000))


@pytest.fixture(scope="module")
def keys(server, own):
    """The access key of one who uses nothing but by policies."""
    return make_subject(server, "reader", "default", "--grant", f"{own}=read")


@pytest.fixture(scope="module")
def reader(server, keys):
    return s3_client(server, credentials=keys)


@pytest.fixture(scope="module")
def ask(server, keys):
    """Sends a request of the reader's, with just these headers, and tells status and body."""

    def send(method, path, query="", body=b"", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            headers["content-md5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        sent = {"query": query, "body": body, "headers": headers, "credentials": keys}
        status, _, answer = raw.send(server, method, path, **sent)
        return status, answer

    return send


class Shelf:
    """A bucket of Ann's with versions of one object."""

    def __init__(self, ann, who):
        self.name = f"sources-{next(_count)}"
        self.ann, self.who = ann, who
        ann.create_bucket(Bucket=self.name, ObjectLockEnabledForBucket=True)
        self.path = f"/{self.name}/k"
        self.versions = [self.write(body) for body in (b"one", b"two", b"three")]

    def write(self, body, key="k", **more):
        return self.ann.put_object(Bucket=self.name, Key=key, Body=body, **more)["VersionId"]

    def say(self, *statements):
        put(self.ann, self.name, *statements)

    def allow(self, *actions, who=None, **condition):
        more = {"Condition": condition} if condition else {}
        everywhere = (arn(self.name), arn(self.name, "*"))
        return statement("Allow", who or self.who, actions or ["s3:*"], *everywhere, **more)

    def deny(self, action, **condition):
        return statement("Deny", self.who, [action], arn(self.name, "*"), Condition=condition)

    def has(self, version):
        try:
            self.ann.head_object(Bucket=self.name, Key="k", VersionId=version)
        except ClientError:
            return False
        return True


@pytest.fixture
def shelf(ann, account):
    return Shelf(ann, user(account, "reader"))


def of(version):
    return {"s3:VersionId": version}


def entry(version, etag=None, key="k"):
    named = f"<VersionId>{version}</VersionId>" if version else ""
    wanted = f"<ETag>{etag}</ETag>" if etag else ""
    return f"<Delete><Object><Key>{key}</Key>{named}{wanted}</Object></Delete>".encode()


def test_a_source_that_is_not_copied_names_no_version(ask, shelf):
    one, two, three = shelf.versions
    source = {"x_amz_copy_source": f"{shelf.name}/k?versionId={one}"}
    shelf.say(shelf.allow("s3:GetObjectVersion", StringEquals=of(one)))
    assert ask("GET", shelf.path, f"versionId={one}") == (200, b"one")
    # What is no copy has no source, as on AWS.
    assert ask("GET", shelf.path, f"versionId={one}", **source)[0] == 400
    for headers, status in (({}, 403), (source, 400)):
        assert ask("GET", shelf.path, f"versionId={two}", **headers)[0] == status
        assert ask("HEAD", shelf.path, f"versionId={two}", **headers)[0] == status
    tagging = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    shelf.say(shelf.allow("s3:PutObjectVersionTagging", StringEquals=of(one)))
    assert ask("PUT", shelf.path, f"tagging&versionId={one}", tagging)[0] == 200
    assert ask("PUT", shelf.path, f"tagging&versionId={two}", tagging, **source)[0] == 403
    source = {"x_amz_copy_source": f"{shelf.name}/k?versionId={three}"}
    shelf.say(shelf.allow(), shelf.deny("s3:DeleteObjectVersion", StringEquals=of(one)))
    for headers, status in (({}, 403), (source, 400)):
        assert ask("DELETE", shelf.path, f"versionId={one}", **headers)[0] == status
    assert shelf.has(one)
    assert ask("DELETE", shelf.path, f"versionId={two}")[0] == 204


def test_a_copy_is_asked_for_the_version_that_it_copies(reader, shelf):
    one, two, _ = shelf.versions
    shelf.say(
        shelf.allow("s3:PutObject", "s3:GetObjectTagging"),
        shelf.allow("s3:GetObjectVersion", StringEquals=of(one)),
    )

    def copy(version):
        source = {"Bucket": shelf.name, "Key": "k", "VersionId": version}
        reader.copy_object(Bucket=shelf.name, Key="copy", CopySource=source)

    copy(one)
    with refused("AccessDenied", 403):
        copy(two)


def test_a_deletion_of_many_is_asked_for_the_version_of_each(ask, shelf):
    one, two, three = shelf.versions
    shelf.say(shelf.allow(), shelf.deny("s3:DeleteObjectVersion", StringEquals=of(two)))
    bucket = f"/{shelf.name}"
    assert b"AccessDenied" in ask("POST", bucket, "delete", entry(two))[1]
    assert shelf.has(two)
    shelf.say(shelf.allow("s3:DeleteObjectVersion", StringEquals=of(one)))
    told = ask("POST", bucket, "delete", entry(three))[1]
    assert b"AccessDenied" in told and shelf.has(three), told
    # A version in the query is of no entry.
    status, told = ask("POST", bucket, f"delete&versionId={one}", entry(three))
    assert status == 400 and b"InvalidArgument" in told and shelf.has(three), told
    assert b"<Deleted>" in ask("POST", bucket, "delete", entry(one))[1]
    assert not shelf.has(one)


#: By the policy, or because a condition that names nothing is none to keep.
REFUSED = (400, 403)


def test_an_empty_condition_is_none(ask, ann, reader, shelf):
    missing = {"s3:if-match": "true"}
    shelf.say(shelf.allow(), shelf.deny("s3:DeleteObject", Null=missing))
    etag = ann.head_object(Bucket=shelf.name, Key="k")["ETag"]
    for tag in ("", ",", " , "):
        assert ask("DELETE", shelf.path, if_match=tag)[0] in REFUSED, tag
    assert ask("DELETE", shelf.path, if_match=etag)[0] == 204
    shelf.write(b"again")
    etag = ann.head_object(Bucket=shelf.name, Key="k")["ETag"].strip('"')
    # Of many, each has its own condition, and a header has none for them.
    bucket, header = f"/{shelf.name}", {"if_match": "*"}
    assert b"NotImplemented" in ask("POST", bucket, "delete", entry(None), **header)[1]
    assert b"AccessDenied" in ask("POST", bucket, "delete", entry(None))[1]
    wrong = ask("POST", bucket, "delete", entry(None, "0" * 32))[1]
    assert b"PreconditionFailed" in wrong, wrong
    ann.head_object(Bucket=shelf.name, Key="k")
    assert b"<Deleted>" in ask("POST", bucket, "delete", entry(None, etag))[1]
    shelf.write(b"k")
    absent = {"s3:if-none-match": "true", "s3:if-match": "true"}
    makes = {"s3:ObjectCreationOperation": "true"}
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", Null=absent, Bool=makes))
    empty = {"if_none_match": ""}
    assert ask("PUT", shelf.path, "", b"x", **empty)[0] in REFUSED
    source = {"x_amz_copy_source": f"{shelf.name}/k"}
    assert ask("PUT", f"/{shelf.name}/other", **source, **empty)[0] in REFUSED
    upload = reader.create_multipart_upload(Bucket=shelf.name, Key="parts")["UploadId"]
    part = {"Bucket": shelf.name, "Key": "parts", "UploadId": upload, "PartNumber": 1}
    etag = reader.upload_part(**part, Body=b"x")["ETag"]
    parts = (
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
        f"<ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
    ).encode()
    completing = ("POST", f"/{shelf.name}/parts", f"uploadId={upload}", parts)
    assert ask(*completing, **empty)[0] in REFUSED
    assert ask(*completing, if_none_match="*")[0] == 200


def test_an_empty_list_is_none(ask, shelf):
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", Null={"s3:x-amz-acl": "true"}))
    assert ask("PUT", shelf.path, "", b"x")[0] == 403
    assert ask("PUT", shelf.path, "", b"x", x_amz_acl="")[0] == 403
    assert ask("PUT", shelf.path, "", b"x", x_amz_acl="bucket-owner-full-control")[0] == 200


def test_a_retention_is_not_taken_off_by_a_header_beside(ask, ann, shelf):
    one = shelf.versions[0]
    place = {"Bucket": shelf.name, "Key": "k", "VersionId": one}
    until = raw.now().replace(year=raw.now().year + 2)
    ann.put_object_retention(**place, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until})
    for key, header in (
        ("mode", {"x_amz_object_lock_mode": "GOVERNANCE"}),
        (
            "retain-until-date",
            {"x_amz_object_lock_retain_until_date": f"{until:%Y-%m-%dT%H:%M:%SZ}"},
        ),
    ):
        condition = {f"s3:object-lock-{key}": "true"}
        shelf.say(shelf.allow(), shelf.deny("s3:PutObjectRetention", Null=condition))
        bypass = {"x_amz_bypass_governance_retention": "true"}
        for headers in (bypass, bypass | header):
            taking = ("PUT", shelf.path, f"retention&versionId={one}", b"<Retention></Retention>")
            assert ask(*taking, **headers)[0] == 403, headers
    assert ann.get_object_retention(**place)["Retention"]["Mode"] == "GOVERNANCE"


def test_a_copy_that_keeps_its_tags_has_those_and_not_its_header_s(reader, shelf):
    shelf.write(b"red", "red", Tagging="colour=red")
    shelf.write(b"blue", "blue", Tagging="colour=blue")
    red = {"s3:RequestObjectTag/colour": "red"}

    def copy(key, **more):
        source = {"Bucket": shelf.name, "Key": key}
        reader.copy_object(Bucket=shelf.name, Key="copy", CopySource=source, **more)

    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", StringNotEquals=red))
    with refused("AccessDenied", 403):
        copy("blue", Tagging="colour=red")
    copy("blue", Tagging="colour=red", TaggingDirective="REPLACE")
    shelf.say(shelf.allow(), shelf.deny("s3:PutObjectTagging", StringEquals=red))
    with refused("AccessDenied", 403):
        copy("red", Tagging="colour=blue")
    copy("blue", Tagging="colour=red")


def test_a_source_is_asked_for_as_it_is_meant(ask, shelf):
    hidden = {"s3:x-amz-copy-source": f"{shelf.name}/hidden/*"}
    shelf.write(b"hidden", "hidden/a")
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", StringLike=hidden))
    for written in ("hidden/a", "%68idden/a", "hidden%2Fa"):
        for slash in ("", "/"):
            source = f"{slash}{shelf.name}/{written}"
            assert ask("PUT", f"/{shelf.name}/copy", x_amz_copy_source=source)[0] == 403, source
    assert ask("PUT", f"/{shelf.name}/copy", x_amz_copy_source=f"{shelf.name}/k")[0] == 200
    exact = {"s3:x-amz-copy-source": f"{shelf.name}/hidden/a"}
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", StringEquals=exact))
    for version in ("", "?versionId=null"):
        for written in ("hidden/a", "/hidden/a", "%68idden/a"):
            slash = "/" if written.startswith("/") else ""
            source = f"{slash}{shelf.name}/{written.lstrip('/')}{version}"
            assert ask("PUT", f"/{shelf.name}/copy", x_amz_copy_source=source)[0] == 403, source


def test_another_spelling_of_a_source_is_let_through_by_nothing(ask, shelf):
    """`+` is a space in a source: the object that is copied is another than the header spells."""
    shelf.write(b"with a space", "a b")
    shelf.write(b"with a plus", "a+b")
    key, space, plus = "s3:x-amz-copy-source", f"{shelf.name}/a b", f"{shelf.name}/a+b"

    def copies(source):
        status, _ = ask("PUT", f"/{shelf.name}/copy", x_amz_copy_source=f"{shelf.name}/{source}")
        assert status in (200, 403)
        return status == 200

    sent = ("a+b", "a%20b", "a%2Bb")
    reading = shelf.allow("s3:GetObject*", "s3:PutObjectTagging")
    for operators in (("StringEquals", "StringNotEquals"), ("StringLike", "StringNotLike")):
        like, unlike = operators
        for named, let in ((space, [False, True, False]), (plus, [False, False, True])):
            # Only this one is let through, by a deny of all others, or by an allow of it. What is
            # written like one and means the other is neither.
            shelf.say(shelf.allow(), shelf.deny("s3:PutObject", **{unlike: {key: named}}))
            only = [copies(source) for source in sent]
            shelf.say(reading, shelf.allow("s3:PutObject", **{like: {key: named}}))
            assert only == [copies(source) for source in sent]
            assert only[1:] == let[1:]
            assert only[0] is (named == space)
            # All but this one are.
            shelf.say(shelf.allow(), shelf.deny("s3:PutObject", **{like: {key: named}}))
            others = [copies(source) for source in sent]
            shelf.say(reading, shelf.allow("s3:PutObject", **{unlike: {key: named}}))
            assert others == [copies(source) for source in sent]
            assert others == [False, *[not one for one in let[1:]]]


def test_a_version_is_not_let_through_by_the_name_of_its_object(ask, shelf):
    key, first = "s3:x-amz-copy-source", f"{shelf.name}/k?versionId={shelf.versions[0]}"
    object_alone = {key: f"{shelf.name}/k"}

    def copy(source):
        return ask("PUT", f"/{shelf.name}/copy", x_amz_copy_source=source)[0]

    shelf.say(
        shelf.allow("s3:GetObject*", "s3:PutObjectTagging"),
        shelf.allow("s3:PutObject", StringEquals=object_alone),
    )
    assert (copy(f"{shelf.name}/k"), copy(f"/{shelf.name}/k"), copy(first)) == (200, 200, 403)
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", StringNotEquals=object_alone))
    assert (copy(f"{shelf.name}/k"), copy(f"/{shelf.name}/k"), copy(first)) == (200, 200, 403)
    whole = {key: f"{shelf.name}/k*"}
    shelf.say(shelf.allow(), shelf.deny("s3:PutObject", StringNotLike=whole))
    assert (copy(f"{shelf.name}/k"), copy(first)) == (200, 200)


def test_a_prefix_is_one_only_of_a_listing(ask, shelf):
    open_ones = {"s3:prefix": "open/"}
    shelf.say(shelf.allow("s3:ListBucket", StringEquals=open_ones))
    assert ask("GET", f"/{shelf.name}", "list-type=2&prefix=open%2F")[0] == 200
    assert ask("HEAD", f"/{shelf.name}", "prefix=open%2F")[0] == 403


def test_who_signs_nothing_reads_no_other_version_by_a_header(server):
    command(server, "level", "create", "site", "--rank", "0", "--public", "--same-label")
    eve = client_of(server, "eve", "site")
    name = f"public-{random.randrange(10**9)}"
    eve.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "site"})
    eve.delete_public_access_block(Bucket=name)
    eve.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    one, two = (
        eve.put_object(Bucket=name, Key="k", Body=body)["VersionId"] for body in (b"1", b"2")
    )
    only = {"StringEquals": of(one)}
    reading = ["s3:GetObjectVersion"]
    put(eve, name, statement("Allow", "*", reading, arn(name, "*"), Condition=only))

    def read(version, **headers):
        target = f"/{name}/k?versionId={version}"
        headers = {"host": f"127.0.0.1:{server.port}"} | headers
        with raw.connect(server) as connection:
            connection.sendall(raw.request_head("GET", target, headers))
            return raw.receive(connection)[::2]

    assert read(one) == (200, b"1")
    assert read(two)[0] == 403
    assert read(two, **{"x-amz-copy-source": f"{name}/k?versionId={one}"})[0] == 400
