"""A gateway that serves and whose disk fails it leaves serving to another, and loses nothing."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from botocore.exceptions import ClientError

from harness.content import KIB, MIB, content
from harness.disks import free_bytes, hung, needs_mount, small_disk
from harness.engines import Gateway, answered, client, url_at
from harness.faults import HangingSync
from harness.standbys import within

BUCKET = "notes"
SIZES = {"small": 100, "middle": 300 * KIB}
NAMES = [f"{size}-{number}" for size in SIZES for number in range(6)]
#: Within which the other serves: it is to stay so for some seconds first.
LEFT_SECONDS = 60
#: Longer than a gateway with another beside it waits before it leaves.
HUNG_SECONDS = 20


def put(s3, name):
    s3.put_object(Bucket=BUCKET, Key=name, Body=content(SIZES[name.split("-")[0]], name))


def check(s3, name):
    _, got = answered(lambda: s3.get_object(Bucket=BUCKET, Key=name)["Body"].read(), LEFT_SECONDS)
    assert got == content(SIZES[name.split("-")[0]], name), name


@contextlib.contextmanager
def two_gateways(tmp_path, store, data=None):
    """The first serves; what is given is its folder."""
    gateways = [Gateway(tmp_path / name, url_at(store)) for name in ("one", "two")]
    one, two = gateways
    one.data = data or one.data
    try:
        one.start()
        two.start()
        s3 = client(two, one.credentials(), read_timeout=60)
        s3.create_bucket(Bucket=BUCKET)
        for name in NAMES:
            put(s3, name)
        yield one, s3
    finally:
        for gateway in gateways:
            gateway.close()


@contextlib.contextmanager
def only_gateway(tmp_path, store):
    """One on a small disk, with an object."""
    with small_disk(tmp_path, 80 * MIB) as disk:
        one = Gateway(tmp_path / "one", url_at(store))
        one.data = disk / "data"
        try:
            one.start()
            s3 = client(one, one.credentials(), read_timeout=60)
            s3.create_bucket(Bucket=BUCKET)
            put(s3, "small-0")
            yield one, s3, disk
        finally:
            one.close()


def fill(disk):
    """To the last byte, whatever gives way meanwhile."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4 * KIB))
            time.sleep(0.1)
    assert free_bytes(disk) < 8 * MIB


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_another_serves_where_the_disk_of_the_one_that_does_is_full(tmp_path, store):
    with (
        small_disk(tmp_path, 80 * MIB) as disk,
        two_gateways(tmp_path, store, disk / "data") as (one, s3),
    ):
        fill(disk)
        # Through the other, which forwards until it serves itself.
        answered(lambda: put(s3, "middle-after"), LEFT_SECONDS)
        for name in [*NAMES, "middle-after"]:
            check(s3, name)
        assert "leaves serving to another" in one.log()
        os.unlink(disk / "ballast")
        through_one = client(one, one.credentials(), read_timeout=60)
        check(through_one, "middle-after")
        answered(lambda: put(through_one, "small-after"), LEFT_SECONDS)
        check(s3, "small-after")


