"""A real `coffer serve` in a process of its own."""

import configparser
import itertools
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
import weakref
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("COFFER_BINARY", ROOT / "target/release/coffer"))

START_SECONDS = 30
STOP_SECONDS = 45


class StartError(Exception):
    """The server ended, or said nothing, before it was ready."""

    def __init__(self, code, log):
        super().__init__(f"coffer serve ended with {code} before it was ready:\n{log}")
        self.code = code
        self.log = log


# Each process of a test run has ports of its own, below those that the kernel gives to clients.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.cycle(range(12_000 + 2_000 * _WORKER, 14_000 + 2_000 * _WORKER))


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    """A port of 127.0.0.1 that nothing listens on now, and no other test is given soon."""
    return next(port for port in _PORTS if _is_free(port))


def clean_environment():
    """The environment without what would change the server's or a client's behaviour."""
    prefixes = ("AWS_", "COFFER_", "RCLONE_", "RESTIC_", "SSL_CERT")
    return {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}


def coffer(*arguments, timeout=60, **options):
    """Runs the program to its end and returns what subprocess.run returns."""
    return subprocess.run(
        [BINARY, *map(str, arguments)],
        capture_output=True,
        timeout=timeout,
        env=clean_environment(),
        check=False,
        **options,
    )


class Server:
    """One data folder and the process that serves it, which may come and go."""

    #: Those of this process that are still known of: whose logs are shown where a test fails.
    all = weakref.WeakSet()

    def __init__(self, folder, *, data=None, config="", arguments=(), user=None, confine=None):
        Server.all.add(self)
        self.folder = Path(folder)
        self.data = Path(data) if data else self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.arguments = list(arguments)
        # Who it runs as, by number; root alone can choose another than itself.
        self.user = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        # What the process calls before it becomes the server.
        self.confine = confine
        self.port = free_port()
        self.admin_port = free_port()
        self.data_port = free_port()
        self.config = config
        self.process = None
        self.start_seconds = None
        self.output = []
        if config:
            config_path = self.folder / "coffer.toml"
            config_path.write_text(config)
            self.arguments += ["--config", str(config_path)]

    # Its life.

    def start(self, timeout=START_SECONDS):
        """Starts the process and waits for the line that begins with `ready`."""
        assert self.process is None, "already running"
        command = [BINARY, "serve", "--data", self.data]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        command += ["--admin-listen", f"127.0.0.1:{self.admin_port}"]
        # A test that names another, by an option or in a file, is heard.
        named = map(str, [*self.arguments, self.config])
        if not any("data-listen" in words for words in named):
            command += ["--data-listen", f"127.0.0.1:{self.data_port}"]
        command += self.arguments
        began = time.monotonic()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env=clean_environment(),
                text=True,
                preexec_fn=self.confine,
                **self.user,
            )
        self.output = []
        lines = queue.Queue()
        threading.Thread(target=self._read, args=(self.process, lines), daemon=True).start()
        while True:
            left = began + timeout - time.monotonic()
            try:
                line = lines.get(timeout=max(left, 0.01))
            except queue.Empty:
                self.kill()
                raise StartError("no ready line", self.log()) from None
            if line is None:
                code = self.process.wait()
                self.process = None
                raise StartError(code, self.log())
            if line.startswith("ready"):
                self.start_seconds = time.monotonic() - began
                return self

    def _read(self, process, lines):
        for line in process.stdout:
            self.output.append(line.rstrip("\n"))
            lines.put(line)
        lines.put(None)
        process.stdout.close()

    def stop(self, timeout=STOP_SECONDS):
        """Asks the process to end, and returns its exit code."""
        return self.end(signal.SIGTERM, timeout)

    def kill(self):
        """Ends the process at once, as a power cut would, but for what the kernel holds."""
        return self.end(signal.SIGKILL, 10)

    def end(self, number, timeout):
        process, self.process = self.process, None
        if process is None:
            return None
        process.send_signal(number)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        """Ends the process however it is, and removes all that it wrote."""
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    # What is known of it.

    @property
    def pid(self):
        return self.process.pid

    @property
    def endpoint(self):
        return f"https://127.0.0.1:{self.port}"

    @property
    def admin_endpoint(self):
        return f"https://127.0.0.1:{self.admin_port}"

    @property
    def ca(self):
        return self.data / "tls/ca.pem"

    @property
    def credentials_path(self):
        return self.data / "credentials"

    def credentials(self):
        """Access key id and secret access key, as the first start wrote them."""
        profiles = configparser.ConfigParser()
        profiles.read(self.credentials_path)
        profile = profiles["default"]
        return profile["aws_access_key_id"], profile["aws_secret_access_key"]

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def resident_bytes(self):
        """Memory of the process in RAM now."""
        return self._status_bytes("VmRSS")

    def resident_peak_bytes(self):
        """The most memory in RAM that the process had since it started."""
        return self._status_bytes("VmHWM")

    def _status_bytes(self, field):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field}: has the process ended?")

    def blob_files(self):
        """All sealed files of all buckets."""
        return sorted(p for p in self.data.glob("buckets/*/blobs/**/*") if p.is_file())

    def blob_bytes(self):
        """What all blob files hold together."""
        total = 0
        for path in self.blob_files():
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
        return total

    def blob_bytes_at_most(self, most, seconds=5):
        """Whether blob files come down to this: those freed are removed behind the answer."""
        end = time.monotonic() + seconds
        while self.blob_bytes() > most and time.monotonic() < end:
            time.sleep(0.02)
        return self.blob_bytes() <= most
