"""Commits of an engine are records between heads: what was acknowledged is in one, whatever becomes
of the gateway that wrote it."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness import lifecycle, policies
from harness.auditing import export
from harness.engines import Gateway, answered, client, url_at
from harness.raw import metric
from harness.sealed_copies import made, restore
from harness.server import StartError, coffer

BUCKET = "notes"
RECORD = b"cofferRE"
#: So many records may be in no head.
RECORDS_BOUND = 1024


@pytest.fixture
def first(tmp_path, store):
    with Gateway(tmp_path / "one", url_at(store)) as gateway:
        yield gateway


def entries(store):
    """Whether each of them is a record, by its number."""
    s3 = client(store, store.credentials())
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="log", Prefix="engine/heads/")
    names = [item["Key"] for page in pages for item in page.get("Contents", [])]
    bodies = {name: s3.get_object(Bucket="log", Key=name)["Body"].read() for name in names}
    return {int(name[-12:]): body.startswith(RECORD) for name, body in bodies.items()}


def settled(store, s3):
    """A head is there with which records of this bucket begin; the number of the last entry."""
    s3.create_bucket(Bucket=BUCKET)
    return recorded(store, s3)


def recorded(store, s3):
    for number in range(100):
        s3.put_object(Bucket=BUCKET, Key="begun", Body=str(number).encode())
        found = entries(store)
        if found[max(found)]:
            return max(found)
    raise AssertionError("no record comes")


def requests(store):
    return metric(store, "coffer_s3_requests_total")


def newest(store):
    """The number of the last entry, and its name."""
    number = max(entries(store))
    return number, f"engine/heads/{number // 1000:09}/{number:012}"


def damage(store, name):
    """Puts something else there; gives what it was."""
    at = client(store, store.credentials())
    kept = at.get_object(Bucket="log", Key=name)["Body"].read()
    at.put_object(Bucket="log", Key=name, Body=b"garbage")
    return kept


def refusing(store, names):
    """The store, which takes no objects of such names until its policy is removed."""
    at = client(store, store.credentials())
    where = policies.arn("log", names)
    policies.put(at, "log", policies.statement("Deny", "*", ["s3:PutObject"], where))
    return at


def read(s3, key):
    return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def test_a_commit_is_one_request(store, first):
    s3 = client(first, first.credentials())
    before = settled(store, s3)
    asked, began = requests(store), time.monotonic()
    for number in range(40):
        s3.put_object(Bucket=BUCKET, Key=f"{number}", Body=b"x" * 900)
    took = time.monotonic() - began
    # Beside them the lease is renewed each second, the audit log has more, and heads are written.
    assert requests(store) - asked < 60 + 15 * took, "more than one request each"
    found = entries(store)
    records = [number for number, is_record in found.items() if number > before and is_record]
    # A head that is written meanwhile has some of them, too.
    assert len(records) >= 30
    for number in range(40):
        assert read(s3, f"{number}") == b"x" * 900


def test_what_a_record_has_outlives_who_wrote_it(tmp_path, store, first):
    key = first.credentials()
    s3 = client(first, key)
    settled(store, s3)
    large = b"large " * 100_000
    for number in range(20):
        s3.put_object(Bucket=BUCKET, Key=f"{number}", Body=str(number).encode())
    s3.put_object(Bucket=BUCKET, Key="large", Body=large)
    s3.delete_object(Bucket=BUCKET, Key="7")
    first.kill()
    found = entries(store)
    assert found[max(found)], "the last that was written is a record"
    with Gateway(tmp_path / "two", url_at(store)) as second:
        s3 = client(second, key)
        answered(lambda: read(s3, "0"))
        for number in set(range(20)) - {7}:
            assert read(s3, f"{number}") == str(number).encode()
        assert read(s3, "large") == large
        names = {item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
        assert "7" not in names and len(names) == 21
        # And goes on with them, also one that dies at once.
        s3.put_object(Bucket=BUCKET, Key="later", Body=b"later")
        second.kill()
        first.start()
        s3 = client(first, key)
        assert answered(lambda: read(s3, "later"))[1] == b"later"
        assert read(s3, "large") == large


def test_a_moment_between_heads_is_restored(tmp_path, store, first):
    s3 = client(first, first.credentials())
    settled(store, s3)
    moments = {}
    for number in range(6):
        s3.put_object(Bucket=BUCKET, Key="note", Body=str(number).encode())
        time.sleep(1.1)
        moments[number] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        time.sleep(0.1)
    first.stop()
    identity = tmp_path / "one" / "identity"
    for number in (1, 4, None):
        data = made(tmp_path / f"restored-{number}") / "data"
        at = [] if number is None else ["--at", moments[number]]
        restore(url_at(store), data, "--identity", identity, *at)
        done = coffer("offline", "cat", "--data", data, BUCKET, "note")
        assert done.stdout == str(5 if number is None else number).encode(), done.stderr


def test_a_log_with_records_is_verified(store, first):
    s3 = client(first, first.credentials())
    before = settled(store, s3)
    for number in range(10):
        s3.put_object(Bucket=BUCKET, Key=f"{number}", Body=b"y" * 100_000)

    def verify():
        return coffer("replica", "verify", "engine", "--data", first.data, "--json", text=True)

    done = verify()
    assert done.returncode == 0, done.stdout
    at = client(store, store.credentials())
    name = f"engine/heads/{before // 1000:09}/{before:012}"
    body = bytearray(at.get_object(Bucket="log", Key=name)["Body"].read())
    body[-1] ^= 1
    at.put_object(Bucket="log", Key=name, Body=bytes(body))
    # As soon as a head has all of it, what is damaged is of an earlier moment.
    time.sleep(12)
    done = verify()
    assert done.returncode != 0 and f"head {before} of the copy does not open" in done.stdout


def test_who_serves_writes_a_damaged_end_anew(tmp_path, store, first):
    key = first.credentials()
    s3 = client(first, key)
    settled(store, s3)
    s3.put_object(Bucket=BUCKET, Key="last", Body=b"last")
    # Where nothing is written any more, what is looked at is the last that was.
    time.sleep(12)
    number, name = newest(store)
    damage(store, name)

    def is_healed():
        later = [at for at, is_record in entries(store).items() if at > number and not is_record]
        assert later

    answered(is_healed, 40)
    first.kill()
    with Gateway(tmp_path / "two", url_at(store)) as second:
        assert answered(lambda: read(client(second, key), "last"), 20)[1] == b"last"


def test_a_damaged_end_is_named_and_gone_on_without_on_purpose_alone(tmp_path, store, first):
    s3 = client(first, first.credentials())
    settled(store, s3)
    for number in range(5):
        s3.put_object(Bucket=BUCKET, Key=f"{number}", Body=b"x")
    at = client(store, store.credentials())
    # While it serves, what is damaged is named, whatever came behind it.
    number, name = newest(store)
    kept = damage(store, name)
    s3.put_object(Bucket=BUCKET, Key="behind", Body=b"x")
    done = coffer("replica", "verify", "engine", "--data", first.data, "--json", text=True)
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert name.removeprefix("engine/") in told or f"head {number} of the copy" in told
    at.put_object(Bucket="log", Key=name, Body=kept)
    assert first.stop() == 0
    number, name = newest(store)
    kept = damage(store, name)
    with pytest.raises(StartError, match="does not open") as refused:
        first.start()
    assert name.removeprefix("engine/") in refused.value.log
    identity, restored = tmp_path / "one" / "identity", made(tmp_path / "restored") / "data"
    where = ["--from", url_at(store), "--data", restored, "--identity", identity]
    done = coffer("restore", *where, text=True)
    assert done.returncode != 0 and name.removeprefix("engine/") in done.stderr, done
    assert newest(store)[0] == number, "nothing was written behind it"
    # Put back, it is as it was; removed, it is done without.
    at.put_object(Bucket="log", Key=name, Body=kept)
    first.start()
    s3 = client(first, first.credentials())
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="later", Body=b"later"), 30)
    assert first.stop() == 0
    number, name = newest(store)
    at.delete_object(Bucket="log", Key=name)
    first.start()
    s3 = client(first, first.credentials())
    for number in range(5):
        assert answered(lambda number=number: read(s3, f"{number}"), 30)[1] == b"x"
    s3.put_object(Bucket=BUCKET, Key="again", Body=b"x")


def test_records_that_no_head_has_are_bounded(store, first):
    """Where none can be put together, writes wait for it, and then are in doubt; none is lost."""
    s3 = client(first, first.credentials())
    settled(store, s3)
    # By then the keystore knows of the new bucket, for which there is another head.
    time.sleep(15)
    recorded(store, s3)
    at = refusing(store, "engine/buckets/*")
    done = 0
    with pytest.raises(ClientError) as in_doubt:
        while done <= RECORDS_BOUND:
            s3.put_object(Bucket=BUCKET, Key=f"note-{done}", Body=b"x" * 100)
            done += 1
    assert in_doubt.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    found = entries(store)
    head = max(number for number, is_record in found.items() if not is_record)
    assert RECORDS_BOUND // 2 < max(found) - head <= RECORDS_BOUND
    at.delete_bucket_policy(Bucket="log")
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="later", Body=b"x"), 60)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    names = {item["Key"] for page in pages for item in page["Contents"]}
    assert {f"note-{number}" for number in range(done)} | {"later"} <= names


def test_more_than_a_record_holds_is_in_a_head_and_records_go_on_behind_it(store, first):
    key, body = first.credentials(), b"x" * 16_000
    settled(store, client(first, key))
    # While neither can be written, more pages change than a record may have.
    at = refusing(store, "engine/heads/*")
    hasty = client(first, key, read_timeout=2)

    def put(number):
        with contextlib.suppress(Exception):
            hasty.put_object(Bucket=BUCKET, Key=f"many-{number}", Body=body)

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(put, range(320)))
    at.delete_bucket_policy(Bucket="log")
    s3 = client(first, key)
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="after", Body=b"x"), 60)
    before = max(entries(store))
    for number in range(40):
        s3.put_object(Bucket=BUCKET, Key=f"one-{number}", Body=b"x")
    later = [is_record for number, is_record in entries(store).items() if number > before]
    assert later.count(True) >= 20, later
    many = s3.list_objects_v2(Bucket=BUCKET, Prefix="many-")["Contents"]
    assert len(many) > 1024 // 4, "more pages than a record holds"
    for item in many:
        assert read(s3, item["Key"]) == body


def test_what_lifecycle_rules_end_counts_once_the_log_has_it(tmp_path, store):
    day_seconds = 5
    config = f"lifecycle-day-seconds = {day_seconds}\n"
    with Gateway(tmp_path / "one", url_at(store), config=config) as first:
        s3 = client(first, first.credentials())
        settled(store, s3)
        lifecycle.put(s3, BUCKET, *(f"old-{number}" for number in range(20)))
        rule = lifecycle.rule("days", {"Prefix": "old-"}, Expiration={"Days": 1})
        lifecycle.set_rules(s3, BUCKET, rule)
        at = refusing(store, "engine/heads/*")
        # Two of its midnights, and some more: it is over here.
        time.sleep(2.5 * day_seconds)
        assert metric(first, "coffer_lifecycle_removed_total") == 0
        at.delete_bucket_policy(Bucket="log")

        def counted():
            assert metric(first, "coffer_lifecycle_removed_total") == 20
            records = export(first, "--act", "lifecycle.run")
            # Of two midnights, where one passed while these were stored.
            done = [record["details"] for record in records if record["outcome"] == "done"]
            assert sum(int(details["removed"]) for details in done) == 20, done

        answered(counted, 30)
        assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET, Prefix="old-")
