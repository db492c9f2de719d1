"""What coffer migrate tells of what did not come."""

import os

from harness.migration import Migrator


def test_what_is_missing_is_told_once(server, tmp_path):
    migrator, shares = Migrator(server, tmp_path / "home"), tmp_path / "shares/told-once"
    shares.mkdir(parents=True)
    (shares / "good").write_text("good")
    os.mkfifo(shares / "pipe")
    out, told = migrator.run("migrate", shares.parent, code=1)
    assert b"\n1 did not come: " in out
    assert (out.decode() + told).count(str(shares / "pipe")) == 1
    assert "standard input" not in told
    out, told = migrator.run("migrate", shares / "none", "s3://bucket", code=1)
    assert (out.decode() + told).count(str(shares / "none")) == 1
