"""The program's commands against a running server: over its socket, or over HTTPS."""

import json
import os

from harness.clients import s3_client
from harness.server import coffer


def run(server, *words, expect=0):
    """Runs a command over the socket and returns what it wrote to standard output."""
    done = coffer("--data", server.data, *words)
    told = f"{words}: {done.stdout.decode()}{done.stderr.decode()}"
    assert done.returncode == expect, told
    return done.stdout.decode() if expect == 0 else done.stderr.decode()


def ask(server, *words):
    """Runs a command with --json and returns what that says."""
    return json.loads(run(server, *words, "--json"))


def refused(server, *words):
    """Runs a command that must fail with one line of error, and returns the line."""
    done = coffer("--data", server.data, *words)
    said = done.stderr.decode()
    # 2: what was typed makes no sense.
    assert done.returncode in (1, 2), f"{words}: {done.stdout.decode()}{said}"
    assert said.startswith("error: ") and said.count("\n") == 1, said
    return said


def from_afar(server, credentials, *words, folder):
    """Runs a command over HTTPS as the holder of an access key; returns the finished process."""
    profile = folder / "profile"
    access_key_id, secret = credentials
    profile.write_text(
        f"[default]\naws_access_key_id = {access_key_id}\naws_secret_access_key = {secret}\n"
    )
    os.chmod(profile, 0o600)
    place = ["--endpoint", server.admin_endpoint, "--credentials", profile, "--ca", server.ca]
    return coffer(*place, *words, cwd=folder)


def make_subject(server, name, clearance, *more):
    """Makes a subject; returns its access key id and secret."""
    made = ask(server, "subject", "create", name, "--clearance", clearance, *more)
    return made["access_key_id"], made["secret_access_key"]


def client_of(server, name, clearance, *more, **config):
    """Makes a subject, and a boto3 client that signs as it."""
    credentials = make_subject(server, name, clearance, *more)
    return s3_client(server, credentials=credentials, **config)
