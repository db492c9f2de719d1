"""The archive for other systems."""

import tarfile

import pytest

from harness.content import digest
from harness.programs import run
from harness.server import BINARY, ROOT, clean_environment

EPOCH = 1_700_000_000


def archive(out):
    options = {"BINARY": str(BINARY), "OUT": str(out), "SOURCE_DATE_EPOCH": str(EPOCH)}
    told = run([ROOT / "scripts/package", "archive"], clean_environment() | options)
    return [out / line.rpartition("/")[2] for line in told.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return archive(tmp_path_factory.mktemp("archive"))


def test_it_runs_where_it_is_unpacked(made, tmp_path):
    unpack = ["tar", "--extract", "--strip-components=1", "--directory", tmp_path, "--file"]
    run([*unpack, made[0]], clean_environment())
    assert run([tmp_path / "bin/coffer", "--version"], clean_environment()).startswith("coffer ")
    for path in ("share/man/man1/coffer-serve.1", "share/doc/coffer/LICENSE-APACHE"):
        assert (tmp_path / path).stat().st_size > 100
    assert made[0].stat().st_size < BINARY.stat().st_size / 2, "stripped and compressed"
    with tarfile.open(made[1]) as symbols:
        assert symbols.getnames() == ["coffer.debug"]


def test_one_program_makes_one_archive(made, tmp_path):
    assert [digest(path) for path in archive(tmp_path)] == [digest(path) for path in made]
    with tarfile.open(made[0]) as opened:
        members = opened.getmembers()
    assert {(member.mtime, member.uid, member.gid) for member in members} == {(EPOCH, 0, 0)}


def test_what_is_typed_wrong_is_told(tmp_path):
    with pytest.raises(AssertionError, match="scripts/package deb"):
        run([ROOT / "scripts/package"], clean_environment() | {"BINARY": str(BINARY)})
    with pytest.raises(AssertionError, match="build it first: make build"):
        run([ROOT / "scripts/package", "deb"], clean_environment() | {"BINARY": "/nowhere"})
