"""Receipts verify with nothing but docs/FORMAT.md, Python and the public key."""

import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from harness.administration import run
from harness.server import coffer

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "crates/coffer-keys/tests/museum/format-1"


def verifier():
    """The program in the document's section "Receipts"."""
    section = (ROOT / "docs/FORMAT.md").read_text().split("## Receipts\n")[1].split("\n## ")[0]
    (block,) = section.split("```python\n")[1:]
    return block.split("```")[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("receipt.json", "receipt.pub"):
        (tmp_path / name).write_bytes((MUSEUM / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_verifier_of_the_format_accepts_a_receipt(folder):
    exec(verifier(), {})


@pytest.mark.parametrize("member", ["objects", "bytes", "keystore_generation"])
def test_it_refuses_a_changed_one(folder, member):
    receipt = json.loads((folder / "receipt.json").read_text())
    receipt["erased"][member] += 1
    (folder / "receipt.json").write_text(json.dumps(receipt))
    with pytest.raises(InvalidSignature):
        exec(verifier(), {})


def test_it_accepts_one_of_now(server, folder):
    run(server, "level", "create", "secret", "--rank", "2")
    done = coffer("level", "erase", "secret", "--data", server.data, "--yes", "--json", text=True)
    assert done.returncode == 0, done.stderr
    (folder / "receipt.json").write_text(done.stdout)
    (folder / "receipt.pub").write_text(run(server, "receipt", "key"))
    exec(verifier(), {})
