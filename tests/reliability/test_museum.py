"""Data folders as released formats left them: all of them open for ever.

`museum/system-N.tar.gz` holds a folder whose `system.db` is of format N, made by the version that
brought the format, and never changed. Its access keys are nobody's.
"""

import tarfile
from pathlib import Path

import pytest

from harness.administration import ask
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
        receipts = ask(old_server, "receipt", "list")
        assert [row["level"] for row in receipts] == ["gone"]
        assert old_server.stop() == 0
        assert coffer("audit", "verify", "--data", old_server.data).returncode == 0
