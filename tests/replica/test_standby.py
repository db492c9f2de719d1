"""A standby: reads of a sealed copy within seconds of the original, and all else refused."""

import itertools
import os
import shutil

import pytest
from botocore.exceptions import ClientError

from harness.administration import ask, refused, run
from harness.clients import s3_client
from harness.content import MIB, content
from harness.faults import FailingSync
from harness.sealed_copies import BUCKET, caught_up, check, files_in, made, put, replica, url_of
from harness.server import Server, StartError
from harness.standbys import (
    WITHIN_SECONDS,
    add_copy,
    has,
    names_at,
    standby_of,
    standby_status,
    started,
    within,
)

#: Of none that any copy here is made for.
OTHER_IDENTITY = "AGE-SECRET-KEY-1GDP5XS6RGDP5XS6RGDP5XS6RGDP5XS6RGDP5XS6RGDP5XS6RGDPSST380Y"


def client(server, **config):
    return s3_client(server, **config)


def refused_by(call, **arguments):
    with pytest.raises(ClientError) as told:
        call(**arguments)
    answer = told.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]


def test_it_serves_what_the_original_has_within_seconds(server, followed, record_property):
    check(followed, ["small-1", "middle-1", "large-1"])
    names = ["small-1", "middle-1", "large-1"]
    lags = []
    for number in range(2, 6):
        put(server, [f"small-{number}", f"middle-{number}"])
        names += [f"small-{number}", f"middle-{number}"]
        lags.append(within(has(followed, names, BUCKET)))
    record_property("seconds", lags)
    print(f"served after {', '.join(f'{lag:.1f}' for lag in lags)} s")
    s3_client(server).delete_object(Bucket=BUCKET, Key="large-1")
    names.remove("large-1")
    within(has(followed, names, BUCKET))
    check(followed, names)
    s3_client(server).create_bucket(Bucket="later")
    put(server, ["small-7"], bucket="later")
    within(has(followed, ["small-7"], "later"))
    told = standby_status(followed)
    assert told["state"] == "following" and told["problem"] is None, told
    assert told["lag_seconds"] < 10 and told["missing_blob_count"] == 0, told
    assert ask(followed, "bucket", "list"), "administration is read"
    # States that were served are gone again.
    within(lambda: len(list((followed.data / "standby/states").iterdir())) == 1)


def test_all_else_is_refused_in_a_sentence(server, followed):
    s3 = client(followed)
    for call, arguments in [
        (s3.put_object, {"Bucket": BUCKET, "Key": "x", "Body": b"x"}),
        (s3.delete_object, {"Bucket": BUCKET, "Key": "small-1"}),
        (s3.create_bucket, {"Bucket": "another"}),
        (s3.create_multipart_upload, {"Bucket": BUCKET, "Key": "x"}),
    ]:
        status, error = refused_by(call, **arguments)
        assert status == 503 and error["Code"] == "ServiceUnavailable", error
        assert "standby" in error["Message"] and "promote" in error["Message"], error
    assert "standby" in refused(followed, "level", "create", "secret", "--rank", "2")
    assert "standby" in refused(followed, "bucket", "create", "another")
    assert "no standby" in refused(server, "standby", "status")
    run(server, "level", "create", "watched", "--rank", "0", "--same-label", "--audit-data")
    run(server, "bucket", "create", "seen", "--level", "watched")
    put(server, ["small-1"], bucket="seen")
    caught_up(server)

    def is_known():
        status, error = refused_by(s3.get_object, Bucket="seen", Key="small-1")
        return status == 503 and "recorded" in error["Message"]

    within(is_known)


def named_with(folder, part):
    """The folders that hold something of such a name. States may go while it looks."""
    found = os.walk(folder)
    return [path for path, *held in found if any(part in name for name in itertools.chain(*held))]


def test_its_root_key_is_told_as_no_place_that_a_command_takes(followed):
    told = ask(followed, "keystore", "status")
    assert "no command takes it" in told["source"] and "root.key" not in told["source"], told
    assert told["keep_apart"].startswith("nothing of a standby"), told


