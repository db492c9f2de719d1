"""All keys of a stopped or running server with the file source, found by docs/FORMAT.md alone."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Of the token that the fixture `token` makes.
TOKEN_PIN = "648219"


def format_reader():
    """The program in the document's section "Keystore"."""
    section = (ROOT / "docs/FORMAT.md").read_text().split("## Keystore\n")[1].split("\n## ")[0]
    (block,) = section.split("```python\n")[1:]
    return block.split("```")[0]


def keys_of(data):
    """Name and 32 bytes of every key above the data keys."""
    found = {}
    before = Path.cwd()
    os.chdir(data)
    try:
        exec(format_reader().replace('Path("coffer-data")', 'Path(".")'), found)
    finally:
        os.chdir(before)
    keys = {"root": found["root_key"], "system": found["system_key"]}
    keys["receipt"] = found["receipt_key"]
    for kind in ("level", "bucket", "catalog"):
        keys |= {f"{kind} {at}": key for at, key in enumerate(found[f"{kind}_keys"].values())}
    return keys
