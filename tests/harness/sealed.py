"""Sealed transfer step by step, as docs/SEALED-TRANSFER.md has it: for tests that take a step
twice, take another, or leave one out."""

import base64
import hmac
import http.client
import json
import socket

from cryptography.cobblestone import Cobblestone256Encryptor
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from harness import raw
from harness.administration import ask

CHUNK = 16384
SEALED_CHUNK = CHUNK + 16
HEADER = 56


class DoesNotOpenError(Exception):
    """A commitment, a tag or a length is not what the key asks for."""


def make_bucket(server, name, level=None, *options):
    """A bucket whose level, made with it, allows sealed transfer."""
    level = level or name
    if level not in {one["name"] for one in ask(server, "level", "list")}:
        same = ("--rank", 0, "--same-label", "--sealed-transfer")
        ask(server, "level", "create", level, *same, *options)
    ask(server, "bucket", "create", name, "--level", level)


def refused_code(body):
    """The code of an error of S3."""
    return body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


# Reading.


def ask_for(server, path, *, query="", headers=None, **given):
    """Asks for an object sealed. Returns (status, headers, document), or the body that came."""
    headers = {"x-coffer-transfer": "sealed"} | (headers or {})
    status, said, body = raw.send(server, "GET", path, query=query, headers=headers, **given)
    is_sealed = status in (200, 206) and said.get("x-coffer-transfer") == "sealed"
    return status, said, json.loads(body) if is_sealed else body


def offer(server, path, **given):
    """The document of an object, which comes sealed."""
    status, _, document = ask_for(server, path, **given)
    assert status in (200, 206) and isinstance(document, dict), (status, document)
    return document


def request(server, method, ticket, body=None, headers=None, *, port=None, timeout=30):
    """A request at the data port: status and body."""
    port = port or server.data_port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, f"/transfer/{ticket}", body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def fetch(server, document, *, port=None):
    """The sealed bytes of a document; they are as many as it says."""
    status, sealed = request(server, "GET", document["ticket"], port=port)
    assert (status, len(sealed)) == (200, document["bytes"])
    return sealed


def opened(document, sealed):
    """The plaintext of what came for a document.

    Raises DoesNotOpenError: nothing of a chunk is given out that is not what was sealed.
    """
    plaintext, at = [], 0
    for segment in document["segments"]:
        end = at + segment["sealed_bytes"]
        if end > len(sealed):
            raise DoesNotOpenError("cut off")
        piece = open_segment(segment, sealed[at:end])
        plaintext.append(piece[segment["skip"] : segment["skip"] + segment["bytes"]])
        at = end
    if at != len(sealed):
        raise DoesNotOpenError("more than was promised")
    return b"".join(plaintext)


def open_segment(segment, sealed):
    """All plaintext of a segment: C2SP chunked-encryption, from a chunk in the middle on."""
    header = base64.b64decode(segment["header"])
    info = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0" + header[:24]
    info += base64.b64decode(segment["context"])
    derived = HKDFExpand(SHA512(), 76, info).derive(base64.b64decode(segment["key"]))
    if not hmac.compare_digest(derived[44:], header[24:]):
        raise DoesNotOpenError("commitment")
    cipher, base_nonce = AESGCM(derived[:32]), int.from_bytes(derived[32:44])
    pieces = [sealed[at : at + SEALED_CHUNK] for at in range(0, len(sealed), SEALED_CHUNK)]
    if segment["is_last"] and len(sealed) % SEALED_CHUNK == 0:
        raise DoesNotOpenError("the last chunk is missing")
    plaintext = []
    for number, piece in enumerate(pieces, segment["first_chunk"]):
        try:
            nonce = (base_nonce ^ number).to_bytes(12)
            plaintext.append(cipher.decrypt(nonce, piece, None))
        except Exception as error:
            raise DoesNotOpenError(f"chunk {number}") from error
    return b"".join(plaintext)


def get(server, path, **given):
    """Plaintext of an object, or of what is asked of it."""
    document = offer(server, path, **given)
    return opened(document, fetch(server, document))


# Writing.


def announce(server, path, length, *, query="", headers=None, **given):
    """Announces an upload: (status, document or body)."""
    headers = {"x-coffer-transfer-length": str(length)} | (headers or {})
    query = "coffer-transfer=" + (f"&{query}" if query else "")
    status, _, body = raw.send(server, "POST", path, query=query, headers=headers, **given)
    return status, json.loads(body) if status == 200 else body


def announced(server, path, length, **given):
    """The document of an upload that is to come sealed."""
    status, document = announce(server, path, length, **given)
    assert status == 200 and document["transfer"] == "sealed", (status, document)
    return document


def seal(document, plaintext):
    """The message that was asked for."""
    key, context = (base64.b64decode(document[name]) for name in ("key", "context"))
    encryptor = Cobblestone256Encryptor(key, context)
    return encryptor.update(plaintext) + encryptor.finalize()


def commit(server, path, ticket, *, query="", headers=None, **given):
    """Commits what has come: (status, headers, body)."""
    headers = {"x-coffer-transfer": ticket} | (headers or {})
    return raw.send(server, "PUT", path, query=query, headers=headers, **given)


def arrive(server, path, plaintext, **given):
    """Announces an upload and sends it. Returns the ticket to commit by."""
    document = announced(server, path, len(plaintext), **given)
    assert request(server, "PUT", document["ticket"], seal(document, plaintext)) == (204, b"")
    return document["ticket"]


def put(server, path, plaintext, *, headers=None, query="", **given):
    """Puts an object, or a part, sealed; the headers of the answer."""
    ticket = arrive(server, path, plaintext, query=query, **given)
    answer = commit(server, path, ticket, query=query, headers=headers, **given)
    assert answer[0] == 200, answer
    return answer[1]


# Streams that are cut by the test, or by the server.


class Slow:
    """A GET at the data port that takes a little at a time."""

    def __init__(self, server, document, *, receive_buffer=1 << 16):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", server.data_port))
        self.socket.sendall(f"GET /transfer/{document['ticket']} HTTP/1.1\r\n\r\n".encode())
        self.received = len(self.socket.recv(1 << 16))
        assert self.received

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def rest(self):
        """Takes all that still comes. Returns whether the stream was reset, and all bytes."""
        try:
            while piece := self.socket.recv(1 << 20):
                self.received += len(piece)
        except ConnectionResetError:
            return True, self.received
        return False, self.received


class Dripping:
    """A PUT at the data port that sends a little at a time."""

    def __init__(self, server, document, message):
        self.socket = socket.create_connection(("127.0.0.1", server.data_port), timeout=30)
        self.message, self.sent = message, 0
        head = f"PUT /transfer/{document['ticket']} HTTP/1.1\r\n"
        self.socket.sendall(f"{head}Content-Length: {document['bytes']}\r\n\r\n".encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, count):
        piece = self.message[self.sent : self.sent + count]
        self.socket.sendall(piece)
        self.sent += len(piece)
        return len(piece)

    def ends_within(self, seconds):
        """Whether the server ends the transfer within so many seconds, however it says so."""
        self.socket.settimeout(seconds)
        try:
            answer = self.socket.recv(4096)
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return answer == b"" or answer.startswith(b"HTTP/1.1 404")


def chunks_without_end(document, count):
    """The header of a message, and then full chunks of zeros as fast as they can be sealed."""
    encryptor = Cobblestone256Encryptor(
        base64.b64decode(document["key"]), base64.b64decode(document["context"])
    )
    zeros = bytes(count * CHUNK)
    while True:
        yield encryptor.update(zeros)
