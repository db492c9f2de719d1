"""A quick client: S3 over one TLS connection, administration over the local socket."""

import configparser
import http.client
import json
import re
import socket
import ssl
from types import SimpleNamespace

from harness.raw import signed_headers


class Client:
    """Asks one server."""

    def __init__(self, running, timeout=20):
        self.running = running
        self.timeout = timeout
        self.tls = None

    def close(self):
        if self.tls:
            self.tls.close()
            self.tls = None

    def credentials(self):
        """The first access key."""
        profiles = configparser.ConfigParser()
        profiles.read(self.running.data / "credentials")
        profile = profiles["default"]
        return profile["aws_access_key_id"], profile["aws_secret_access_key"]

    def s3(self, method, path, *, query="", body=b"", headers=None, key=None):
        """Status, headers by lower-case name, body."""
        given = {"content-length": str(len(body))} | (headers or {})
        place = SimpleNamespace(port=self.running.port)
        key = key or self.credentials()
        signed = signed_headers(place, method, path, query=query, headers=given, credentials=key)
        target = path + ("?" + query if query else "")
        if self.tls is None:
            context = ssl.create_default_context(cafile=str(self.running.ca))
            self.tls = http.client.HTTPSConnection(
                "127.0.0.1", self.running.port, timeout=self.timeout, context=context
            )
        try:
            self.tls.request(method, target, body=body, headers=signed)
            answer = self.tls.getresponse()
            told = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.will_close:
            self.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, told

    def admin(self, method, path, body=None):
        """Status and what was answered: JSON, lines of JSON, or nothing."""
        connection = SocketConnection(self.running.data / "admin.sock", self.timeout)
        text = None if body is None else json.dumps(body)
        headers = {} if body is None else {"content-type": "application/json"}
        try:
            connection.request(method, path, body=text, headers=headers)
            answer = connection.getresponse()
            told = answer.read().decode()
        finally:
            connection.close()
        if "ndjson" in (answer.getheader("content-type") or ""):
            return answer.status, [json.loads(line) for line in told.splitlines()]
        return answer.status, json.loads(told) if told else None


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def elements(text, name):
    """What stands in the elements of this name, in a document of S3's."""
    found = re.findall(f"<{name}>(.*?)</{name}>", text.decode(), re.DOTALL)
    return [one.replace("&quot;", '"') for one in found]
