"""Certificates: names that come later, and files that the operator renews while it serves."""

import datetime
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from harness import raw
from harness.clients import s3_client
from harness.documents import blocks, run
from harness.server import ROOT, coffer

GUIDE = ROOT / "docs/guides/certificates.md"


def openssl(*words, cwd):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=cwd)


def issue(folder, name, days):
    """A certificate of an operator's own, for 127.0.0.1; the authority is made at first."""
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    if not (folder / "own.pem").exists():
        ca = ["-x509", *ec, "-keyout", "own.key", "-out", "own.pem", "-subj", "/CN=own"]
        openssl("req", *ca, "-days", 400, cwd=folder)
    openssl(
        "req", *ec, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x", cwd=folder
    )
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    by = ["-CA", "own.pem", "-CAkey", "own.key", "-CAcreateserial", "-extfile", "ext"]
    csr = ["-req", "-in", f"{name}.csr", "-out", f"{name}.pem", "-days", days]
    openssl("x509", *csr, *by, cwd=folder)


def served(server, port, *, ca=None, name="localhost"):
    """The certificate that a strict client is shown, in DER."""
    context = ssl.create_default_context(cafile=str(ca or server.ca))
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    with context.wrap_socket(plain, server_hostname=name) as tls:
        return tls.getpeercert(binary_form=True)


def until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


@pytest.fixture
def operators(own_server, tmp_path):
    """A server with a certificate of its operator's, in files that a test may replace."""
    issue(tmp_path, "first", 100)
    for kind in ["pem", "key"]:
        shutil.copy(tmp_path / f"first.{kind}", tmp_path / f"live.{kind}")
    tls = ["--tls-cert", tmp_path / "live.pem", "--tls-key", tmp_path / "live.key"]
    return own_server(arguments=tls).start()


def test_names_and_addresses_come_later_and_clients_keep_their_authority(own_server, tmp_path):
    server = own_server().start()
    s3_client(server).create_bucket(Bucket="kept")
    known = tmp_path / "known.pem"
    shutil.copy(server.ca, known)
    server.stop()
    server.arguments += ["--domain", "s3.example.org,192.0.2.7", "--domain", "2001:db8::1"]
    server.start()
    names = ["localhost", "127.0.0.1", "s3.example.org", "kept.s3.example.org"]
    for name in [*names, "192.0.2.7", "2001:db8::1"]:
        for port in [server.port, server.admin_port]:
            served(server, port, ca=known, name=name)
    assert known.read_bytes() == server.ca.read_bytes()
    headers = raw.signed_headers(server, "GET", "/", host="kept.s3.example.org")
    tls = ssl.create_default_context(cafile=known)
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    with tls.wrap_socket(plain, server_hostname="kept.s3.example.org") as connection:
        connection.sendall(raw.request_head("GET", "/", headers | {"connection": "close"}))
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200") and b"<Name>kept</Name>" in answer


def test_an_authority_that_is_gone_is_a_warning_with_a_remedy(own_server, tmp_path):
    server = own_server().start()
    server.stop()
    tls = server.data / "tls"
    kept = {name: (tls / name).read_bytes() for name in ("ca.pem", "ca.key")}
    (tls / "ca.key").unlink()
    server.restart()
    assert "ERROR the server's certificate is good, but can't be renewed" in server.log()
    assert "put back a copy of it" in server.log()
    server.stop()
    (tls / "ca.pem").unlink()
    server.start()
    (warning,) = [line for line in server.log().splitlines() if "another was made" in line]
    assert " WARN " in warning and "put copies of its ca.pem and ca.key there" in warning
    assert server.ca.read_bytes() != kept["ca.pem"]
    # As it says.
    server.stop()
    for name, text in kept.items():
        (tls / name).write_bytes(text)
    server.start()
    served(server, server.port, ca=server.ca, name="127.0.0.1")
    assert server.ca.read_bytes() == kept["ca.pem"]


def test_a_renewed_certificate_is_taken_at_once_and_a_broken_one_is_not(operators, tmp_path):
    server, own = operators, tmp_path / "own.pem"
    ports = [server.port, server.admin_port]
    first = served(server, server.port, ca=own)
    assert [served(server, port, ca=own) for port in ports] == [first, first]

    issue(tmp_path, "second", 200)
    (tmp_path / "live.pem").write_text("nothing of the kind")
    server.process.send_signal(signal.SIGHUP)
    until(lambda: "the one before stays in use" in server.log())
    assert "live.pem" in server.log()
    # A certificate without its key is none either.
    shutil.copy(tmp_path / "second.pem", tmp_path / "live.pem")
    server.process.send_signal(signal.SIGHUP)
    until(lambda: "it is not the key of" in server.log())
    assert [served(server, port, ca=own) for port in ports] == [first, first]

    shutil.copy(tmp_path / "second.key", tmp_path / "live.key")
    server.process.send_signal(signal.SIGHUP)
    until(lambda: served(server, server.port, ca=own) != first)
    second = ssl.PEM_cert_to_DER_cert((tmp_path / "second.pem").read_text())
    assert [served(server, port, ca=own) for port in ports] == [second, second]
    assert server.stop() == 0