def test_an_erase_reaches_it(server, followed):
    s3_client(server).create_bucket(Bucket="spare")
    put(server, ["middle-1"], bucket="spare")
    within(has(followed, ["middle-1"], "spare"))
    id_of = {bucket["name"]: bucket["id"] for bucket in ask(server, "bucket", "list")}
    assert named_with(followed.data, id_of["spare"])
    run(server, "bucket", "erase", "spare", "--yes")
    within(lambda: not names_at(followed, "spare"))
    assert refused_by(client(followed).get_object, Bucket="spare", Key="middle-1")[0] == 404
    within(lambda: not named_with(followed.data, id_of["spare"]))
    check(followed, ["small-1", "middle-1", "large-1"])


def test_no_keystore_of_before_an_erase_stays_while_a_client_reads(server, followed):
    s3_client(server).create_bucket(Bucket="spare")
    put(server, ["middle-1"], bucket="spare")
    s3_client(server).put_object(Bucket=BUCKET, Key="huge", Body=content(40 * MIB, "huge"))
    within(has(followed, ["middle-1"], "spare"))
    within(lambda: "huge" in names_at(followed, BUCKET))
    states = followed.data / "standby/states"

    def opened_by():
        keys = [path for path in files_in(states) if path.name in ("keystore", "root.key")]
        return {path.parent.name for path in keys}

    within(lambda: len(list(states.iterdir())) == 1)
    [former] = states.iterdir()
    body = client(followed).get_object(Bucket=BUCKET, Key="huge")["Body"]
    read = body.read(1000)
    run(server, "bucket", "erase", "spare", "--yes")
    within(lambda: former.name not in opened_by() and opened_by())
    assert former.exists(), "it is read from"
    read += body.read()
    assert read == content(40 * MIB, "huge")
    within(lambda: not former.exists())


def test_keys_of_a_former_state_are_gone_for_good(server, followed, tmp_path, monkeypatch):
    """Their folder is synced, so that no power cut brings them back; what fails there is told."""
    faults = FailingSync(tmp_path, monkeypatch)
    followed.stop()
    started(followed)
    states = followed.data / "standby/states"
    names = ["small-1", "middle-1", "large-1", "small-2"]
    put(server, ["small-2"])
    within(has(followed, names, BUCKET))
    within(lambda: len(list(states.iterdir())) == 1)
    [former] = states.iterdir()
    faults.fail(f"standby/states/{former.name}")
    put(server, ["small-3"])
    names.append("small-3")
    within(has(followed, names, BUCKET))
    within(lambda: "served no more could not be removed" in followed.log())
    check(followed, names)


def test_a_key_that_is_disabled_counts_no_more(server, followed):
    key = ask(server, "subject", "create", "ann", "--clearance", "default..default")
    pair = (key["access_key_id"], key["secret_access_key"])
    ann = client(followed, credentials=pair)

    def lets_in():
        try:
            ann.list_objects_v2(Bucket=BUCKET)
        except ClientError:
            return False
        return True

    within(lets_in)
    run(server, "subject", "disable", "ann")
    within(lambda: not lets_in())


def test_it_goes_on_from_what_it_has(server, followed, tmp_path):
    """Killed while it follows; started where the copy is away, and where it is back."""
    copy = tmp_path / "copy"
    names = ["small-1", "middle-1", "large-1"]
    for number in range(2, 5):
        put(server, [f"middle-{number}"])
        names.append(f"middle-{number}")
        if number < 4:
            within(has(followed, names, BUCKET))
    followed.kill()
    caught_up(server)
    copy.rename(tmp_path / "away")
    started(followed)
    assert names_at(followed, BUCKET), "the last state is served"
    within(lambda: standby_status(followed)["state"] == "failing")
    assert standby_status(followed)["problem"]
    (tmp_path / "away").rename(copy)
    within(has(followed, names, BUCKET), 30)
    check(followed, names)
    within(lambda: standby_status(followed)["state"] == "following")
    blobs = files_in(followed.data / "buckets")
    assert not [path for path in blobs if path.name.endswith(".new")]


