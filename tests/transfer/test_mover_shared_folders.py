"""coffer get and put in folders where other users put files, too."""

import ctypes
import os
import stat
import threading
import time

import pytest

from harness.content import MIB, content, digest, write_file
from harness.mover import Mover, wait_for_lines

ANOTHER = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.fixture
def shared(tmp_path):
    """A folder that all may write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def plant(path):
    """A file of another user's, which all may write to, and which that user keeps open."""
    path.write_bytes(b"planted")
    path.chmod(0o666)
    os.chown(path, ANOTHER, ANOTHER)
    return path.open("rb")


def rights(path):
    found = path.stat()
    return found.st_uid, stat.S_IMODE(found.st_mode)


@needs_root
@pytest.mark.parametrize("end", ["part", "journal"])
def test_what_another_put_there_does_not_become_the_file(mover, s3, bucket, shared, end):
    body = content(100_000)
    s3.put_object(Bucket=bucket, Key="x", Body=body)
    with plant(shared / f".x.coffer-{end}") as held:
        mover.run("get", f"s3://{bucket}/x", shared / "x", umask=0o077)
        assert held.read() == b"planted"
    assert (shared / "x").read_bytes() == body
    assert rights(shared / "x") == (os.geteuid(), 0o600)
    assert os.listdir(shared) == ["x"]


@needs_root
def test_what_is_replaced_hands_on_no_rights_where_others_put_files(mover, s3, bucket, shared):
    s3.put_object(Bucket=bucket, Key="x", Body=b"from the bucket")
    with plant(shared / "x"):
        mover.run("get", f"s3://{bucket}/x", shared / "x", umask=0o077)
    assert rights(shared / "x") == (os.geteuid(), 0o600)
    # What others can't have put there hands on what it has; so does the folder's own user's.
    for mode, user in ((0o755, os.geteuid()), (0o777, ANOTHER)):
        shared.chmod(mode)
        os.chown(shared, user, -1)
        with plant(shared / "x"):
            mover.run("get", f"s3://{bucket}/x", shared / "x", umask=0o077)
        assert rights(shared / "x") == (ANOTHER, 0o666)
        assert (shared / "x").read_bytes() == b"from the bucket"


def test_a_file_with_another_name_is_not_written_to(mover, s3, bucket, shared):
    s3.put_object(Bucket=bucket, Key="x", Body=b"from the bucket")
    for end in ("part", "journal"):
        victim = shared / "victim"
        victim.write_bytes(b"precious")
        os.link(victim, shared / f".x.coffer-{end}")
        mover.run("get", f"s3://{bucket}/x", shared / "x")
        assert victim.read_bytes() == b"precious"
        assert (shared / "x").read_bytes() == b"from the bucket"


def test_an_own_unfinished_file_goes_on_and_another_in_its_place_does_not(
    mover, bucket, shared, tmp_path
):
    source = write_file(tmp_path / "source", 100 * MIB)
    mover.run("put", source, f"s3://{bucket}/x")
    target, part = shared / "x", shared / ".x.coffer-part"
    for is_another in (False, True):
        process = mover.start("get", f"s3://{bucket}/x", target, "--jobs", "1")
        wait_for_lines(lambda: shared / ".x.coffer-journal", 3, process)
        process.kill()
        process.communicate(timeout=30)
        if is_another:
            copy = shared / "copy"
            copy.write_bytes(part.read_bytes())
            copy.rename(part)
        got = mover.done("get", f"s3://{bucket}/x", target)
        assert (got["kept_bytes"] == 0) == is_another
        assert digest(target) == digest(source)
        target.unlink()


@needs_root
def test_a_report_is_not_written_to_what_another_put_there(mover, bucket, shared, tmp_path):
    tree, report = tmp_path / "tree", shared / "report"
    tree.mkdir()
    (tree / "a").write_text("a")
    with plant(shared / ".report.coffer-part") as held:
        command = ("migrate", tree, f"s3://{bucket}", "--report", report)
        mover.run(*command, umask=0o077)
        assert held.read() == b"planted"
    assert rights(report) == (os.geteuid(), 0o600)
    assert report.read_bytes()


