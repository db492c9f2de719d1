"""A low limit of open files."""

import os
import resource

import pytest
from botocore.exceptions import ClientError

from harness import server as harness
from harness.clients import s3_client

FILES = 256
BUCKETS = 80


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_buckets_that_were_made_do_not_stay_open(own_server, tmp_path, monkeypatch):
    """The limit is known from the start: the server is started by a shell that has it."""
    server = own_server("low")
    wrapper = tmp_path / "limited"
    wrapper.write_text(f'#!/bin/sh\nulimit -n {FILES}\nexec "{harness.BINARY}" "$@"\n')
    wrapper.chmod(0o755)
    with monkeypatch.context() as limited:
        limited.setattr(harness, "BINARY", wrapper)
        server.start()
    assert "limit of open files is low" in server.log()
    s3 = s3_client(server)
    for number in range(BUCKETS):
        s3.create_bucket(Bucket=f"bucket-{number}")
        s3.put_object(Bucket=f"bucket-{number}", Key="a", Body=b"content")
    assert open_files(server) < FILES * 3 // 4
    for number in range(BUCKETS):
        body = s3.get_object(Bucket=f"bucket-{number}", Key="a")["Body"].read()
        assert body == b"content"


def test_a_server_that_ran_out_of_files_says_slow_down_and_recovers(own_server):
    server = own_server("out").start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="large", Body=bytes(100_000))
    s3.get_object(Bucket="mine", Key="large")["Body"].read()
    # As if others had taken them all: not one more can be opened.
    pid = server.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_files(server), 4096))
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket="mine", Key="large")["Body"].read()
    assert caught.value.response["Error"]["Code"] == "SlowDown"
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket="mine", Key="other", Body=bytes(100_000))
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    with pytest.raises(ClientError) as caught:
        s3.create_bucket(Bucket="second")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (4096, 4096))
    assert len(s3.get_object(Bucket="mine", Key="large")["Body"].read()) == 100_000
    s3.put_object(Bucket="mine", Key="other", Body=bytes(100_000))
    s3.create_bucket(Bucket="second")
