"""Small file systems, mounted for a test."""

import contextlib
import os
import subprocess

from harness.content import MIB

needs_mount = os.geteuid() != 0
"""Only root may mount; CI is root, so there the tests always run."""


@contextlib.contextmanager
def small_disk(folder, size_bytes=64 * MIB, *options):
    """Mounts an ext4 file system of this size on FOLDER/disk, and yields that path. `options` are
    further ones of mkfs.ext4."""
    image, mounted = folder / "disk.img", folder / "disk"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(size_bytes)
    call("mkfs.ext4", "-q", "-m", "0", *options, image)
    call("mount", "-o", "loop", image, mounted)
    try:
        yield mounted
    finally:
        call("umount", mounted)
        image.unlink()


@contextlib.contextmanager
def hung(disk):
    """All that is written to this file system hangs meanwhile."""
    call("fsfreeze", "--freeze", disk)
    try:
        yield
    finally:
        call("fsfreeze", "--unfreeze", disk)


def call(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=60)


def free_bytes(folder):
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize
