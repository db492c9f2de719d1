"""Nothing readable at rest: not of contents, names, metadata or tags, in any form."""

import io
import secrets

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import PART_MIN_BYTES
from harness.leaks import Scan, planted
from harness.server import coffer

PLAIN = "unmistakable" + secrets.token_hex(8)
ODD = f'Ünmistäkable <&> "{secrets.token_hex(6)}" + %/☂'
HEADER_SAFE = PLAIN
"""HTTP headers carry ASCII only, so header values hold the plain marker."""


def text(size_bytes):
    """A body that is nothing but markers, so that no part of it is without."""
    line = f"{PLAIN} {ODD}\n".encode()
    return (line * (size_bytes // len(line) + 1))[:size_bytes]


def fill(server):
    """Everything that a client can tell a server, marked; some of it replaced and deleted."""
    s3 = s3_client(server)
    s3.create_bucket(Bucket="public-name")
    # What tags may hold of it.
    value = "".join(sign for sign in ODD if sign.isalnum() or sign in " +/")
    tag = {"TagSet": [{"Key": f"k {PLAIN}", "Value": value}]}
    described = {
        "Metadata": {f"m-{PLAIN}": HEADER_SAFE, "other": HEADER_SAFE},
        "ContentType": f"text/{HEADER_SAFE}",
        "ContentDisposition": f'attachment; filename="{HEADER_SAFE}"',
        "CacheControl": HEADER_SAFE,
        "ContentLanguage": HEADER_SAFE,
        "ContentEncoding": HEADER_SAFE,
        "Tagging": f"{HEADER_SAFE}={HEADER_SAFE}",
    }
    s3.put_bucket_tagging(Bucket="public-name", Tagging=tag)
    for name in (f"small {PLAIN}/{ODD}", f"large {PLAIN}/{ODD}", f"gone {PLAIN}/{ODD}"):
        size_bytes = 5_000 if name.startswith("small") else 1_000_000
        s3.put_object(Bucket="public-name", Key=name, Body=b"old" + text(size_bytes), **described)
        s3.put_object(Bucket="public-name", Key=name, Body=text(size_bytes), **described)
        s3.put_object_tagging(Bucket="public-name", Key=name, Tagging=tag)
        s3.copy_object(
            Bucket="public-name",
            Key=f"copy of {name}",
            CopySource={"Bucket": "public-name", "Key": name},
        )
        s3.put_object(
            Bucket="public-name",
            Key=f"trailer {name}",
            Body=io.BytesIO(text(size_bytes)),
            ChecksumAlgorithm="SHA256",
        )
    s3.delete_object(Bucket="public-name", Key=f"gone {PLAIN}/{ODD}")
    for complete in (True, False):
        upload(s3, f"parts {complete} {PLAIN}/{ODD}", described, complete)
    page = s3.list_objects_v2(Bucket="public-name", Prefix=f"large {PLAIN}")
    assert page["KeyCount"] == 1
    token = s3.list_objects_v2(Bucket="public-name", MaxKeys=1)["NextContinuationToken"]
    s3.list_objects_v2(Bucket="public-name", ContinuationToken=token)
    for missing in (f"missing {PLAIN}", f"missing {ODD}"):
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket="public-name", Key=missing)
    return s3


def upload(s3, name, described, complete):
    created = s3.create_multipart_upload(Bucket="public-name", Key=name, **described)
    where = {"Bucket": "public-name", "Key": name, "UploadId": created["UploadId"]}
    parts = []
    for number, size_bytes in enumerate((PART_MIN_BYTES, 3_000), 1):
        part = s3.upload_part(**where, PartNumber=number, Body=text(size_bytes))
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    if complete:
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


def half_sent(server, name):
    """An upload that has sent half of what it announced, and stays."""
    path = f"/public-name/{name}"
    headers = raw.signed_headers(server, "PUT", path, headers={"content-length": "2000000"})
    connection = raw.connect(server)
    connection.sendall(raw.request_head("PUT", path, headers) + text(1_000_000))
    return connection


def scan(server):
    found = Scan(PLAIN, ODD).folder(server.data)
    found.bytes("the log", server.log().encode())
    found.bytes("standard output", "\n".join(server.output).encode())
    assert found.files >= 8, "the data folder was not looked at"
    assert found.found == []
    secret = server.credentials()[1]
    holders = Scan(secret).folder(server.data)
    holders.bytes("the log", server.log().encode())
    assert {where for where, *_ in holders.found} == {str(server.credentials_path)}


def test_the_scan_finds_what_is_planted(tmp_path):
    for marker in (PLAIN, ODD):
        for number, (form, data) in enumerate(planted(marker)):
            folder = tmp_path / f"{number}-{marker == ODD}"
            folder.mkdir()
            (folder / "file").write_bytes(data)
            assert Scan(PLAIN, ODD).folder(folder).found, f"{form} of {marker} was not found"
        named = tmp_path / f"named {marker == ODD}"
        (named / PLAIN).mkdir(parents=True)
        assert Scan(PLAIN).folder(named).found


def test_the_scan_finds_nothing_in_noise(tmp_path):
    (tmp_path / "noise").write_bytes(secrets.token_bytes(1 << 20))
    assert Scan(PLAIN, ODD).folder(tmp_path).found == []


def test_while_it_runs_and_when_it_was_stopped(own_server):
    """The log at its wordiest is searched as well."""
    server = own_server(arguments=["--log", "debug"]).start()
    fill(server)
    connection = half_sent(server, PLAIN)
    scan(server)
    open_files = Scan(PLAIN, ODD).open_files(server.pid)
    assert open_files.files >= 2 and open_files.found == []
    connection.close()
    assert server.stop() == 0
    scan(server)


def test_when_it_was_killed(own_server):
    server = own_server().start()
    fill(server)
    connection = half_sent(server, PLAIN)
    server.kill()
    connection.close()
    scan(server)
    server.start()
    scan(server)


def test_keys_are_nowhere_readable(own_server):
    """Data keys, which `coffer offline keys` shows, lie in no file in any form."""
    server = own_server().start()
    fill(server)
    server.stop()
    for name in (f"large {PLAIN}/{ODD}", f"parts True {PLAIN}/{ODD}"):
        shown = coffer("offline", "keys", "--data", server.data, "public-name", name)
        assert shown.returncode == 0, shown.stderr
        for line in shown.stdout.decode().split('"'):
            if len(line) == 64:
                key = bytes.fromhex(line)
                keys = Scan(line, line.upper(), key.decode("latin-1"))
                keys.needles.append(("key", "raw", key))
                keys.folder(server.data)
                assert keys.found == []
