"""What is shared with everyone: only in public levels, and only what a policy says."""

import json
import re
import ssl
import urllib.error
import urllib.request

import boto3
import pytest
import requests
from botocore import UNSIGNED
from botocore.config import Config

from harness import raw
from harness.administration import ask, client_of, run
from harness.administration import refused as command_refused
from harness.auditing import export
from harness.clients import REGION, refused
from harness.policies import account_of, arn, put, read, statement, user


@pytest.fixture(scope="module")
def ann(server):
    made = ask(server, "level", "create", "site", "--rank", "0", "--public", "--same-label")
    assert made["public"] is True and made["label"] == "s0"
    return client_of(server, "ann", "site")


@pytest.fixture(scope="module")
def guest(server, ann):
    ask(server, "bucket", "create", "elsewhere")
    return client_of(server, "guest", "default", "--grant", "elsewhere=read")


@pytest.fixture
def nobody(server):
    """A boto3 client that signs nothing."""
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        verify=str(server.ca),
        region_name=REGION,
        config=Config(
            signature_version=UNSIGNED,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
        ),
    )


def fetch(server, path, **more):
    """Status and body of a request that is not signed."""
    request = urllib.request.Request(f"{server.endpoint}/{path}", **more)
    context: ssl.SSLContext = raw.tls_context(server)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


_count = iter(range(1, 1000))


def make(ann, level):
    name = f"{level}-{next(_count)}"
    ann.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": level})
    ann.put_object(Bucket=name, Key="open/a", Body=b"content")
    ann.put_object(Bucket=name, Key="closed/b", Body=b"content")
    return name


@pytest.fixture
def site(ann):
    """A bucket of a public level, where nothing is blocked."""
    name = make(ann, "site")
    ann.delete_public_access_block(Bucket=name)
    return name


def everyone(bucket, *actions, key="open/*"):
    return statement("Allow", "*", actions, arn(bucket, key))


def test_nothing_is_public_unless_a_policy_says_so(server, ann, site):
    for path in (f"{site}/open/a", site, "", f"{site}?policy", "no-such-bucket/a"):
        status, body = fetch(server, path)
        assert status == 403 and b"<Code>AccessDenied</Code>" in body, path
    put(ann, site, everyone(site, "s3:GetObject"))
    assert fetch(server, f"{site}/open/a") == (200, b"content")
    assert fetch(server, f"{site}/open/a", headers={"Range": "bytes=1-3"}) == (206, b"ont")
    assert fetch(server, f"{site}/open/a", method="HEAD") == (200, b"")
    for path, method in [
        (f"{site}/closed/b", "GET"),
        (f"{site}/open/missing", "GET"),
        (f"{site}/open/a", "PUT"),
        (f"{site}/open/a", "DELETE"),
        (f"{site}/open/a?tagging", "GET"),
        (site, "GET"),
        (site, "DELETE"),
        (f"{site}?policy", "GET"),
        (f"{site}?policy", "DELETE"),
        ("", "GET"),
    ]:
        status, body = fetch(server, path, method=method)
        assert (status, b"<Code>AccessDenied</Code>" in body) == (403, True), (path, method)
    listing = statement("Allow", "*", ["s3:ListBucket"], arn(site))
    put(ann, site, everyone(site, "s3:GetObject"), listing)
    assert fetch(server, site)[0] == 200
    status, body = fetch(server, f"{site}/open/missing")
    assert status == 404 and b"NoSuchKey" in body
    ann.delete_bucket_policy(Bucket=site)
    assert fetch(server, f"{site}/open/a")[0] == 403


def test_a_private_level_shares_nothing_with_who_signs_nothing(server, ann, guest):
    bucket = make(ann, "default")
    ann.delete_public_access_block(Bucket=bucket)
    put(ann, bucket, everyone(bucket, "s3:GetObject"))
    assert ann.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"]["IsPublic"]
    status, body = fetch(server, f"{bucket}/open/a")
    assert status == 403 and b"<Code>AccessDenied</Code>" in body
    # Everyone who signs is let in, within labels.
    assert read(guest, bucket) == b"content"
    # Those who look after it are told; who signs nothing hears what is said of no bucket.
    assert not ask(server, "bucket", "show", bucket)["settings"]["public"]
    told = run(server, "bucket", "show", bucket)
    assert "who signs nothing is not let in" in told, told
    texts = [fetch(server, f"{name}/open/a")[1] for name in (bucket, "no-such-bucket")]
    words = [re.search(rb"<Message>(.*?)</Message>", text)[1] for text in texts]
    assert words[0] == words[1]


