"""Databases replaced or written over while a server has them open: found, told, refused."""

import json
import os
import shutil
import time

import pytest

from harness.administration import client_of, run
from harness.clients import s3_client
from harness.rollback import refusal
from harness.server import coffer


def test_an_older_catalog_under_a_server_that_has_it_open(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    for bucket in ("mine", "other"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="mine", Key="old", Body=b"old")
    listed = run(server, "bucket", "list", "--json")
    mine = next(row["id"] for row in json.loads(listed) if row["name"] == "mine")
    path = server.data / "buckets" / mine / "catalog.db"
    server.stop()
    older = path.read_bytes()
    server.start()
    s3 = s3_client(server)
    s3.put_object(Bucket="mine", Key="new", Body=b"new")
    newest = path.with_name("catalog.aside")
    path.rename(newest)
    path.write_bytes(older)
    with pytest.raises(s3.exceptions.ClientError) as caught:
        s3.put_object(Bucket="mine", Key="lost", Body=b"lost")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    with pytest.raises(s3.exceptions.ClientError):
        s3.get_object(Bucket="mine", Key="old")
    s3.put_object(Bucket="other", Key="goes on", Body=b"on")
    told = [line for line in server.log().splitlines() if "ROLLBACK" in line]
    assert told and mine in told[0] and "mine" not in told[0].replace(mine, ""), told
    server.stop()
    assert path.read_bytes() == older, "nothing was written to it"
    assert mine in refusal(server)
    # What was acknowledged is in the file that was put aside.
    newest.rename(path)
    server.start()
    s3 = s3_client(server)
    for key in ("old", "new"):
        assert s3.get_object(Bucket="mine", Key=key)["Body"].read() == key.encode()


@pytest.mark.parametrize("how", ["older", "older, log as well", "cut to nothing", "log cut"])
@pytest.mark.parametrize("noticed_by", ["a write", "a look"])
def test_an_open_catalog_that_is_written_over_in_place(own_server, how, noticed_by):
    """While its log has commits, which would be mixed with the older pages."""
    server = own_server().start()
    s3 = s3_client(server)
    for bucket in ("mine", "other"):
        s3.create_bucket(Bucket=bucket)
    for number in range(30):
        s3.put_object(Bucket="mine", Key=f"old-{number}", Body=b"o" * 3000)
    listed = json.loads(run(server, "bucket", "list", "--json"))
    mine = next(row["id"] for row in listed if row["name"] == "mine")
    path = server.data / "buckets" / mine / "catalog.db"
    log = path.with_name("catalog.db-wal")
    server.stop()
    older = path.read_bytes()
    server.start()
    s3 = s3_client(server)
    for number in range(30):
        s3.put_object(Bucket="mine", Key=f"new-{number}", Body=b"n" * 3000)
    server.restart()  # Which copies the log into the catalog.
    s3 = s3_client(server)
    s3.put_object(Bucket="mine", Key="first", Body=b"f")
    older_log = log.read_bytes()
    for number in range(10):
        s3.put_object(Bucket="mine", Key=f"last-{number}", Body=b"l" * 3000)
    time.sleep(2.5)  # And has its commits held.
    before = server.log()
    # What only looks like it: a program that sets times.
    os.utime(path)
    os.utime(log)
    s3.put_object(Bucket="mine", Key="touched", Body=b"t")
    time.sleep(2.5)
    assert s3.get_object(Bucket="mine", Key="touched")["Body"].read() == b"t"
    assert "ROLLBACK" not in server.log()[len(before) :]
    inode = path.stat().st_ino
    if "older" in how:
        write_over(path, older)
    if how == "older, log as well":
        write_over(log, older_log)
    if "cut" in how:
        os.truncate(log if how == "log cut" else path, 0)
    assert path.stat().st_ino == inode
    if noticed_by == "a write":
        with pytest.raises(s3.exceptions.ClientError):
            s3.put_object(Bucket="mine", Key="lost", Body=b"lost")
    else:
        until = time.monotonic() + 5
        while "ROLLBACK" not in server.log():
            assert time.monotonic() < until, server.log()
            time.sleep(0.1)
    for ask in (s3.get_object, s3.head_object, s3.delete_object):
        with pytest.raises(s3.exceptions.ClientError) as caught:
            ask(Bucket="mine", Key="new-1")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    s3.put_object(Bucket="other", Key="goes on", Body=b"on")
    assert mine in next(line for line in server.log().splitlines() if "ROLLBACK" in line)
    time.sleep(2.5)
    server.kill()
    if how == "cut to nothing":
        server.start()
        with pytest.raises(s3_client(server).exceptions.ClientError):
            s3_client(server).get_object(Bucket="mine", Key="new-1")
    else:
        assert mine in refusal(server)


def write_over(path, older):
    with path.open("r+b") as put:
        put.truncate(put.write(older))


def test_an_older_catalog_is_noticed_where_nothing_is_written(own_server):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="mine")
    (path,) = server.data.glob("buckets/*/catalog.db")
    aside = path.with_name("catalog.aside")
    path.rename(aside)
    shutil.copy(aside, path)
    until = time.monotonic() + 10
    while "ROLLBACK" not in server.log():
        assert time.monotonic() < until, server.log()
        time.sleep(0.2)


@pytest.mark.parametrize("noticed_by", ["an act", "a look"])
@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_an_older_system_db_that_is_written_over_the_open_one(own_server, noticed_by, ends):
    """While its log has commits that count on: subjects that were disabled would count again."""
    server = own_server().start()
    path = server.data / "system.db"
    s3_client(server).create_bucket(Bucket="mine")
    eve = client_of(server, "eve", "default..default")
    server.stop()
    older = path.read_bytes()
    server.start()
    run(server, "subject", "disable", "eve")
    server.restart()  # Which copies the log into the database.
    run(server, "subject", "create", "bob", "--clearance", "default..default")
    time.sleep(2.5)  # And has its commits held.
    # What only looks like it: a program that sets times.
    os.utime(path)
    os.utime(path.with_name("system.db-wal"))
    run(server, "subject", "create", "cleo", "--clearance", "default..default")
    assert "ROLLBACK" not in server.log()
    assert path.stat().st_size == len(older)
    write_over(path, older)
    if noticed_by == "an act":
        refused = coffer("--data", server.data, "subject", "disable", "bob")
        assert refused.returncode == 1, refused
        assert b"ROLLBACK" in refused.stderr and b"--accept-rollback" in refused.stderr, refused
    until = time.monotonic() + 5
    while "ROLLBACK: system.db" not in server.log():
        assert time.monotonic() < until, server.log()
        time.sleep(0.1)
    time.sleep(2.5)
    # Who was disabled stays so, and data is served on.
    with pytest.raises(eve.exceptions.ClientError) as caught:
        eve.list_buckets()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    s3_client(server).put_object(Bucket="mine", Key="goes on", Body=b"on")
    getattr(server, ends)()
    assert "system.db is an older copy, 1 behind" in refusal(server)
