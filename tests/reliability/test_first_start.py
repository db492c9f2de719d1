"""A first start that is interrupted at any moment: the next one succeeds."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from harness.clients import s3_client
from harness.faults import library
from harness.server import BINARY, Server, StartError, clean_environment, free_port

CUTS = int(os.environ.get("FIRST_START_CUTS", "12"))
KILLS = int(os.environ.get("FIRST_START_KILLS", "8"))


def command(data):
    ports = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    listen = ["--listen", ports[0], "--admin-listen", ports[1]]
    return [BINARY, "serve", "--data", data, *listen]


def serves(server):
    """It starts, with one access key that works, and again after that."""
    server.start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="mine")
    s3.put_object(Bucket="mine", Key="a", Body=b"content")
    assert server.stop() == 0
    server.start()
    assert s3_client(server).get_object(Bucket="mine", Key="a")["Body"].read() == b"content"
    assert "DAMAGED" not in server.log(), server.log()
    server.close()


@pytest.mark.timeout(180 if CUTS else 3600)
def test_a_first_start_that_is_killed_between_any_two_steps(tmp_path):
    """Before each call that changes a file; some of them, and all with FIRST_START_CUTS=0."""
    dying = library(tmp_path, "dying.c")

    def cut(data, at):
        environment = clean_environment() | {"LD_PRELOAD": str(dying), "DYING_AT": str(at)}
        process = subprocess.Popen(
            command(data),
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in process.stdout:
            if line.startswith("ready"):
                process.kill()
                process.wait()
                return False
        assert process.wait() == -signal.SIGKILL
        return True

    # How many steps there are.
    steps = 1
    while cut(tmp_path / f"probe-{steps}", steps):
        shutil.rmtree(tmp_path / f"probe-{steps}", ignore_errors=True)
        steps *= 2
    points = range(1, steps) if CUTS == 0 else sorted(random.sample(range(1, steps), CUTS))
    refused = []
    for at in points:
        folder = tmp_path / f"cut-{at}"
        folder.mkdir()
        server = Server(folder)
        if not cut(server.data, at):
            break
        try:
            serves(server)
        except (StartError, AssertionError) as error:
            refused.append((at, str(error)[-300:]))
        shutil.rmtree(folder)
    assert not refused, f"{len(refused)} of {len(points)}: {refused}"


def test_a_first_start_that_is_killed_at_any_moment(tmp_path):
    refused = []
    for number in range(KILLS):
        delay = random.uniform(0, 0.2)
        folder = tmp_path / str(number)
        folder.mkdir()
        server = Server(folder)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(
            command(server.data), env=clean_environment(), cwd=folder, **quiet
        )
        time.sleep(delay)
        process.kill()
        process.wait()
        try:
            serves(server)
        except (StartError, AssertionError) as error:
            refused.append((delay, str(error)[-300:]))
        shutil.rmtree(folder)
    assert not refused, f"{len(refused)} of {KILLS}: {refused}"


@pytest.mark.parametrize("left", ["root.key", "keystore.new"])
def test_what_else_is_in_the_folder_is_never_taken_for_a_first_start(own_server, left):
    server = own_server("half")
    server.data.mkdir()
    (server.data / left).write_bytes(b"")
    (server.data / "thesis.txt").write_text("years of work")
    with pytest.raises(StartError) as caught:
        server.start()
    assert "not empty" in caught.value.log
    assert sorted(path.name for path in server.data.iterdir()) == sorted([left, "thesis.txt"])


def test_an_audit_log_alone_is_no_first_start(own_server):
    server = own_server("lost").start()
    server.stop()
    for name in ("keystore", "system.db"):
        (server.data / name).unlink()
    with pytest.raises(StartError):
        server.start()
    assert not (server.data / "keystore").exists()
