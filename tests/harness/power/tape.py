"""The tape: every change of the server's files in its order, with the test's marks between."""

import contextlib
import fcntl
import os
import struct
from typing import NamedTuple

WRITE, TRUNCATE, SYNC, SYNC_FOLDER, CREATE, MAKE_FOLDER = 1, 2, 3, 4, 5, 6
RENAME, REMOVE, LINK, SYNC_REFUSED, REFUSED, SYNC_ALL, MARK = 7, 8, 9, 10, 11, 12, 100

NAMES = {
    WRITE: "write",
    TRUNCATE: "truncate",
    SYNC: "sync",
    SYNC_FOLDER: "sync of folder",
    CREATE: "create",
    MAKE_FOLDER: "make folder",
    RENAME: "rename",
    REMOVE: "remove",
    LINK: "link",
    SYNC_REFUSED: "sync that failed",
    REFUSED: "refused call",
    SYNC_ALL: "sync of all",
    MARK: "mark",
}

HEAD = struct.Struct("<BQQH")


class Step(NamedTuple):
    """A record; `faults/src/tape.rs` says what the fields are. Paths begin at the folder."""

    what: int
    inode: int
    number: int
    path: str
    second: str
    data: bytes

    def __str__(self):
        told = [NAMES[self.what], self.path]
        told += [self.second] if self.second else []
        told += [f"{len(self.data)} bytes at {self.number}"] if self.what == WRITE else []
        return " ".join(told)


class Marks:
    """The test's hand on a tape: what it appends stands behind all that happened before."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, number, text):
        self._append(MARK, number, text, "")

    def moved(self, source, target):
        """A folder was moved by the test, and durably."""
        self._append(RENAME, 0, source, target)
        self._append(SYNC_FOLDER, 0, os.path.dirname(source), "")
        self._append(SYNC_FOLDER, 0, os.path.dirname(target), "")

    def _append(self, what, number, first, second):
        path, more = str(first).encode(), str(second).encode()
        body = HEAD.pack(what, 0, number, len(path)) + path
        body += struct.pack("<H", len(more)) + more
        os.write(self.file, struct.pack("<I", len(body)) + body)

    @contextlib.contextmanager
    def between_changes(self):
        """No change is made meanwhile, and all that were made are on the tape."""
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def close(self):
        os.close(self.file)


def read(path, root):
    """All steps of a tape of changes below `root`."""
    whole = path.read_bytes()
    below = f"{root}/"
    steps, at = [], 0
    while at < len(whole):
        (length,) = struct.unpack_from("<I", whole, at)
        what, inode, number, size = HEAD.unpack_from(whole, at + 4)
        start = at + 4 + HEAD.size
        first = whole[start : start + size].decode()
        (more,) = struct.unpack_from("<H", whole, start + size)
        start += size + 2
        second = whole[start : start + more].decode()
        data = whole[start + more : at + 4 + length]
        names = [name.removeprefix(below).removeprefix(str(root)) for name in (first, second)]
        steps.append(Step(what, inode, number, *names, data))
        at += 4 + length
    return steps
