"""Sealed copies of which earlier heads are damaged, or not those that were noted down."""

import shutil
import time
from datetime import UTC, datetime

from harness.clients import s3_client
from harness.raw import get_admin
from harness.sealed_copies import (
    caught_up,
    check_sound,
    files_in,
    keys_of,
    made,
    put,
    reached,
    replica,
    restore,
    restored,
    status,
    url_of,
    verify,
)
from harness.server import Server, coffer


def heads_in(copy):
    return sorted(files_in(copy / "heads"))


def several(server, count):
    """A state a round, with the moment and the head of each."""
    told = []
    for number in range(count):
        put(server, [f"small-{number}"])
        told.append(caught_up(server))
        # All of it was read before, and the next comes after.
        told[-1]["moment"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        time.sleep(0.05)
    return told


def number_of(told):
    return int(told["head"].split(":")[0])


def path_of(copy, told):
    [path] = [path for path in heads_in(copy) if int(path.name) == number_of(told)]
    return path


def test_the_server_goes_on_over_damaged_older_heads(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    states = several(server, 5)
    server.kill()
    damaged = [heads_in(copy)[0], path_of(copy, states[2])]
    for path in damaged:
        path.write_bytes(b"garbage\n")
    server.start()
    # A start sweeps, and meets the oldest.
    put(server, ["small-9"])
    end = time.time() + 30
    while not (told := status(server))["gaps"]:
        assert time.time() < end, told
        time.sleep(0.2)
    assert told["state"] == "following", told
    told = caught_up(server)
    assert told["problem"] is None and told["state"] == "following", told
    # All of them are found by whom it is asked for, and then in the status as well.
    events = verify(server, expect=1)
    found = [event["what"] for event in events if event["event"] == "damage"]
    for path in damaged:
        assert any(f"head {int(path.name)} of the copy does not open" in what for what in found)
    assert events[-1]["damage_count"] == 2, events
    gaps = status(server)["gaps"]
    assert any(states[1]["as_of"] <= gap["to"] <= states[3]["as_of"] for gap in gaps), gaps
    _, page = get_admin(server, "/metrics")
    assert f'coffer_replica_gaps{{replica="far"}} {len(gaps)}' in page
    # A later sweep is no different.
    server.restart()
    put(server, ["small-10"])
    assert caught_up(server)["state"] == "following"


def test_moments_that_need_no_damaged_head_are_restored(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    states = several(server, 5)
    keys = keys_of(server, tmp_path / "keys")
    server.kill()
    path_of(copy, states[2]).write_bytes(b"garbage\n")
    damaged = number_of(states[2])

    def at(index, expect):
        data = tmp_path / f"at-{index}"
        shutil.copytree(keys, data)
        return data, restored(url_of(copy), data, "--at", states[index]["moment"], expect=expect)

    for index in (0, 3, 4):
        data, events = at(index, 0)
        assert events[-1]["event"] == "done", events
        check_sound(data)
    data, events = at(2, 3)
    [event] = [event for event in events if event["event"] == "damaged"]
    assert damaged in event["heads"], events
    assert event["from"] <= states[2]["as_of"] < event["to"] <= states[3]["as_of"], (event, states)
    assert events[-1]["event"] == "done" and int(events[-1]["head"].split(":")[0]) < damaged
    check_sound(data)


def test_heads_that_the_store_lost_are_named(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    states = several(server, 5)
    keys = keys_of(server, tmp_path / "keys")
    assert verify(server)[-1]["damage_count"] == 0
    lost = path_of(copy, states[2])
    lost.unlink()

    def found():
        events = verify(server, expect=1)
        return [event["what"] for event in events if event["event"] == "damage"]

    [what] = found()
    assert f"head {int(lost.name)} of the copy is missing" in what, what
    assert any(states[1]["as_of"] <= gap["to"] for gap in status(server)["gaps"])
    # The moment before is given, and that the store withholds nothing of it is not sure.
    data = tmp_path / "at"
    shutil.copytree(keys, data)
    events = restored(url_of(copy), data, "--at", states[2]["moment"], expect=3)
    [event] = [event for event in events if event["event"] == "damaged"]
    assert number_of(states[2]) in event["heads"], events
    check_sound(data)
    # The lowest.
    for path in heads_in(copy):
        if int(path.name) < number_of(states[3]):
            path.unlink()
    [what] = found()
    assert f"heads 1 to {number_of(states[3]) - 1} of the copy are missing" in what, what
    # All of them.
    server.kill()
    shutil.rmtree(copy / "heads")
    data = tmp_path / "none"
    shutil.copytree(keys, data)
    assert "the copy has no heads" in restore(url_of(copy), data, expect=1)


def test_a_noted_head_is_compared_with_that_very_head(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    states = several(server, 3)
    keys = keys_of(server, tmp_path / "keys")
    number, sha256 = states[1]["head"].split(":")
    wrong = f"{number}:{sha256[::-1]}"

    def with_head(name, head, expect):
        data = tmp_path / name
        shutil.copytree(keys, data)
        return coffer("restore", "--from", url_of(copy), "--data", data, "--head", head, text=True)

    done = with_head("right", states[1]["head"], 0)
    assert done.returncode == 0 and "window" not in done.stdout, done
    done = with_head("wrong", wrong, 1)
    assert done.returncode == 1 and "its hash is not the one that is known" in done.stderr, done
    assert not (tmp_path / "wrong" / "system.db").exists()
    oldest = heads_in(copy)[0]
    number = int(oldest.name)
    oldest.unlink()
    done = with_head("left", f"{number}:{sha256}", 0)
    assert done.returncode == 0 and "out of the window" in done.stdout, done


def test_a_moment_that_is_yet_to_come_is_told(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    several(server, 1)
    keys = keys_of(server, tmp_path / "keys")
    events = restored(url_of(copy), keys, "--at", "2126-01-01")
    assert [event["event"] for event in events] == ["later", "done"], events


def test_a_bucket_of_after_the_moment_is_no_damage(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    [told] = several(server, 1)
    time.sleep(1.1)
    s3_client(server).create_bucket(Bucket="later")
    caught_up(server)
    keys = keys_of(server, tmp_path / "keys")
    server.kill()
    done = restore(url_of(copy), keys, "--at", told["moment"])
    assert done["bucket_count"] == 1, done
    check_sound(keys)
    told = coffer("verify", "--data", keys, text=True)
    assert "the keystore has a key for bucket" in told.stdout, told


def test_a_store_whose_certificate_is_not_trusted_is_told_with_what_to_do(server, tmp_path):
    with Server(made(tmp_path / "other")) as other:
        url = f"s3://copies?endpoint={other.endpoint}&credentials={other.credentials_path}"
        error = replica(server, "add", "far", url, expect=1)
    assert "certificate is not trusted" in error and "`&ca=FILE`" in error, error


def test_a_newest_head_that_is_damaged_still_ends_the_copy(server, tmp_path):
    copy = tmp_path / "copy"
    replica(server, "add", "far", url_of(copy))
    several(server, 2)
    heads_in(copy)[-1].write_bytes(b"garbage\n")
    assert "heads/" in reached(server, "stopped")["problem"]