def test_blocks_keep_the_public_out(server, ann, site):
    allow = everyone(site, "s3:GetObject")
    put(ann, site, allow)

    def block(**on):
        ann.put_public_access_block(Bucket=site, PublicAccessBlockConfiguration=on)

    block(RestrictPublicBuckets=True)
    assert fetch(server, f"{site}/open/a")[0] == 403
    block(BlockPublicPolicy=True)
    assert fetch(server, f"{site}/open/a")[0] == 200
    with refused("AccessDenied", 403):
        put(ann, site, allow)
    with refused("InvalidRequest", 400):
        block()
    blocks = ann.get_public_access_block(Bucket=site)["PublicAccessBlockConfiguration"]
    assert blocks["BlockPublicPolicy"], "nothing was said, and nothing was changed"
    narrow = {"IpAddress": {"aws:SourceIp": "127.0.0.1/32"}}
    put(ann, site, allow | {"Condition": narrow})
    assert not ann.get_bucket_policy_status(Bucket=site)["PolicyStatus"]["IsPublic"]
    assert fetch(server, f"{site}/open/a")[0] == 200
    told = ann.get_public_access_block(Bucket=site)["PublicAccessBlockConfiguration"]
    assert {name for name, is_on in told.items() if is_on} == {"BlockPublicPolicy"}
    ann.delete_public_access_block(Bucket=site)
    with refused("NoSuchPublicAccessBlockConfiguration", 404):
        ann.get_public_access_block(Bucket=site)
    put(ann, site, allow)
    fresh = make(ann, "site")
    assert all(ann.get_public_access_block(Bucket=fresh)["PublicAccessBlockConfiguration"].values())
    with refused("AccessDenied", 403):
        put(ann, fresh, everyone(fresh, "s3:GetObject"))


def test_an_explicit_deny_counts_for_everyone(server, ann, site):
    deny = statement("Deny", "*", ["s3:GetObject"], arn(site, "open/a"))
    put(ann, site, everyone(site, "s3:GetObject"), deny)
    assert fetch(server, f"{site}/open/a")[0] == 403


