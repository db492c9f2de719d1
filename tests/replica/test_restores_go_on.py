"""A restore that was killed, and its copy has another keystore since."""

import subprocess
import time

import pytest

from harness.administration import run
from harness.age import IDENTITY, RECIPIENT
from harness.clients import s3_client
from harness.content import KIB, content
from harness.sealed_copies import BUCKET, caught_up, check_sound, put, replica, restore, url_of
from harness.server import BINARY, coffer

COUNT = 60


@pytest.fixture
def broken_off(server, tmp_path):
    """A folder that a restore was killed in, after it had begun and before it was done."""
    copy, data, identity = (tmp_path / name for name in ("copy", "restored", "identity"))
    identity.write_text(f"{IDENTITY}\n")
    s3 = s3_client(server)
    s3.create_bucket(Bucket="gone")
    put(server, ["middle-1"], bucket="gone")
    for number in range(COUNT):
        s3.put_object(Bucket=BUCKET, Key=f"m{number}", Body=content(900 * KIB, f"m{number}"))
    replica(server, "add", "far", url_of(copy), "--with-keystore", "--recipient", RECIPIENT)
    caught_up(server, seconds=60)
    words = ["restore", "--from", url_of(copy), "--data", data, "--identity", identity]
    process = subprocess.Popen(
        [BINARY, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not (data / "backup.json").exists():
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert (data / "keystore.fetched").exists(), "it was done before"
    return copy, data, identity


def test_it_goes_on_with_the_keystore_of_an_erase(server, broken_off):
    copy, data, identity = broken_off
    fetched = (data / "keystore").read_bytes()
    run(server, "bucket", "erase", "gone", "--yes")
    caught_up(server)
    done = restore(url_of(copy), data, "--identity", identity)
    assert done["bucket_count"] == 1 and done["blob_count"] == COUNT, done
    assert (data / "keystore").read_bytes() != fetched
    assert not (data / "keystore.fetched").exists()
    assert check_sound(data)["checked_count"] == COUNT
    told = coffer("offline", "cat", "gone", "middle-1", "--data", data, text=True)
    assert told.returncode != 0, told


def test_a_keystore_that_is_not_what_its_name_says_takes_the_place_of_none(broken_off):
    copy, data, identity = broken_off
    [newest] = sorted((copy / "keystores").iterdir())
    epoch, number = newest.name.split("-")
    later = newest.with_name(f"{epoch}-{int(number) + 1:012}")
    later.write_bytes(newest.read_bytes())
    error = restore(url_of(copy), data, "--identity", identity, expect=1)
    assert later.name in error, error
    later.unlink()
    assert restore(url_of(copy), data, "--identity", identity)["blob_count"] == COUNT + 1
