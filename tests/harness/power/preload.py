"""A server that runs with the recorder, or without it."""

import contextlib
import os
import re
import signal
import struct
import subprocess
import threading
from pathlib import Path

from harness.server import BINARY, START_SECONDS, StartError, clean_environment

from .tape import Marks

LIBRARY = Path(os.environ.get("COFFER_FAULTS", BINARY.parent / "libcoffer_faults.so"))

PASSPHRASE = "correct horse battery staple"

KINDS = {
    "open": 1 << 0,
    "write": 1 << 1,
    "sync": 1 << 2,
    "folder sync": 1 << 3,
    "truncate": 1 << 4,
    "rename": 1 << 5,
    "remove": 1 << 6,
    "make folder": 1 << 7,
    "link": 1 << 8,
    "read": 1 << 9,
}

PAGE_BYTES = 4096


class Running:
    """A process that serves `root`/data. With `recorded`, all its changes are on `root`.tape."""

    def __init__(self, root, *, recorded=False, fault=None, arguments=()):
        self.root = Path(root)
        self.data = self.root / "data"
        self.log_path = self.root.with_suffix(".log")
        self.tape_path = self.root.with_suffix(".tape")
        self.control_path = self.root.with_suffix(".control")
        self.marks = None
        self.process = None
        self.port = self.admin_port = None
        self.environment = clean_environment()
        secrets = self.root.with_suffix(".secrets")
        secrets.mkdir(exist_ok=True)
        (secrets / "coffer-passphrase").write_text(PASSPHRASE + "\n")
        self.environment["CREDENTIALS_DIRECTORY"] = str(secrets)
        self.arguments = list(arguments)
        if recorded:
            self.control_path.write_bytes(bytes(PAGE_BYTES))
            self.tape_path.unlink(missing_ok=True)
            self.marks = Marks(self.tape_path)
            self.environment |= {
                "LD_PRELOAD": str(LIBRARY),
                "COFFER_FAULTS_ROOT": str(self.root),
                "COFFER_FAULTS_TAPE": str(self.tape_path),
                "COFFER_FAULTS_CONTROL": str(self.control_path),
            }
            if fault:
                self.arm(*fault)

    def start(self):
        command = [BINARY, "serve", "--data", self.data, *self.arguments]
        command += ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.root.parent,
                env=self.environment,
                text=True,
            )
        patience = threading.Timer(START_SECONDS, self.process.kill)
        patience.start()
        try:
            return self._wait_until_ready()
        finally:
            patience.cancel()

    def _wait_until_ready(self):
        for line in self.process.stdout:
            if line.startswith("ready"):
                self.port, self.admin_port = map(int, re.findall(r"https://[^ ]*:(\d+)", line))
                return self
        code = self.process.wait()
        self.process.stdout.close()
        self.process = None
        raise StartError(code, self.log())

    def arm(self, kinds, first, count, error, text=""):
        """From the counted call `first` on, `count` calls fail with `error`."""
        wanted = text.encode()
        head = struct.pack("<7Q", kinds, first, count, error, 0, 0, len(wanted))
        with self.control_path.open("r+b") as control:
            control.write(head + wanted)

    def counted(self):
        """How many calls were counted since, and how many of them failed."""
        with self.control_path.open("rb") as control:
            return struct.unpack_from("<2Q", control.read(PAGE_BYTES), 32)

    def end(self, number=signal.SIGKILL):
        process, self.process = self.process, None
        if process is None:
            return None
        is_killed = self.marks and number == signal.SIGKILL
        with self.marks.between_changes() if is_killed else contextlib.nullcontext():
            process.send_signal(number)
            code = process.wait(30)
        process.stdout.close()
        return code

    def stop(self):
        return self.end(signal.SIGTERM)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def close(self):
        self.end()
        if self.marks:
            self.marks.close()
            self.marks = None

    @property
    def ca(self):
        return self.data / "tls/ca.pem"

    def is_alive(self):
        return self.process is not None and self.process.poll() is None
