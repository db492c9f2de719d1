"""Servers of others, which objects are moved from."""

import contextlib
import socket
import subprocess
import time

import boto3
from botocore.config import Config

from harness.clients import REGION
from harness.server import clean_environment

START_SECONDS = 60


@contextlib.contextmanager
def running(command, port, folder, environment=None):
    """Runs one until it takes connections, and ends it; gives its endpoint."""
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=clean_environment() | (environment or {}),
        )
    try:
        end = time.monotonic() + START_SECONDS
        while not takes_connections(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def takes_connections(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def client(endpoint, key):
    """boto3 with this access key, which it should have."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        config=Config(s3={"addressing_style": "path"}),
    )
