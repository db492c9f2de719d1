"""The memory of a running process, as the kernel shows it to root."""

import re
from dataclasses import dataclass
from pathlib import Path

HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)")


@dataclass
class Region:
    """A mapping, and its flags as proc_pid_smaps(5) names them."""

    start: int
    end: int
    permissions: str
    name: str
    flags: frozenset = frozenset()

    @property
    def is_protected(self):
        """Whether it is locked, left out of core dumps and not given to children."""
        return {"lo", "dd", "dc"} <= self.flags


def regions(pid):
    """All mappings of a process."""
    found = []
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if head := HEAD.match(line):
            start, end, permissions, name = head.groups()
            found.append(Region(int(start, 16), int(end, 16), permissions, name))
        elif line.startswith("VmFlags:"):
            found[-1].flags = frozenset(line.split()[1:])
    return found


def read(pid, region):
    """The bytes of a mapping, as far as the kernel gives them."""
    if "r" not in region.permissions or region.name in ("[vvar]", "[vsyscall]"):
        return b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        try:
            memory.seek(region.start)
            return memory.read(region.end - region.start)
        except (OSError, OverflowError):
            return b""


def key_forms(key):
    """What a key, or half of one, looks like where it was left behind."""
    halves = {"first half": key[:16], "second half": key[16:]}
    text = {f"{name}, as digits": half.hex().encode() for name, half in halves.items()}
    return halves | text


def places_of(keys, data):
    """Which of the named keys lie in these bytes, and in what form."""
    return [
        (name, form, data.find(needle))
        for name, key in keys.items()
        for form, needle in key_forms(key).items()
        if needle in data
    ]
