"""Cross-origin requests: what browsers ask before they send one, and the headers on answers."""

import http.client
import json
import ssl
from urllib.parse import urlsplit

import pytest

from harness.administration import ask, make_subject, run
from harness.clients import refused, s3_client

PAGE = "https://app.example"
DEPENDS_ON = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"


def send(server, method, target, **headers):
    """Status, headers and body of a request without a signature."""
    trusting = ssl.create_default_context(cafile=str(server.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, target, headers=named)
    answer = connection.getresponse()
    told = {name.lower(): value for name, value in answer.getheaders()}
    return answer.status, told, answer.read()


def ask_ahead(server, bucket, origin=PAGE, method="PUT", **headers):
    headers = {"Origin": origin, "Access-Control-Request-Method": method} | headers
    return send(server, "OPTIONS", f"/{bucket}/a%20name", **headers)


def allow(s3, bucket, *rules):
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": list(rules)})


RULE = {
    "ID": "the application",
    "AllowedOrigins": [PAGE, "https://*.test.example"],
    "AllowedMethods": ["PUT", "GET"],
    "AllowedHeaders": ["content-type", "X-Amz-*"],
    "ExposeHeaders": ["ETag", "x-amz-version-id"],
    "MaxAgeSeconds": 600,
}


def test_a_configuration_is_set_read_and_removed(s3, bucket):
    with refused("NoSuchCORSConfiguration", 404):
        s3.get_bucket_cors(Bucket=bucket)
    second = {"AllowedOrigins": ["*"], "AllowedMethods": ["HEAD"]}
    allow(s3, bucket, RULE, second)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE, second]
    allow(s3, bucket, second)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == [second]
    s3.delete_bucket_cors(Bucket=bucket)
    with refused("NoSuchCORSConfiguration", 404):
        s3.get_bucket_cors(Bucket=bucket)
    s3.delete_bucket_cors(Bucket=bucket)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("MalformedXML", {"AllowedOrigins": []}),
        ("MalformedXML", {"AllowedMethods": []}),
        ("InvalidRequest", {"AllowedMethods": ["PATCH"]}),
        ("InvalidRequest", {"AllowedOrigins": ["https://*.*.example"]}),
        ("InvalidRequest", {"AllowedHeaders": ["x-*-*"]}),
        ("InvalidRequest", {"ExposeHeaders": ["x-amz-*"]}),
        ("InvalidRequest", {"ID": "i" * 256}),
    ],
)
def test_what_is_no_rule(server, s3, bucket, code, wrong):
    allow(s3, bucket, RULE)
    with refused(code, 400):
        allow(s3_client(server, validate=False), bucket, RULE | wrong)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE], "it stays as it was"


def test_wildcards_that_are_too_many_are_named(server, s3, bucket):
    lenient = s3_client(server, validate=False)
    for wrong, message in (
        ({"AllowedOrigins": ["*a*"]}, 'AllowedOrigin "*a*" can not have more than one wildcard.'),
        ({"AllowedHeaders": ["*a*"]}, 'AllowedHeader "*a*" can not have more than one wildcard.'),
        (
            {"ExposeHeaders": ["*"]},
            'ExposeHeader "*" contains wildcard. We currently do not support wildcard for '
            "ExposeHeader.",
        ),
    ):
        with refused("InvalidRequest", 400) as error:
            allow(lenient, bucket, RULE | wrong)
        assert error.message == message


def test_a_configuration_without_rules_or_with_too_many(server, s3, bucket):
    lenient = s3_client(server, validate=False)
    for count in (0, 101):
        with refused("MalformedXML", 400):
            allow(lenient, bucket, *[RULE] * count)
    allow(s3, bucket, *[RULE] * 100)


