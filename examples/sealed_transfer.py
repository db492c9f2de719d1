#!/usr/bin/env python3
"""Gets and puts an object of a coffer server sealed: docs/SEALED-TRANSFER.md in a hundred lines.

    sealed_transfer.py get|put https://HOST:PORT/BUCKET/NAME FILE

The access key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the server's authority
(tls/ca.pem) in AWS_CA_BUNDLE. Needs httpx, and cryptography 50 or newer.
"""

import base64
import datetime
import hashlib
import hmac
import os
import ssl
import sys

import httpx
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor

PIECE = 1 << 20
ALONE = {"connection": "close"}  # a connection for each transfer


class Signature(httpx.Auth):
    """AWS Signature Version 4 in the header `Authorization`: what is signed so is given keys."""

    def auth_flow(self, request):
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
        request.headers["x-amz-date"] = stamp
        request.headers["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD"
        signed = sorted(name for name in request.headers if name.startswith(("host", "x-")))
        path, _, query = request.url.raw_path.decode().partition("?")
        lines = [request.method, path, "&".join(sorted(query.split("&")))]
        lines += [f"{name}:{request.headers[name]}" for name in signed]
        lines += ["", ";".join(signed), "UNSIGNED-PAYLOAD"]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = b"AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"].encode()
        for text in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"]:
            key = hmac.digest(key, text.encode(), "sha256")
        request.headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, "
            f"SignedHeaders={';'.join(signed)}, Signature={key.hex()}"
        )
        yield request


def data_url(url, answer):
    scheme = "https" if answer.get("tls") else "http"
    host = httpx.URL(url).copy_with(scheme=scheme, port=answer["port"], query=None)
    return answer.get("url") or host.copy_with(path=f"/transfer/{answer['ticket']}")


def get(s3, url, path):
    unfinished, done, more, params = path + ".part", 0, {}, None
    with open(unfinished, "wb") as file:
        while True:
            answer = s3.get(url, params=params, headers={"x-coffer-transfer": "sealed"} | more)
            answer.raise_for_status()
            if "x-coffer-transfer" not in answer.headers:
                file.write(answer.content)
                break
            offer, end = answer.json(), done + int(answer.headers["x-coffer-transfer-length"])
            with s3.stream("GET", data_url(url, offer), headers=ALONE, auth=None) as sealed:
                pieces, held = sealed.raise_for_status().iter_raw(PIECE), b""
                for segment in offer["segments"]:
                    key, context, header = (
                        base64.b64decode(segment[name]) for name in ("key", "context", "header")
                    )
                    opened, missing = Cobblestone256Decryptor(key, context), segment["sealed_bytes"]
                    file.write(opened.update(header))
                    while missing:
                        held = held or next(pieces)
                        file.write(opened.update(held[:missing]))
                        missing, held = missing - len(held[:missing]), held[missing:]
                    file.write(opened.finalize())
            done = offer["range"][1]
            if done == end:
                break
            more = {"if-match": answer.headers["etag"], "range": f"bytes={done}-"}
            if "x-amz-version-id" in answer.headers:
                params = {"versionId": answer.headers["x-amz-version-id"]}
    os.replace(unfinished, path)


def put(s3, url, path):
    with open(path, "rb") as file:
        digest, length = hashlib.file_digest(file, "sha256"), file.tell()
        told = {"x-amz-checksum-sha256": base64.b64encode(digest.digest()).decode()}
        wanted = {"x-coffer-transfer-length": str(length), "x-amz-checksum-algorithm": "SHA256"}
        file.seek(0)
        answer = s3.post(url, params={"coffer-transfer": ""}, headers=wanted).raise_for_status()
        answer = answer.json()
        if answer["transfer"] == "tls":
            s3.put(url, headers=told, content=file.read()).raise_for_status()
            return

        def message():
            key, context = base64.b64decode(answer["key"]), base64.b64decode(answer["context"])
            sealed = Cobblestone256Encryptor(key, context)
            while piece := file.read(PIECE):
                yield sealed.update(piece)
            yield sealed.finalize()

        length = ALONE | {"content-length": str(answer["bytes"])}
        sent = s3.put(data_url(url, answer), headers=length, content=message(), auth=None)
        sent.raise_for_status()
        told["x-coffer-transfer"] = answer["ticket"]
        s3.put(url, headers=told, content=b"").raise_for_status()


if __name__ == "__main__":
    authority = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    with httpx.Client(auth=Signature(), verify=authority) as s3:
        {"get": get, "put": put}[sys.argv[1]](s3, *sys.argv[2:4])