def test_another_serves_where_what_was_in_the_folder_is_gone(tmp_path, store):
    with two_gateways(tmp_path, store) as (one, s3):
        shutil.rmtree(one.data / "buckets", ignore_errors=True)
        answered(lambda: put(s3, "middle-after"), LEFT_SECONDS)
        for name in [*NAMES, "middle-after"]:
            check(s3, name)
        assert "leaves serving to another" in one.log()


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_another_serves_while_the_disk_of_the_one_that_does_hangs(tmp_path, store):
    with (
        small_disk(tmp_path, 80 * MIB) as disk,
        two_gateways(tmp_path, store, disk / "data") as (one, s3),
    ):
        credentials = one.credentials()
        with hung(disk):
            # Nothing of the first ends meanwhile, and the second serves all the same.
            answered(lambda: put(s3, "middle-after"), LEFT_SECONDS)
            for name in [*NAMES, "middle-after"]:
                check(s3, name)
            assert "leaves serving to another" in one.log()
        through_one = client(one, credentials, read_timeout=60)
        answered(lambda: put(through_one, "small-after"), LEFT_SECONDS)
        check(s3, "small-after")


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_the_only_gateway_goes_on_when_its_disk_hung(tmp_path, store):
    with only_gateway(tmp_path, store) as (one, s3, disk):
        with hung(disk):
            time.sleep(HUNG_SECONDS)
        answered(lambda: put(s3, "small-1"), LEFT_SECONDS)
        for name in ["small-0", "small-1"]:
            check(s3, name)
        assert "leaves serving to another" not in one.log()


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_the_only_gateway_says_how_much_room_it_lacks(tmp_path, store):
    """Of a store that is whole it does not say that it may have lost something."""
    with only_gateway(tmp_path, store) as (one, s3, disk):
        one.pause()
        time.sleep(7)
        one.go_on()
        fill(disk)

        def has_told():
            fill(disk)
            assert "no room was left for a state of the engine's log" in one.log()

        # What failed first may have been something else, and one failure a minute is told.
        answered(has_told, 2 * LEFT_SECONDS)
        assert "catalogs_mib=" in one.log() and "all that is left" not in one.log()
        os.unlink(disk / "ballast")
        answered(lambda: put(s3, "small-1"), LEFT_SECONDS)
        check(s3, "small-0")


@pytest.mark.skipif(needs_mount, reason="mounts a small file system")
def test_the_only_gateway_says_that_its_disk_is_full_and_when_that_is_over(tmp_path, store):
    with only_gateway(tmp_path, store) as (one, s3, disk):
        assert "no room for what is new" not in one.log()
        fill(disk)
        with pytest.raises(ClientError) as refused:
            put(s3, "middle-1")
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 507
        time.sleep(5)  # It looks each second.
        (said,) = [line for line in one.log().splitlines() if "no room for what is new" in line]
        assert "WARN" in said and f"path={one.data}" in said, said
        short = int(said.split("short_bytes=")[1].split()[0])
        assert 0 < short < 40 * MIB, said
        check(s3, "small-0")
        assert "room for what is new again" not in one.log()
        os.unlink(disk / "ballast")
        answered(lambda: put(s3, "middle-1"), LEFT_SECONDS)
        within(lambda: "room for what is new again" in one.log(), 10)
        assert one.log().count("no room for what is new") == 1


def ended(gateway, asks, seconds):
    """Its exit code, with SIGTERM sent so often, a second apart at least."""
    for _ in range(asks):
        gateway.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return gateway.process.wait(2)
    return gateway.process.wait(seconds)


@pytest.mark.parametrize(
    ("shutdown_seconds", "asks", "told"), [(1, 1, "too long"), (60, 3, "again")]
)
def test_a_gateway_whose_disk_hangs_can_be_ended(
    tmp_path, store, monkeypatch, shutdown_seconds, asks, told
):
    """By another signal, or when its time is over; and what was acknowledged is there."""
    sync = HangingSync(tmp_path, monkeypatch)
    config = f"[limits]\nshutdown-timeout-seconds = {shutdown_seconds}\n"
    one = Gateway(tmp_path / "one", url_at(store), config=config)
    try:
        one.start()
        s3 = client(one, one.credentials(), retries={"total_max_attempts": 1})
        s3.create_bucket(Bucket=BUCKET)
        put(s3, "small-0")
        sync.fail(f"{one.data}/")

        def put_in_vain():
            with contextlib.suppress(Exception):
                put(s3, "small-1")

        writer = threading.Thread(target=put_in_vain)
        writer.start()
        time.sleep(1)
        assert ended(one, asks, 20) == 1, one.log()
        assert "what was served was not closed" in one.log() and told in one.log(), one.log()
        writer.join()
        one.process = None
        sync.heal()
        one.start()
        check(client(one, one.credentials(), read_timeout=60), "small-0")
    finally:
        one.close()