def test_a_browser_asks_ahead(server, s3, bucket):
    allow(s3, bucket, RULE)
    asked = {"Access_Control_Request_Headers": "X-Amz-Date, content-type,authorization"}
    status, told, body = ask_ahead(server, bucket, **asked)
    assert status == 403 and b"<Code>AccessForbidden</Code>" in body
    assert b"CORSResponse: This CORS request is not allowed. This is usually because" in body
    assert b"<Method>PUT</Method><ResourceType>OBJECT</ResourceType>" in body
    assert "access-control-allow-origin" not in told
    asked = {"Access_Control_Request_Headers": "X-Amz-Date, content-type"}
    status, told, body = ask_ahead(server, bucket, **asked)
    assert (status, body) == (200, b"")
    assert told["access-control-allow-origin"] == PAGE
    assert told["access-control-allow-credentials"] == "true"
    assert told["access-control-allow-methods"] == "PUT, GET"
    assert told["access-control-allow-headers"] == "x-amz-date, content-type"
    assert told["access-control-expose-headers"] == "ETag, x-amz-version-id"
    assert told["access-control-max-age"] == "600"
    assert told["vary"] == DEPENDS_ON
    for origin, method, expected in (
        ("https://one.test.example", "GET", 200),
        ("https://test.example", "GET", 403),
        ("https://APP.example", "GET", 403),
        (PAGE, "DELETE", 403),
        (PAGE, "get", 400),
    ):
        status, told, _ = ask_ahead(server, bucket, origin, method)
        assert status == expected, (origin, method)
        assert told.get("access-control-allow-origin") == (origin if expected == 200 else None)


def test_what_is_asked_ahead_and_refused_is_not_allowed(server, s3, bucket):
    allow(s3, bucket, RULE | {"AllowedHeaders": ["*"]})
    names = ",".join(f"x-h{number}" for number in range(101))
    status, told, body = ask_ahead(server, bucket, Access_Control_Request_Headers=names)
    assert status == 400 and b"Too many headers" in body, body
    assert not [name for name in told if name.startswith("access-control-")], told
    assert told["vary"] == DEPENDS_ON


