"""Uploads by HTML forms, as boto3 signs them and browsers send them."""

import base64
import hmac
import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from harness import policies
from harness import raw as harness_raw
from harness.administration import make_subject
from harness.auditing import eventually, export
from harness.checksums import ALGORITHMS, checksum
from harness.clients import s3_client
from harness.content import MIB, content


def send(server, form, body=b"content", name="a file.txt", changed=(), **more):
    """Sends a form that boto3 has signed, with fields changed (None: left out)."""
    fields = form["fields"] | dict(changed)
    fields = {key: value for key, value in fields.items() if value is not None}
    return requests.post(
        form["url"],
        data=fields,
        files={"file": (name, body, "application/octet-stream")},
        verify=str(server.ca),
        allow_redirects=False,
        timeout=60,
        **more,
    )


def code(answer):
    found = re.search(r"<Code>(\w+)</Code>", answer.text)
    return answer.status_code, found and found[1]


def sign(s3, bucket, key="in/${filename}", fields=None, conditions=(), **more):
    fields = fields or {}
    conditions = [{name: value} for name, value in fields.items()] + list(conditions)
    return s3.generate_presigned_post(bucket, key, Fields=fields, Conditions=conditions, **more)


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_stores_its_file(server, s3, bucket, version):
    tag = "<Tag><Key>k</Key><Value>v + w</Value></Tag>"
    fields = {
        "Content-Type": "text/plain",
        "Cache-Control": "no-cache",
        "x-amz-meta-of": "a form",
        "tagging": f"<Tagging><TagSet>{tag}</TagSet></Tagging>",
    }
    form = sign(s3_client(server, signature_version=version), bucket, fields=fields)
    answer = send(server, form, body=content(3 * MIB + 1), name="C:\\folder\\a file.txt")
    assert (answer.status_code, answer.text) == (204, ""), answer.text
    assert answer.headers["Location"] == f"{server.endpoint}/{bucket}/in/a%20file.txt"
    read = s3.get_object(Bucket=bucket, Key="in/a file.txt")
    assert read["Body"].read() == content(3 * MIB + 1)
    assert read["ETag"] == answer.headers["ETag"]
    assert read["ContentType"] == "text/plain" and read["CacheControl"] == "no-cache"
    assert read["Metadata"] == {"of": "a form"}
    tags = s3.get_object_tagging(Bucket=bucket, Key="in/a file.txt")["TagSet"]
    assert tags == [{"Key": "k", "Value": "v + w"}]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_form_is_compared_with_its_checksum(server, s3, bucket, algorithm):
    header = f"x-amz-checksum-{algorithm.lower()}"
    right, wrong = (checksum(algorithm, body) for body in (b"content", b"other"))
    refused = send(server, sign(s3, bucket, fields={header: wrong}))
    assert code(refused) == (400, "BadDigest"), refused.text
    stored = send(server, sign(s3, bucket, fields={header: right}))
    assert (stored.status_code, stored.headers[header]) == (204, right)
    head = s3.head_object(Bucket=bucket, Key="in/a file.txt", ChecksumMode="ENABLED")
    assert head[f"Checksum{algorithm}"] == right


@pytest.mark.parametrize("name", ["If-None-Match", "If-Match", "If-Unmodified-Since"])
def test_a_form_has_no_condition(server, s3, bucket, name):
    """Passed over, what it was to keep was written over."""
    s3.put_object(Bucket=bucket, Key="a", Body=b"first")
    in_header = send(server, sign(s3, bucket, key="a"), headers={name: "*"})
    in_field = send(server, sign(s3, bucket, key="a", fields={name: "*"}))
    for answer in (in_header, in_field):
        assert code(answer) == (501, "NotImplemented"), answer.text
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"first"


