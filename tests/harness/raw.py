"""Requests byte by byte over TLS, signed or not, for what no client library would send."""

import base64
import datetime
import hashlib
import hmac
import http.client
import socket
import ssl
import urllib.parse

from harness.clients import REGION

UNSIGNED = "UNSIGNED-PAYLOAD"


def tls_context(server):
    return ssl.create_default_context(cafile=str(server.ca))


def connect(server, timeout=30, *, port=None, host="127.0.0.1"):
    """A TLS connection to the server under the name `host`."""
    plain = socket.create_connection(("127.0.0.1", port or server.port), timeout=timeout)
    return tls_context(server).wrap_socket(plain, server_hostname=host)


def now():
    return datetime.datetime.now(datetime.UTC)


def signed_headers(server, method, path, *, query="", headers=None, payload_hash=UNSIGNED, **given):
    """Headers that sign a request with SigV4. `path` is already percent-encoded.

    `given` may hold `credentials`, `when` and `host`.
    """
    access_key_id, secret = given.get("credentials") or server.credentials()
    when = given.get("when") or now()
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    signed = {
        "host": given.get("host") or f"127.0.0.1:{server.port}",
        "x-amz-content-sha256": payload_hash,
        "x-amz-date": stamp,
    }
    signed |= {name.lower(): value for name, value in (headers or {}).items()}
    names = ";".join(sorted(signed))
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical_query = urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote, safe="~")
    lines = [method, path, canonical_query]
    lines += [f"{name}:{' '.join(signed[name].split())}" for name in sorted(signed)]
    lines += ["", names, payload_hash]
    scope = f"{day}/{REGION}/s3/aws4_request"
    hashed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashed])
    signature = hmac_sha256(signing_key(secret, day), to_sign).hex()
    signed["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return signed


def signing_key(secret, day):
    key = hmac_sha256(("AWS4" + secret).encode(), day)
    for part in (REGION, "s3", "aws4_request"):
        key = hmac_sha256(key, part)
    return key


def hmac_sha256(key, text):
    return hmac.digest(key, text.encode(), "sha256")


def request_head(method, target, headers):
    """The bytes of a request up to its body."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def send(server, method, path, *, query="", headers=None, body=b"", timeout=30, **given):
    """Sends one signed request and returns (status, headers, body)."""
    headers = {"content-length": str(len(body))} | (headers or {})
    signed = signed_headers(server, method, path, query=query, headers=headers, **given)
    target = path + ("?" + query if query else "")
    with connect(server, timeout) as connection:
        connection.sendall(request_head(method, target, signed) + body)
        return receive(connection, method)


def md5_of(body):
    """The header that tells a body's MD5."""
    return {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}


def receive(connection, method="GET"):
    """Reads one response and returns (status, headers by lower-case name, body)."""
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return response.status, headers, response.read()


def get_admin(server, path):
    """Status and text of a page of the administration."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.admin_port, context=tls_context(server), timeout=30
    )
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def metric(server, name):
    """The sum over all series of a metric; 0 where there is none."""
    status, text = get_admin(server, "/metrics")
    assert status == 200, text
    total = 0.0
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.split("{")[0] == name:
            total += float(value)
    return total
