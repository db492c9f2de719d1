"""What administration tells data users of a bucket."""

import json

from harness.administration import client_of, from_afar, run
from harness.policies import arn, put, statement, user


def keys_of(client):
    credentials = client._request_signer._credentials.get_frozen_credentials()
    return credentials.access_key, credentials.secret_key


def shown(server, client, bucket, folder):
    done = from_afar(server, keys_of(client), "bucket", "show", bucket, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_policy_keeps_others_from_what_is_in_a_bucket(server, ann, bob, account, tmp_path):
    ann.create_bucket(Bucket="settings")
    ann.put_object(Bucket="settings", Key="a", Body=b"a")
    assert shown(server, bob, "settings", tmp_path)["object_count"] == 1
    objects = [arn("settings"), arn("settings", "*")]
    put(ann, "settings", statement("Deny", user(account, "bob"), ["s3:*"], *objects))
    told = shown(server, bob, "settings", tmp_path)
    assert told.get("object_count") is None and told.get("settings") is None, told
    told = shown(server, ann, "settings", tmp_path)
    assert told["object_count"] == 1 and told["settings"]["owner"] == "ann", told


def test_an_owner_of_another_tenant_has_no_name(own_server, tmp_path):
    with own_server() as server:
        for name, category in (("north", "c1"), ("south", "c2")):
            run(server, "level", "create", name, "--rank", "1", "--categories", category)
        zoe, nora = client_of(server, "zoe", "north"), client_of(server, "nora", "north")
        at = {"LocationConstraint": "north"}
        zoe.create_bucket(Bucket="reports", CreateBucketConfiguration=at)
        assert shown(server, nora, "reports", tmp_path)["settings"]["owner"] == "zoe"
        run(server, "subject", "set", "zoe", "--clearance", "south")
        assert shown(server, nora, "reports", tmp_path)["settings"].get("owner") is None
