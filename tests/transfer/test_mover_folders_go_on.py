"""A folder that was interrupted on its way goes on with the same command."""

import fcntl
import json
import os
import signal
import time

import pytest

from harness.content import MIB, content, write_file
from harness.mover import Mover

FILES = 120
BYTES = 100_000
TOLD = 40

#: A file that was changed more shortly before may change once more without another time.
SETTLED_SECONDS = 1.1


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.fixture
def versioned(s3, bucket):
    status = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=status)
    return bucket


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "in").mkdir(parents=True)
    for number in range(FILES):
        path = folder / (f"in/{number:03}" if number % 2 else f"{number:03}")
        path.write_bytes(content(BYTES, number))
    time.sleep(SETTLED_SECONDS)
    return folder


def notes(mover):
    return sorted((mover.home / "coffer/folders").glob("*.jsonl"))


def broken_off(mover, number, *command):
    """Runs a command until so much is told, and ends it; what it told as done, by its names at both
    sides, and its last words."""
    process = mover.start(*command, "--json", "--jobs", "2")
    told = []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "done":
            told.append((event["from"], event["to"]))
        if len(told) == TOLD:
            process.send_signal(number)
            break
    for line in process.stdout.read().splitlines():
        # The last may be cut off.
        if line.startswith(b"{") and line.endswith(b"}"):
            event = json.loads(line)
            if event["event"] == "done":
                told.append((event["from"], event["to"]))
    words = process.stderr.read().decode()
    process.wait(60)
    assert TOLD <= len(told) < FILES
    return told, words


def done(events):
    """What went and what was kept, by its names at both sides."""
    told = [event for event in events if event["event"] == "done"]
    kept = {(it["from"], it["to"]) for it in told if it["kept_bytes"] == it["bytes"]}
    return {(it["from"], it["to"]) for it in told} - kept, kept


