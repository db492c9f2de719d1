"""`coffer serve` as its user meets it."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import raw
from harness.clients import client_environment, s3_client
from harness.programs import run
from harness.server import BINARY, ROOT, StartError, clean_environment, coffer, free_port


def test_the_first_start_tells_what_to_paste(own_server, tmp_path):
    server = own_server().start()
    told = "\n".join(server.output)
    assert server.endpoint in told
    lines = [line.strip() for line in server.output]
    exports = [line for line in lines if line.startswith("export ")]
    assert exports, told
    commands = [line for line in lines if line.startswith("aws ")]
    assert commands, told
    # A user pastes them into a shell.
    environment = clean_environment() | {"HOME": str(tmp_path)}
    script = "set -e\n" + "\n".join([*exports, *commands])
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    assert server.credentials()[1] not in told, "the secret is in the file, not on the terminal"


def test_a_later_start_tells_to_paste_what_makes_nothing(own_server):
    server = own_server().start()
    assert any(" s3 mb " in line for line in server.output), server.output
    server.restart()
    [command] = [line for line in server.output if line.startswith("aws ")]
    assert command == f"aws --endpoint-url {server.endpoint} s3 ls"


def test_ready_is_ready(server):
    ready = [line for line in server.output if line.startswith("ready")]
    assert len(ready) == 1
    assert f"{server.port}" in ready[0]
    assert s3_client(server).list_buckets()["Buckets"] == []


def test_credentials_are_an_aws_profile(server, client_env):
    environment = {k: v for k, v in client_env.items() if not k.startswith("AWS_")}
    environment |= {
        "AWS_SHARED_CREDENTIALS_FILE": str(server.credentials_path),
        "AWS_CA_BUNDLE": str(server.ca),
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    run(["/usr/bin/aws", "--endpoint-url", server.endpoint, "s3", "ls"], environment)


def test_health_and_metrics_need_no_secrets(server):
    assert raw.get_admin(server, "/health/live")[0] == 200
    assert raw.get_admin(server, "/health/ready")[0] == 200
    status, text = raw.get_admin(server, "/metrics")
    assert status == 200
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rpartition(" ")[2]) > 0
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[:1] != "#"}
    assert {"coffer_s3_requests_total", "coffer_damage_total", "coffer_stored_bytes_total"} <= names
    assert raw.get_admin(server, "/nothing-here")[0] == 404


def test_metrics_count(server):
    s3 = s3_client(server)
    before = raw.metric(server, "coffer_stored_bytes_total")
    s3.create_bucket(Bucket="counted")
    s3.put_object(Bucket="counted", Key="a", Body=bytes(12_345))
    assert raw.metric(server, "coffer_stored_bytes_total") - before == 12_345


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", os.uname().nodename])
def test_the_certificate_is_for_this_machine(server, name):
    with raw.connect(server, host=name) as connection:
        assert connection.version() == "TLSv1.3"


def test_ipv6(own_server):
    server = own_server()
    port = server.port
    server.arguments += ["--listen", f"[::1]:{port}"]
    command = [BINARY, "serve", "--data", str(server.data), "--listen", f"[::1]:{port}"]
    command += ["--admin-listen", f"127.0.0.1:{server.admin_port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment())
    try:
        while not process.stdout.readline().startswith("ready"):
            assert process.poll() is None
        s3 = s3_client(server, endpoint=f"https://[::1]:{port}")
        assert s3.list_buckets()["Buckets"] == []
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


def test_everything_from_a_file(tmp_path):
    port, admin_port = free_port(), free_port()
    config = tmp_path / "coffer.toml"
    config.write_text(
        f'data = "store"\nlisten = "127.0.0.1:{port}"\nadmin-listen = "127.0.0.1:{admin_port}"\n'
    )
    process = subprocess.Popen(
        [BINARY, "serve", "--config", str(config)],
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    try:
        while not process.stdout.readline().startswith("ready"):
            assert process.poll() is None
        assert (tmp_path / "store/keystore").exists(), "relative to the file's folder"
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


def test_make_run_serves(own_server):
    """The README's first command, with a folder and ports of its own.

    What it builds is built already, or these tests would not run; `true` stands in for cargo.
    """
    server = own_server()
    options = ["--data", server.data, "--listen", f"127.0.0.1:{server.port}"]
    options += ["--admin-listen", f"127.0.0.1:{server.admin_port}"]
    process = subprocess.Popen(
        ["make", "-s", "run", "CARGO=true", "ARGS=" + " ".join(map(str, options))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        start_new_session=True,
    )
    try:
        while not (line := process.stdout.readline()).startswith("ready"):
            assert line, f"it ended with {process.wait()}"
        assert s3_client(server).list_buckets()["Buckets"] == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def test_unknown_keys_are_errors(own_server):
    server = own_server(config="lisen = 1\n")
    with pytest.raises(StartError) as caught:
        server.start()
    assert caught.value.code == 2
    assert "lisen" in caught.value.log
    assert not server.data.exists()


def test_data_may_come_from_the_environment(tmp_path):
    done = subprocess.run(
        [BINARY, "offline", "ls"],
        env=clean_environment() | {"COFFER_DATA": str(tmp_path / "from-environment")},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode != 0 and "from-environment" in done.stderr


def test_what_the_environment_sets_is_not_told_as_required():
    environment = clean_environment()
    environment |= {"COFFER_DATA": "/nowhere", "COFFER_CONFIG": "/no", "AWS_CA_BUNDLE": "/none"}

    def typed(*words):
        options = {"capture_output": True, "text": True, "timeout": 20, "check": False}
        return subprocess.run([BINARY, *words], env=environment, **options)

    wrong = typed("bucket", "create")
    assert wrong.returncode == 2
    assert "Usage: coffer bucket create <NAME>" in wrong.stderr, wrong.stderr
    told = typed("serve", "--help")
    assert told.returncode == 0 and "COFFER_DATA" in told.stdout


def test_a_port_that_is_taken(own_server, server):
    other = own_server()
    other.port = server.port
    with pytest.raises(StartError) as caught:
        other.start()
    assert f"{server.port}" in caught.value.log


def test_certificates_of_the_operator(own_server, tmp_path):
    """With --tls-cert and --tls-key the server shows these and no others."""
    run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + [
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=operator",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ]
        + ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        clean_environment(),
    )
    server = own_server(
        arguments=["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    ).start()
    environment = client_environment(server, tmp_path)
    environment["AWS_CA_BUNDLE"] = str(tmp_path / "cert.pem")
    run(["/usr/bin/aws", "--endpoint-url", server.endpoint, "s3", "ls"], environment)


def test_help_has_examples():
    for command in (["serve"], ["verify"], ["offline"], []):
        done = coffer(*command, "--help")
        assert done.returncode == 0 and b"Examples:" in done.stdout


def test_start_is_quick(own_server):
    server = own_server().start()
    assert server.start_seconds < 5, "a first start makes keys and certificates"
    began = time.monotonic()
    server.restart()
    assert time.monotonic() - began < 4
    assert server.start_seconds < 2


def test_an_act_whose_server_was_stopped_is_in_doubt(tmp_path):
    """As where a long one is cut off: it may have been done."""

    def closes():
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "admin.sock"))
        listener.listen()
        threading.Thread(target=closes, daemon=True).start()
        done = coffer("level", "create", "x", "--rank", "3", "--data", tmp_path, text=True)
        assert done.returncode != 0 and "version" not in done.stderr, done
        assert "closed the connection" in done.stderr and "in doubt" in done.stderr, done
        assert "coffer audit show" in done.stderr, done
        done = coffer("level", "list", "--data", tmp_path, text=True)
        assert "ask again" in done.stderr and "in doubt" not in done.stderr, done