def test_a_rule_for_all_origins_tells_none_apart(server, s3, bucket):
    allow(s3, bucket, {"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]})
    status, told, _ = ask_ahead(server, bucket, "null", "GET")
    assert status == 200 and told["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in told
    assert told["vary"] == DEPENDS_ON


def test_an_age_below_none_is_told_as_it_was_set(s3, server, bucket):
    """AWS takes it, and browsers keep such an answer for no time."""
    allow(s3, bucket, RULE | {"MaxAgeSeconds": -100})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"][0]["MaxAgeSeconds"] == -100
    assert ask_ahead(server, bucket)[1]["access-control-max-age"] == "-100"


@pytest.mark.parametrize("age", [2**31, -(2**31) - 1])
def test_an_age_of_more_than_32_bits_is_refused(s3, bucket, age):
    allow(s3, bucket, RULE)
    with refused("MalformedXML", 400):
        allow(s3, bucket, RULE | {"MaxAgeSeconds": age})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE]


def test_the_first_rule_that_allows_it_is_taken(server, s3, bucket):
    allow(s3, bucket, RULE | {"MaxAgeSeconds": 1}, RULE | {"MaxAgeSeconds": 2})
    assert ask_ahead(server, bucket)[1]["access-control-max-age"] == "1"


def test_what_a_browser_leaves_out(server, s3, bucket):
    allow(s3, bucket, RULE)
    status, _, body = send(server, "OPTIONS", f"/{bucket}/a", Origin=PAGE)
    assert status == 400 and b"Access-Control-Request-Method" in body
    status, _, body = send(server, "OPTIONS", f"/{bucket}/a", Access_Control_Request_Method="PUT")
    assert status == 400 and b"Origin" in body
    s3.delete_bucket_cors(Bucket=bucket)
    status, _, body = send(server, "OPTIONS", f"/{bucket}/a", Origin=PAGE)
    assert status == 403 and b"CORS is not enabled for this bucket." in body
    assert b"<Method>OPTIONS</Method><ResourceType>BUCKET</ResourceType>" in body


def test_a_bucket_that_is_not_there_looks_like_one_without_rules(server, bucket):
    def without_ids(name):
        status, _, body = ask_ahead(server, name)
        before, own, behind = body.partition(f"<Resource>/{name}/a name</Resource>".encode())
        assert own, "it repeats what it was sent"
        return status, before, behind.partition(b"<RequestId>")[0]

    asked = without_ids(bucket)
    assert asked[0] == 403 and b"CORS is not enabled for this bucket" in asked[1]
    assert without_ids("not-there-at-all") == asked
    assert without_ids("No-Bucket") == asked


def test_answers_say_what_a_page_may_see(server, s3, bucket):
    allow(s3, bucket, RULE)
    s3.put_object(Bucket=bucket, Key="a", Body=b"content")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a"})
    target = url.removeprefix(server.endpoint)
    status, told, body = send(server, "GET", target, Origin=PAGE)
    assert (status, body) == (200, b"content")
    assert told["access-control-allow-origin"] == PAGE and told["vary"] == DEPENDS_ON
    assert told["access-control-expose-headers"] == "ETag, x-amz-version-id"
    status, told, _ = send(server, "GET", target, Origin="https://other.example")
    assert status == 200 and "access-control-allow-origin" not in told
    assert told["vary"] == DEPENDS_ON, "a cache keeps this for that page alone"
    status, told, _ = send(server, "GET", target)
    assert status == 200 and "access-control-allow-origin" not in told and "vary" not in told
    # Without these a page could not read why it was refused.
    status, told, _ = send(server, "GET", f"/{bucket}/a", Origin=PAGE)
    assert status == 403 and told["access-control-allow-origin"] == PAGE
    assert urlsplit(url).path == f"/{bucket}/a"


def test_rules_count_at_once_and_after_a_restart(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    for _ in range(3):
        assert ask_ahead(server, "mine")[0] == 403
        allow(s3, "mine", RULE)
        assert ask_ahead(server, "mine")[0] == 200
        s3.delete_bucket_cors(Bucket="mine")
    allow(s3, "mine", RULE)
    server.kill()
    server.start()
    assert ask_ahead(server, "mine")[0] == 200
    s3_client(server).delete_bucket(Bucket="mine")
    assert ask_ahead(server, "mine")[0] == 403
    s3_client(server).create_bucket(Bucket="mine")
    assert ask_ahead(server, "mine")[0] == 403, "a new bucket has no rules"


def test_all_configuration_together_has_a_limit(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    long = RULE | {"AllowedOrigins": [f"https://{'o' * 560}{number}" for number in range(100)]}
    full = None
    for number in range(160):
        s3.create_bucket(Bucket=f"bucket-{number}")
        try:
            allow(s3, f"bucket-{number}", long)
        except s3.exceptions.ClientError as error:
            full = error
            break
    assert full.response["Error"]["Code"] == "InvalidRequest"
    assert "as long as it may be" in full.response["Error"]["Message"]
    with refused("NoSuchCORSConfiguration", 404):
        s3.get_bucket_cors(Bucket=f"bucket-{number}")
    s3.delete_bucket_cors(Bucket="bucket-0")
    allow(s3, f"bucket-{number}", long)


def test_above_the_lowest_label_an_administrator_sets_them(own_server):
    """What is told to all could tell what stands there: bit by bit, by origins."""
    server = own_server().start()
    ask(server, "level", "create", "secret", "--rank", "2")
    ask(server, "bucket", "create", "above", "--level", "secret")
    writer = s3_client(server, credentials=make_subject(server, "writer", "secret"))
    with refused("AccessDenied", 403):
        allow(writer, "above", RULE)
    roles = ("--roles", "data-user,system-administrator")
    both = s3_client(server, credentials=make_subject(server, "both", "secret", *roles))
    allow(both, "above", RULE)
    assert ask_ahead(server, "above")[0] == 200
    assert writer.get_bucket_cors(Bucket="above")["CORSRules"] == [RULE]
    shown = run(server, "audit", "show", "--act", "configuration.write", "--json")
    records = [json.loads(line) for line in shown.splitlines()]
    told = [(record["outcome"], record["details"].get("configuration")) for record in records]
    assert ("begun", "cors") in told and ("done", "cors") in told, told
