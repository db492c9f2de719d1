"""Starts that refuse older copies."""

import pytest

from harness.server import StartError


def refusal(server, *arguments):
    """The line with which a start refuses."""
    before = len(server.log())
    with pytest.raises(StartError) as failed:
        server.start()
        server.kill()
    lines = [line for line in server.log()[before:].splitlines() if line.startswith("error: ")]
    assert failed.value.code == 1 and len(lines) == 1, failed.value.log
    assert "ROLLBACK" in lines[0] and "--accept-rollback" in lines[0], lines
    return lines[0]
