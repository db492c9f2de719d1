"""Data folders as released formats left them: all of them open for ever.

`museum/system-N.tar.gz` holds a folder whose `system.db` is of format N, made by the version that
brought the format, and never changed. Its access keys are nobody's; `access-keys.json`,
where there is one, has those of its subjects.
"""

import json
import tarfile
from pathlib import Path

import pytest

from harness.administration import ask, run
from harness.clients import refused as s3_refused
from harness.clients import s3_client
from harness.server import coffer

MUSEUM = Path(__file__).parent / "museum"


@pytest.fixture(params=sorted(MUSEUM.glob("*.tar.gz")), ids=lambda path: path.name.split(".")[0])
def old_server(request, own_server):
    server = own_server("old")
    with tarfile.open(request.param) as folder:
        folder.extractall(server.folder, filter="data")
    return server


def test_what_an_old_folder_holds_is_there(old_server):
    large = bytes(range(256)) * 80
    told = coffer("offline", "ls", "--data", old_server.data, "notes")
    assert told.returncode == 0 and b"large" in told.stdout, told
    for _ in range(2):
        old_server.start()
        s3 = s3_client(old_server)
        assert s3.get_object(Bucket="notes", Key="small")["Body"].read() == b"A small object."
        assert s3.get_object(Bucket="notes", Key="large")["Body"].read() == large
        buckets = {row["name"]: row["level"] for row in ask(old_server, "bucket", "list")}
        assert buckets == {"notes": "default", "vault": "secret"}
        subjects = {row["name"]: row for row in ask(old_server, "subject", "list")}
        assert sorted(subjects) == ["ann", "bob", "eve", "first"]
        assert subjects["eve"]["disabled"] and not subjects["ann"]["disabled"]
        assert len({row["id"] for row in subjects.values()}) == 4
        assert all(len(row["access_keys"]) == 1 for row in subjects.values())
        receipts = ask(old_server, "receipt", "list")
        assert [row["level"] for row in receipts] == ["gone"]
        assert old_server.stop() == 0
        assert coffer("audit", "verify", "--data", old_server.data).returncode == 0


def test_access_keys_of_before_are_those_of_subjects(own_server):
    """Until format 5 a subject was its access key."""
    server = own_server("old")
    with tarfile.open(MUSEUM / "system-3.tar.gz") as folder:
        folder.extractall(server.folder, filter="data")
    keys = json.loads((server.folder / "access-keys.json").read_text())
    server.start()
    assert "was brought to a newer format" in server.log()
    subjects = {row["name"]: row for row in ask(server, "subject", "list")}
    for name, (key_id, _) in keys.items():
        assert [key["id"] for key in subjects[name]["access_keys"]] == [key_id]
    ann, bob, eve = (s3_client(server, credentials=keys[name]) for name in ("ann", "bob", "eve"))
    assert ann.get_object(Bucket="vault", Key="plan")["Body"].read() == b"plan"
    assert subjects["ann"]["read"] == "secret"
    with s3_refused("AccessDenied", 403):
        ann.put_object(Bucket="notes", Key="down", Body=b"what was read high")
    assert bob.get_object(Bucket="notes", Key="small")["Body"].read() == b"A small object."
    with s3_refused("AccessDenied", 403):
        bob.put_object(Bucket="notes", Key="small", Body=b"granted reads only")
    assert subjects["bob"]["expires_at"] == "2099-01-01T00:00:00.000Z"
    with s3_refused("InvalidAccessKeyId", 403):
        eve.list_buckets()
    # Records of before are found by the subject that the access key is of now.
    found = run(server, "audit", "export", "--subject", "ann").splitlines()
    actors = {json.loads(line)["actor"] for line in found}
    assert keys["ann"][0] in actors
    new = ask(server, "subject", "key", "create", "ann")
    run(server, "subject", "key", "delete", keys["ann"][0])
    server.restart()
    credentials = new["access_key_id"], new["secret_access_key"]
    with s3_refused("AccessDenied", 403):
        s3_client(server, credentials=credentials).put_object(Bucket="notes", Key="x", Body=b"x")