def versions(s3, bucket):
    """How many versions each object has."""
    counts = {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for row in page.get("Versions", []):
            counts[row["Key"]] = counts.get(row["Key"], 0) + 1
    return counts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_folder_that_is_stored_goes_on(mover, s3, versioned, tree, number):
    put = ("put", "-r", tree, f"s3://{versioned}/t/")
    told, words = broken_off(mover, number, *put)
    if number == signal.SIGINT:
        assert "the same command goes on" in words
    assert len(notes(mover)) == 1
    events = mover.events(*put)
    gone, kept = done(events)
    assert kept >= set(told)
    assert len(gone) + len(kept) == FILES
    assert (events[-1]["done"], events[-1]["failed"]) == (FILES, 0)
    assert all(event["verified"] for event in events if event["event"] == "done")
    counts = versions(s3, versioned)
    assert len(counts) == FILES
    assert {counts[to.removeprefix(f"s3://{versioned}/")] for _, to in told} == {1}
    # When all has come, the same command stores all of it.
    assert notes(mover) == []
    gone, kept = done(mover.events(*put))
    assert (len(gone), len(kept)) == (FILES, 0)


def test_what_changed_at_either_side_is_stored_again(mover, s3, versioned, tree):
    place = f"s3://{versioned}/t/"
    put = ("put", "-r", tree, place)
    told, _ = broken_off(mover, signal.SIGINT, *put)
    changed, touched, deleted, replaced, *rest = told
    path = tree / changed[0].removeprefix(f"{tree}/")
    before = path.stat()
    path.write_bytes(bytes(BYTES))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(touched[0])
    key = {to: to.removeprefix(f"s3://{versioned}/") for _, to in told}
    s3.delete_object(Bucket=versioned, Key=key[deleted[1]])
    s3.put_object(Bucket=versioned, Key=key[replaced[1]], Body=content(BYTES, 1000))
    gone, kept = done(mover.events(*put))
    assert gone >= {changed, touched, deleted, replaced}
    assert kept >= set(rest)
    for name in (changed, deleted, replaced):
        got = s3.get_object(Bucket=versioned, Key=key[name[1]])["Body"].read()
        assert got == (tree / name[0].removeprefix(f"{tree}/")).read_bytes()


def test_what_was_changed_just_before_is_compared_by_its_bytes(mover, s3, versioned, tmp_path):
    folder = tmp_path / "fresh"
    folder.mkdir()
    (folder / "late").symlink_to(folder / "missing")
    put = ("put", "-r", "--follow-links", folder, f"s3://{versioned}/")
    began = time.monotonic()
    (folder / "a").write_bytes(content(BYTES))
    mover.run(*put, code=1)
    [path] = notes(mover)
    noted = path.read_bytes()
    # Unless the machine was so busy that it came to the file late.
    assert b'{"moved"' not in noted or time.monotonic() - began > 1
    assert noted.count(b'{"begun"') == 1
    gone, kept = done(mover.events(*put, code=1))
    assert (gone, len(kept)) == (set(), 1)
    assert versions(s3, versioned) == {"a": 1}


def test_a_large_file_that_was_changed_just_before_is_stored_once(mover, s3, versioned, tmp_path):
    folder = tmp_path / "fresh"
    folder.mkdir()
    (folder / "late").symlink_to(folder / "missing")
    put = ("put", "-r", "--follow-links", folder, f"s3://{versioned}/")
    write_file(folder / "large", 20 * MIB)
    mover.run(*put, code=1)
    gone, kept = done(mover.events(*put, code=1))
    assert (gone, len(kept)) == (set(), 1)
    assert versions(s3, versioned) == {"large": 1}


def test_other_headers_store_all_again(mover, s3, bucket, tree):
    put = ("put", "-r", tree, f"s3://{bucket}/")
    broken_off(mover, signal.SIGINT, *put)
    gone, kept = done(mover.events(*put, "--content-type", "text/plain"))
    assert (len(gone), len(kept)) == (FILES, 0)


def test_damaged_notes_cost_what_they_said(mover, bucket, tree):
    put = ("put", "-r", tree, f"s3://{bucket}/")
    told, _ = broken_off(mover, signal.SIGKILL, *put)
    [path] = notes(mover)
    lines = path.read_bytes().splitlines(keepends=True)
    is_moved = [number for number, line in enumerate(lines) if line.startswith(b'{"moved"')]
    # Whatever a disk makes of one, and the last one cut off.
    lines[is_moved[0]] = b"\xff\x00" * 20 + b"\n"
    lines[-1] = lines[-1][:-5]
    path.write_bytes(b"".join(lines))
    _, kept = done(mover.events(*put))
    assert len(kept & set(told)) >= len(told) - 2
    assert notes(mover) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_folder_that_is_fetched_goes_on(mover, s3, bucket, tree, tmp_path, number):
    place, into = f"s3://{bucket}/t/", tmp_path / "into"
    mover.run("put", "-r", tree, place)
    get = ("get", "-r", place, into)
    told, words = broken_off(mover, number, *get)
    if number == signal.SIGINT:
        assert "the same command goes on" in words
    changed, removed, replaced, *rest = told
    inodes = {to: os.stat(to).st_ino for _, to in rest}
    before = os.stat(changed[1])
    with open(changed[1], "r+b") as file:
        file.write(b"changed")
    os.utime(changed[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    os.unlink(removed[1])
    key = replaced[0].removeprefix(f"s3://{bucket}/")
    s3.put_object(Bucket=bucket, Key=key, Body=content(BYTES, 1000))
    events = mover.events(*get)
    gone, kept = done(events)
    assert gone >= {changed, removed, replaced}
    # A kill may come between what is told and its note.
    unnoted = set(rest) - kept
    assert len(unnoted) <= (2 if number == signal.SIGKILL else 0)
    assert (events[-1]["done"], events[-1]["failed"]) == (FILES, 0)
    assert all(os.stat(to).st_ino == inodes[to] for _, to in set(rest) - unnoted)
    (tree / key.removeprefix("t/")).write_bytes(content(BYTES, 1000))
    for path in tree.rglob("*"):
        if path.is_file():
            assert (into / path.relative_to(tree)).read_bytes() == path.read_bytes()
    assert notes(mover) == []
    gone, kept = done(mover.events(*get))
    assert (len(gone), len(kept)) == (FILES, 0)


def test_what_failed_of_a_folder_is_tried_again_alone(mover, s3, versioned, tree):
    put = ("put", "-r", "--follow-links", tree, f"s3://{versioned}/")
    (tree / "late").symlink_to(tree / "missing")
    mover.run(*put, code=1)
    (tree / "late").unlink()
    (tree / "late").write_bytes(content(BYTES))
    gone, kept = done(mover.events(*put))
    assert ([to for _, to in gone], len(kept)) == ([f"s3://{versioned}/late"], FILES)
    assert set(versions(s3, versioned).values()) == {1}


def test_without_a_place_for_notes_it_is_said(mover, bucket, tree):
    # A folder that not even root can make.
    mover.environment |= {"XDG_STATE_HOME": "", "HOME": "/proc/none"}
    _, words = broken_off(mover, signal.SIGINT, "put", "-r", tree, f"s3://{bucket}/")
    assert "begins anew; set XDG_STATE_HOME" in words
    several = (tree / "in", tree, f"s3://{bucket}/")
    _, words = broken_off(mover, signal.SIGINT, "put", "-r", *several)
    assert "begins anew; set XDG_STATE_HOME" in words


def test_where_another_keeps_the_notes_no_other_place_is_advised(mover, bucket, tree):
    put = ("put", "-r", tree, f"s3://{bucket}/")
    broken_off(mover, signal.SIGINT, *put)
    [path] = notes(mover)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        _, words = broken_off(mover, signal.SIGINT, *put)
    assert "what another coffer moves as well, which keeps the notes" in words
    assert "XDG_STATE_HOME" not in words


def test_a_folder_that_another_moves_says_nothing_of_others(mover, bucket, tree):
    (tree / "in").rename(tree.parent / "in")
    several = (tree, tree.parent / "in")
    for folder in several:
        (folder / "late").symlink_to(folder / "missing")
    put = ("put", "-r", "--follow-links", *several, f"s3://{bucket}/")
    mover.run(*put, code=1)
    held, _ = (path.open("rb") for path in notes(mover))
    fcntl.flock(held, fcntl.LOCK_EX)
    events = mover.events(*put, code=1)
    told = [event["message"] for event in events if event["event"] == "note"]
    assert len(told) == 1 and "another coffer moves" in told[0]
    gone, kept = done(events)
    assert (len(gone), len(kept)) == (FILES / 2, FILES / 2)
