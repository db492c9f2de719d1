"""Catalogs and blobs open with nothing but docs/FORMAT.md and Python."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def reader():
    """The program in the document's section "Catalog"."""
    section = (ROOT / "docs/FORMAT.md").read_text().split("## Catalog\n")[1].split("\n## ")[0]
    (block,) = section.split("```python\n")[1:]
    return block.split("```")[0]


def test_the_reader_of_the_format_reads_every_object(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = {}
    exec(reader(), found)
    sizes = {name: len(data) for name, data in found["objects"].items()}
    whole = {"4 KiB": 4096, "a/large": 40_000, "a/small": 31, "empty": 0, "of parts": 5300}
    assert sizes == whole | {"versions": 13, "locked": 11}


def test_the_reader_of_the_format_finds_damage_in_a_catalog(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = {}
    exec(reader(), found)
    file = (found["FOLDER"] / "catalog.db").read_bytes()
    for at in range(5, len(file), 997):
        altered = bytearray(file)
        altered[at] ^= 1
        try:
            found["open_catalog"](bytes(altered), found["CATALOG_KEY"])
        except ValueError as error:
            number = 1 if at < 16 else at // 4096 + 1
            assert str(error) == f"page {number} is damaged"
        else:
            raise AssertionError(f"the bit flipped at {at} was not found")
