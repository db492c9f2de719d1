"""The keystore opens with nothing but docs/FORMAT.md and Python."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "crates/coffer-keys/tests/museum/format-1"
SLOT = 4 << 20

BUCKET, BLOB = b"\xb1" * 16, b"\xb2" * 16
SYSTEM_KEY = "d2b6311fc21b525f641329a1d76f18ac857759806bbd2ff6cc61d74baebbe72c"
CATALOG_KEY = "18348947e1fc840b1a8efe740a3e61d28f3d75eafd2c21cdf6a2c50e69cf8d60"


def reader():
    """The program in the document's section "Keystore"."""
    section = (ROOT / "docs/FORMAT.md").read_text().split("## Keystore\n")[1].split("\n## ")[0]
    (block,) = section.split("```python\n")[1:]
    return block.split("```")[0]


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
    exec(reader(), found)
    assert found["system_key"].hex() == SYSTEM_KEY
    assert {bucket: key.hex() for bucket, key in found["catalog_keys"].items()} == {
        BUCKET: CATALOG_KEY
    }
    wrapped = (MUSEUM / "wrapped-data-key").read_bytes()
    data_key = found["unwrap"](found["bucket_key"], 3, BLOB, (1).to_bytes(4, "big"), wrapped)
    assert data_key == bytes(range(32))


def test_the_document_shows_the_museum_s_header():
    header = (MUSEUM / "keystore.copy").read_bytes()[:40].hex()
    text = (ROOT / "docs/FORMAT.md").read_text().replace(" ", "")
    assert header in text