def test_what_a_page_is_told(server, s3, bucket):
    def stored(**fields):
        return send(server, sign(s3, bucket, key="a <b> & c", fields=fields))

    assert stored(success_action_status="200").status_code == 200
    made = stored(success_action_status="201")
    assert made.status_code == 201 and made.headers["Content-Type"] == "application/xml"
    assert f"<Bucket>{bucket}</Bucket><Key>a &lt;b&gt; &amp; c</Key>" in made.text
    assert stored(success_action_status="299").status_code == 204
    page = "https://app.example/done?x=1"
    gone = stored(success_action_redirect=page)
    assert gone.status_code == 303
    place = urlsplit(gone.headers["Location"])
    told = parse_qs(place.query)
    assert place.netloc == "app.example" and told["x"] == ["1"]
    assert told["bucket"] == [bucket] and told["key"] == ["a <b> & c"]
    assert told["etag"] == [gone.headers["ETag"]]
    assert stored(success_action_redirect="javascript:alert(1)").status_code == 204


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_that_is_not_as_it_was_signed(server, s3, bucket, version):
    signer = s3_client(server, signature_version=version)
    form = sign(signer, bucket, fields={"Content-Type": "text/plain"})
    assert code(send(server, form, changed={"Content-Type": "text/html"}))[1] == "AccessDenied"
    assert code(send(server, form, changed={"Content-Type": None}))[1] == "AccessDenied"
    assert code(send(server, form, changed={"key": "elsewhere"}))[1] == "AccessDenied"
    extra = send(server, form, changed={"x-amz-meta-more": "1"})
    assert code(extra) == (403, "AccessDenied") and "x-amz-meta-more" in extra.text
    assert send(server, form, changed={"x-ignore-this": "1"}).status_code == 204
    wider = json.loads(base64.b64decode(form["fields"]["policy"]))
    wider["conditions"].append(["starts-with", "$x-amz-meta-more", ""])
    policy = base64.b64encode(json.dumps(wider).encode()).decode()
    forged = send(server, form, changed={"policy": policy, "x-amz-meta-more": "1"})
    assert code(forged) == (403, "SignatureDoesNotMatch")
    assert f"<StringToSign>{policy}</StringToSign>" in forged.text
    other = dict(form, url=form["url"].replace(bucket, "another-bucket"))
    assert code(send(server, other))[1] == "AccessDenied"
    key = "x-amz-credential" if version == "s3v4" else "AWSAccessKeyId"
    unknown = form["fields"][key].replace(server.credentials()[0], "AKNOBODY000000000000")
    assert code(send(server, form, changed={key: unknown})) == (403, "InvalidAccessKeyId")
    unsigned = {name: None for name in form["fields"] if name not in ("key", "Content-Type")}
    assert code(send(server, form, changed=unsigned)) == (403, "AccessDenied")
    names = [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert names == ["in/a file.txt"]


def argument(answer):
    return re.search(r"<ArgumentName>(.*?)</ArgumentName>", answer.text)[1]


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_that_lacks_a_field_of_its_signature(server, s3, bucket, version):
    form = sign(s3_client(server, signature_version=version), bucket)
    for name in form["fields"]:
        answer = send(server, form, changed={name: None})
        assert code(answer) == (400, "InvalidArgument"), name
        assert argument(answer) == name
        assert f"Bucket POST must contain a field named &apos;{name}&apos;." in answer.text
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_a_form_whose_signature_can_not_be_read(server, s3, bucket):
    for name in ("x-amz-algorithm", "x-amz-date", "x-amz-credential"):
        answer = send(server, sign(s3, bucket), changed={name: "invalid"})
        assert code(answer) == (400, "InvalidArgument"), name
        assert argument(answer).lower() == name


def test_a_post_to_a_bucket_is_to_be_a_form(server, bucket):
    answer = raw(server, bucket, b"{}", "application/json")
    assert code(answer) == (412, "PreconditionFailed")
    condition = "Bucket POST must be of the enclosure-type multipart/form-data"
    assert f"<Condition>{condition}</Condition>" in answer.text


def test_a_policy_that_has_expired(server, s3, bucket):
    form = sign(s3, bucket, ExpiresIn=-1)
    answer = send(server, form)
    assert code(answer) == (403, "AccessDenied") and "expired" in answer.text


def test_lengths_are_held_while_the_file_arrives(server, s3, bucket):
    form = sign(s3, bucket, key="a", conditions=[["content-length-range", 10, MIB]])
    small = send(server, form, body=bytes(9))
    assert code(small) == (400, "EntityTooSmall")
    assert "<ProposedSize>9</ProposedSize><MinSizeAllowed>10</MinSizeAllowed>" in small.text
    assert code(send(server, form, body=bytes(MIB + 1))) == (400, "EntityTooLarge")
    with pytest.raises(s3.exceptions.ClientError):
        s3.head_object(Bucket=bucket, Key="a")
    for size_bytes in (10, MIB):
        assert send(server, form, body=bytes(size_bytes)).status_code == 204
        assert s3.head_object(Bucket=bucket, Key="a")["ContentLength"] == size_bytes


def raw(server, bucket, body, kind="multipart/form-data; boundary=x"):
    return requests.post(
        f"{server.endpoint}/{bucket}",
        data=body,
        headers={"Content-Type": kind},
        verify=str(server.ca),
        timeout=60,
    )


def test_what_is_no_form(server, s3, bucket):
    field = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nc\r\n--x--\r\n'
    for malformed in (b"", b"--x", b"no boundary", file[:-9]):
        assert code(raw(server, bucket, malformed))[0] in (400, 403), malformed
    assert code(raw(server, bucket, file, "multipart/form-data"))[1] == "MalformedPOSTRequest"
    assert code(raw(server, bucket, field % (b"key", b"a") + b"--x--\r\n"))[1] == "InvalidArgument"
    long = field % (b"key", bytes(21_000).replace(b"\0", b"k")) + file
    assert code(raw(server, bucket, long))[1] == "MaxPostPreDataLengthExceeded"
    many = field % (b"x-ignore-a", b"") * 300 + file
    assert code(raw(server, bucket, many))[1] == "MaxPostPreDataLengthExceeded"
    form = sign(s3, bucket)
    at_object = dict(form, url=form["url"] + "/key")
    assert code(send(server, at_object)) == (405, "MethodNotAllowed")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_small_fields_may_be_many(server, s3, bucket):
    metadata = {f"x-amz-meta-{number}": "v" for number in range(80)}
    answer = send(server, sign(s3, bucket, key="a", fields=metadata))
    assert answer.status_code == 204, answer.text
    assert len(s3.head_object(Bucket=bucket, Key="a")["Metadata"]) == 80


def test_a_page_is_told_version_and_end(server, s3, bucket):
    versioning = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=versioning)
    rule = {"ID": "e", "Filter": {"Prefix": ""}, "Status": "Enabled", "Expiration": {"Days": 3}}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    answer = send(server, sign(s3, bucket, key="a"))
    assert answer.status_code == 204, answer.text
    head = s3.head_object(Bucket=bucket, Key="a")
    assert answer.headers["x-amz-version-id"] == head["VersionId"]
    assert answer.headers["x-amz-expiration"] == head["Expiration"]


