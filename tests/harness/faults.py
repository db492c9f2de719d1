"""Syncs that fail, in a real server: a small library is loaded before the C library."""

import subprocess
from pathlib import Path


def library(folder, source):
    """Builds one of the libraries here; gives its path, for LD_PRELOAD."""
    built = folder / Path(source).with_suffix(".so")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", built]
    command += [Path(__file__).with_name(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return built


class FailingSync:
    """Has the syncs of files fail whose paths hold a certain text."""

    def __init__(self, folder, monkeypatch):
        self.control = folder / "failing"
        monkeypatch.setenv("LD_PRELOAD", str(library(folder, "failing_sync.c")))
        monkeypatch.setenv("FAILING_SYNC", str(self.control))

    def fail(self, part, count=None):
        """From now on, or as often as said."""
        self.control.write_text(part if count is None else f"{part} {count}\n")

    def heal(self):
        self.control.unlink()
