"""A systemd unit, applied by hand: what of it can be had where no systemd runs.

That is who it runs as, its limits, and the two filters of system calls. What it needs mounts and
namespaces for (ProtectSystem= and its like) is left to systemd.
"""

import ctypes
import errno
import functools
import os
import resource
import shlex
import socket
import subprocess
from pathlib import Path

from harness.server import ROOT

UNIT = ROOT / "packaging/systemd/coffer.service"

ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | errno.EPERM
MASKED_EQUAL = 7
PROT_WRITE, PROT_EXEC = 2, 4


class _Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    ]


class Unit:
    def __init__(self, path=UNIT):
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
        pairs = [line.partition("=") for line in lines if line[:1] not in ("", "#", "[")]
        self.settings = [(key, value) for key, _, value in pairs]

    def values(self, key):
        return [value for name, value in self.settings if name == key]

    def value(self, key):
        (value,) = self.values(key)
        return value

    def command(self):
        return shlex.split(self.value("ExecStart"))

    def system_calls(self):
        """The names of all system calls that the unit allows."""
        allowed = set()
        for value in self.values("SystemCallFilter"):
            for word in value.removeprefix("~").split():
                if value.startswith("~"):
                    allowed -= _members(word)
                else:
                    allowed |= _members(word)
        return allowed

    def confinement(self):
        """What a child process calls before it becomes the server, as its user already."""
        names = sorted(self.system_calls())
        limits = [
            (resource.RLIMIT_CORE, int(self.value("LimitCORE"))),
            (resource.RLIMIT_NOFILE, int(self.value("LimitNOFILE"))),
            (resource.RLIMIT_MEMLOCK, int(self.value("LimitMEMLOCK").removesuffix("M")) << 20),
        ]
        seccomp = ctypes.CDLL("libseccomp.so.2")
        seccomp.seccomp_init.restype = ctypes.c_void_p
        numbers = [seccomp.seccomp_syscall_resolve_name(name.encode()) for name in names]

        def confine():
            for which, most in limits:
                _, hard = resource.getrlimit(which)
                most = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(which, (most, most))
            _load(seccomp, ALLOW, REFUSE, _writable_code(seccomp))
            # Numbers below zero are of other architectures.
            _load(seccomp, REFUSE, ALLOW, [(number, []) for number in numbers if number >= 0])

        return confine


class Notified:
    """The service manager's end of `sd_notify`."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(30)
        os.chmod(path, 0o777)

    def next(self):
        return self.socket.recv(4096).decode().splitlines()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _load(seccomp, default, action, rules):
    context = ctypes.c_void_p(seccomp.seccomp_init(default))
    for number, comparisons in rules:
        array = (_Comparison * len(comparisons))(*comparisons)
        code = seccomp.seccomp_rule_add_array(context, action, number, len(comparisons), array)
        assert code == 0, (number, code)
    assert seccomp.seccomp_load(context) == 0
    seccomp.seccomp_release(context)


def _writable_code(seccomp):
    """What MemoryDenyWriteExecute= refuses: argument 2 of both is the protection."""
    both = PROT_WRITE | PROT_EXEC
    numbers = {name: seccomp.seccomp_syscall_resolve_name(name) for name in (b"mmap", b"mprotect")}
    return [
        (numbers[b"mmap"], [_Comparison(2, MASKED_EQUAL, both, both)]),
        (numbers[b"mprotect"], [_Comparison(2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC)]),
    ]


@functools.cache
def _members(word):
    if not word.startswith("@"):
        return frozenset([word])
    command = ["systemd-analyze", "--no-pager", "syscall-filter", word]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    words = [line.split("#")[0].strip() for line in told.splitlines()[1:]]
    return frozenset().union(*(_members(member) for member in words if member))
