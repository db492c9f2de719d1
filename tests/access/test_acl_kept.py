"""Access control lists are kept: through stops, kills and backups; and what is recorded of them."""

import shutil

from harness.administration import ask, run
from harness.auditing import export
from harness.clients import s3_client
from harness.lists import block, controls, told


def make(client, bucket):
    client.create_bucket(Bucket=bucket, ObjectOwnership="ObjectWriter")
    block(client, bucket)
    client.put_object(Bucket=bucket, Key="a", Body=b"a", ACL="public-read")
    client.put_object(Bucket=bucket, Key="b", Body=b"b")
    client.put_bucket_acl(Bucket=bucket, ACL="authenticated-read")
    client.put_object_acl(Bucket=bucket, Key="b", ACL="authenticated-read")


def lists(client, bucket):
    objects = [told(client.get_object_acl(Bucket=bucket, Key=key)) for key in "ab"]
    return [told(client.get_bucket_acl(Bucket=bucket)), *objects]


def test_lists_outlive_a_kill_and_a_backup(own_server, tmp_path):
    server = own_server()
    server.start()
    client = s3_client(server)
    make(client, "lists")
    before = lists(client, "lists")
    assert [("AllUsers", "READ") in told for told in before] == [False, True, False]
    assert [("AuthenticatedUsers", "READ") in told for told in before] == [True, False, True]
    server.kill()
    server.start()
    assert lists(s3_client(server), "lists") == before
    run(server, "backup", tmp_path / "backup")
    copy = tmp_path / "backup/copy"
    shutil.copy(server.data / "root.key", copy / "root.key")
    restored = own_server("restored", data=copy, arguments=["--accept-rollback"]).start()
    client = s3_client(restored, credentials=server.credentials())
    assert lists(client, "lists") == before


def test_the_servers_setting_turns_lists_on_for_new_buckets(own_server):
    server = own_server(config='object-ownership = "BucketOwnerPreferred"')
    server.start()
    client = s3_client(server)
    client.create_bucket(Bucket="by-setting")
    ask(server, "bucket", "create", "by-socket")
    client.create_bucket(Bucket="as-asked", ObjectOwnership="BucketOwnerEnforced")
    for bucket, ownership in [
        ("by-setting", "BucketOwnerPreferred"),
        ("by-socket", "BucketOwnerPreferred"),
        ("as-asked", "BucketOwnerEnforced"),
    ]:
        answer = client.get_bucket_ownership_controls(Bucket=bucket)
        assert answer["OwnershipControls"] == controls(ownership)


def test_changes_of_lists_are_recorded(server, s3):
    make(s3, "recorded")
    records = [record for record in export(server) if record["outcome"] == "done"]
    details = [(record["act"], record["details"]) for record in records]
    me = s3.list_buckets()["Owner"]["ID"]
    to_all = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers=READ"
    grants = f"{me}=FULL_CONTROL {to_all}"
    about = {"bucket": "recorded", "configuration": "acl", "grants": grants}
    assert ("configuration.write", about) in details
    assert ("acl.write", {"bucket": "recorded", "grants": grants}) in details
    s3.delete_bucket_ownership_controls(Bucket="recorded")
    last = export(server)[-1]["details"]
    assert last["object_ownership"] == "removed"


def test_a_watched_level_records_lists_with_their_objects(server, s3):
    ask(server, "level", "create", "watched", "--rank", "0", "--same-label", "--audit-data")
    s3.create_bucket(
        Bucket="watched-lists",
        ObjectOwnership="ObjectWriter",
        CreateBucketConfiguration={"LocationConstraint": "watched"},
    )
    block(s3, "watched-lists")
    s3.put_object(Bucket="watched-lists", Key="a", Body=b"a", ACL="public-read")
    s3.put_object_acl(Bucket="watched-lists", Key="a", ACL="private")
    s3.get_object_acl(Bucket="watched-lists", Key="a")
    acts = {}
    for record in export(server):
        if record.get("details", {}).get("bucket") == "watched-lists":
            acts.setdefault(record["act"], []).append(record)
    assert any("AllUsers=READ" in r["details"].get("grants", "") for r in acts["object.write"])
    assert acts["acl.read"]
    assert {record["outcome"] for record in acts["acl.write"]} == {"begun", "done"}
