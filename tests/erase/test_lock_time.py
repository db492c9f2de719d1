"""The time by which object locks end: after a stop of more than a week, and as the clock is set."""

from datetime import UTC, datetime, timedelta

import pytest

from harness import raw
from harness.auditing import eventually, export
from harness.clients import refused, s3_client
from harness.custodian import WAITS, ask, ask_as, run, subject
from harness.faults import library
from harness.server import coffer

DAY = 86_400
AHEAD = 30 * DAY


def soon(**delta):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**delta)


def ago(seconds):
    """A time by the clock that is ahead, as it is typed."""
    at = datetime.now(UTC) + timedelta(seconds=AHEAD - seconds)
    return at.strftime("%Y-%m-%d %H:%M:%S")


def is_about(told, seconds):
    return abs(told - seconds) < 120


@pytest.fixture
def stopped_for_long(own_server, tmp_path, monkeypatch):
    """A server whose clock says that it was stopped for thirty days, and what it locked before."""
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    until = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": soon(days=20)}
    version = s3.put_object(Bucket="kept", Key="a", Body=b"kept", **until)["VersionId"]
    by_default = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 14}}
    s3.put_object_lock_configuration(
        Bucket="kept",
        ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": by_default},
    )
    where = {"Bucket": "kept", "Key": "a", "VersionId": version}
    shown = ask(server, "lock-time", "show")
    assert is_about(shown["behind_seconds"], 0), shown
    assert server.stop() == 0
    monkeypatch.setenv("LD_PRELOAD", str(library(tmp_path, "clock.c")))
    monkeypatch.setenv("CLOCK_AHEAD", str(AHEAD))
    server.start()
    return server, where


def back_to_the_clock(server, monkeypatch):
    """So that requests are signed at the server's time again. Locks never follow backwards."""
    assert server.stop() == 0
    monkeypatch.delenv("LD_PRELOAD")
    monkeypatch.delenv("CLOCK_AHEAD")
    server.start()
    return s3_client(server)


def test_a_custodian_says_what_time_it_is(stopped_for_long, monkeypatch):
    server, where = stopped_for_long
    [jump] = eventually(lambda: export(server, "--act", "lock-time.jump"))
    assert is_about(int(jump["details"]["wall_ms"]) / 1000, AHEAD)
    assert int(jump["details"]["followed_ms"]) == 7 * DAY * 1000
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], AHEAD - 7 * DAY)
    assert "22 days and 23 hours behind" in run(server, "lock-time", "show") or (
        "23 days and 0 hours behind" in run(server, "lock-time", "show")
    )

    told = ask(server, "lock-time", "confirm", ago(5 * DAY))
    assert is_about(told["behind_seconds"], 5 * DAY)
    [begun] = export(server, "--act", "lock-time.confirm", "--outcome", "begun")
    assert begun["details"]["lock_time"].startswith(ago(5 * DAY)[:10])
    assert begun["details"]["from"] < begun["details"]["lock_time"]
    assert export(server, "--act", "lock-time.confirm", "--outcome", "done")

    # It is kept: over a kill, and where the clock goes back.
    server.kill()
    server.start()
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], 5 * DAY)
    s3 = back_to_the_clock(server, monkeypatch)
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], -25 * DAY)
    s3.delete_object(**where)


def test_without_that_word_locks_end_late(stopped_for_long, monkeypatch):
    server, where = stopped_for_long
    s3 = back_to_the_clock(server, monkeypatch)
    with refused("AccessDenied", 403):
        s3.delete_object(**where)


