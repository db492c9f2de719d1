"""The systemd unit: what systemd says of it, and the server confined as it says."""

import os
import subprocess

import pytest

from harness.auditing import eventually
from harness.clients import s3_client
from harness.content import MIB, content
from harness.server import BINARY
from harness.unit import UNIT, Notified, Unit

OTHER_USER = 65534


def analyze(*words):
    command = ["systemd-analyze", "--no-pager", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout + done.stderr


def test_exposure_is_below_two():
    code, said = analyze("security", "--offline=true", "--threshold=20", UNIT)
    assert code == 0 and "Overall exposure level for coffer.service" in said, said


def test_systemd_finds_no_mistake(tmp_path):
    unit = tmp_path / "coffer.service"
    # It looks for the program, and for the manual page, which are not installed here.
    text = UNIT.read_text().replace("/usr/bin/coffer", str(BINARY))
    unit.write_text(text.replace("Documentation=man:coffer-serve(1)\n", ""))
    assert analyze("verify", unit) == (0, "")
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in analyze("verify", unit)[1], "it would find one"


@pytest.fixture
def notified(tmp_path, monkeypatch):
    with Notified(tmp_path / "notify") as notified:
        monkeypatch.setenv("NOTIFY_SOCKET", str(notified.path))
        yield notified


def test_the_service_manager_is_told(own_server, notified):
    server = own_server().start()
    ready = notified.next()
    assert ready[0] == "READY=1"
    assert (
        ready[1].startswith("STATUS=ready: S3 https://127.0.0.1:") and str(server.port) in ready[1]
    )
    assert server.stop() == 0
    assert notified.next()[0] == "STOPPING=1"


def test_nothing_hangs_on_a_service_manager_that_is_gone(own_server, notified):
    notified.close()
    server = own_server().start()
    # It is told once all is served.
    assert eventually(lambda: "service manager" in server.log())
    assert s3_client(server).list_buckets()["Buckets"] == []
    assert server.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_the_server_works_as_confined_as_the_unit_says(tmp_path, own_server):
    """A life of the server: started, written, erased, read after a restart, stopped."""
    confine = Unit().confinement()
    # Pytest's own folders are closed to others; how many there are, its plugins decide.
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)
    server = own_server(user=OTHER_USER, confine=confine)
    os.chown(server.folder, OTHER_USER, OTHER_USER)
    server.start()
    status = (server.folder.parent / f"/proc/{server.pid}/status").read_text()
    assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status
    s3 = s3_client(server)
    s3.create_bucket(Bucket="confined")
    for name, size_bytes in [("small", 1000), ("large", 9 * MIB + 1)]:
        s3.put_object(Bucket="confined", Key=name, Body=content(size_bytes))
    s3.delete_object(Bucket="confined", Key="small")
    server.restart()
    got = s3_client(server).get_object(Bucket="confined", Key="large")["Body"].read()
    assert got == content(9 * MIB + 1)
    assert server.stop() == 0
    assert "not permitted" not in server.log() and "refused to" not in server.log(), server.log()