@needs_root
def test_a_report_follows_no_link_that_another_put_there(mover, bucket, shared, tmp_path):
    tree, victim, link = tmp_path / "tree", tmp_path / "victim", shared / "report"
    tree.mkdir()
    (tree / "a").write_text("a")
    victim.write_text("precious")
    link.symlink_to(victim)
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    over = tmp_path / "over"
    over.symlink_to(link)
    for report in (link, over):
        command = ("migrate", tree, f"s3://{bucket}", "--report", report)
        _, told = mover.run(*command, code=2)
        assert "is a link that another user may have put there" in told
        assert victim.read_text() == "precious"
    # One of this user's counts, and so does another's where others put nothing.
    os.chown(link, os.geteuid(), -1, follow_symlinks=False)
    mover.run(*command)
    assert victim.read_text().startswith("{") and link.is_symlink()
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    shared.chmod(0o755)
    mover.run(*command)


@needs_root
def test_a_report_goes_through_no_folder_that_another_put_there(mover, bucket, shared, tmp_path):
    tree, private, way = tmp_path / "tree", tmp_path / "private", shared / "way"
    tree.mkdir()
    private.mkdir()
    (tree / "a").write_text("a")
    victim = private / "report"
    victim.write_text("precious")
    shared.chmod(0o1777)
    way.symlink_to(private)
    os.chown(way, ANOTHER, ANOTHER, follow_symlinks=False)
    theirs = shared / "theirs"
    theirs.mkdir()
    (theirs / "way").symlink_to(private)
    for planted in (theirs, theirs / "way"):
        os.chown(planted, ANOTHER, ANOTHER, follow_symlinks=False)
    over = tmp_path / "over"
    over.symlink_to(way)
    relative = shared / "way" / ".." / "private" / "report"
    for report in (way / "report", over / "report", relative, theirs / "way" / "report"):
        _, told = mover.run("migrate", tree, f"s3://{bucket}", "--report", report, code=2)
        assert "/way: is a link that another user may have put there" in told
        assert victim.read_text() == "precious"
        assert os.listdir(private) == ["report"]
    # Folders of others, and links of this user's, lead nowhere that was not meant.
    mover.run("migrate", tree, f"s3://{bucket}", "--report", theirs / "report")
    assert (theirs / "report").read_text().startswith("{")
    os.chown(way, os.geteuid(), -1, follow_symlinks=False)
    mover.run("migrate", tree, f"s3://{bucket}", "--report", over / "report")
    assert victim.read_text().startswith("{")


def test_a_link_that_is_put_in_the_way_is_not_gone_through(mover, s3, bucket):
    theirs, outside = mover.home / "f/theirs", mover.home / "outside"
    for folder in (theirs, outside):
        folder.mkdir(parents=True)
        write_file(folder / "large", 20 * MIB, folder.name)
    # What was just changed is waited for, and opened again.
    os.utime(theirs / "large")
    process = mover.start("put", "-r", "f", f"s3://{bucket}/")
    time.sleep(0.6)
    theirs.rename(mover.home / "moved")
    theirs.symlink_to(outside)
    _, told = process.communicate(timeout=60)
    # On a slow machine it may be there before the folder is looked through.
    assert process.returncode == 1 and b"link" in told, told
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


class Exchanging:
    """Has a folder and a link change places, over and over."""

    def __init__(self, folder, link):
        self.names = [str(path).encode() for path in (folder, link)]
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._exchange)

    def _exchange(self):
        libc, here, exchange = ctypes.CDLL(None), -100, 2
        while not self.is_over.wait(0.0003):
            assert libc.renameat2(here, self.names[0], here, self.names[1], exchange) == 0

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def test_nothing_is_fetched_through_a_link_that_takes_the_place_of_a_folder(
    mover, s3, bucket, tmp_path
):
    for number in range(200):
        s3.put_object(Bucket=bucket, Key=f"p/a/{number}", Body=b"from the bucket")
    to, outside, link = (tmp_path / name for name in ("to", "outside", "link"))
    (to / "a").mkdir(parents=True)
    outside.mkdir()
    link.symlink_to(outside)
    with Exchanging(to / "a", link):
        for _ in range(2):
            mover.start("get", "-r", f"s3://{bucket}/p/", to).communicate(timeout=120)
    assert os.listdir(outside) == []
    mover.run("get", "-r", f"s3://{bucket}/p/", tmp_path / "new")
    assert len(os.listdir(tmp_path / "new/a")) == 200