def test_it_ends_when_another_folder_takes_the_name_of_its_own(server, followed):
    """What it fetches next would go there. In the folder that was moved, another start goes on."""
    names = ["small-1", "middle-1", "large-1"]
    kept = followed.data.with_name("kept")
    followed.data.rename(kept)
    followed.data.mkdir()
    (followed.data / "theirs").write_text("another's")
    put(server, ["middle-2"])
    assert followed.process.wait(WITHIN_SECONDS) == 1
    assert "another one has its name" in followed.log()
    followed.process = None
    assert [path.name for path in followed.data.rglob("*")] == ["theirs"]
    shutil.rmtree(followed.data)
    kept.rename(followed.data)
    started(followed)
    within(has(followed, [*names, "middle-2"], BUCKET))
    check(followed, [*names, "middle-2"])


def test_it_follows_a_copy_on_another_coffer(server, tmp_path, monkeypatch):
    with Server(made(tmp_path / "store")) as store:
        key, secret = store.credentials()
        s3_client(store).create_bucket(Bucket="copies")
        secrets = tmp_path / "store-credentials"
        secrets.write_text(
            f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
        )
        url = f"s3://copies/x?endpoint={store.endpoint}&ca={store.ca}&credentials={secrets}"
        add_copy(server, url)
        put(server, ["small-1", "large-1"])
        caught_up(server)
        standby = standby_of(url, tmp_path / "second", tmp_path / "credentials")
        try:
            started(standby)
            check(standby, ["small-1", "large-1"])
            put(server, ["middle-2"])
            within(has(standby, ["small-1", "large-1", "middle-2"], BUCKET))
            check(standby, ["small-1", "large-1", "middle-2"])
        finally:
            standby.close()


def test_what_can_not_be_followed_says_why(server, tmp_path):
    copy, own = tmp_path / "copy", tmp_path / "second"
    replica(server, "add", "far", url_of(copy))
    caught_up(server)
    standby = standby_of(url_of(copy), own, tmp_path / "credentials")
    with pytest.raises(StartError, match="with-keystore"):
        started(standby)
    other = tmp_path / "other"
    add_copy(server, url_of(other), "near")
    caught_up(server, "near")
    standby = Server(made(tmp_path / "third"), arguments=["--follow", url_of(other)])
    with pytest.raises(StartError, match="--identity"):
        standby.start()
    used = Server(tmp_path / "first", arguments=["--follow", url_of(other)])
    server.kill()
    with pytest.raises(StartError, match="start it without --follow"):
        used.start()


def test_another_identity_is_told(server, tmp_path):
    copy = tmp_path / "copy"
    add_copy(server, url_of(copy))
    caught_up(server)
    standby = standby_of(url_of(copy), tmp_path / "second", tmp_path / "credentials")
    (tmp_path / "second" / "identity").write_text(f"{OTHER_IDENTITY}\n")
    with pytest.raises(StartError, match="does not open with the identity that was given"):
        standby.start()


def test_what_was_served_last_stays_where_it_can_not_be_read_for_now(server, followed, tmp_path):
    names = ["small-1", "middle-1", "large-1"]
    check(followed, names)
    followed.kill()
    # Neither the original nor its copy has it any more.
    server.kill()
    (tmp_path / "copy").rename(tmp_path / "away")
    [state] = (followed.data / "standby" / "states").iterdir()
    # As a disk that fails may have it: what is there can't be read.
    keystore = state / "keystore"
    keystore.rename(tmp_path / "keystore")
    keystore.mkdir()
    with pytest.raises(StartError):
        started(followed)
    assert "does not open" in followed.log()
    keystore.rmdir()
    (tmp_path / "keystore").rename(keystore)
    started(followed)
    check(followed, names)
    # Once there is another it goes, though it can't be read.
    followed.kill()
    (tmp_path / "away").rename(tmp_path / "copy")
    keystore.rename(tmp_path / "keystore")
    keystore.mkdir()
    started(followed)
    check(followed, names)
    [other] = (followed.data / "standby" / "states").iterdir()
    assert other != state
