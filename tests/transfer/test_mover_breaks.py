"""What is left, and what goes on, when moving a file breaks off."""

import json
import os
import signal
import threading
import time

import pytest

from harness.content import MIB, digest, write_file
from harness.disks import needs_mount, small_disk
from harness.mover import Mover, wait_for_lines

BYTES = 160 * MIB + 77


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.fixture
def source(tmp_path):
    return write_file(tmp_path / "source", BYTES)


def uploads(s3, bucket):
    return s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])


def broken_put(mover, source, bucket, number):
    """Begins an upload and ends the program by a signal in the middle; how it ended."""
    process = mover.start("put", source, f"s3://{bucket}/x", "--jobs", "1")
    wait_for_lines(lambda: next(iter(mover.journals()), None), 4, process)
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    return process.returncode, told.decode()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_upload_goes_on_after_the_client_ended(mover, s3, bucket, source, number):
    code, told = broken_put(mover, source, bucket, number)
    if number == signal.SIGINT:
        assert code == 1
        assert "the same command goes on" in told
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert len(uploads(s3, bucket)) == 1
    done = mover.done("put", source, f"s3://{bucket}/x")
    assert 3 * 16 * MIB <= done["kept_bytes"] < BYTES
    assert done["verified"] is True
    assert mover.journals() == []
    assert uploads(s3, bucket) == []
    mover.run("get", f"s3://{bucket}/x", source.with_name("back"))
    assert digest(source.with_name("back")) == digest(source)


def test_an_interrupted_transfer_ends_in_order(mover, bucket, source, tmp_path):
    place = f"s3://{bucket}/x"
    mover.run("put", source, place)
    commands = (
        ("get", place, tmp_path / "back"),
        ("get", place, "-"),
        ("put", source, f"s3://{bucket}/y"),
    )
    for milliseconds in (60, 120, 180, 240):
        for command in commands:
            process = mover.start(*command, "--jobs", "32")
            time.sleep(milliseconds / 1000)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=30)
            assert b"panicked" not in told, (command, told)
            assert process.returncode in (0, 1, -signal.SIGINT), (command, told)


@pytest.mark.parametrize("sets_time_back", [False, True])
def test_an_upload_of_what_has_changed_since_begins_anew(mover, s3, bucket, source, sets_time_back):
    before = source.stat()
    broken_put(mover, source, bucket, signal.SIGKILL)
    with source.open("r+b") as file:
        file.write(b"changed")
    if sets_time_back:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    done = mover.done("put", source, f"s3://{bucket}/x")
    assert done["kept_bytes"] == 0
    assert uploads(s3, bucket) == []
    mover.run("get", f"s3://{bucket}/x", source.with_name("back"))
    assert digest(source.with_name("back")) == digest(source)


@pytest.mark.parametrize("sets_time_back", [False, True])
def test_a_source_that_changes_meanwhile_is_an_error(mover, s3, bucket, source, sets_time_back):
    before = source.stat()
    process = mover.start("put", source, f"s3://{bucket}/x", "--jobs", "1")
    wait_for_lines(lambda: next(iter(mover.journals()), None), 3, process)
    with source.open("r+b") as file:
        file.write(b"changed")
    if sets_time_back:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"changed while it was uploaded" in told
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert uploads(s3, bucket) == []
    assert mover.journals() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_download_goes_on_after_the_client_ended(mover, bucket, source, tmp_path, number):
    mover.run("put", source, f"s3://{bucket}/x")
    target = tmp_path / "into" / "x"
    target.parent.mkdir()
    process = mover.start("get", f"s3://{bucket}/x", target, "--jobs", "1")
    wait_for_lines(lambda: target.with_name(".x.coffer-journal"), 4, process)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert {path.name for path in target.parent.iterdir()} == {
        ".x.coffer-part",
        ".x.coffer-journal",
    }
    # What was noted and is not so any more comes again.
    with target.with_name(".x.coffer-part").open("r+b") as file:
        file.write(b"spoilt")
    done = mover.done("get", f"s3://{bucket}/x", target)
    assert 16 * MIB <= done["kept_bytes"] < BYTES
    assert digest(target) == digest(source)
    assert [path.name for path in target.parent.iterdir()] == ["x"]


def test_an_object_that_was_replaced_since_comes_anew(mover, s3, bucket, source, tmp_path):
    mover.run("put", source, f"s3://{bucket}/x")
    target = tmp_path / "x"
    process = mover.start("get", f"s3://{bucket}/x", target, "--jobs", "1")
    wait_for_lines(lambda: target.with_name(".x.coffer-journal"), 3, process)
    s3.put_object(Bucket=bucket, Key="x", Body=b"new")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"replaced while it was fetched" in told
    assert not target.exists()
    mover.run("get", f"s3://{bucket}/x", target)
    assert target.read_bytes() == b"new"


