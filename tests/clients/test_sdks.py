"""The AWS SDKs for JavaScript, Go and Java: administration, uploads, addresses, versions."""

import os
import subprocess

import pytest

from harness.clients import client_environment
from harness.server import ROOT

FOLDER = ROOT / "tests/clients/sdk"
# What scripts/install-test-sdks has put there.
INSTALLED = ROOT / "target/clients"

STEPS = {
    "buckets",
    "checksums",
    "conditions",
    "cors",
    "lifecycle",
    "listing",
    "locks",
    "objects",
    "policy",
    "presigned",
    "settings",
    "streams",
    "tags",
    "uploads",
    "versions",
}


def installed(name, what):
    path = INSTALLED / name
    if not path.exists():
        pytest.fail(f"{path} is missing: scripts/install-test-sdks {what}")
    return path


def run(server, home, command, folder, **environment):
    """Runs a program to its end, which must be good, and gives what it said."""
    base = client_environment(server, home)
    # The SDK for Go takes its certificates from the client that it is given alone.
    del base["AWS_CA_BUNDLE"]
    ours = {
        "COFFER_ENDPOINT": server.endpoint,
        "COFFER_CA": str(server.ca),
        "COFFER_FOLDER": str(home),
        "NODE_EXTRA_CA_CERTS": str(server.ca),
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=base | ours | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps(said):
    return {line.removeprefix("ok ") for line in said.splitlines() if line.startswith("ok ")}


def test_javascript(server, tmp_path):
    program = installed("javascript/node_modules", "javascript").parent / "steps.js"
    # Node looks for packages beside the program.
    program.unlink(missing_ok=True)
    program.symlink_to(FOLDER / "javascript/steps.js")
    command = ["node", "--preserve-symlinks", "--preserve-symlinks-main", program]
    said = run(server, tmp_path, command, program.parent)
    assert steps(said) == STEPS | {"parts", "removal"}


@pytest.mark.sdks
def test_go(server, tmp_path):
    said = run(server, tmp_path, [installed("go-steps", "go"), "-test.v"], FOLDER / "go")
    passed = {word.split()[2] for word in said.splitlines() if word.startswith("--- PASS: Test")}
    assert {name.removeprefix("Test").lower() for name in passed} == STEPS | {"parts"}


@pytest.mark.sdks
def test_java(server, tmp_path):
    classes = installed("java/classpath", "java").read_text().strip()
    folder = INSTALLED / "java"
    command = ["java", "-cp", f"{folder / 'classes'}{os.pathsep}{classes}", "coffer.Steps"]
    said = run(server, tmp_path, command, folder)
    assert steps(said) == STEPS | {"removal"}