def test_who_signs_nothing_writes_where_a_policy_lets_it(server, ann, site, nobody):
    put(
        ann,
        site,
        everyone(site, "s3:PutObject", "s3:GetObject", "s3:PutObjectTagging"),
    )
    nobody.put_object(Bucket=site, Key="open/new", Body=b"x" * 100_000)
    assert read(nobody, site, "open/new") == b"x" * 100_000
    upload = {"Bucket": site, "Key": "open/parts"}
    upload["UploadId"] = nobody.create_multipart_upload(**upload)["UploadId"]
    etag = nobody.upload_part(**upload, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    nobody.complete_multipart_upload(**upload, MultipartUpload=parts)
    assert read(ann, site, "open/parts") == b"part"
    tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
    nobody.put_object_tagging(Bucket=site, Key="open/a", Tagging=tags)
    assert ann.get_object_tagging(Bucket=site, Key="open/a")["TagSet"] == tags["TagSet"]
    for call in (
        lambda: nobody.put_object(Bucket=site, Key="closed/new", Body=b"x"),
        lambda: nobody.delete_object(Bucket=site, Key="open/new"),
        lambda: nobody.copy_object(Bucket=site, Key="open/c", CopySource=f"{site}/closed/b"),
        lambda: nobody.list_buckets(),
        lambda: nobody.create_bucket(Bucket="made-by-nobody"),
    ):
        with refused("AccessDenied", 403):
            call()


def test_who_signs_nothing_copies_nothing(ann, site, nobody):
    put(ann, site, statement("Allow", "*", ["s3:*"], arn(site), arn(site, "*")))
    source = f"{site}/open/a"
    with refused("AccessDenied", 403):
        nobody.copy_object(Bucket=site, Key="open/c", CopySource=source)
    upload = {"Bucket": site, "Key": "open/c"}
    upload["UploadId"] = nobody.create_multipart_upload(**upload)["UploadId"]
    with refused("AccessDenied", 403):
        nobody.upload_part_copy(**upload, PartNumber=1, CopySource=source)
    ann.copy_object(Bucket=site, Key="open/c", CopySource=source)
    assert read(nobody, site, "open/c") == b"content"


def form(server, bucket, body=b"content", **fields):
    """Status of a form that nobody signed."""
    answer = requests.post(
        f"{server.endpoint}/{bucket}",
        data=fields,
        files={"file": ("a.txt", body, "text/plain")},
        verify=str(server.ca),
        timeout=60,
    )
    return answer.status_code, answer.text


def test_a_form_that_nobody_signed_is_let_in_where_everyone_may_write(server, ann, site):
    key = "in/${filename}"
    status, text = form(server, site, key=key)
    assert status == 403 and "AccessDenied" in text
    put(ann, site, everyone(site, "s3:PutObject", key="in/*"))
    assert form(server, site, key=key)[0] == 204
    status, text = form(server, site, b"again", key=key, success_action_status="201")
    assert status == 201 and "<Key>in/a.txt</Key>" in text
    assert read(ann, site, "in/a.txt") == b"again"
    # Only there, and only that.
    assert form(server, site, key="elsewhere")[0] == 403
    tag = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"
    assert form(server, site, key=key, tagging=tag)[0] == 403
    assert form(server, site, key=key, acl="public-read")[0] == 403
    assert form(server, "nothing-there", key=key)[0] == 403
    # A part of a signature is no form without one.
    for alone in ("policy", "x-amz-credential", "x-amz-signature", "AWSAccessKeyId", "signature"):
        assert form(server, site, key=key, **{alone: "x"})[0] in (400, 403), alone
    signed = {"StringEquals": {"s3:authType": "POST"}}
    put(ann, site, everyone(site, "s3:PutObject", key="in/*") | {"Condition": signed})
    assert form(server, site, key=key)[0] == 403
    ann.put_public_access_block(
        Bucket=site, PublicAccessBlockConfiguration={"RestrictPublicBuckets": True}
    )
    put(ann, site, everyone(site, "s3:PutObject", key="in/*"))
    assert form(server, site, key=key)[0] == 403
    assert read(ann, site, "in/a.txt") == b"again"


def test_who_signs_nothing_chooses_no_headers(server, ann, site):
    """Else each public object could be shown as a page of this origin."""
    put(ann, site, everyone(site, "s3:GetObject"))
    for name in (
        "content-type=text/html",
        "expires=Thu,%2001%20Dec%201994%2016:00:00%20GMT",
        "content-disposition=inline",
    ):
        status, body = fetch(server, f"{site}/open/a?response-{name}")
        assert status == 400 and b"anonymous GET requests" in body, name
    answer = ann.get_object(Bucket=site, Key="open/a", ResponseContentType="text/html")
    assert answer["ContentType"] == "text/html"


def test_parts_of_a_signature_are_not_taken_for_none(server, ann, site):
    """Who names a key and signs nothing is not served, and told of by no one's name."""
    put(ann, site, everyone(site, "s3:GetObject", "s3:PutObject"))
    signer = server.credentials()[0]
    incomplete = (400, b"<Code>AuthorizationQueryParametersError</Code>")
    for part, (status, code) in {
        f"X-Amz-Credential={signer}/20260101/us-east-1/s3/aws4_request": incomplete,
        f"X-Amz-Credential={signer}": incomplete,
        "X-Amz-Credential=X": incomplete,
        "X-Amz-Algorithm=AWS4-HMAC-SHA256": incomplete,
        "X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host": incomplete,
        f"AWSAccessKeyId={signer}": (403, b"<Code>AccessDenied</Code>"),
        f"AWSAccessKeyId={signer}&Expires=4000000000": (403, b"<Code>AccessDenied</Code>"),
    }.items():
        for method in ("GET", "PUT"):
            got, body = fetch(server, f"{site}/open/a?{part}", method=method, data=b"")
            assert got == status and code in body, (method, part, body)
    assert fetch(server, f"{site}/open/a?x=y") == (200, b"content")
    subjects = {subject["id"] for subject in ask(server, "subject", "list")}
    failed = [row for row in export(server) if row.get("act") == "server.sign-in"]
    assert not [row for row in failed if row["actor"] in subjects]


def test_a_wrong_signature_is_not_taken_for_none(server, ann, site):
    put(ann, site, everyone(site, "s3:GetObject"))
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=0"}
    status, _ = fetch(server, f"{site}/open/a", headers=headers)
    assert status in (400, 403)


def test_a_policy_is_never_everyone_s_to_change(server, ann, site):
    open_wide = statement("Allow", "*", ["s3:*"], arn(site), arn(site, "*"))
    put(ann, site, open_wide)
    policy = json.dumps({"Statement": [open_wide]}).encode()
    assert fetch(server, f"{site}?policy", method="PUT", data=policy)[0] == 403
    assert fetch(server, f"{site}?policy", method="DELETE")[0] == 403
    assert fetch(server, f"{site}?publicAccessBlock", method="DELETE")[0] == 403
    assert fetch(server, f"{site}/open/a")[0] == 200


def test_only_the_lowest_label_can_be_public(server, ann):
    for words in (("--rank", "1"), ("--rank", "0", "--categories", "c1")):
        told = command_refused(server, "level", "create", "high-site", *words, "--public")
        assert "public level" in told
    levels = {level["name"]: level["public"] for level in ask(server, "level", "list")}
    assert levels["site"] and not levels["default"]


def test_a_public_level_is_public_after_a_restart(own_server):
    server = own_server().start()
    ask(server, "level", "create", "site", "--rank", "0", "--public", "--same-label")
    ann = client_of(server, "ann", "site")
    bucket = make(ann, "site")
    ann.delete_public_access_block(Bucket=bucket)
    put(ann, bucket, everyone(bucket, "s3:GetObject"))
    server.kill()
    server.start()
    assert fetch(server, f"{bucket}/open/a") == (200, b"content")
    account = account_of(ann)
    bob = client_of(server, "bob", "default")
    put(ann, bucket, statement("Deny", user(account, "bob"), ["s3:*"], arn(bucket, "*")))
    assert fetch(server, f"{bucket}/open/a")[0] == 403
    with refused("AccessDenied", 403):
        read(bob, bucket)