def begun_form(server, form, body):
    """The connection on which all but the last MiB of a form was sent, and that."""
    field = '--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    whole = "".join(field % pair for pair in form["fields"].items()).encode()
    whole += b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    whole += body + b"\r\n--x--\r\n"
    headers = {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "multipart/form-data; boundary=x",
        "content-length": str(len(whole)),
    }
    connection = harness_raw.connect(server)
    head = harness_raw.request_head("POST", urlsplit(form["url"]).path, headers)
    connection.sendall(head + whole[:-MIB])
    time.sleep(0.5)  # until the server has read its fields
    return connection, whole[-MIB:]


def test_a_first_policy_comes_while_a_file_arrives(server, s3, bucket):
    connection, rest = begun_form(server, sign(s3, bucket, key="a"), content(3 * MIB))
    resource = policies.arn(bucket, "no/*")
    policies.put(s3, bucket, policies.statement("Deny", "*", ["s3:GetObject"], resource))
    with connection:
        connection.sendall(rest)
        status, _, told = harness_raw.receive(connection)
    assert status == 204, told


def test_a_bucket_is_deleted_while_a_file_arrives(server, s3):
    s3.create_bucket(Bucket="soon-gone")
    connection, rest = begun_form(server, sign(s3, "soon-gone", key="a"), content(5 * MIB))
    s3.delete_bucket(Bucket="soon-gone")
    with connection:
        connection.sendall(rest)
        status, _, told = harness_raw.receive(connection)
    assert status == 404 and b"<Code>NoSuchBucket</Code>" in told, (status, told)


