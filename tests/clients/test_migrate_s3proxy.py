"""coffer migrate from S3Proxy, which serves other stores as S3, here a folder.

It knows no versions, tags, locks or policies."""

import pytest
from boto3.s3.transfer import TransferConfig

from harness import other_servers
from harness.content import MIB, content
from harness.migration import Migrator
from harness.stores import s3proxy_endpoint

KEY = ("AKIAPROXY", "a secret of the proxy")

pytestmark = pytest.mark.sdks


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with s3proxy_endpoint(tmp_path_factory.mktemp("s3proxy"), KEY) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def theirs(endpoint):
    return other_servers.client(endpoint, KEY)


@pytest.fixture
def migrator(server, endpoint, tmp_path):
    return Migrator(server, tmp_path / "home", endpoint=endpoint, credentials=KEY)


def test_objects_come_with_what_they_have(migrator, theirs, s3, tmp_path):
    theirs.create_bucket(Bucket="proxied")
    bodies = {"a": b"a", "ü/ +%&": b"odd", "empty": b"", "deep/er/x": b"x" * 100_000}
    said = {
        "CacheControl": "no-cache",
        "ContentDisposition": "attachment",
        "ContentLanguage": "de",
        "ContentType": "a/b",
        "Metadata": {"from": "elsewhere", "mtime": "1700000000.5"},
    }
    for key, body in bodies.items():
        theirs.put_object(Bucket="proxied", Key=key, Body=body, **said)
    large = tmp_path / "large"
    large.write_bytes(content(20 * MIB))
    in_parts = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB)
    theirs.upload_file(str(large), "proxied", "large", Config=in_parts)
    run = migrator.migrate("--bucket", "proxied")
    assert run.failed == {}
    assert run.counts("proxied") == (5, 0, 0)
    for key, body in bodies.items():
        got = s3.get_object(Bucket="proxied", Key=key)
        assert got["Body"].read() == body
        assert {name: got[name] for name in said} == said
    assert s3.get_object(Bucket="proxied", Key="large")["Body"].read() == large.read_bytes()
    assert migrator.migrate("--bucket", "proxied").counts("proxied") == (0, 5, 0)
    theirs.put_object(Bucket="proxied", Key="a", Body=b"changed")
    theirs.delete_object(Bucket="proxied", Key="empty")
    run = migrator.migrate("--bucket", "proxied", "--delete")
    assert (run.counts("proxied")[0], run.buckets["proxied"]["deleted"]) == (1, 1)
    assert migrator.migrate("--bucket", "proxied", "--check").failed == {}
    assert s3.get_object(Bucket="proxied", Key="a")["Body"].read() == b"changed"
