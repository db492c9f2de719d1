"""What docs/S3.md says that policies can't name, they can't."""

import re

import pytest

from harness.clients import refused
from harness.policies import arn, put, statement
from harness.server import ROOT

SAID = re.search(
    r"unknown, and refused, are condition keys (.*?); and the actions (.*?);",
    (ROOT / "docs/S3.md").read_text(),
)
KEYS = re.findall(r"`((?:aws|s3):[\w-]+)`", SAID[1])
ACTIONS = re.findall(r"`(\w+)`", SAID[2])


def of(bucket, action="s3:*", **more):
    return statement("Deny", "*", [action], arn(bucket), arn(bucket, "*"), **more)


@pytest.fixture
def none(ann, shared):
    """A bucket that has no policy, before and after."""
    yield shared
    with refused("NoSuchBucketPolicy", 404):
        ann.get_bucket_policy(Bucket=shared)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_unknown_action(ann, none, action):
    with refused("MalformedPolicy", 400):
        put(ann, none, of(none, f"s3:{action}"))


@pytest.mark.parametrize("key", KEYS)
def test_an_unknown_key(ann, none, key):
    for name in (key, f"{key}/some-name"):
        with refused("MalformedPolicy", 400):
            put(ann, none, of(none, Condition={"StringEquals": {name: "a"}}))


def test_there_are_some():
    assert len(KEYS) > 10 and len(ACTIONS) > 5
