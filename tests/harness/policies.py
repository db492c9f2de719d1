"""Policies of buckets, as tests write them."""

import json

ALL = ("s3:*",)


def statement(effect, who, actions, *resources, **more):
    principal = who if who == "*" else {"AWS": who}
    return {
        "Effect": effect,
        "Principal": principal,
        "Action": list(actions),
        "Resource": list(resources),
        **more,
    }


def put(client, bucket, *statements):
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    answer = client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204


def account_of(client):
    """The id of the server's account."""
    account = client.list_buckets()["Owner"]["DisplayName"]
    assert len(account) == 12 and account.isdigit()
    return account


def user(account, name):
    return f"arn:aws:iam::{account}:user/{name}"


def arn(bucket, key=None):
    return f"arn:aws:s3:::{bucket}" + ("" if key is None else f"/{key}")


def read(client, bucket, key="open/a"):
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()
