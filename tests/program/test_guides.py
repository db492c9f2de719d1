"""What the guides tell people to type does what they say."""

import shutil
import socket
import subprocess

import pytest

from harness.auditing import eventually
from harness.clients import s3_client
from harness.content import MIB, content
from harness.documents import blocks, run
from harness.server import ROOT, Server, free_port

GUIDES = ROOT / "docs" / "guides"


def found(name, language):
    """The blocks of a guide in this language."""
    text = (GUIDES / name).read_text()
    return [block for kind, block in blocks(text) if kind == language]


def typed(name):
    return "\n".join(["export DATA=coffer-data COFFER_DATA=coffer-data", *found(name, "sh")])


@pytest.fixture
def served(tmp_path):
    with Server(tmp_path, data=tmp_path / "coffer-data") as server:
        yield server


def test_age_keys(served, tmp_path):
    made, exported, taken_in = found("age-keys.md", "sh")
    run(tmp_path, f"{made}\nexport COFFER_DATA=coffer-data\n{exported}")
    with Server(tmp_path, data=tmp_path / "another"):
        said = run(tmp_path, f"export COFFER_DATA=another\n{taken_in}")
    assert "films-again" in said


def test_upgrades(served, tmp_path):
    assert "all sound" in run(tmp_path, typed("upgrades.md"))


def test_a_token(tmp_path, monkeypatch):
    (tmp_path / "tokens").mkdir()
    configuration = tmp_path / "softhsm2.conf"
    configuration.write_text(f"directories.tokendir = {tmp_path}/tokens\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(configuration))
    with Server(tmp_path, data=tmp_path / "coffer-data") as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket="mine")
        s3.put_object(Bucket="mine", Key="a", Body=b"kept")
        said = run(tmp_path, typed("token.md"))
        assert "pkcs11:token=coffer" in said and "87654321" not in said
        server.restart()
        assert s3.get_object(Bucket="mine", Key="a")["Body"].read() == b"kept"


FAILURES = 3


@pytest.fixture
def proxied(tmp_path):
    """Starts a proxy as the guide has it, and a server that trusts it; gives the latter, and a
    client of the former."""
    running = []

    def make(number, program, configure):
        trust = found("reverse-proxy.md", "toml")[number]
        limits = f"[limits]\nsign-in-failures = {FAILURES}\n"
        server = Server(tmp_path, config=limits + trust).start()
        running.append(server)
        port = free_port()
        configuration = tmp_path / "proxy.conf"
        configuration.write_text(configure(server, port))
        process = subprocess.Popen([*program, str(configuration)])
        running.append(process)
        eventually(lambda: is_open(port))
        return server, f"https://127.0.0.1:{port}"

    yield make
    for one in reversed(running):
        if isinstance(one, Server):
            one.close()
        else:
            one.terminate()
            one.wait(10)


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def moves_data(s3):
    s3.create_bucket(Bucket="mine")
    body = content(9 * MIB + 1)
    s3.put_object(Bucket="mine", Key="a b+c/\u00e9", Body=body)
    assert s3.get_object(Bucket="mine", Key="a b+c/\u00e9")["Body"].read() == body
    assert s3.list_objects_v2(Bucket="mine", Prefix="a b+")["KeyCount"] == 1


def fail_to_sign_in(endpoint, ca, source):
    """Asks from this address with a key that is none, until the server has had enough."""
    command = ["curl", "-sS", "--interface", source, "--cacert", str(ca), "-o", "/dev/null"]
    command += ["-w", "%{http_code}", "-u", "AKNOBODY000000000000:x"]
    command += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    command += ["--aws-sigv4", "aws:amz:us-east-1:s3", endpoint + "/"]
    said = [subprocess.check_output(command, text=True) for _ in range(FAILURES + 1)]
    assert said == ["403"] * FAILURES + ["503"]


def tells_addresses(server, endpoint, ca):
    fail_to_sign_in(endpoint, ca, "127.0.0.2")
    fail_to_sign_in(endpoint, ca, "127.0.0.3")
    assert "127.0.0.2" in server.log() and "127.0.0.3" in server.log()


def test_tls_passed_through_by_haproxy(proxied):
    def configure(server, port):
        text = found("reverse-proxy.md", "haproxy")[0]
        text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
        return text.replace("127.0.0.1:9000", f"127.0.0.1:{server.port}")

    haproxy = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
    assert haproxy, "haproxy is missing: scripts/install-test-tools"
    server, endpoint = proxied(0, [haproxy, "-db", "-q", "-f"], configure)
    # The certificate of the local authority has the name that clients use: 127.0.0.1.
    moves_data(s3_client(server, endpoint=endpoint))
    tells_addresses(server, endpoint, server.ca)


def test_tls_ended_by_nginx(proxied, tmp_path):
    def configure(server, port):
        text = found("reverse-proxy.md", "nginx")[0]
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
        text = text.replace("127.0.0.1:9000", f"127.0.0.1:{server.port}")
        text = text.replace("/var/lib/coffer/tls/ca.pem", str(server.ca))
        # The proxy's own certificate: the local authority's will do.
        text = text.replace("/etc/nginx/s3.pem", str(server.ca.with_name("server.pem")))
        text = text.replace("/etc/nginx/s3.key", str(server.ca.with_name("server.key")))
        folders = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return (
            f"daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log;\n"
            f"events {{}}\nhttp {{ access_log off;\n{folders}{text} }}\n"
        )

    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    assert nginx, "nginx is missing: scripts/install-test-tools"
    server, endpoint = proxied(1, [nginx, "-c"], configure)
    moves_data(s3_client(server, endpoint=endpoint))
    tells_addresses(server, endpoint, server.ca)
