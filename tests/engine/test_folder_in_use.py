"""A command that reads a gateway's folder in the instant in which no server has it."""

import fcntl
import os
import threading
import time

from harness.engines import answered, client

BUCKET = "notes"
HELD_SECONDS = 1


def test_who_has_the_folder_for_an_instant_ends_no_gateway(first, second):
    key = first.credentials()
    there = client(second, key)
    client(first, key).create_bucket(Bucket=BUCKET)
    answered(lambda: there.head_bucket(Bucket=BUCKET))
    ended = threading.Event()
    watch = threading.Thread(target=hold_once, args=(second.data, ended))
    watch.start()
    try:
        first.stop()
        answered(lambda: there.put_object(Bucket=BUCKET, Key="k", Body=b"x"), 30)
    finally:
        ended.set()
        watch.join()
    assert second.process.poll() is None


def test_a_call_that_fails_as_it_takes_over_ends_no_gateway(first, second):
    """In its first turn, in which it has only followed."""
    key = first.credentials()
    there = client(second, key)
    there.create_bucket(Bucket=BUCKET)
    answered(lambda: there.head_bucket(Bucket=BUCKET))
    # What is opened here as it begins to serve is no file.
    lock = second.data / "lock"
    lock.unlink()
    lock.mkdir()
    first.kill()

    def has_told():
        assert "takes no part now, and tries again" in second.log()

    answered(has_told, 30)
    assert second.process.poll() is None
    lock.rmdir()
    answered(lambda: there.put_object(Bucket=BUCKET, Key="k", Body=b"x"), 60)


def hold_once(data, ended):
    """Takes the folder as soon as it is free, as a command does, and lets it go."""
    folder = os.open(data, os.O_RDONLY)
    try:
        while not ended.is_set():
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.0005)
                continue
            time.sleep(HELD_SECONDS)
            return
    finally:
        os.close(folder)
