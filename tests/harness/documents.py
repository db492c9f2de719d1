"""What documents tell people to type, and a shell that types it."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.server import BINARY, clean_environment


def blocks(text):
    """Language and text of each block of code."""
    return re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)


def run(folder, script):
    home = folder / "home"
    home.mkdir(exist_ok=True)
    path = [str(BINARY.parent), str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    environment = clean_environment() | {
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        "RESTIC_PASSWORD": "a test's password",
    }
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout
