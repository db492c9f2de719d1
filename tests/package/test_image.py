"""The OCI image, made and started without a daemon."""

import json
import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, digest, write_file
from harness.programs import run
from harness.server import BINARY, ROOT, Server, clean_environment

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(os.geteuid() != 0, reason="making and starting an image takes root"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A container of the image, and buildah with a storage of its own."""
    folder = tmp_path_factory.mktemp("image")
    options = {"BINARY": str(BINARY), "OUT": str(folder), "COMPRESSION": "none"}
    command = [ROOT / "scripts/package", "image"]
    path = run(command, clean_environment() | options, timeout=500).strip()
    buildah = ["buildah", "--root", folder / "storage", "--runroot", folder / "run"]
    buildah += ["--storage-driver", "vfs"]
    name = run([*buildah, "from", f"oci-archive:{path}"], clean_environment()).strip()
    told = json.loads(run([*buildah, "inspect", name], clean_environment()))
    yield SimpleNamespace(buildah=buildah, name=name, config=told["OCIv1"]["config"])
    run([*buildah, "rm", name], clean_environment())


def test_what_it_says_of_itself(image):
    config = image.config
    assert config["Entrypoint"] + config["Cmd"] == ["/usr/bin/coffer", "serve"]
    assert config["User"] == "coffer" and config["StopSignal"] == "SIGTERM"
    assert set(config["ExposedPorts"]) == {"9000", "9001", "9002"}
    assert "COFFER_LISTEN=0.0.0.0:9000" in config["Env"]


def test_it_serves(image, tmp_path):
    """With its data in a folder outside, which tells us credentials and authority."""
    server = Server(tmp_path)
    server.data.mkdir()
    os.chown(server.data, 10001, 10001)
    command = [*image.buildah, "run", "--isolation", "chroot", "--volume"]
    command += [f"{server.data}:/var/lib/coffer", image.name, "--"]
    command += image.config["Entrypoint"] + image.config["Cmd"]
    command += ["--listen", f"127.0.0.1:{server.port}"]
    command += ["--admin-listen", f"127.0.0.1:{server.admin_port}"]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, env=clean_environment()
    )
    try:
        while not (line := process.stdout.readline()).startswith("ready"):
            assert line, f"it ended with {process.wait()}"
        assert raw.get_admin(server, "/health/ready")[0] == 200
        assert (server.data / "keystore").stat().st_uid == 10001, "it is not root"
        source = write_file(tmp_path / "source", 9 * MIB + 1)
        access_key_id, secret = server.credentials()
        environment = clean_environment() | {
            "HOME": str(tmp_path),
            "AWS_ACCESS_KEY_ID": access_key_id,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_CA_BUNDLE": str(server.ca),
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        aws = ["/usr/bin/aws", "--endpoint-url", server.endpoint, "s3"]
        run([*aws, "mb", "s3://evidence"], environment)
        run([*aws, "cp", source, "s3://evidence/recording"], environment)
        run([*aws, "cp", "s3://evidence/recording", tmp_path / "back"], environment)
        assert digest(tmp_path / "back") == digest(source)
        assert s3_client(server).list_buckets()["Buckets"][0]["Name"] == "evidence"
    finally:
        for pid in servers_below(process.pid):
            os.kill(pid, signal.SIGTERM)
        code = process.wait(60)
        process.stdout.close()
    assert code == 0


def servers_below(pid):
    """The processes below this one that run the program."""
    found = []
    for child in children(pid):
        with open(f"/proc/{child}/comm") as name:
            if name.read().strip() == "coffer":
                found.append(child)
        found += servers_below(child)
    return found


def children(pid):
    pids = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as listed:
            pids += map(int, listed.read().split())
    return pids
