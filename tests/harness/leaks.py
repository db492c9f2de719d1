"""Finds a marker in files, in every form in which a program could have written it."""

import base64
import gzip
import json
import os
import urllib.parse
import zlib
from pathlib import Path
from xml.sax.saxutils import escape

INFLATED_MAX_BYTES = 1 << 20
ZLIB_STARTS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"\x1f\x8b\x08")


def forms(marker):
    """Name and bytes of each form of a marker, none of them twice."""
    raw = marker.encode()
    found = {
        "plain": raw,
        "reversed": raw[::-1],
        "utf-16le": marker.encode("utf-16le"),
        "utf-16be": marker.encode("utf-16be"),
        "utf-32le": marker.encode("utf-32le"),
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "hex spaced": raw.hex(" ").encode(),
        "url": urllib.parse.quote(marker, safe="").encode(),
        "url, all": "".join(f"%{byte:02X}" for byte in raw).encode(),
        "url, all, lower": "".join(f"%{byte:02x}" for byte in raw).encode(),
        "form": urllib.parse.quote_plus(marker).encode(),
        "json": json.dumps(marker)[1:-1].encode(),
        "json, unicode": json.dumps(marker, ensure_ascii=False)[1:-1].encode(),
        "xml": escape(marker, {'"': "&quot;", "'": "&apos;"}).encode(),
        "decimal list": ",".join(map(str, raw)).encode(),
        "decimal list, spaced": ", ".join(map(str, raw)).encode(),
        "rust escapes": "".join(f"\\x{byte:02x}" for byte in raw).encode(),
    }
    for skip in range(3):
        # Three characters of Base64 hold less than three bytes at either end: cut those off.
        text = base64.b64encode(bytes(skip) + raw)
        begin = -(-skip * 8 // 6)
        end = (skip + len(raw)) * 8 // 6
        found[f"base64, {skip}"] = text[begin:end]
        found[f"base64url, {skip}"] = text[begin:end].translate(bytes.maketrans(b"+/", b"-_"))
        base32 = base64.b32encode(bytes(skip) + raw)
        found[f"base32, {skip}"] = base32[-(-skip * 8 // 5) : (skip + len(raw)) * 8 // 5]
    distinct = {}
    for name, needle in found.items():
        distinct.setdefault(needle, name)
    return [(name, needle) for needle, name in distinct.items()]


class Scan:
    """Looks for markers in bytes and files, and collects (where, marker, form)."""

    def __init__(self, *markers):
        self.needles = [
            (marker, form, needle) for marker in markers for form, needle in forms(marker)
        ]
        self.found = []
        self.files = 0

    def bytes(self, where, data):
        self._plain(where, data, "")
        for start in ZLIB_STARTS:
            at = data.find(start)
            while at >= 0:
                self._plain(where, inflate(data[at : at + INFLATED_MAX_BYTES]), ", compressed")
                at = data.find(start, at + 1)
        # A raw deflate stream has no sign of its own; one would begin where a file does.
        self._plain(where, inflate(data[:INFLATED_MAX_BYTES], -zlib.MAX_WBITS), ", deflated")

    def _plain(self, where, data, how):
        for marker, form, needle in self.needles:
            if needle in data:
                self.found.append((str(where), marker, form + how))

    def folder(self, folder):
        """Every file below a folder, its name, and the names of the folders themselves."""
        for path in sorted(Path(folder).rglob("*")):
            self._plain(path, str(path.relative_to(folder)).encode(), ", in the name")
            if path.is_file():
                self.files += 1
                self.bytes(path, path.read_bytes())
        return self

    def open_files(self, pid):
        """Regular files that a process holds open, also where they have no name any more."""
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(link)
            if target.startswith("/") and not target.startswith("/dev/") and link.is_file():
                self.files += 1
                self.bytes(target, link.read_bytes())
        return self


def inflate(data, bits=None):
    """What can be decompressed of something that may be a compressed stream."""
    if bits is None:
        bits = zlib.MAX_WBITS | (16 if data[:1] == b"\x1f" else 0)
    try:
        return zlib.decompressobj(bits).decompress(data, INFLATED_MAX_BYTES)
    except zlib.error:
        return b""


def planted(marker):
    """Name and bytes of files in each of which a scan must find the marker."""
    around = b"noise before " * 3
    for form, needle in forms(marker):
        yield form, around + needle + around
    raw = marker.encode()
    for skip in range(3):
        yield f"base64 of a whole, {skip}", base64.b64encode(b"x" * skip + raw + b"after")
    yield "zlib", around + zlib.compress(around + raw) + around
    yield "zlib, fast", around + zlib.compress(around + raw, 1) + around
    yield "gzip", around + gzip.compress(around + raw) + around
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    yield "deflate", deflate.compress(around + raw) + deflate.flush()
