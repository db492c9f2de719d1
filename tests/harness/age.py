"""Opens age files (https://age-encryption.org/v1) with X25519 identities and passphrases, and seals
them by a passphrase, apart from coffer's own library; and the identity of tests."""

import base64
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

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


def bare_base64(data):
    return base64.b64encode(data).rstrip(b"=")


def opened(armored, identity=IDENTITY):
    """What an armored file of one chunk holds; fails where anything of it was changed."""
    private = X25519PrivateKey.from_private_bytes(secret_of(identity))
    own = private.public_key().public_bytes_raw()

    def key_of(share):
        share = unbase64(share)
        shared = private.exchange(X25519PublicKey.from_public_bytes(share))
        return hkdf(shared, share + own, b"age-encryption.org/v1/X25519")

    return _opened(armored, "X25519", key_of)


def opened_by_passphrase(armored, passphrase):
    """The same of a file that is sealed by a passphrase."""
    return _opened(
        armored, "scrypt", lambda salt, work: _stretched(passphrase, unbase64(salt), int(work))
    )


def sealed_by_passphrase(plaintext, passphrase, work=12):
    """As `age --passphrase` does, not armored."""
    salt, file_key, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    key = _stretched(passphrase, salt, work)
    wrapped = ChaCha20Poly1305(key).encrypt(bytes(12), file_key, None)
    words = [b"age-encryption.org/v1\n-> scrypt", bare_base64(salt), str(work).encode()]
    head = b" ".join(words) + b"\n" + bare_base64(wrapped) + b"\n---"
    mac = bare_base64(_mac(file_key, head))
    payload = hkdf(file_key, nonce, b"payload")
    body = ChaCha20Poly1305(payload).encrypt(bytes(11) + b"\1", plaintext, None)
    return head + b" " + mac + b"\n" + nonce + body


def _stretched(passphrase, salt, work):
    salt = b"age-encryption.org/v1/scrypt" + salt
    return Scrypt(salt=salt, length=32, n=2**work, r=8, p=1).derive(passphrase.encode())


def _mac(file_key, head):
    return hmac.digest(hkdf(file_key, None, b"header"), head, hashlib.sha256)


def _opened(armored, wanted, key_of):
    lines = armored.strip().splitlines()
    assert lines[0] == "-----BEGIN AGE ENCRYPTED FILE-----"
    assert lines[-1] == "-----END AGE ENCRYPTED FILE-----"
    binary = base64.b64decode("".join(lines[1:-1]))
    head, _, rest = binary.partition(b"\n---")
    mac, _, body = rest.partition(b"\n")
    file_key = None
    stanzas = head.decode().split("\n-> ")[1:]
    for stanza in stanzas:
        first, *wrapped = stanza.split("\n")
        kind, *words = first.split(" ")
        if kind != wanted:
            continue
        cipher = ChaCha20Poly1305(key_of(*words))
        try:
            file_key = cipher.decrypt(bytes(12), unbase64("".join(wrapped)), None)
        except Exception:  # noqa: BLE001, S112 - it is for another recipient
            continue
    assert file_key is not None, "it is for other recipients"
    assert hmac.compare_digest(_mac(file_key, head + b"\n---"), unbase64(mac.decode().strip()))
    payload = hkdf(file_key, body[:16], b"payload")
    return ChaCha20Poly1305(payload).decrypt(bytes(11) + b"\1", body[16:], None)
