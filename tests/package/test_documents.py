"""What README, OPERATING and the guides tell people to type, typed with the packaged program."""

import sys

import pytest

from harness.programs import run
from harness.server import BINARY, ROOT, clean_environment

TESTS = ["test_readme.py", "test_guides.py", "test_documents.py", "test_first_day.py"]


@pytest.mark.timeout(600)
def test_the_documents_hold_for_the_package(tmp_path):
    out, place = tmp_path / "out", tmp_path / "unpacked"
    place.mkdir()
    options = {"BINARY": str(BINARY), "OUT": str(out)}
    told = run([ROOT / "scripts/package", "archive"], clean_environment() | options)
    archive = out / told.splitlines()[0].rpartition("/")[2]
    unpack = ["tar", "--extract", "--strip-components=1", "--directory", place, "--file"]
    run([*unpack, archive], clean_environment())
    assert (place / "bin/coffer").stat().st_size < BINARY.stat().st_size, "it is stripped"
    said = run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"--basetemp={tmp_path / 'tests'}", "--rootdir", ROOT / "tests"),
            *(ROOT / "tests/program" / name for name in TESTS),
        ],
        clean_environment() | {"COFFER_BINARY": str(place / "bin/coffer")},
        timeout=500,
    )
    assert " passed" in said and "skipped" not in said, said
