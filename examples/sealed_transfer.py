"""sealed_transfer.py get|put https://HOST:PORT/BUCKET/NAME FILE: docs/SEALED-TRANSFER.md as code.
The access key is found where the aws CLI finds it, the server's authority (tls/ca.pem) is named
by AWS_CA_BUNDLE. Objects are held in memory. Needs cryptography 50 or newer; botocore signs."""
import hashlib
import os
import ssl
import sys
from base64 import b64decode, b64encode
from pathlib import Path

import httpx
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import get_session
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor

HOOKS = {"response": [lambda a: a.raise_for_status() and a.headers.pop("content-encoding", 0)]}

def sign(request):
    signed = AWSRequest(request.method, str(request.url), dict(request.headers), request.content)
    S3SigV4Auth(get_session().get_credentials(), "s3", "us-east-1").add_auth(signed)
    return request.headers.update(dict(signed.headers)) or request

def data_port(url, offer):
    scheme = "https" if offer.get("tls") else "http"
    there = httpx.URL(url).copy_with(scheme=scheme, port=offer["port"])
    return offer.get("url") or there.join(f"/transfer/{offer['ticket']}")

def put(s3, url, file):
    body = file.read_bytes()
    told = {"x-amz-checksum-sha256": b64encode(hashlib.sha256(body).digest()).decode()}
    wanted = {"x-coffer-transfer-length": str(len(body)), "x-amz-checksum-algorithm": "SHA256"}
    offer = s3.post(url, params={"coffer-transfer": ""}, headers=wanted).json()
    if offer["transfer"] == "sealed":
        sealing = Cobblestone256Encryptor(b64decode(offer["key"]), b64decode(offer["context"]))
        s3.put(data_port(url, offer), content=sealing.update(body) + sealing.finalize(), auth=None)
        told["x-coffer-transfer"], body = offer["ticket"], b""
    s3.put(url, headers=told, content=body)

def get(s3, url, file):
    head, body = s3.head(url).headers, bytearray()
    wanted = {"x-coffer-transfer": "sealed", "if-match": head["etag"]}
    version = {"versionId": head["x-amz-version-id"]} if "x-amz-version-id" in head else None
    while len(body) < int(head["content-length"]):
        answer = s3.get(url, params=version, headers=wanted | {"range": f"bytes={len(body)}-"})
        if "x-coffer-transfer" not in answer.headers:
            body += answer.content
            continue
        sealed = memoryview(s3.get(data_port(url, answer.json()), auth=None).content)
        for part in answer.json()["segments"]:
            opening = Cobblestone256Decryptor(b64decode(part["key"]), b64decode(part["context"]))
            message, sealed = sealed[: part["sealed_bytes"]], sealed[part["sealed_bytes"] :]
            body += opening.update(b64decode(part["header"]) + message) + opening.finalize()
    file.write_bytes(body)

if __name__ == "__main__":
    act = len(sys.argv) == 4 and {"get": get, "put": put}.get(sys.argv[1]) or sys.exit(__doc__)
    authority = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    with httpx.Client(auth=sign, verify=authority, event_hooks=HOOKS, timeout=None) as client:
        act(client, sys.argv[2], Path(sys.argv[3]))
