"""coffer put, get, ls, rm and cp, as their users run them."""

import contextlib
import json
import subprocess
import threading
import time
from http.server import ThreadingHTTPServer

from harness.clients import client_environment
from harness.server import BINARY, clean_environment


class Mover:
    """A user of a server, with a home of their own."""

    def __init__(self, server, home):
        home.mkdir(exist_ok=True)
        self.home = home
        self.environment = client_environment(server, home)
        self.environment |= {"AWS_ENDPOINT_URL": server.endpoint, "XDG_STATE_HOME": str(home)}

    @classmethod
    def elsewhere(cls, service, home):
        """A user of a service that is no coffer: one that a test plays."""
        home.mkdir(exist_ok=True)
        mover = cls.__new__(cls)
        mover.home = home
        mover.environment = clean_environment() | {
            "HOME": str(home),
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{service.server_port}",
        }
        return mover

    def start(self, *arguments, **options):
        """Begins a command."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = [BINARY, *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment, cwd=self.home, **options)

    def run(self, *arguments, code=0, timeout=120, **options):
        """Runs a command to its end, which must be this one; what it wrote to both outputs."""
        done = subprocess.run(
            [BINARY, *map(str, arguments)],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            timeout=timeout,
            check=False,
            **options,
        )
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr)
        return done.stdout, done.stderr.decode()

    def events(self, *arguments, code=0, **options):
        """The same with `--json`: its lines."""
        out, _ = self.run(*arguments, "--json", code=code, **options)
        return [json.loads(line) for line in out.splitlines()]

    def done(self, *arguments, **options):
        """What is told of the one file that was moved."""
        [done] = [event for event in self.events(*arguments, **options) if event["event"] == "done"]
        return done

    def journals(self):
        """What is noted of uploads that are not complete."""
        return sorted((self.home / "coffer/uploads").glob("*.jsonl"))


@contextlib.contextmanager
def answering(handler, **state):
    """A service that answers by this class of requests, which finds the state in `self.server`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as service:
        service.daemon_threads = True
        vars(service).update(state)
        serving = threading.Thread(target=service.serve_forever)
        serving.start()
        try:
            yield service
        finally:
            service.shutdown()
            serving.join()


def wait_for_lines(find, lines, process, seconds=60):
    """Waits until a journal that `find` gives has so many lines, while a process runs.

    What a bucket had when it was made is not counted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        journal = find()
        read = journal.read_bytes() if journal and journal.exists() else b""
        if read.count(b"\n") - read.count(b'"line":"found"') >= lines:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError("it never came so far")
