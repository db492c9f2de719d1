"""Syncs of a catalog's log fail under eight writers: what was acknowledged stays, after kill -9 and
a new start with its sweep; what is in doubt is whole or absent, and answered as neither."""

import threading
import time

import pytest
from botocore.exceptions import ClientError

from harness.clients import s3_client
from harness.content import content
from harness.faults import FailingSync
from harness.server import StartError

BUCKET = "failing"
LOG = "catalog.db-wal"
WRITERS = 8
ROUNDS = 12
SIZE_BYTES = 20_000


@pytest.fixture
def failing(tmp_path, monkeypatch):
    return FailingSync(tmp_path, monkeypatch)


class Writer(threading.Thread):
    """Puts objects; a write in doubt may be found, or what was there before."""

    def __init__(self, server, number, is_new, begin_to_fail):
        super().__init__(daemon=True)
        self.s3 = s3_client(server)
        self.number, self.is_new, self.begin_to_fail = number, is_new, begin_to_fail
        self.allowed = {}
        self.codes = []

    def run(self):
        for count in range(ROUNDS):
            if count == 4 and self.number == 0:
                self.begin_to_fail()
            key = f"{self.number}-{count if self.is_new else count % 3}"
            condition = {"IfNoneMatch": "*"} if self.is_new else {}
            body = content(SIZE_BYTES, f"{key}.{count}")
            try:
                self.s3.put_object(Bucket=BUCKET, Key=key, Body=body, **condition)
                self.allowed[key] = [body]
            except ClientError as error:
                self.codes.append(error.response["Error"]["Code"])
                self.allowed.setdefault(key, [None]).append(body)


def read(s3, key):
    try:
        return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except s3.exceptions.NoSuchKey:
        return None


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_what_was_acknowledged_survives_failing_commits(own_server, failing, count, is_new):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)

    def begin_to_fail():
        failing.fail(LOG, count)

    writers = [Writer(server, number, is_new, begin_to_fail) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    codes = {code for writer in writers for code in writer.codes}
    assert codes == {"InternalError"}, "neither that it was stored, nor that it was not"
    allowed = {key: bodies for writer in writers for key, bodies in writer.allowed.items()}
    failing.heal()
    for is_started_again in (False, True):
        if is_started_again:
            server.kill()
            server.start()
        s3 = s3_client(server)
        found = {key: read(s3, key) for key in allowed}
        for key, bodies in allowed.items():
            assert found[key] in bodies, key
    # After the sweep there is a file for each, and no other.
    needed = sum(body is not None for body in found.values())
    until = time.monotonic() + 20
    while len(server.blob_files()) != needed and time.monotonic() < until:
        time.sleep(0.05)
    assert len(server.blob_files()) == needed
    assert {key: read(s3, key) for key in allowed} == found


def test_a_start_on_a_failing_disk_names_the_file(own_server, failing):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket=BUCKET)
    server.kill()
    failing.fail("system.db-wal")
    with pytest.raises(StartError) as refused:
        server.start()
    assert str(server.data / "system.db-wal") in str(refused.value)
    failing.heal()
    server.start()
    assert s3_client(server).list_buckets()["Buckets"][0]["Name"] == BUCKET
