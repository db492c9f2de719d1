"""The administration API is what its description says, whatever it is sent."""

import json
import subprocess
import sys
from pathlib import Path

from harness import raw
from harness.administration import make_subject
from harness.server import ROOT, clean_environment

SECONDS = 30

# Whoever follows the audit log gets an answer without an end.
CONFIGURATION = """\
[[operations]]
include-name = "GET /v1/audit"
parameters = { follow = false }
"""

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]


def test_the_description_is_served(server):
    status, text = raw.get_admin(server, "/v1/openapi.json")
    assert status == 200
    assert text == (ROOT / "docs/openapi.json").read_text()
    assert json.loads(text)["openapi"].startswith("3.1")


def test_schemathesis_finds_nothing(own_server, tmp_path):
    """Half a minute of requests that follow the description, and of ones that do not.

    It changes whatever it finds, itself as well: then it is cut off, as it should be, and another
    one goes on. It may have erased every level by then, so that one gets a server of its own.
    """
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    for seed in range(3, 8):
        server = own_server(f"seed-{seed}").start()
        key = make_subject(
            server, f"schemathesis-{seed}", "default", "--roles",
            "data-user,system-administrator,key-custodian,auditor",
        )  # fmt: skip
        done = schemathesis(server, tmp_path, key, seed)
        assert "panicked" not in server.log()
        cut_off = done.returncode != 0 and not still_counts(server, key)
        assert server.stop() == 0, server.log()
        if not cut_off:
            break
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def still_counts(server, key):
    """Whether an access key is taken."""
    command = ["curl", "-s", "--cacert", str(server.ca), "-u", ":".join(key)]
    command += ["-o", "/dev/null", "-w", "%{http_code}", f"{server.admin_endpoint}/v1/buckets"]
    return subprocess.check_output(command, text=True) == "200"


def schemathesis(server, folder, key, seed):
    command = [
        Path(sys.executable).parent / "schemathesis", "run",
        f"{server.admin_endpoint}/v1/openapi.json",
        "--auth", ":".join(key), "--tls-verify", server.ca,
        "--checks", ",".join(CHECKS), "--max-time", str(SECONDS), "--max-failures", "3",
        "--max-examples", "40", "--seed", str(seed), "--request-timeout", "10", "--workers", "1",
        # It has no end.
        "--exclude-path", "/v1/audit/follow",
        "--no-color", "--generation-with-security-parameters", "false",
    ]  # fmt: skip
    return subprocess.run(
        [str(word) for word in command],
        env=clean_environment(), cwd=folder, capture_output=True, text=True,
        timeout=4 * SECONDS, check=False,
    )  # fmt: skip