def test_what_is_no_field_is_bounded_as_well(server, bucket):
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nc\r\n--x--\r\n'
    for before in (
        b"preamble " * 40_000 + b"\r\n",
        b"--x\r\nX-Header: " + b"h" * 360_000 + b"\r\n\r\nv\r\n",
    ):
        assert code(raw(server, bucket, before + file))[1] == "MaxPostPreDataLengthExceeded"


def test_policies_of_odd_kinds(server, s3, bucket):
    both = [["content-length-range", 1, 3], ["content-length-range", 1, 1000]]
    form = sign(s3, bucket, key="a", conditions=both)
    assert code(send(server, form, body=b"1234567"))[1] == "EntityTooLarge"
    assert send(server, form, body=b"123").status_code == 204
    client = s3_client(server)
    conditions = {"expiration": "2099-01-01T00:00:00Z", "conditions": [{"key": "a"}]}
    policy = base64.b64encode(json.dumps(conditions).encode()).decode()
    key_id, secret = server.credentials()
    signature = base64.b64encode(hmac.digest(secret.encode(), policy.encode(), "sha1")).decode()
    fields = {"key": "a", "policy": policy, "AWSAccessKeyId": key_id, "signature": signature}
    answer = send(server, {"url": form["url"], "fields": fields})
    assert code(answer) == (403, "AccessDenied") and "bucket" in answer.text
    fields = {"x-amz-tagging": "k=v", "success_action_redirect": "https://app.example/#done"}
    answer = send(server, sign(s3, bucket, key="b", fields=fields))
    assert re.search(r"[?]bucket=.*&etag=[^#]*#done$", answer.headers["Location"])
    tags = client.get_object_tagging(Bucket=bucket, Key="b")["TagSet"]
    assert tags == [{"Key": "k", "Value": "v"}]


def test_other_posts_of_that_content_type_are_no_forms(s3, bucket):
    kind = "multipart/form-data; boundary=x"
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a", ContentType=kind)["UploadId"]
    where = {"Bucket": bucket, "Key": "a", "UploadId": upload}
    part = s3.upload_part(**where, PartNumber=1, Body=b"a")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**where, MultipartUpload=parts)
    assert s3.head_object(Bucket=bucket, Key="a")["ContentType"] == kind


def test_a_file_that_breaks_off_is_not_stored(server, s3, bucket):
    form = sign(s3, bucket, key="a")
    fields = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (name.encode(), value.encode())
        for name, value in form["fields"].items()
    )
    start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    answer = raw(server, bucket, fields + start + content(300_000))
    assert answer.status_code == 400, answer.text
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    answer = raw(server, bucket, fields + start + content(300_000) + b"\r\n--x--\r\n")
    assert answer.status_code == 204


