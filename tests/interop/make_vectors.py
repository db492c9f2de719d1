"""Writes crates/coffer-seal/tests/vectors: one scenario a file, shared by both implementations.

    python make_vectors.py [FOLDER]

Messages that open come from `cryptography`, whose salts are random: a run writes other bytes of the
same scenarios. One message, and those that a wrong implementation would make, are built here from
HKDF-Expand and AES-GCM, word by word from C2SP chunked-encryption v1. Failures are edits of these
messages, written as the pieces they are made of.
"""

import json
import sys
from pathlib import Path

import cryptography
from cryptography.cobblestone import Cobblestone256Encryptor
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

FOLDER = Path(__file__).resolve().parents[2] / "crates/coffer-seal/tests/vectors"
PYTHON = f"cryptography {cryptography.__version__}"
BY_HAND = "HKDF-Expand and AES-GCM, by the specification"
BY_HAND_WRONG = "HKDF-Expand and AES-GCM, wrongly on purpose"
EDITED = "pieces of other vectors"

CHUNK = 16384
SEALED = CHUNK + 16
HEADER = 56

KEY = bytes(range(32))
OTHER_KEY = bytes(range(32, 64))
SALT = bytes(range(100, 124))
BUCKET, BLOB, OTHER_BLOB = b"\xb1" * 16, b"\xb2" * 16, b"\xb3" * 16
BLOB_CONTEXT = b"coffer blob v1\0" + BUCKET + BLOB


def counting(length):
    """Bytes of which every two neighbouring chunks differ: byte i is i mod 251."""
    return bytes(i % 251 for i in range(length))