def told(server, path, ca):
    tls = ssl.create_default_context(cafile=ca)
    plain = socket.create_connection(("127.0.0.1", server.admin_port), timeout=10)
    with tls.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_health_and_metrics_tell_when_the_certificate_expires(operators, tmp_path):
    server, own = operators, tmp_path / "own.pem"

    def shown():
        health = told(server, "/health/ready", own)
        assert health.startswith("HTTP/1.1 200"), health
        at, days = re.search(r"certificate expires (\S+), in (\d+) days\n", health).groups()
        page = told(server, "/metrics", own)
        seconds = int(re.search(r"^coffer_certificate_expiry_seconds (\d+)$", page, re.M).group(1))
        end = datetime.datetime.fromisoformat(at)
        assert end.timestamp() == seconds
        return seconds, int(days)

    for name, days in [("first", 100), ("soon", 5)]:
        if name == "soon":
            issue(tmp_path, name, days)
            for kind in ["pem", "key"]:
                shutil.copy(tmp_path / f"{name}.{kind}", tmp_path / f"live.{kind}")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "expires soon: replace its files and send SIGHUP" in server.log())
        pem = (tmp_path / f"{name}.pem").read_text()
        context = ssl.create_default_context(cafile=own)
        context.check_hostname = False
        plain = socket.create_connection(("127.0.0.1", server.port))
        with context.wrap_socket(plain) as tls:
            end = ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"])
            assert tls.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(pem)
        assert shown() in [(end, days - 1), (end, days)]


def test_the_hook_of_the_guide(operators, tmp_path):
    """The guide's hook, as the user of the test, with a signal in place of systemd's reload."""
    hooks = [text for kind, text in blocks(GUIDE.read_text()) if kind == "bash"]
    assert len(hooks) == 1
    script = hooks[0].replace("-o coffer -g coffer ", "")
    script = script.replace("/etc/coffer/tls/key.pem", str(tmp_path / "live.key"))
    script = script.replace("/etc/coffer/tls/chain.pem", str(tmp_path / "live.pem"))
    script = script.replace("systemctl reload coffer", f"kill -HUP {operators.process.pid}")
    issue(tmp_path, "renewed", 90)
    (tmp_path / "lineage").mkdir()
    shutil.copy(tmp_path / "renewed.key", tmp_path / "lineage/privkey.pem")
    shutil.copy(tmp_path / "renewed.pem", tmp_path / "lineage/fullchain.pem")
    run(tmp_path, f"export RENEWED_LINEAGE={tmp_path}/lineage\n{script}")
    renewed = ssl.PEM_cert_to_DER_cert((tmp_path / "renewed.pem").read_text())
    for port in (operators.port, operators.admin_port):
        until(lambda port=port: served(operators, port, ca=tmp_path / "own.pem") == renewed)


def test_a_certificate_of_an_authority_is_told_as_what_it_is(own_server, tmp_path):
    """As `openssl req -x509` makes them."""
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
    (tmp_path / "conf").write_text(
        "[req]\ndistinguished_name=dn\n[dn]\n"
        "[ca]\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:TRUE\n"
        "[server]\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n"
    )
    for name in ("ca", "server"):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", 30]
        config = ["-config", "conf", "-extensions", name]
        openssl("req", "-x509", *ec, *files, *config, cwd=tmp_path)
        tls = ["--tls-cert", tmp_path / f"{name}.pem", "--tls-key", tmp_path / f"{name}.key"]
        server = own_server(name + "-marked", arguments=tls).start()
        trusting = ["--ca", tmp_path / f"{name}.pem", "--credentials", server.credentials_path]
        done = coffer("ls", "--endpoint", server.endpoint, *trusting, "--retries", "0")
        if name == "ca":
            assert "marked as an authority's (CA:TRUE)" in server.log()
            assert done.returncode == 1 and b"marked as an authority's (CA:TRUE)" in done.stderr
            assert b"CaUsed" not in done.stderr
        else:
            assert "CA:TRUE" not in server.log()
            assert done.returncode == 0, done.stderr
