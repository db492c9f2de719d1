"""Standard error that can't be written: no line of a log costs an answer."""

import os
import ssl
import subprocess
import time
import urllib.request

import pytest

from harness.administration import ask, run
from harness.clients import s3_client
from harness.server import BINARY, Server, clean_environment

PIPE_BYTES = 1 << 16


class Mute(Server):
    """A server whose standard error is what a test chooses."""

    def begin(self, stderr, *, closes=False, level="debug"):
        command = [BINARY, "serve", "--data", self.data, "--log", level]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        command += ["--admin-listen", f"127.0.0.1:{self.admin_port}"]
        if closes:
            command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *map(str, command)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=clean_environment(),
            cwd=self.folder,
            text=True,
        )
        for line in self.process.stdout:
            if line.startswith("ready"):
                return self
        raise AssertionError(f"it ended with {self.process.wait()}")


@pytest.fixture
def mute(tmp_path):
    server = Mute(tmp_path)
    yield server
    server.close()


def lost_lines(server):
    context = ssl.create_default_context(cafile=server.ca)
    url = f"{server.admin_endpoint}/metrics"
    with urllib.request.urlopen(url, context=context, timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("coffer_log_lines_lost_total"):
                return int(line.split()[1])
    raise AssertionError("no such metric")


def work(server):
    """Everything that tells of itself in the log."""
    s3 = s3_client(server)
    run(server, "level", "create", "secret", "--rank", "1")
    run(server, "level", "create", "gone", "--rank", "2")
    run(server, "bucket", "create", "doomed", "--level", "gone")
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="a", Body=b"content")
    run(server, "level", "rotate", "secret")
    run(server, "bucket", "rotate", "kept")
    run(server, "level", "erase", "gone", "--yes")
    assert [row["name"] for row in ask(server, "bucket", "list")] == ["kept"]
    assert s3.get_object(Bucket="kept", Key="a")["Body"].read() == b"content"


@pytest.mark.parametrize("where", ["a full disk", "a pipe that nobody reads", "nowhere"])
def test_a_log_that_can_not_be_written_costs_no_answer(mute, where):
    if where == "a full disk":
        with open("/dev/full", "wb") as full:
            mute.begin(full)
        work(mute)
        assert lost_lines(mute) > 10
    elif where == "a pipe that nobody reads":
        reader, writer = os.pipe()
        os.write(writer, b"x" * PIPE_BYTES)
        mute.begin(writer)
        work(mute)
        os.close(reader)
        os.close(writer)
    else:
        mute.begin(None, closes=True)
        work(mute)
    began = time.monotonic()
    assert mute.stop() == 0
    assert time.monotonic() - began < 15


def test_lost_lines_are_told_when_the_log_can_be_written_again(mute):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.write(writer, b"x" * PIPE_BYTES)
    # The description is shared: writes of the server fail at once instead of waiting.
    mute.begin(writer)
    work(mute)
    assert lost_lines(mute) > 10
    assert os.read(reader, PIPE_BYTES) == b"x" * PIPE_BYTES
    run(mute, "level", "create", "later", "--rank", "3")
    time.sleep(0.5)
    told = os.read(reader, PIPE_BYTES).decode()
    assert "lines of this log were lost" in told and "level.create" in told, told
    os.close(reader)
    os.close(writer)
    assert mute.stop() == 0
