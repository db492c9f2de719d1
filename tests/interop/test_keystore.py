"""The keystore opens with nothing but docs/FORMAT.md and Python."""

from pathlib import Path

import pytest

from harness.keys import format_reader

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "crates/coffer-keys/tests/museum/format-1"
SLOT = 4 << 20

BUCKET, BLOB = b"\xb1" * 16, b"\xb2" * 16
SYSTEM_KEY = "99c13dc1e7b9ef6cfa5ade3c1a1ae9c6fd9f82e5a8b01e334a5e71aea1185bf9"
CATALOG_KEYS = {
    BUCKET: "4d405abe5d11444ee8066bf0d7f81f65fad9728939643958956e39e201ca534f",
}


@pytest.mark.parametrize("damaged", [None, 0, SLOT], ids=["whole", "copy A", "copy B"])
def test_the_reader_of_the_format_finds_all_keys(tmp_path, monkeypatch, damaged):
    data = tmp_path / "coffer-data"
    data.mkdir()
    (data / "root.key").write_bytes((MUSEUM / "root.key").read_bytes())
    copy = (MUSEUM / "keystore.copy").read_bytes()
    file = bytearray(copy.ljust(SLOT, b"\0") + copy)
    if damaged is not None:
        file[damaged + 300] ^= 1
    (data / "keystore").write_bytes(file)

    monkeypatch.chdir(tmp_path)
    found = {}
    exec(format_reader(), found)
    assert found["system_key"].hex() == SYSTEM_KEY
    assert {key: value.hex() for key, value in found["catalog_keys"].items()} == CATALOG_KEYS
    wrapped = (MUSEUM / "wrapped-data-key").read_bytes()
    bucket_key = found["bucket_keys"][BUCKET, 1]
    data_key = found["unwrap"](bucket_key, 3, BLOB, (1).to_bytes(4, "big"), wrapped)
    assert data_key == bytes(range(32))


def test_the_document_shows_the_museum_s_header():
    header = (MUSEUM / "keystore.copy").read_bytes()[:40].hex()
    text = (ROOT / "docs/FORMAT.md").read_text().replace(" ", "")
    assert header in text
