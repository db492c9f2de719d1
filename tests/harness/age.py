"""Opens age files (https://age-encryption.org/v1) with X25519 identities, apart from coffer's own
library; and the identity of tests."""

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"


def secret_of(identity):
    """The 32 bytes in an identity (Bech32, without looking at its checksum)."""
    bits = "".join(f"{CHARSET.index(letter):05b}" for letter in identity.lower().rsplit("1", 1)[1])
    return int(bits[:256], 2).to_bytes(32, "big")


def hkdf(key, salt, info):
    return HKDF(SHA256(), 32, salt, info).derive(key)


def unbase64(text):
    return base64.b64decode(text + "=" * (-len(text) % 4))


def opened(armored, identity=IDENTITY):
    """What an armored file of one chunk holds; fails where anything of it was changed."""
    lines = armored.strip().splitlines()
    assert lines[0] == "-----BEGIN AGE ENCRYPTED FILE-----"
    assert lines[-1] == "-----END AGE ENCRYPTED FILE-----"
    binary = base64.b64decode("".join(lines[1:-1]))
    head, _, rest = binary.partition(b"\n---")
    mac, _, body = rest.partition(b"\n")
    private = X25519PrivateKey.from_private_bytes(secret_of(identity))
    own = private.public_key().public_bytes_raw()
    file_key = None
    stanzas = head.decode().split("\n-> ")[1:]
    for stanza in stanzas:
        first, *wrapped = stanza.split("\n")
        kind, *words = first.split(" ")
        if kind != "X25519":
            continue
        share = unbase64(words[0])
        shared = private.exchange(X25519PublicKey.from_public_bytes(share))
        key = hkdf(shared, share + own, b"age-encryption.org/v1/X25519")
        try:
            file_key = ChaCha20Poly1305(key).decrypt(bytes(12), unbase64("".join(wrapped)), None)
        except Exception:  # noqa: BLE001, S112 - it is for another recipient
            continue
    assert file_key is not None, "it is for other recipients"
    of_head = hmac.digest(hkdf(file_key, None, b"header"), head + b"\n---", hashlib.sha256)
    assert hmac.compare_digest(of_head, unbase64(mac.decode().strip()))
    payload = hkdf(file_key, body[:16], b"payload")
    return ChaCha20Poly1305(payload).decrypt(bytes(11) + b"\1", body[16:], None)
