"""Tests of S3 that another project wrote, and what of them is known to differ.

`conformance/expected.json` says of each test that does not pass why. One that fails and is not in
there is a failure here; so is one that is in there and passes, for then the list is out of date.
"""

import json
import subprocess

import pytest

from harness.clients import client_environment
from harness.server import ROOT

PROGRAM = ROOT / "target/clients/versitygw-tests"
EXPECTED = ROOT / "tests/clients/conformance/expected.json"


def failures(server, folder, names=()):
    """The tests that failed, and what they said."""
    results = folder / "results"
    ours = client_environment(server, folder) | {"COFFER_ENDPOINT": server.endpoint}
    # Its own HTTP client takes certificates from SSL_CERT_FILE alone.
    del ours["AWS_CA_BUNDLE"]
    subprocess.run(
        [PROGRAM, results, *names],
        env=ours,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=850,
    )
    told = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(told) > 800 or names, "tests are missing"
    return {row["name"]: row["error"] for row in told if "error" in row}


@pytest.mark.sdks
@pytest.mark.timeout(900)
def test_versitygw(server, tmp_path):
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is missing: scripts/install-test-sdks conformance")
    expected = json.loads(EXPECTED.read_text())["versitygw 1.8.0"]
    differs = {name for names in expected["differs"].values() for name in names}
    # What depends on which of two requests comes first.
    unsteady = set(expected["unsteady"])
    found = failures(server, tmp_path)
    new = {name: error for name, error in found.items() if name not in differs | unsteady}
    if new:
        # On a busy machine some give up on an answer: a second look, at few.
        again = failures(server, tmp_path, sorted(new))
        new = {name: error for name, error in new.items() if name in again}
    assert not new, json.dumps(new, indent=2)
    passed = differs - set(found) - unsteady
    assert not passed, f"no longer differ, so take them out of {EXPECTED.name}: {sorted(passed)}"