def test_what_no_custodian_can_say(stopped_for_long):
    server, _ = stopped_for_long

    def refusal(time):
        done = coffer("--data", server.data, "lock-time", "confirm", time)
        assert done.returncode == 2, done.stdout
        return done.stderr.decode()

    assert "that time has not come" in refusal(ago(-DAY))
    assert "never goes back" in refusal(ago(AHEAD))
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], AHEAD - 7 * DAY)
    auditor = subject(server, "looker", roles=("auditor",))
    shown = ask_as(server, auditor, "lock-time", "show", "--json")
    assert is_about(shown["behind_seconds"], AHEAD - 7 * DAY)
    said = ask_as(server, auditor, "lock-time", "confirm", ago(5 * DAY), expect=1)
    assert "not allowed" in said or "denied" in said.lower(), said
    administrator = subject(server, "keeper", roles=("system-administrator",))
    ask_as(server, administrator, "lock-time", "show", expect=1)
    denied = ("--act", "lock-time.confirm", "--outcome", "denied")
    assert eventually(lambda: export(server, *denied))


def test_where_a_level_takes_two_so_does_this(stopped_for_long):
    server, _ = stopped_for_long
    ask(server, "level", "create", "two", "--rank", "0", "--same-label", "--approvals", "2")
    second = subject(server, "second", roles=("key-custodian",))
    time = ago(5 * DAY)
    asked = coffer("--data", server.data, "lock-time", "confirm", time)
    assert asked.returncode == WAITS, asked.stderr
    [request] = ask(server, "request", "list")
    assert (request["wants"], request["approvals"]) == ("lock-time.confirm", 2)
    assert request["lock_time"].startswith(time[:10])
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], AHEAD - 7 * DAY)
    done = ask_as(server, second, "request", "approve", request["id"], "--json")
    assert is_about(done["behind_seconds"], 5 * DAY)
    assert ask(server, "request", "list") == []


def test_what_is_locked_by_default_is_kept_for_its_days(stopped_for_long):
    server, _ = stopped_for_long

    def today():
        return datetime.now(UTC) + timedelta(seconds=AHEAD)

    def send(method, query="", **given):
        return raw.send(server, method, "/kept/new", query=query, when=today(), **given)

    status, headers, said = send("PUT", headers=raw.md5_of(b"record"), body=b"record")
    assert status == 200, said
    version = headers["x-amz-version-id"]
    _, headers, _ = send("HEAD")
    until = datetime.fromisoformat(headers["x-amz-object-lock-retain-until-date"])
    assert is_about((until - today()).total_seconds(), 14 * DAY)
    ask(server, "lock-time", "confirm", ago(120))
    status, _, said = send("DELETE", f"versionId={version}")
    assert status == 403, "it is its first day"


def jumps(server):
    recorded = export(server, "--act", "lock-time.jump")
    return [
        (round(int(one["details"]["wall_ms"]) / 1000 / DAY), one["details"]["server_was"])
        for one in recorded
    ]


def test_a_clock_that_was_behind_and_is_put_right_ends_no_lock(own_server, set_clock):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    until = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": soon(days=4)}
    version = s3.put_object(Bucket="kept", Key="a", Body=b"kept", **until)["VersionId"]
    for _ in range(2):
        server.kill()
        set_clock(-5 * DAY)
        server.start()
        set_clock(0)
        server.kill()
        server.start()
        assert is_about(ask(server, "lock-time", "show")["behind_seconds"], 0)
        with refused("AccessDenied", 403):
            s3_client(server).delete_object(Bucket="kept", Key="a", VersionId=version)


def test_a_clock_that_is_set_while_the_server_runs_is_recorded(own_server, set_clock):
    server = own_server().start()
    set_clock(30 * DAY)
    assert eventually(lambda: jumps(server), 15) == [(30, "running")]
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], 30 * DAY)
    set_clock(0)
    told = [(30, "running"), (-30, "running")]
    assert eventually(lambda: jumps(server)[1:] and jumps(server), 15) == told
    assert "server_was=running" in server.log() or '"running"' in server.log()
    # What was told is not told again by a stop.
    server.restart()
    assert jumps(server) == told
    assert is_about(ask(server, "lock-time", "show")["behind_seconds"], 0)
