"""What key custodians and auditors do, with the program's own commands."""

import json
import os
import subprocess
import threading

from harness.raw import connect, request_head, signed_headers
from harness.server import BINARY, clean_environment, coffer


def run(server, *arguments, **options):
    """Runs a command on the server's data folder; fails if the command does."""
    done = coffer("--data", server.data, *arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def ask(server, *arguments, **options):
    """The same with `--json`, and its answer."""
    return json.loads(run(server, *arguments, "--json", **options))


# The exit status of what waits for the approval of others.
WAITS = 3


def ask_as(server, credentials, *arguments, expect=0):
    """Runs a command over HTTPS with an access key; its answer, or what it says on failure."""
    key_id, secret = credentials
    profile = server.folder / f"{key_id}.ini"
    profile.write_text(
        f"[default]\naws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n"
    )
    profile.chmod(0o600)
    reach = ("--endpoint", server.admin_endpoint, "--credentials", profile, "--ca", server.ca)
    done = coffer(*arguments, *reach)
    assert done.returncode == expect, done.stderr.decode()
    return json.loads(done.stdout) if expect != 1 and done.stdout else done.stderr.decode()


def subject(server, name, *, clearance="s0-s15:c0.c1023", roles=("data-user",)):
    """Makes a subject; its access key id and secret."""
    wanted = ("--clearance", clearance, "--roles", ",".join(roles))
    made = ask(server, "subject", "create", name, *wanted)
    return made["access_key_id"], made["secret_access_key"]


def with_input(server, data, *arguments):
    """Runs a command with something to read from descriptor 3."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)

    done = subprocess.run(
        [BINARY, "--data", server.data, *map(str, arguments), "--passphrase-fd", str(reading)],
        capture_output=True,
        pass_fds=[reading],
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    os.close(reading)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def fill(server, bucket, count, body=b"small", connections=4, batch=50):
    """Puts `count` objects as fast as a few pipelined connections do."""
    failures, credentials = [], server.credentials()

    def worker(number):
        try:
            connection = connect(server)
            with connection:
                mine = range(number, count, connections)
                for first in range(0, len(mine), batch):
                    put_batch(connection, mine[first : first + batch])
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            failures.append(error)

    def put_batch(connection, numbers):
        out = b""
        for number in numbers:
            path = f"/{bucket}/object-{number:07}"
            length = {"content-length": str(len(body))}
            headers = signed_headers(server, "PUT", path, headers=length, credentials=credentials)
            out += request_head("PUT", path, headers) + body
        connection.sendall(out)
        seen = b""
        while seen.count(b"HTTP/1.1 200") < len(numbers):
            piece = connection.recv(1 << 16)
            if not piece or b"HTTP/1.1 4" in seen or b"HTTP/1.1 5" in seen:
                raise AssertionError(seen[-2000:])
            seen += piece

    workers = [threading.Thread(target=worker, args=(n,)) for n in range(connections)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert not failures, failures[0]