def test_transfers_go_on_when_the_server_dies_and_comes_back(own_server, tmp_path):
    server = own_server().start()
    mover = Mover(server, tmp_path / "home")
    mover.run("put", "/dev/null", "s3://none/x", code=1)
    source = write_file(tmp_path / "source", BYTES)
    make_bucket(server, "bucket-b")

    def bounce():
        server.kill()
        time.sleep(0.3)
        server.start()

    process = mover.start("put", source, "s3://bucket-b/x", "--jobs", "2", "--json")
    wait_for_lines(lambda: next(iter(mover.journals()), None), 3, process)
    bounce()
    out, told = process.communicate(timeout=90)
    assert process.returncode == 0, told
    assert any(json.loads(line)["event"] == "retrying" for line in out.splitlines())
    target = tmp_path / "target"
    process = mover.start("get", "s3://bucket-b/x", target, "--jobs", "2")
    wait_for_lines(lambda: target.with_name(".target.coffer-journal"), 3, process)
    bounce()
    _, told = process.communicate(timeout=90)
    assert process.returncode == 0, told
    assert digest(target) == digest(source)


def make_bucket(server, name):
    from harness.clients import s3_client

    s3_client(server).create_bucket(Bucket=name)


def test_a_server_that_stays_away_leaves_what_can_be_taken_up(own_server, tmp_path):
    server = own_server().start()
    make_bucket(server, "bucket-b")
    mover = Mover(server, tmp_path / "home")
    source = write_file(tmp_path / "source", BYTES)
    process = mover.start("put", source, "s3://bucket-b/x", "--jobs", "1", "--retries", "2")
    wait_for_lines(lambda: next(iter(mover.journals()), None), 4, process)
    server.kill()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"cannot be reached" in told or b"broke" in told
    server.start()
    assert mover.done("put", source, "s3://bucket-b/x")["kept_bytes"] >= 2 * 16 * MIB


@pytest.mark.skipif(needs_mount, reason="mounting needs root")
def test_a_full_disk(mover, bucket, source, tmp_path):
    mover.run("put", source, f"s3://{bucket}/x")
    with small_disk(tmp_path) as disk:
        _, told = mover.run("get", f"s3://{bucket}/x", disk / "x", code=1)
        assert "No space left" in told
        assert "make room" in told
        assert not (disk / "x").exists()


@pytest.mark.skipif(needs_mount, reason="mounting needs root")
def test_a_target_that_takes_no_writes(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="x", Body=b"x")
    with small_disk(tmp_path) as disk:
        os.system(f"mount -o remount,ro {disk}")
        _, told = mover.run("get", f"s3://{bucket}/x", disk / "x", code=1)
        assert "Read-only file system" in told
        assert told.count("\n") == 1
    _, told = mover.run("get", f"s3://{bucket}/x", tmp_path / "no/such/folder", code=1)
    assert "is no folder that there is: make it first" in told


def test_a_home_that_takes_no_writes(mover, s3, bucket, source):
    # A folder that not even root can make.
    mover.environment |= {"XDG_STATE_HOME": "", "HOME": "/proc/none"}
    events = mover.events("put", source, f"s3://{bucket}/x")
    [note] = [event["message"] for event in events if event["event"] == "note"]
    assert "will begin anew; set XDG_STATE_HOME" in note
    assert s3.head_object(Bucket=bucket, Key="x")["ContentLength"] == BYTES
    assert uploads(s3, bucket) == []


def test_a_full_output_goes_on_with_nothing(mover, bucket, source):
    mover.run("put", source, f"s3://{bucket}/x")
    with open("/dev/full", "wb") as full:
        process = mover.start("get", f"s3://{bucket}/x", "-", stdout=full)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"No space left" in told and b"goes on" not in told


def test_an_output_that_takes_no_more_ends_all_pieces(mover, s3, bucket, tmp_path):
    s3.upload_file(str(write_file(tmp_path / "short", 34 * MIB)), bucket, "x")
    for _ in range(60):
        with open("/dev/full", "wb") as full:
            process = mover.start("get", f"s3://{bucket}/x", "-", stdout=full)
            _, told = process.communicate(timeout=60)
        assert process.returncode == 1
        assert b"panicked" not in told, told.decode()


def test_two_at_once_do_not_write_to_one_file(mover, bucket, source, tmp_path):
    mover.run("put", source, f"s3://{bucket}/x")
    target = tmp_path / "x"
    process = mover.start("get", f"s3://{bucket}/x", target, "--jobs", "1")
    wait_for_lines(lambda: target.with_name(".x.coffer-journal"), 2, process)
    _, told = mover.run("get", f"s3://{bucket}/x", target, code=1)
    assert "another coffer works on" in told
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert digest(target) == digest(source)


def test_a_stream_that_is_broken_off_leaves_nothing(mover, s3, bucket, source):
    reading, writing = os.pipe()
    process = mover.start("put", "-", f"s3://{bucket}/x", stdin=reading)
    os.close(reading)
    feeding = threading.Thread(target=feed, args=(writing, source, 40 * MIB))
    feeding.start()
    feeding.join(timeout=60)
    end = time.monotonic() + 30
    while not uploads(s3, bucket) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    os.close(writing)
    assert process.returncode == 1
    assert b"nothing is stored" in told
    assert uploads(s3, bucket) == []
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def feed(writing, source, count):
    with source.open("rb") as file:
        data = file.read(count)
    view = memoryview(data)
    while view:
        view = view[os.write(writing, view) :]
