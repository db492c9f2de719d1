"""Headers and parameters that are true or false, in every letter case, as docs/S3.md says."""

from datetime import UTC, datetime, timedelta

import pytest

from harness import raw

TRUE = ("true", "True", "TRUE", "tRuE")
FALSE = ("false", "False", "FALSE")
NEITHER = ("1", "0", "yes", "truely", "t")
BUCKET_KEY = "x-amz-server-side-encryption-bucket-key-enabled"
POLICY = b'{"Version":"2012-10-17","Statement":[]}'


@pytest.fixture(scope="module")
def lockable(s3):
    s3.create_bucket(Bucket="booleans", ObjectLockEnabledForBucket=True)
    return "booleans"


def refuses(answer, name):
    status, _, body = answer
    assert status == 400 and b"<Code>InvalidArgument</Code>" in body, answer
    assert name.encode() in body, answer
    return True


def test_retention_is_passed_over_by_true_alone(server, s3, lockable):
    def bypassing(value, version, **batch):
        headers = {"x-amz-bypass-governance-retention": value}
        if not batch:
            asked = {"query": f"versionId={version}", "headers": headers}
            return raw.send(server, "DELETE", f"/{lockable}/a", **asked)
        entry = f"<Object><Key>a</Key><VersionId>{version}</VersionId></Object>"
        body = f"<Delete>{entry}</Delete>".encode()
        asked = {"query": "delete=", "headers": headers | raw.md5_of(body), "body": body}
        return raw.send(server, "POST", f"/{lockable}", **asked)

    def locked():
        until = datetime.now(UTC) + timedelta(days=1)
        lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
        return s3.put_object(Bucket=lockable, Key="a", Body=b"a", **lock)["VersionId"]

    version = locked()
    for value in FALSE:
        assert bypassing(value, version)[0] == 403, value
        assert b"<Code>AccessDenied</Code>" in bypassing(value, version, batch=True)[2], value
    for value in NEITHER:
        assert refuses(bypassing(value, version), "bypass-governance-retention")
        assert refuses(bypassing(value, version, batch=True), "bypass-governance-retention")
    assert s3.head_object(Bucket=lockable, Key="a", VersionId=version)["ContentLength"] == 1
    for value in TRUE:
        assert bypassing(value, version)[0] == 204, value
        version = locked()
        answer = bypassing(value, version, batch=True)
        assert answer[0] == 200 and b"<Error>" not in answer[2], (value, answer)
        version = locked()
    assert bypassing("true", version)[0] == 204


def test_owners_are_fetched_by_true_alone(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"a")

    def listed(value):
        return raw.send(server, "GET", f"/{bucket}", query=f"fetch-owner={value}&list-type=2")

    for values, is_told in ((TRUE, True), (FALSE, False)):
        for value in values:
            status, _, body = listed(value)
            assert (status, b"<Owner>" in body) == (200, is_told), value
    for value in NEITHER:
        assert refuses(listed(value), "<ArgumentName>fetch-owner</ArgumentName>")


@pytest.mark.parametrize("value", [*TRUE, *FALSE, *NEITHER])
def test_keys_of_buckets_and_locks_are_asked_for_in_any_letter_case(server, s3, bucket, value):
    where = {"headers": {"x-amz-server-side-encryption": "aws:kms", BUCKET_KEY: value}}
    put = raw.send(server, "PUT", f"/{bucket}/k", body=b"k", **where)
    locks = {"headers": {"x-amz-bucket-object-lock-enabled": value}}
    made = raw.send(server, "PUT", f"/{bucket}-{value.lower()}", **locks)
    mine = raw.md5_of(POLICY) | {"x-amz-confirm-remove-self-bucket-access": value}
    policy = raw.send(server, "PUT", f"/{bucket}", query="policy=", headers=mine, body=POLICY)
    if value in NEITHER:
        assert refuses(put, BUCKET_KEY)
        assert refuses(made, "x-amz-bucket-object-lock-enabled")
        assert refuses(policy, "x-amz-confirm-remove-self-bucket-access")
        return
    assert put[0] == 200 and (put[1].get(BUCKET_KEY) == "true") == (value in TRUE), put
    assert b"InvalidArgument" not in policy[2], policy
    assert made[0] == 200, made
    versioning = s3.get_bucket_versioning(Bucket=f"{bucket}-{value.lower()}")
    assert (versioning.get("Status") == "Enabled") == (value in TRUE)
    s3.delete_bucket(Bucket=f"{bucket}-{value.lower()}")
