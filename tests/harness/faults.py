"""Calls that fail, in a real server: syncs by a small library that is loaded before the C library,
others by a filter of the kernel's."""

import ctypes
import errno
import platform
import struct
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


class HangingSync(FailingSync):
    """Has the syncs of files hang whose paths hold a certain text: as where a disk hangs, but that
    what hangs can be killed."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, monkeypatch)
        self.control = folder / "hanging"
        monkeypatch.setenv("HANGING_SYNC", str(self.control))


def refuse_exchange():
    """What a process calls so that two folders can't change places, as on NFS.

    A filter of system calls (seccomp) answers EINVAL to renameat2 with RENAME_EXCHANGE.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    machine, call = {"x86_64": (0xC000003E, 316), "aarch64": (0xC00000B7, 276)}[platform.machine()]
    allow, fail = 0x7FFF0000, 0x00050000 | errno.EINVAL
    load, equal, has, give = 0x20, 0x15, 0x45, 0x06
    # struct seccomp_data: the call's number at 0, the machine at 4, the low half of the fifth
    # argument, renameat2's flags, at 48.
    steps = [
        (load, 0, 0, 4),
        (equal, 0, 5, machine),
        (load, 0, 0, 0),
        (equal, 0, 3, call),
        (load, 0, 0, 48),
        (has, 0, 1, 2),
        (give, 0, 0, fail),
        (give, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2

    def confine():
        for words in ((no_new_privileges, 1, 0, 0, 0), (set_seccomp, by_filter, program, 0, 0)):
            if libc.prctl(*words) != 0:
                raise OSError(ctypes.get_errno(), "prctl")

    confine.code = code
    return confine
