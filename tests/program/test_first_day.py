"""The first ten minutes and the first bad day, as the guide has them, typed in their order."""

import os
import re
import shutil

import pytest

from harness.content import MIB, write_file
from harness.disks import small_disk
from harness.documents import blocks, run
from harness.server import ROOT, Server

GUIDE = ROOT / "docs" / "guides" / "first-day.md"


def shows(said, expected):
    """Whether the lines are there in this order; `…` is any text of a line."""
    at = 0
    for line in expected.splitlines():
        pattern = "[^\n]*".join(map(re.escape, line.split("…")))
        found = re.compile(rf"(?m)^[ ]*{pattern}$").search(said, at)
        assert found, f"{line!r} is not in, or before what came already:\n{said}"
        at = found.end()


class Day:
    """A shell, and the server that it asks."""

    def __init__(self, folder, disk):
        self.folder, self.disk = folder, disk
        self.server = Server(folder, data=folder / "coffer-data")
        self.exports = []

    def type(self, text):
        if text.strip() == "coffer serve":
            return self.serve(self.server)
        if text.startswith("coffer serve") and "||" not in text:
            words = text.split()
            assert words[:3] == ["coffer", "serve", "--data"]
            again = Server(self.folder, data=self.folder / words[3], arguments=words[4:])
            again.port, again.admin_port = self.server.port, self.server.admin_port
            self.server = again
            return self.serve(again)
        script = "\n".join(["export COFFER_DATA=coffer-data", *self.exports, text])
        self.exports += [line for line in text.splitlines() if line.startswith("export ")]
        script = script.replace("127.0.0.1:9000", f"127.0.0.1:{self.server.port}")
        script = script.replace("127.0.0.1:9001", f"127.0.0.1:{self.server.admin_port}")
        return run(self.folder, script)

    def serve(self, server):
        server.start()
        return "\n".join(server.output)

    def before(self, title):
        """What happens, rather than what is typed."""
        if title == "The disk is full":
            with (self.disk / "filler").open("wb", buffering=0) as filler:
                try:
                    while filler.write(bytes(64 << 10)):
                        pass
                except OSError:
                    pass
        if title == "The disk is lost":
            self.server.kill()
            for path in self.server.data.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def between(self, title):
        if title == "The disk is full":
            (self.disk / "filler").unlink(missing_ok=True)


@pytest.fixture
def day(tmp_path):
    with small_disk(tmp_path) as disk:
        os.symlink(disk / "data", tmp_path / "coffer-data")
        (disk / "data").mkdir(mode=0o700)
        write_file(tmp_path / "film", 3 * MIB)
        day = Day(tmp_path, disk)
        yield day
        day.server.close()


@pytest.mark.timeout(240)
@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own takes root")
def test_the_first_day(day):
    sections = re.split(r"(?m)^## ", GUIDE.read_text())[1:]
    assert len(sections) == 6
    for section in sections:
        title = section.splitlines()[0]
        day.before(title)
        said = None
        for language, text in blocks(section):
            if language == "sh":
                if said is not None:
                    day.between(title)
                said = day.type(text)
            else:
                shows(said, text)
