"""What auditors do, and what there is for them to find."""

import json
import time

from harness.server import coffer


def ask(server, *arguments, code=0):
    """Runs a command on the server's data folder."""
    done = coffer("--data", server.data, *arguments)
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout.decode()


def export(server, *arguments):
    return [json.loads(line) for line in ask(server, "audit", "export", *arguments).splitlines()]


def eventually(found, seconds=5):
    """What `found` gives once it gives something."""
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return result


def make_level(server, name, code=0):
    return ask(server, "level", "create", name, "--rank", 2, "--same-label", "--json", code=code)
