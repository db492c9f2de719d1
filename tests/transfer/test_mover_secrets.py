"""Secrets that were written into addresses are neither told nor sent."""

import pytest

from harness.mover import Mover

SECRETS = (
    "https://key:hidden@h:9000/b",
    "https://h/b/k?X-Amz-Signature=hidden",
    "https://h/b/k?X-Amz-Credential=a@b&X-Amz-Signature=hidden",
    "file://key:hidden@h/b",
)
ENCODED = (
    "https://key%3Ahidden%40h:9000",
    "https://key:hidden%40h:9000/b",
    "https://h/b/k%3FX-Amz-Signature%3Dhidden",
)
PLACES = (
    *SECRETS,
    *ENCODED,
    "key%3Ahidden@h/b",
    "k:hidden%40h",
    "s3://key%3Ahidden%40h/b",
    "key:hidden@h/b",
    "s3://key:hidden@h/b",
    "s3://b?X-Amz-Signature=hidden",
)


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def test_secrets_in_addresses_are_refused_untold(mover, tmp_path):
    (tmp_path / "home/f").write_text("f")
    commands = [
        (["ls"], []),
        (["rm"], []),
        (["rm", "-r", "--yes"], []),
        (["get"], ["x"]),
        (["put", "f"], []),
        (["cp"], ["s3://b/k"]),
        (["cp", "s3://b/k"], []),
        (["migrate", "."], []),
    ]
    cases = [(*before, place, *behind) for before, behind in commands for place in PLACES]
    cases += [("migrate", place) for place in SECRETS]
    cases += [("put", place, "s3://b/") for place in SECRETS]
    cases += [("get", "s3://b/k", place) for place in SECRETS]
    cases += [("put", "key:hidden@h:9000", "s3://b/"), ("put", "-r", "key:hidden@h", "s3://b/")]
    cases += [("put", "f", "key:hidden@h", "s3://b/"), ("get", "s3://b/k", "key:hidden@h")]
    cases += [("ls", "--endpoint", place) for place in SECRETS]
    cases += [("put", place, "s3://b/") for place in ENCODED]
    cases += [("put", "key%3Ahidden@h:9000", "s3://b/"), ("get", "s3://b/k", "key:hidden%40h")]
    cases += [("ls", "--endpoint", place) for place in ENCODED]
    cases += [("migrate", place, "--source-profile", "p") for place in ENCODED]
    cases += [("bucket", "list", "--endpoint", "https://h?hidden")]
    cases += [("bucket", "list", "--endpoint", "https://key%3Ahidden%40h:9000")]
    cases += [("put", "f", "s3://b/", "--metadata", "hidden")]
    cases += [("put", "f", "s3://b/", "--metadata", "hid\nden=hidden")]
    cases += [("migrate", ".", "--report", place) for place in ("key:hidden@h", *SECRETS)]
    for case in cases:
        for more in ((), ("--json",)):
            out, told = mover.run(*case, *more, code=2)
            assert b"hidden" not in out and "hidden" not in told, (case, told)
            assert told, case


def test_a_secret_in_the_place_of_a_file_with_one_is_untold(mover, tmp_path):
    (tmp_path / "home/f").write_text("f")
    for secret in ("key:hidden@h", "key:hidden", "hidden/" + "x" * 40, "hidden" + "x" * 300):
        for command in (
            ("ls", "s3://b", "--credentials", secret),
            ("put", "f", "s3://b/", "--credentials", secret),
            ("bucket", "list", "--credentials", secret),
            ("migrate", "https://h", "--source-credentials", secret),
        ):
            running = mover.start(*command)
            out, told = running.communicate(timeout=60)
            assert running.returncode in (1, 2)
            assert b"hidden" not in out + told and told, (command, told)
    # The name of one that is there is told.
    _, told = mover.run("ls", "s3://b", "--credentials", "f", code=1)
    assert "f: has no [default] with aws_access_key_id" in told


def test_ordinary_names_are_told_and_moved(mover, s3, bucket):
    for name in ("12:30@home.txt", "ann@example.org: minutes", "./photo:berlin@home.jpg"):
        _, told = mover.run("put", name, f"s3://{bucket}/", code=1)
        assert f"{name}: " in told, told
    # A file that is there has that name.
    (mover.home / "photo:berlin@home.jpg").write_text("x")
    mover.run("put", "photo:berlin@home.jpg", f"s3://{bucket}/")
    mover.run("get", f"s3://{bucket}/photo:berlin@home.jpg", "./other:berlin@home.jpg")
    assert (mover.home / "other:berlin@home.jpg").read_text() == "x"
