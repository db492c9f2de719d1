"""What a gateway that serves tells of buckets and access keys while its log can't be written:
nothing that the next one could go on without."""

import contextlib
import http.client
import signal
import subprocess
import threading
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from harness import raw
from harness.administration import make_subject, run
from harness.engines import answered, client
from harness.server import BINARY

BUCKET = "notes"
RULE = {"AllowedOrigins": ["https://page.example"], "AllowedMethods": ["GET"]}
ASKED = {"Origin": "https://page.example", "Access-Control-Request-Method": "GET"}
#: Longer than a write is waited for.
TOLD_SECONDS = 40


@contextlib.contextmanager
def stopped(store):
    store.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        store.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def under_way(server, *words):
    """An act of administration, which does not end meanwhile."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    acting = subprocess.Popen([BINARY, *words, "--data", str(server.data)], **quiet)
    try:
        time.sleep(0.5)
        yield
    finally:
        acting.kill()
        acting.wait(60)


def told(call):
    """The status of an answer; none, where there is none yet."""
    try:
        return call()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    except BotoCoreError:
        return None


@pytest.mark.parametrize("ask", ["head_bucket", "get_bucket_location", "get_bucket_acl"])
def test_a_bucket_is_not_told_of_before_the_log_has_it(store, first, ask):
    s3 = client(first, first.credentials(), read_timeout=1)
    s3.create_bucket(Bucket=BUCKET)
    asking = getattr(s3, ask)
    assert told(lambda: asking(Bucket=BUCKET)) == 200
    with stopped(store), under_way(first, "bucket", "create", "unsure"):
        assert told(lambda: asking(Bucket="unsure")) in (None, 503)


def test_a_change_is_not_refused_by_what_the_log_has_not(store, first):
    """Why it is refused tells as much as a read."""
    words = (BINARY, "bucket", "create", "unsure", "--data", str(first.data))
    with stopped(store), under_way(first, "bucket", "create", "unsure"):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "bucket unsure already" not in done.stderr, done


def test_rules_for_pages_are_not_told_before_the_log_has_them(store, first):
    s3 = client(first, first.credentials(), read_timeout=1)
    s3.create_bucket(Bucket=BUCKET)
    assert asked_ahead(first) == 403
    setting = {"Bucket": BUCKET, "CORSConfiguration": {"CORSRules": [RULE]}}
    with stopped(store):
        act = threading.Thread(target=told, args=(lambda: s3.put_bucket_cors(**setting),))
        act.start()
        time.sleep(0.5)
        assert asked_ahead(first) in (None, 503)
        act.join()


def test_answers_tell_pages_nothing_by_rules_that_the_log_has_not(store, first):
    """Of an object, which waits as well, and of a refusal, which waits for nothing else."""
    s3 = client(first, first.credentials(), read_timeout=1)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"a")
    setting = {"Bucket": BUCKET, "CORSConfiguration": {"CORSRules": [RULE]}}
    asked = [("GET", f"/{BUCKET}/a"), ("GET", f"/{BUCKET}/a?versionId=odd")]
    with stopped(store):
        act = threading.Thread(target=told, args=(lambda: s3.put_bucket_cors(**setting),))
        act.start()
        time.sleep(0.5)
        for method, target in asked:
            assert allowed_to(first, method, target) is None
        assert allowed_to(first, "GET", f"/{BUCKET}/a", signature="0" * 64) is None
        act.join()
    page = RULE["AllowedOrigins"][0]
    s3 = client(first, first.credentials(), read_timeout=TOLD_SECONDS)
    answered(lambda: s3.put_bucket_cors(**setting), 60)
    for method, target in asked:
        assert allowed_to(first, method, target) == page
    assert allowed_to(first, "GET", f"/{BUCKET}/a", signature="0" * 64) == page


def test_an_upload_that_is_ended_is_not_told_as_gone_before_the_log_has_it(store, first):
    """By who writes its parts, while an administrator ends it."""
    s3 = client(first, first.credentials(), read_timeout=1)
    s3.create_bucket(Bucket=BUCKET)
    upload = {"Bucket": BUCKET, "Key": "a"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    assert told(lambda: s3.upload_part(**upload, PartNumber=1, Body=b"a")) == 200
    ending = ("bucket", "end-uploads", BUCKET, "--older-than", "0s")
    with stopped(store), under_way(first, *ending):
        assert told(lambda: s3.upload_part(**upload, PartNumber=2, Body=b"b")) in (None, 503)
        assert told(lambda: s3.list_parts(**upload)) in (None, 503)


def allowed_to(server, method, target, signature=None):
    """Which page an answer says may read it; none, where there is none yet."""
    path, _, query = target.partition("?")
    headers = {"origin": ASKED["Origin"]}
    signed = raw.signed_headers(server, method, path, query=query, headers=headers)
    if signature is not None:
        authorization = signed["authorization"].rpartition("=")[0]
        signed["authorization"] = f"{authorization}={signature}"
    with raw.connect(server, timeout=1) as connection:
        connection.sendall(raw.request_head(method, target, signed))
        try:
            return raw.receive(connection, method)[1].get("access-control-allow-origin")
        except TimeoutError:
            return None


def asked_ahead(server):
    """What a browser is answered that asks for a page of another origin."""
    context = raw.tls_context(server)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=1)
    with contextlib.closing(connection):
        connection.request("OPTIONS", f"/{BUCKET}/a", headers=ASKED)
        try:
            return connection.getresponse().status
        except TimeoutError:
            return None


def test_a_disabled_key_counts_as_refused_though_that_can_not_be_told(store, first):
    who = make_subject(first, "ann", "default", "--roles", "data-user")
    run(first, "subject", "key", "disable", who[0])
    s3 = client(first, who, read_timeout=TOLD_SECONDS)
    assert told(s3.list_buckets) == 403
    before = raw.metric(first, "coffer_denied_total")
    with stopped(store), under_way(first, "bucket", "create", "unsure"):
        assert told(s3.list_buckets) == 503
        # It has lost its lease by then, and begins anew as one that follows.
        _, counted = answered(lambda: raw.metric(first, "coffer_denied_total"), 30)
    assert counted == before + 1
