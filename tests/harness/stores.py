"""Stores that sealed copies are put in: a folder, another coffer, and servers of others."""

import base64
import contextlib
import hashlib
import hmac
import shutil
from email.utils import formatdate

import pytest
import requests

from harness import other_servers
from harness.clients import REGION, s3_client
from harness.server import ROOT, Server, free_port

CLIENTS = ROOT / "target/clients"
KEY = ("AKIASTORE", "a secret of the store")

S3PROXY = """
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key[0]}
s3proxy.credential={key[1]}
s3proxy.ignore-unknown-headers=true
jclouds.provider=filesystem-nio2
jclouds.identity=none
jclouds.credential=none
jclouds.filesystem.basedir={folder}
"""

#: Of Azurite, and in its documentation.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@contextlib.contextmanager
def folder(at):
    yield f"file://{at / 'copy'}"


def url_of_coffer(other):
    return (
        f"s3://copies/of-first?endpoint={other.endpoint}&ca={other.ca}"
        f"&credentials={other.credentials_path}"
    )


@contextlib.contextmanager
def another_coffer(at):
    with Server(at) as other:
        s3_client(other).create_bucket(Bucket="copies")
        yield url_of_coffer(other)


def installed(name, what):
    program = CLIENTS / name
    if not program.exists():
        pytest.fail(f"{program} is missing: scripts/install-test-sdks {what}")
    return program


def url_at(endpoint, at):
    """Of a store of others that speaks S3, in a bucket that is made for it."""
    other_servers.client(endpoint, KEY).create_bucket(Bucket="copies")
    credentials = at / "credentials"
    credentials.write_text(
        f"[default]\naws_access_key_id = {KEY[0]}\naws_secret_access_key = {KEY[1]}\n"
    )
    return f"s3://copies/of-first?endpoint={endpoint}&region={REGION}&credentials={credentials}"


@contextlib.contextmanager
def s3proxy_endpoint(at, key=KEY):
    """S3Proxy, which serves other stores as S3, here a folder."""
    (at / "objects").mkdir()
    port, properties = free_port(), at / "properties"
    properties.write_text(S3PROXY.format(port=port, key=key, folder=at / "objects"))
    command = ["java", "-jar", installed("s3proxy.jar", "s3proxy"), "--properties", properties]
    with other_servers.running(command, port, at) as endpoint:
        yield endpoint


@contextlib.contextmanager
def s3proxy(at):
    with s3proxy_endpoint(at) as endpoint:
        yield url_at(endpoint, at)


@contextlib.contextmanager
def azurite(at):
    program = installed("azurite/node_modules/.bin/azurite-blob", "azurite")
    port = free_port()
    command = [shutil.which("node"), program, "--blobPort", str(port), "--location", at / "blobs"]
    command += ["--disableTelemetry", "--silent"]
    with other_servers.running(command, port, at) as endpoint:
        endpoint = f"{endpoint}/{ACCOUNT}"
        make_container(endpoint, "copies")
        credentials = at / "credentials"
        credentials.write_text(f"[storage]\naccount = {ACCOUNT}\nkey = {ACCOUNT_KEY}\n")
        yield f"az://copies/of-first?endpoint={endpoint}&credentials={credentials}"


def make_container(endpoint, name):
    """Signed by the account's key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    said = "".join(f"{header}:{value}\n" for header, value in sorted(headers.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signed = "PUT" + "\n" * 12 + said + resource
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"{endpoint}/{name}?restype=container"
    made = requests.put(url, headers=headers, timeout=20)
    assert made.status_code == 201, made.text
