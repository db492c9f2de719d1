"""Promotion of a standby, and the fence of the original."""

import shutil
import subprocess
import time

import pytest
from botocore.exceptions import ClientError

from harness import raw
from harness.administration import ask, refused, run
from harness.clients import s3_client
from harness.faults import FailingSync
from harness.sealed_copies import (
    BUCKET,
    caught_up,
    check,
    files_in,
    made,
    put,
    replica,
    status,
    url_of,
)
from harness.server import BINARY, Server, StartError, coffer
from harness.standbys import (
    add_copy,
    has,
    promote,
    promotions,
    serves_writes,
    standby_of,
    standby_status,
    started,
    within,
)

NAMES = ["small-1", "middle-1", "large-1"]


def test_what_a_standby_has_not_counted_is_said(followed):
    assert "-: not known before the first request" in run(followed, "bucket", "list")
    told = followed.output
    assert not any(" mb " in line for line in told), told


def writes(server):
    """Why a write is refused; nothing, if it is not."""
    client = s3_client(server)
    try:
        client.put_object(Bucket=BUCKET, Key="probe", Body=b"x")
    except ClientError as error:
        return error.response["Error"]["Message"]
    return ""


def test_nothing_that_the_copy_had_is_lost(server, followed):
    put(server, ["small-2", "middle-2"])
    told = caught_up(server)
    server.kill()
    done = promote(followed)
    assert done["missing_blob_count"] == 0 and done["as_of"] >= told["as_of"], (done, told)
    serves_writes(followed)
    check(followed, [*NAMES, "small-2", "middle-2"])
    put(followed, ["middle-3"])
    assert not (followed.data / "standby").exists()
    assert "no standby" in refused(followed, "standby", "status")
    said = [line for line in followed.output if line.startswith("ready")]
    assert len(said) == 1, "it serves where it served"
    checked = coffer("verify", "--data", followed.data, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # Later it starts as any other.
    followed.stop()
    again = Server(followed.folder, data=followed.data)
    with again:
        check(again, [*NAMES, "small-2", "middle-2", "middle-3"])


def ready(server):
    """Whether a probe and the metrics say that it is ready, and what the probe says."""
    for _ in range(5):
        status, told = raw.get_admin(server, "/health/ready")
        metrics = [raw.metric(server, name) for name in ("coffer_ready", "coffer_fenced_off")]
        if metrics == ([1, 0] if status == 200 else [0, 1]):
            break
    else:
        raise AssertionError((status, told, metrics))
    return status == 200, told


def test_an_original_that_is_fenced_changes_nothing(server, followed):
    server.stop()
    server.arguments += ["--fenced-by", "far"]
    server.start()
    within(lambda: not writes(server))
    assert ready(server)[0]
    promote(followed)
    serves_writes(followed)
    within(lambda: "fenced off" in writes(server))
    is_ready, told = ready(server)
    assert not is_ready and "another serves in its place" in told, told
    within(lambda: "Send clients to that one" in server.log())
    assert ready(followed)[0]
    # Commands find where it serves S3, though it is not ready.
    assert "small-1" in run(server, "ls", f"s3://{BUCKET}/")
    assert "promoted" in refused(server, "level", "create", "secret", "--rank", "2")
    assert s3_client(server).get_object(Bucket=BUCKET, Key="small-1")["Body"].read()
    assert "fenced off" in refused(server, "level", "create", "secret", "--rank", "2")
    within(lambda: status(server)["state"] == "stopped")
    # Nor after another start, however soon it is asked.
    server.kill()
    server.start()
    end = time.monotonic() + 3
    while time.monotonic() < end:
        assert "fenced off" in writes(server)
        assert not ready(server)[0]
    assert "promoted" in refused(server, "level", "create", "secret", "--rank", "2")
    server.kill()
    check_the_fence_lasts(server)


def check_the_fence_lasts(server):
    fenced, server.arguments = server.arguments, server.arguments[:-2]
    assert fenced[-2:] == ["--fenced-by", "far"], fenced
    for more in ([], ["--accept-rollback"]):
        server.arguments = [*fenced[:-2], *more]
        with pytest.raises(StartError, match="(?s)fenced off by its copy.*--end-fence"):
            server.start()
    # Where the file that has its copies is moved away, or does not open.
    copies = server.data / "copies"
    known = copies.read_bytes()
    for text in (None, b"damaged"):
        copies.unlink() if text is None else copies.write_bytes(text)
        server.arguments = fenced[:-2]
        with pytest.raises(StartError, match="(?s)fenced off by its copy.*--end-fence"):
            server.start()
        server.arguments = fenced
        server.start()
        assert "fenced off" in writes(server)
        server.kill()
    copies.write_bytes(known)
    # Where it is to be fenced all the same, the copy is asked again, and says the same.
    server.arguments = [*fenced, "--end-fence"]
    server.start()
    assert "that copy is asked again" in server.log()
    within(lambda: "another serves" in ready(server)[1] and "not noted" not in ready(server)[1])
    server.kill()
    # Where its copy is away as well: it is noted, and not asked.
    server.data.parent.parent.joinpath("copy").rename(server.data.parent.parent / "away")
    server.arguments = fenced
    server.start()
    assert "fenced off" in writes(server)
    assert "promoted" in refused(server, "level", "create", "secret", "--rank", "2")
    server.kill()
    server.arguments = [*fenced[:-2], "--end-fence"]
    server.start()
    assert writes(server) == ""
    server.stop()
    server.arguments = fenced[:-2]
    server.start()
    assert writes(server) == "", "it is forgotten"
    server.stop()
    server.arguments = [*fenced[:-2], "--end-fence"]
    server.start()
    assert "--end-fence ended nothing" in server.log()


def test_without_a_fence_the_original_goes_on_and_its_copy_ends(server, followed):
    promote(followed)
    serves_writes(followed)
    assert writes(server) == ""
    within(lambda: status(server)["state"] == "stopped")
    assert "promoted" in status(server)["problem"]
    server.kill()
    server.start()
    within(lambda: status(server)["state"] == "stopped")


def test_an_idle_original_without_a_fence_hears_of_the_promotion(server, followed):
    promote(followed)
    within(lambda: status(server)["state"] == "stopped", 40)
    assert "was promoted" in status(server)["problem"]
    assert "Stop that server" in server.log()


def test_an_original_that_can_not_ask_changes_nothing(server, tmp_path):
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    caught_up(server)
    server.stop()
    server.arguments += ["--fenced-by", "far", "--fenced-after", "2s"]
    server.start()
    within(lambda: not writes(server))
    copy.rename(tmp_path / "away")
    took = within(lambda: "fenced off" in writes(server))
    assert took >= 1, took
    is_ready, told = ready(server)
    assert not is_ready and "its copy far was not reached" in told, told
    within(lambda: "fenced off and changes nothing until that copy is reached" in server.log())
    assert "not reached" in refused(server, "level", "create", "secret", "--rank", "2")
    # What a write that was under way has made there since.
    shutil.rmtree(copy, ignore_errors=True)
    (tmp_path / "away").rename(copy)
    within(lambda: not writes(server), 40)
    within(lambda: ready(server)[0])
    within(lambda: "none serves in its place: changes are made" in server.log())


def test_a_start_that_is_to_be_fenced_by_a_copy_that_there_is_not_is_refused(server, tmp_path):
    add_copy(server, url_of(tmp_path / "copy"))
    server.stop()
    server.arguments += ["--fenced-by", "typo"]
    with pytest.raises(StartError, match='there is no copy "typo" to be fenced by.*keeps up far'):
        server.start()
    server.arguments[-1] = "far"
    server.start()
    within(lambda: not writes(server))
    replica(server, "remove", "far")
    within(lambda: "Start the server without --fenced-by" in server.log())
    server.stop()
    with pytest.raises(StartError, match="keeps up none"):
        server.start()


def test_a_promotion_that_is_killed_is_asked_for_again(server, followed):
    put(server, ["middle-2"])
    caught_up(server)
    server.kill()
    names = [*NAMES, "middle-2"]
    command = [BINARY, "standby", "promote", "--data", followed.data, "--yes"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.05)
    followed.kill()
    process.wait(30)
    try:
        started(followed)
    except StartError as error:
        # The folder was made by then.
        assert "--accept-rollback" in str(error)
        followed.arguments = ["--accept-rollback"]
        followed.start()
    else:
        within(has(followed, names, BUCKET))
        promote(followed)
    serves_writes(followed)
    check(followed, names)


def test_a_promotion_that_broke_off_is_no_other_standbys(server, followed, tmp_path, monkeypatch):
    """The head by which it is promoted is there, and its folder is none yet."""
    followed.kill()
    failing = FailingSync(tmp_path, monkeypatch)
    started(followed)
    within(has(followed, NAMES, BUCKET))
    heads = files_in(tmp_path / "copy/heads")
    failing.fail("backup.json")
    done = coffer("standby", "promote", "--data", followed.data, "--yes", text=True)
    assert done.returncode != 0, done
    within(lambda: standby_status(followed)["state"] == "following")
    assert standby_status(followed)["problem"] is None
    assert len(files_in(tmp_path / "copy/heads")) > len(heads)
    assert "leave out --without-copy" in promote(followed, "--without-copy", expect=2)
    failing.heal()
    promote(followed)
    serves_writes(followed)
    check(followed, NAMES)


def test_a_second_standby_is_told(server, followed, tmp_path):
    second = standby_of(url_of(tmp_path / "copy"), tmp_path / "third", tmp_path / "credentials")
    try:
        started(second)
        promote(followed)
        within(lambda: "promoted" in (standby_status(second)["problem"] or ""))
        check(second, NAMES)
        serves_writes(followed)
        assert "another standby of this copy was promoted" in promote(second, expect=1)
        check(second, NAMES)
        assert writes(second)
        assert writes(followed) == ""
    finally:
        second.close()


def test_receipts_say_what_the_server_before_may_still_open(server, followed, tmp_path):
    def left(name):
        receipt = ask(followed, "bucket", "erase", name, "--yes")
        receipt = receipt.get("receipt", receipt)
        return [line for line in receipt["remaining"] if "what this server began with" in line]

    server.kill()
    promote(followed)
    serves_writes(followed)
    s3_client(followed).create_bucket(Bucket="made-since")
    assert not left("made-since")
    [told] = left(BUCKET)
    assert f"at {url_of(tmp_path / 'copy')}, and" in told, told


def test_where_the_copy_is_lost_with_the_original_it_goes_on_from_what_it_has(
    server, followed, tmp_path
):
    within(has(followed, NAMES, BUCKET))
    assert "leave out --without-copy" in promote(followed, "--without-copy", expect=2)
    server.kill()
    shutil.rmtree(tmp_path / "copy")
    promote(followed, expect=1)
    # Its machine is started again as well.
    followed.kill()
    started(followed)
    within(has(followed, NAMES, BUCKET))
    done = promote(followed, "--without-copy")
    assert done["missing_blob_count"] == 0, done
    serves_writes(followed)
    check(followed, NAMES)
    put(followed, ["middle-2"])
    checked = coffer("verify", "--data", followed.data, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "rollback.accept" in run(followed, "audit", "show")
    [record] = promotions(followed)
    assert record["details"]["without_copy"] == "true", record


def test_a_rotation_that_ended_while_the_next_state_came_takes_nothing(server, followed, tmp_path):
    """Its keystore had come by then, and none of its catalogs; and what was erased stays so."""
    copy, keystore = tmp_path / "copy", followed.data / "keystore"
    s3_client(server).create_bucket(Bucket="doomed")
    put(server, ["middle-1"], bucket="doomed")
    caught_up(server)
    within(has(followed, ["middle-1"], "doomed"))
    followed.kill()
    before, served = set(files_in(copy / "buckets")), keystore.read_bytes()
    run(server, "level", "rotate", "default")
    run(server, "bucket", "erase", "doomed", "--yes")
    caught_up(server)
    server.kill()
    for path in set(files_in(copy / "buckets")) - before:
        path.unlink()
    started(followed)
    within(lambda: keystore.read_bytes() != served)
    within(lambda: standby_status(followed)["state"] == "failing")
    check(followed, NAMES)
    shutil.rmtree(copy)
    promote(followed, "--without-copy")
    serves_writes(followed)
    check(followed, NAMES)
    assert [found["Name"] for found in s3_client(followed).list_buckets()["Buckets"]] == [BUCKET]
    run(followed, "level", "rotate", "default")
    assert ask(followed, "keystore", "status")["rotating_bucket_count"] == 0
    check(followed, NAMES)
    checked = coffer("verify", "--data", followed.data, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_it_asks_first(followed):
    done = coffer("standby", "promote", "--data", followed.data, text=True)
    assert done.returncode != 0 and "--yes" in done.stderr, done
    assert standby_status(followed)["state"] == "following"


def test_the_folder_of_a_stopped_standby_says_how_to_start_it(followed):
    followed.stop()
    for words in (["standby", "status"], ["verify"], ["offline", "ls"]):
        done = coffer(*words, "--data", followed.data, text=True)
        assert done.returncode != 0 and "folder of a standby" in done.stderr, done
        assert "--follow URL" in done.stderr, done
    with pytest.raises(StartError, match="is the folder of a standby: `coffer serve --follow URL"):
        Server(made(followed.folder / "alone"), data=followed.data).start()


def test_a_folder_that_was_promoted_is_no_standby(server, followed):
    promote(followed)
    serves_writes(followed)
    followed.stop()
    with pytest.raises(StartError, match="was promoted: start it without --follow"):
        followed.start()
    fresh = Server(made(followed.folder), data=followed.data)
    with fresh:
        check(fresh, NAMES)
