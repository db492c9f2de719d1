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


def test_an_address_without_a_scheme_is_told_as_one(server, tmp_path):
    migrator = Migrator(server, tmp_path / "home")
    for source in ("127.0.0.1:27100", "127.0.0.1:27100/films"):
        _, told = migrator.run("migrate", source, code=2)
        assert f"write https:// or http:// before {source}" in told, told
    (migrator.home / "127.0.0.1:27100").mkdir()
    _, told = migrator.run("migrate", "127.0.0.1:27100", code=1)
    assert "no folder that could be a bucket" in told
    _, told = migrator.run("ls", "--endpoint", "127.0.0.1:27100", code=2)
    assert "write https:// or http:// before" in told, told


def test_what_is_wrong_is_told_of_the_argument_that_has_it(server, tmp_path):
    migrator = Migrator(server, tmp_path / "home", source=server)
    _, told = migrator.run("migrate", "", code=2)
    assert "SOURCE: it is empty: write https://HOST:PORT" in told, told
    _, told = migrator.run("migrate", "https://", code=2)
    assert "SOURCE: write an address such as" in told and "--endpoint" not in told, told
    plain = server.endpoint.replace("https://", "http://")
    _, told = migrator.run("migrate", plain, code=1)
    assert f"SOURCE: {plain} does not speak plain HTTP; if it speaks TLS, write https" in told
    assert "--endpoint" not in told, told
    (tmp_path / "shares/one").mkdir(parents=True)
    report = tmp_path / "none/report"
    _, told = migrator.run("migrate", tmp_path / "shares", "--report", report, code=2)
    assert f"--report {report}: lies in a folder that is not there: make it first" in told, told
