"""Bytes to store: the same for the same seed, and unlike any others."""

import hashlib
import random

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

CHUNK_BYTES = 16 * KIB
"""What one seal covers."""

INLINE_MAX_BYTES = 16 * KIB
"""The largest object that lies in the catalog."""

PART_MIN_BYTES = 5 * MIB
"""The smallest part of a multipart upload, but for the last."""


def content(size_bytes, seed=0):
    """Incompressible bytes of this length."""
    return random.Random(f"{seed}/{size_bytes}").randbytes(size_bytes)


def write_file(path, size_bytes, seed=0):
    """Writes a file of incompressible bytes, a mebibyte at a time, and returns its path."""
    with open(path, "wb") as file:
        for index, offset in enumerate(range(0, size_bytes, MIB)):
            file.write(content(min(MIB, size_bytes - offset), f"{seed}/{index}"))
    return path


def digest(path):
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