def by_hand(plaintext, context, hash=SHA512, extract=False, aad=None, order="big"):
    """A message as the specification says, or with one deviation."""
    info = b"c2sp.org/chunked-encryption@v1+" + b"AEAD_AES_256_GCM" + b"\0" + SALT + context
    length = 32 + 12 + 32
    kdf = HKDF(hash(), length, None, info) if extract else HKDFExpand(hash(), length, info)
    derived = kdf.derive(KEY)
    key, base_nonce, commitment = derived[:32], derived[32:44], derived[44:]
    message = SALT + commitment
    for number in range(len(plaintext) // CHUNK + 1):
        counter = number.to_bytes(12, order)
        nonce = bytes(a ^ b for a, b in zip(base_nonce, counter, strict=True))
        chunk = plaintext[number * CHUNK : (number + 1) * CHUNK]
        message += AESGCM(key).encrypt(nonce, chunk, aad)
    return message


def on_lines(value):
    """JSON with an element a line where there are several."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"    {json.dumps(element)}" for element in value) + "\n  ]"


class Vectors:
    """The folder, and what was put there so far."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()

    def write(self, name, about, made_by, message, *, context=BLOB_CONTEXT, key=KEY, **expect):
        """`message`: bytes, or pieces: bytes and (vector, start, end)."""
        pieces = [message] if isinstance(message, bytes) else message
        fields = {
            "about": about,
            "made_by": made_by,
            "key": key.hex(),
            "context": context.hex(),
            "message": [
                {"hex": piece.hex()}
                if isinstance(piece, bytes)
                else {"vector": piece[0], "bytes": [piece[1], piece[2]]}
                for piece in pieces
            ],
            **expect,
        }
        lines = [f"  {json.dumps(name)}: {on_lines(value)}" for name, value in fields.items()]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        (self.folder / f"{name}.json").write_text(text)

    def opens(self, name, about, length, *, context=BLOB_CONTEXT):
        """A message of `length` counting bytes that Python sealed. Returns the message."""
        encryptor = Cobblestone256Encryptor(KEY, context)
        message = encryptor.update(counting(length)) + encryptor.finalize()
        self.write(name, about, PYTHON, message, context=context, counting_bytes=length)
        return message

    def fails(self, name, about, failure, message, made_by=EDITED, **changes):
        """`failure`: length, truncated, commitment, or the first chunk that does not open."""
        self.write(name, about, made_by, message, failure=failure, **changes)


def flipped(message, offset):
    """The byte at the offset with its lowest bit flipped."""
    return bytes([message[offset] ^ 1])


def messages_that_open(vectors):
    plaintext = b"A sealed message."
    message = by_hand(plaintext, BLOB_CONTEXT)
    about = "The worked example of docs/FORMAT.md"
    vectors.write("worked-example", about, BY_HAND, message, plaintext=plaintext.hex())
    vectors.opens("empty", "No plaintext: one empty chunk", 0)
    vectors.opens("one-byte", "One byte", 1)
    vectors.opens("chunk-less-one", "The longest message of one chunk", CHUNK - 1)
    vectors.opens("chunk", "A full chunk, then an empty last one", CHUNK)
    vectors.opens("chunk-and-one", "A full chunk, then one byte", CHUNK + 1)
    vectors.opens("no-context", "The context may be empty", 5, context=b"")
    vectors.opens("long-context", "The context may be long", 5, context=counting(2000))
    key_context = b"coffer key v1\0\x03" + BLOB + (7).to_bytes(4, "big")
    vectors.opens(
        "key-context", "As long as a wrapped key, in its context", 32, context=key_context
    )
    store_context = b"coffer keystore v1\0" + BUCKET + (9).to_bytes(8, "big")
    vectors.opens("keystore-context", "In a keystore's context", 500, context=store_context)


def lengths_that_fail(vectors, end):
    base, last = "three-chunks", HEADER + 2 * SEALED
    fails = vectors.fails
    fails("no-message", "Nothing at all", "length", b"")
    fails("header-cut", "The header lacks its last byte", "length", [(base, 0, HEADER - 1)])
    fails("header-alone", "No chunk at all", "truncated", [(base, 0, HEADER)])
    fails("tag-cut", "The only chunk is shorter than a tag", "length", [("empty", 0, HEADER + 15)])
    about = "The last chunk is gone: what is left ends with a full one"
    fails("last-chunk-removed", about, "truncated", [(base, 0, last)])
    fails("last-tag-cut", "15 bytes of the last chunk are left", "length", [(base, 0, last + 15)])
    fails("last-byte-removed", "The last chunk lacks a byte", "chunk 2", [(base, 0, end - 1)])
    fails("byte-appended", "A byte follows the last chunk", "chunk 2", [(base, 0, end), b"\0"])
    about = "The last chunk of two is cut to what an empty one would be"
    fails("last-chunk-emptied", about, "chunk 2", [(base, 0, last), (base, end - 16, end)])
    about = "The message ends after its first full chunk, with the last chunk's bytes"
    fails("middle-removed", about, "chunk 1", [(base, 0, HEADER + SEALED), (base, last, end)])


def edits_that_fail(vectors, message):
    base, end = "three-chunks", len(message)
    one, two, last = HEADER, HEADER + SEALED, HEADER + 2 * SEALED
    header, first, second, rest = (
        (base, 0, one),
        (base, one, two),
        (base, two, last),
        (base, last, end),
    )
    fails = vectors.fails
    fails(
        "chunks-swapped", "The full chunks changed places", "chunk 0", [header, second, first, rest]
    )
    about = "The first chunk comes twice, instead of the second"
    fails("chunk-duplicated", about, "chunk 1", [header, first, first, rest])
    fails(
        "chunk-inserted",
        "The first chunk comes twice",
        "chunk 1",
        [header, first, first, second, rest],
    )
    fails("first-chunk-removed", "The first chunk is gone", "chunk 0", [header, second, rest])
    about = "The first chunk is that of another message under the same key and context"
    foreign = ("chunk", HEADER, HEADER + SEALED)
    fails("foreign-chunk", about, "chunk 0", [header, foreign, second, rest])
    for name, offset, failure in [
        ("salt-flipped", 23, "commitment"),
        ("commitment-flipped", 55, "commitment"),
        ("first-byte-flipped", one, "chunk 0"),
        ("first-tag-flipped", two - 16, "chunk 0"),
        ("second-chunk-flipped", two + 8000, "chunk 1"),
        ("last-tag-flipped", end - 1, "chunk 2"),
    ]:
        pieces = [(base, 0, offset), flipped(message, offset), (base, offset + 1, end)]
        fails(name, f"One bit at offset {offset} is flipped", failure, pieces)
    whole = [(base, 0, end)]
    fails("other-key", "Another key", "commitment", whole, key=OTHER_KEY)
    moved = b"coffer blob v1\0" + BUCKET + OTHER_BLOB
    fails(
        "other-blob", "The message lies in another blob's place", "commitment", whole, context=moved
    )
    longer = BLOB_CONTEXT + b"\0"
    fails("longer-context", "A zero byte more in the context", "commitment", whole, context=longer)


def wrong_implementations(vectors):
    """What an implementation makes that misreads the specification in one place."""
    short, long = b"A sealed message.", counting(CHUNK + 1)
    for name, about, failure, message in [
        ("sha256", "Derived with SHA-256", "commitment", by_hand(short, BLOB_CONTEXT, hash=SHA256)),
        (
            "extracted",
            "HKDF with its extract step",
            "commitment",
            by_hand(short, BLOB_CONTEXT, extract=True),
        ),
        (
            "associated-data",
            "The salt as associated data",
            "chunk 0",
            by_hand(short, BLOB_CONTEXT, aad=SALT),
        ),
        (
            "little-endian",
            "Chunks are counted little-endian",
            "chunk 1",
            by_hand(long, BLOB_CONTEXT, order="little"),
        ),
    ]:
        vectors.fails(f"wrong-{name}", about, failure, message, made_by=BY_HAND_WRONG)


def main():
    vectors = Vectors(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    messages_that_open(vectors)
    message = vectors.opens("three-chunks", "Two full chunks and a last one", 40000)
    lengths_that_fail(vectors, len(message))
    edits_that_fail(vectors, message)
    wrong_implementations(vectors)


if __name__ == "__main__":
    main()
