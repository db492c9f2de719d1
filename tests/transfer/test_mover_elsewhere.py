"""coffer put, get, ls, rm and cp with a server of others: S3Proxy, which stores files in a folder.

It is started where `COFFER_S3PROXY` names its jar
(`org.gaul:s3proxy:2.6.0:jar:jar-with-dependencies` of Maven's central repository).
"""

import os
import socket
import subprocess
import time

import pytest

from harness.content import MIB, digest, write_file
from harness.mover import Mover
from harness.server import clean_environment, free_port

JAR = os.environ.get("COFFER_S3PROXY")

pytestmark = pytest.mark.skipif(not JAR, reason="COFFER_S3PROXY names no jar of S3Proxy")


class Elsewhere(Mover):
    def __init__(self, home, endpoint):
        home.mkdir(exist_ok=True)
        self.home = home
        self.environment = clean_environment() | {
            "HOME": str(home),
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "something",
            "XDG_STATE_HOME": str(home),
        }


@pytest.fixture(scope="module")
def mover(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s3proxy")
    (folder / "data/bucket").mkdir(parents=True)
    port = free_port()
    (folder / "s3proxy.conf").write_text(
        f"s3proxy.endpoint=http://127.0.0.1:{port}\n"
        "s3proxy.authorization=aws-v2-or-v4\n"
        "s3proxy.identity=someone\ns3proxy.credential=something\n"
        "jclouds.provider=filesystem-nio2\n"
        f"jclouds.filesystem.basedir={folder / 'data'}\n"
        "jclouds.identity=x\njclouds.credential=x\n"
    )
    command = ["java", "-Xmx512m", "-jar", JAR, "--properties", folder / "s3proxy.conf"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=folder)
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    yield Elsewhere(folder / "home", f"http://127.0.0.1:{port}")
    process.terminate()
    process.wait(20)


@pytest.mark.parametrize("size", [0, 100, 16 * MIB + 1, 40 * MIB])
def test_files_go_there_and_come_back(mover, tmp_path, size):
    source = write_file(tmp_path / "source", size)
    put = mover.done("put", source, "s3://bucket/a b/ü+")
    assert put["transfer"] == "http"
    got = mover.done("get", "s3://bucket/a b/ü+", tmp_path / "back")
    assert got["bytes"] == size
    assert digest(tmp_path / "back") == digest(source)
    copied = mover.done("cp", "s3://bucket/a b/ü+", "s3://bucket/copy")
    assert copied["bytes"] == size
    out, _ = mover.run("ls", "-r", "s3://bucket")
    assert "a b/ü+" in out.decode()
    mover.run("rm", "-r", "s3://bucket/", "--yes")
    assert mover.run("ls", "s3://bucket")[0] == b""


def test_folders(mover, tmp_path):
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    for name in ("one", "inner/two", "inner/ä b+c"):
        write_file(tree / name, 5000)
    mover.run("put", "-r", tree, "s3://bucket/t")
    mover.run("get", "-r", "s3://bucket/t", tmp_path / "back")
    for name in ("one", "inner/two", "inner/ä b+c"):
        assert digest(tmp_path / "back" / name) == digest(tree / name)