def test_a_form_is_a_write_of_who_signed_it(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    key_id, secret = make_subject(server, "reader", "default", "--grant", "mine=read")
    reader = s3_client(server, credentials=(key_id, secret))
    assert code(send(server, sign(reader, "mine"))) == (403, "AccessDenied")
    wrong = s3_client(server, credentials=(key_id, "w" * 40))
    assert code(send(server, sign(wrong, "mine"))) == (403, "SignatureDoesNotMatch")
    assert send(server, sign(s3, "mine")).status_code == 204
    told = eventually(lambda: [row for row in export(server) if row["act"] == "server.sign-in"])
    assert key_id in json.dumps(told[0]), told


def test_a_bucket_s_policy_sees_the_page_that_sends_a_form(server, s3, bucket):
    """`Referer` and `User-Agent` are those of the request, and no fields."""
    put, where = policies.put, policies.arn(bucket, "*")
    for key, header in (("aws:Referer", "referer"), ("aws:UserAgent", "user-agent")):
        asked = {"StringNotLike": {key: "https://good.example/*"}}
        put(s3, bucket, policies.statement("Deny", "*", ["s3:PutObject"], where, Condition=asked))
        fields = {header: "https://good.example/field"}
        for form, page, expected in (
            (sign(s3, bucket), "https://good.example/page", 204),
            (sign(s3, bucket), "https://bad.example/page", 403),
            (sign(s3, bucket, fields=fields), "https://bad.example/page", 403),
        ):
            answer = send(server, form, headers={header: page})
            assert answer.status_code == expected, (key, page, answer.text)
    s3.delete_bucket_policy(Bucket=bucket)


def of_policy(server, bucket, condition, key):
    """The fields of a form whose policy has this condition, as it is written there."""
    text = '{"expiration": "2099-01-01T00:00:00Z", "conditions": [{"bucket": "%s"}, %s]}'
    policy = base64.b64encode((text % (bucket, condition)).encode()).decode()
    key_id, secret = server.credentials()
    signature = base64.b64encode(hmac.digest(secret.encode(), policy.encode(), "sha1")).decode()
    fields = {"key": key, "policy": policy, "AWSAccessKeyId": key_id, "signature": signature}
    return {"url": f"{server.endpoint}/{bucket}", "fields": fields}


def test_policies_are_read_as_aws_writes_them(server, bucket):
    for condition, key in (
        (r'["starts-with", "$key", "\$foo"]', "$foo.txt"),
        (r'["eq", "\$key", "a\vb"]', "a\vb"),
        ('["starts-with", "$key", "user/"],', "user/x"),
        ('{"key": "a"\n, },\n', "a"),
    ):
        answer = send(server, of_policy(server, bucket, condition, key))
        assert answer.status_code == 204, (condition, answer.text)
        elsewhere = send(server, of_policy(server, bucket, condition, "elsewhere"))
        assert code(elsewhere) == (403, "AccessDenied"), condition
    for condition in ("1", ",", r'["eq", "$key", "\x"]'):
        answer = send(server, of_policy(server, bucket, condition, "a"))
        assert code(answer) == (400, "InvalidPolicyDocument"), condition
        assert "untagged" not in answer.text and "line 1" not in answer.text


def test_the_owner_that_the_request_expects_is_compared(server, s3, bucket):
    form, account = sign(s3, bucket, key="a"), policies.account_of(s3)
    expecting = "x-amz-expected-bucket-owner"
    other = send(server, form, headers={expecting: "999999999999"})
    assert code(other) == (403, "AccessDenied")
    assert send(server, form, headers={expecting: account}).status_code == 204


def test_a_form_has_content_headers_in_any_script(server, s3, bucket):
    fields = {
        "Content-Disposition": 'attachment; filename="Übersicht.pdf"',
        "Content-Type": "text/plain; name=ä",
    }
    assert send(server, sign(s3, bucket, key="f", fields=fields)).status_code == 204
    told = s3.head_object(Bucket=bucket, Key="f")["ResponseMetadata"]["HTTPHeaders"]
    for name, value in fields.items():
        assert told[name.lower()].encode("latin-1").decode() == value
