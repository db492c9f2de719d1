"""Who shares buckets in tests, with whom, and what is shared. A module may say otherwise."""

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from harness.administration import ask, client_of
from harness.clients import REGION
from harness.policies import account_of


@pytest.fixture(scope="module")
def account(s3):
    return account_of(s3)


@pytest.fixture(scope="module")
def ann(server):
    """A tenant, who owns what she makes."""
    return client_of(server, "ann", "default")


@pytest.fixture(scope="module")
def own(server):
    """Another one's bucket: no grant of guests names the buckets of these tests."""
    ask(server, "bucket", "create", "elsewhere")
    return "elsewhere"


@pytest.fixture(scope="module")
def guest(server, own):
    """One who may use one bucket, which is none of these tests."""
    return client_of(server, "guest", "default", "--grant", f"{own}=read")


@pytest.fixture(scope="module")
def bob(server):
    """One who may use every bucket of the level."""
    return client_of(server, "bob", "default")


@pytest.fixture(scope="module")
def nobody(server):
    """A boto3 client that signs nothing."""
    settings = {"retries": {"total_max_attempts": 1}, "s3": {"addressing_style": "path"}}
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        verify=str(server.ca),
        region_name=REGION,
        config=Config(signature_version=UNSIGNED, **settings),
    )


_count = iter(range(1, 1000))


@pytest.fixture
def shared(ann, server):
    """A bucket of Ann's with two objects."""
    name = f"anns-{next(_count)}"
    ann.create_bucket(Bucket=name)
    for key in ("open/a", "closed/b"):
        ann.put_object(Bucket=name, Key=key, Body=b"content", Tagging="colour=blue")
    yield name
    ann.delete_bucket_policy(Bucket=name)
