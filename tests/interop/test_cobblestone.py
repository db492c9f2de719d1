"""Sealed messages open elsewhere, and others' open here: coffer-seal and Python's `cryptography`.

Two implementations that know nothing of each other but C2SP chunked-encryption v1.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from cryptography.exceptions import InvalidTag

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "crates/coffer-seal/tests/vectors"
# As `cargo test --workspace` builds it.
BUILD = ["cargo", "build", "--quiet", "--workspace", "--example", "cobblestone"]

CHUNK = 16384
BORDERS = [around + chunks * CHUNK for chunks in range(5) for around in (-17, -16, -15, -1, 0, 1)]
SIZES = sorted({size for size in BORDERS if size >= 0} | {2, 15, 16, 17, 1000, 1_000_000})
CONTEXTS = [b"", b"coffer blob v1\0" + bytes(32), bytes(range(256)) * 5]


class Coffer:
    """The example `cobblestone`, which answers one request after the other."""

    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, verb, key, context, body):
        """The message or plaintext; None when it did not open."""
        request = f"{verb} {key.hex()} {context.hex() or '-'} {len(body)}\n"
        self.process.stdin.write(request.encode() + body)
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().strip()
        return None if answer == "failed" else self.process.stdout.read(int(answer))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


@pytest.fixture(scope="module")
def binary():
    """The example, up to date; or the one that the environment names."""
    if named := os.environ.get("COBBLESTONE_EXAMPLE"):
        return named
    subprocess.run(BUILD, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug/examples/cobblestone")


@pytest.fixture(scope="module")
def coffer(binary):
    running = Coffer(binary)
    yield running
    running.close()


def python_seals(key, context, plaintext, pieces=1):
    encryptor = Cobblestone256Encryptor(key, context)
    step = max(1, -(-len(plaintext) // pieces))
    starts = range(0, len(plaintext), step)
    parts = [encryptor.update(plaintext[start : start + step]) for start in starts]
    return b"".join(parts) + encryptor.finalize()


def python_opens(key, context, message):
    """The plaintext; None when it did not open."""
    decryptor = Cobblestone256Decryptor(key, context)
    try:
        return decryptor.update(message) + decryptor.finalize()
    except InvalidTag:
        return None


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: f"{len(context)}-byte-context")
@pytest.mark.parametrize("size", SIZES)
def test_each_opens_what_the_other_sealed(coffer, size, context):
    key, plaintext = os.urandom(32), os.urandom(size)
    ours = coffer.ask("seal", key, context, plaintext)
    theirs = python_seals(key, context, plaintext, pieces=3)
    assert len(ours) == len(theirs)
    assert python_opens(key, context, ours) == plaintext
    assert coffer.ask("open", key, context, theirs) == plaintext


def test_both_refuse_the_same_edits(coffer):
    """Random edits of messages of either side: both open them, or neither."""
    chance = random.Random(256)
    opened = 0
    for number in range(400):
        key, context = chance.randbytes(32), chance.randbytes(chance.randrange(40))
        plaintext = chance.randbytes(chance.choice([0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 40000]))
        seal = python_seals if number % 2 else lambda *args: coffer.ask("seal", *args)
        message = bytearray(seal(key, context, plaintext))
        match chance.randrange(5):
            case 0:
                del message[chance.randrange(len(message)) :]
            case 1:
                message += chance.randbytes(chance.choice([1, 15, 16, 17, CHUNK + 16]))
            case 2:
                message[chance.randrange(len(message))] ^= 1 << chance.randrange(8)
            case 3:
                start = chance.randrange(len(message))
                del message[start : start + chance.choice([1, 16, CHUNK + 16])]
            case _:
                pass
        theirs = python_opens(key, context, bytes(message))
        assert coffer.ask("open", key, context, bytes(message)) == theirs
        assert theirs in (None, plaintext)
        opened += theirs is not None
    assert 40 < opened < 200, "some messages were left alone, most were edited"


def test_another_key_or_context_opens_nothing(coffer):
    key, context = os.urandom(32), b"here"
    message = coffer.ask("seal", key, context, b"secret")
    assert python_opens(key, context, message) == b"secret"
    assert python_opens(os.urandom(32), context, message) is None
    assert python_opens(key, b"there", message) is None


def load_vector(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


def message_of(vector):
    pieces = []
    for piece in vector["message"]:
        if "hex" in piece:
            pieces.append(bytes.fromhex(piece["hex"]))
        else:
            start, end = piece["bytes"]
            pieces.append(message_of(load_vector(piece["vector"]))[start:end])
    return b"".join(pieces)


@pytest.mark.parametrize("name", sorted(path.stem for path in VECTORS.glob("*.json")))
def test_python_agrees_with_every_vector(name):
    vector = load_vector(name)
    key, context = bytes.fromhex(vector["key"]), bytes.fromhex(vector["context"])
    opened = python_opens(key, context, message_of(vector))
    if "failure" in vector:
        assert opened is None, vector["about"]
    elif "plaintext" in vector:
        assert opened == bytes.fromhex(vector["plaintext"]), vector["about"]
    else:
        assert opened == bytes(i % 251 for i in range(vector["counting_bytes"])), vector["about"]


def test_the_command_line_of_the_example(binary):
    key, context = os.urandom(32).hex(), b"pipe".hex()
    sealed = subprocess.run([binary, "seal", key, context], input=b"through", stdout=-1, check=True)
    opened = subprocess.run([binary, "open", key, context], input=sealed.stdout, stdout=-1)
    assert (opened.returncode, opened.stdout) == (0, b"through")
    broken = subprocess.run(
        [binary, "open", key, context], input=sealed.stdout[:-1], stdout=-1, stderr=-1
    )
    assert (broken.returncode, broken.stdout) == (1, b"")


def test_the_python_of_the_format_runs():
    """The example in docs/FORMAT.md does what the document says."""
    section = (ROOT / "docs/FORMAT.md").read_text().split("## Sealed messages")[1].split("\n## ")[0]
    blocks = [block.split("```")[0] for block in section.split("```python\n")[1:]]
    assert blocks
    for block in blocks:
        exec(block, {})
