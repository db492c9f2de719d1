"""Reads by a gateway that follows: answered there, and never by what is older than what anyone was
told."""

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from harness.administration import make_subject, run
from harness.auditing import export
from harness.clients import s3_client
from harness.content import MIB, content
from harness.engines import Gateway, answered, answers, answers_itself, client, url_at
from harness.policies import arn, put, statement
from harness.raw import connect, request_head, signed_headers

BUCKET = "reads"
LONG_BYTES = 64 * MIB
#: Within which what a gateway that is away was allowed is over, and an act is acknowledged.
RECALLED_SECONDS = 15


def get(s3, name, bucket=BUCKET):
    return s3.get_object(Bucket=bucket, Key=name)["Body"].read()


class Stalled:
    """A body of which the client takes the beginning, and the rest later; by the same connection
    as all of another one, if there is one."""

    def __init__(self, gateway, bucket, name, credentials, after=None):
        self.connection = connect(gateway)
        self.response = None
        for path in filter(None, (after, f"/{bucket}/{name}")):
            if self.response:
                self.response.read()
            headers = signed_headers(gateway, "GET", path, credentials=credentials)
            self.connection.sendall(request_head("GET", path, headers))
            self.response = http.client.HTTPResponse(self.connection, method="GET")
            self.response.begin()
            assert self.response.status == 200
        assert len(self.response.read(1 * MIB)) == 1 * MIB

    def rest(self):
        """How many bytes came, and whether that was all."""
        count = 1 * MIB
        try:
            while piece := self.response.read(1 * MIB):
                count += len(piece)
        except (OSError, http.client.HTTPException):
            return count, False
        return count, count == LONG_BYTES

    def is_broken_off(self):
        count, is_all = self.rest()
        return not is_all and count < LONG_BYTES


def stalled(gateway, bucket, name, credentials):
    """One that the gateway answers itself."""

    def begun():
        return Stalled(gateway, bucket, name, credentials)

    return answers_itself(gateway, begun)


def patiently(call):
    """What is answered at last."""
    return answered(call, RECALLED_SECONDS)[1]


def refusal(call, **arguments):
    with pytest.raises(ClientError) as told:
        call(**arguments)
    return told.value.response["Error"]["Code"]


def test_a_follower_answers_reads_itself_and_never_with_what_is_older(first, second):
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="a", Body=b"0")
    assert answers_itself(second, lambda: get(there, "a")) == b"0"
    listed = answers_itself(second, lambda: there.list_objects_v2(Bucket=BUCKET))
    assert [item["Key"] for item in listed["Contents"]] == ["a"]
    buckets = answers_itself(second, lambda: there.list_buckets()["Buckets"])
    assert [bucket["Name"] for bucket in buckets] == [BUCKET]
    head = answers_itself(second, lambda: there.head_object(Bucket=BUCKET, Key="a"))
    assert head["ContentLength"] == 1
    for number in range(1, 40):
        body = str(number).encode()
        (there if number % 2 else here).put_object(Bucket=BUCKET, Key="a", Body=body)
        assert get(there, "a") == body and get(here, "a") == body
        if number % 8 == 0:
            # Until what is read is the follower's own, so that the next put meets that.
            assert answers_itself(second, lambda: get(there, "a")) == body
    here.delete_object(Bucket=BUCKET, Key="a")
    assert refusal(there.get_object, Bucket=BUCKET, Key="a") == "NoSuchKey"
    assert "Contents" not in there.list_objects_v2(Bucket=BUCKET)


def test_what_others_were_told_is_never_taken_back(first, second):
    """Readers of both gateways, while an object is written: none sees a number after which anyone
    was told a higher one. On a machine that is busy a lease may be lost meanwhile: what is not
    answered is asked for again."""
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    client(first, key).put_object(Bucket=BUCKET, Key="n", Body=b"0")
    answers_itself(second, lambda: get(client(second, key), "n"))
    told, lock, end = [0], threading.Lock(), time.monotonic() + 30
    before = answers(second)

    def read(gateway):
        s3 = client(gateway, key)
        while time.monotonic() < end:
            with lock:
                least = told[0]
            number = int(patiently(lambda: get(s3, "n")))
            assert number >= least, f"{number} after {least} was told"
            with lock:
                told[0] = max(told[0], number)

    def write():
        s3, number = client(first, key), 0
        while time.monotonic() < end:
            number += 1
            body = str(number).encode()
            patiently(lambda body=body: s3.put_object(Bucket=BUCKET, Key="n", Body=body))
            with lock:
                told[0] = max(told[0], number)
            # Now and then the follower is as far, answers itself, and is told what stands.
            time.sleep(0.01 if number % 10 else 5)

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(read, gateway) for gateway in (first, second, second, second)]
        tasks.append(pool.submit(write))
        for task in tasks:
            task.result()
    assert answers(second) > before + 20, "it answered some itself"


def test_a_first_change_after_quiet_reads_is_seen_by_the_next(first, second):
    """What a follower was told stands for a moment: who changes it is answered after that."""
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    for number in range(1, 6):
        body = str(number).encode()
        patiently(lambda body=body: here.put_object(Bucket=BUCKET, Key="n", Body=body))
        assert patiently(lambda: get(there, "n")) == body
        # Until nothing has been changed for long enough.
        end = time.monotonic() + 4
        while time.monotonic() < end:
            assert patiently(lambda: get(there, "n")) == body
    patiently(lambda: here.delete_object(Bucket=BUCKET, Key="n"))
    assert refusal(there.get_object, Bucket=BUCKET, Key="n") == "NoSuchKey"


def test_reads_of_what_is_quiet_need_no_answer_of_the_one_that_serves(first, second):
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="n", Body=b"quiet")
    answers_itself(second, lambda: get(there, "n"))
    end = time.monotonic() + 5
    while time.monotonic() < end:
        get(there, "n")
    # It is paused for less time than an answer stands, in which some reads come.
    count = 0
    for _ in range(20):
        get(there, "n")
        end = time.monotonic() + 0.03
        # By itself: a read that is forwarded all the same waits for it.
        goes_on = threading.Timer(0.03, first.go_on)
        first.pause()
        goes_on.start()
        while time.monotonic() < end:
            get(there, "n")
            count += time.monotonic() < end
        goes_on.join()
        time.sleep(0.05)
    # One that asks is answered when the other goes on, and not counted.
    assert count > 5, f"{count} reads were answered meanwhile"


def test_nothing_comes_of_what_was_erased(tmp_path, first, second):
    key = first.credentials()
    run(first, "level", "create", "secret", "--rank", "2")
    run(first, "bucket", "create", "doomed", "--level", "secret")
    who = make_subject(first, "ann", "secret")
    here, there = client(first, who), client(second, who)
    here.put_object(Bucket="doomed", Key="long", Body=content(LONG_BYTES, "long"))
    here.put_object(Bucket="doomed", Key="short", Body=b"secret")
    client(first, key).create_bucket(Bucket=BUCKET)
    client(first, key).put_object(Bucket=BUCKET, Key="kept", Body=b"kept")
    assert answers_itself(second, lambda: get(there, "short", "doomed")) == b"secret"
    body = stalled(second, "doomed", "long", who)
    began = time.monotonic()
    run(first, "level", "erase", "secret", "--yes")
    took = time.monotonic() - began
    assert took < RECALLED_SECONDS, f"acknowledged after {took:.1f} s"
    assert refusal(there.get_object, Bucket="doomed", Key="short") == "NoSuchBucket"
    assert body.is_broken_off()
    # Others are answered by the follower again.
    assert answers_itself(second, lambda: get(client(second, key), "kept")) == b"kept"


def test_a_bucket_that_is_deleted_breaks_off_nothing_else(first, second):
    """Not even what goes by a connection by which was read in it."""
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    for name in (BUCKET, "emptied"):
        here.create_bucket(Bucket=name)
    here.put_object(Bucket="emptied", Key="a", Body=b"a")
    here.put_object(Bucket=BUCKET, Key="long", Body=content(LONG_BYTES, "long"))
    end, answered_here = time.monotonic() + 30, 0
    while answered_here < 2:
        assert time.monotonic() < end, f"some was forwarded\n{second.log()}"
        time.sleep(0.1)
        before = answers(second)
        body = Stalled(second, BUCKET, "long", key, after="/emptied/a")
        answered_here = answers(second) - before
    here.delete_object(Bucket="emptied", Key="a")
    here.delete_bucket(Bucket="emptied")
    buckets = answers_itself(second, lambda: there.list_buckets()["Buckets"])
    assert [bucket["Name"] for bucket in buckets] == [BUCKET]
    time.sleep(1)
    assert body.rest() == (LONG_BYTES, True)


def test_a_subject_that_is_disabled_reads_nothing_more(first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    who = make_subject(first, "bob", "default")
    there = client(second, who)
    client(first, key).put_object(Bucket=BUCKET, Key="long", Body=content(LONG_BYTES, "long"))
    body = stalled(second, BUCKET, "long", who)
    run(first, "subject", "disable", "bob")
    assert refusal(there.head_object, Bucket=BUCKET, Key="long") in ("403", "InvalidAccessKeyId")
    assert body.is_broken_off()


def test_one_that_was_paused_answers_nothing_of_before(first, second):
    key = first.credentials()
    here = client(first, key)
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="a", Body=b"before")
    here.put_object(Bucket=BUCKET, Key="long", Body=content(LONG_BYTES, "long"))
    there = client(second, key, read_timeout=60)
    assert answers_itself(second, lambda: get(there, "a")) == b"before"
    body = stalled(second, BUCKET, "long", key)
    with ThreadPoolExecutor(1) as pool:
        second.pause()
        # Whatever fails, what waits for it ends before the pool is waited for.
        try:
            # Its connection is there, and the request waits in the kernel.
            waiting = pool.submit(get, there, "a")
            time.sleep(1)
            here.put_object(Bucket=BUCKET, Key="a", Body=b"after")
            make_subject(first, "eve", "default")
            began = time.monotonic()
            run(first, "subject", "disable", "eve")
            took = time.monotonic() - began
            assert took < RECALLED_SECONDS, f"acknowledged after {took:.1f} s"
            time.sleep(4)
        finally:
            second.go_on()
        assert waiting.result() == b"after"
    assert body.is_broken_off()
    assert answers_itself(second, lambda: get(there, "a")) == b"after"


def test_what_leaves_something_behind_is_the_owners(first, second):
    """Reads that are recorded, and those that are refused: they are in the engine's audit log."""
    run(first, "level", "create", "watched", "--rank", "0", "--same-label", "--audit-data")
    run(first, "bucket", "create", "seen", "--level", "watched")
    key = first.credentials()
    client(first, key).put_object(Bucket="seen", Key="a", Body=b"a")
    client(first, key).create_bucket(Bucket=BUCKET)
    client(first, key).put_object(Bucket=BUCKET, Key="a", Body=b"a")
    there = client(second, key)
    answers_itself(second, lambda: get(there, "a"))
    before = answers(second)
    for _ in range(3):
        assert get(there, "a", "seen") == b"a"
    assert answers(second) == before
    assert len(export(first, "--act", "object.read")) == 3
    wrong = s3_client(second, credentials=(key[0], "x" * 40))
    assert refusal(wrong.get_object, Bucket=BUCKET, Key="a") == "SignatureDoesNotMatch"
    assert refusal(there.get_object, Bucket=BUCKET, Key="none") == "NoSuchKey"
    assert answers(second) == before


def test_reads_that_count_for_a_mark_are_the_owners(first, second):
    """Time settles a subject that has read nothing for long, so the owner has to know of each."""
    run(first, "level", "create", "secret", "--rank", "2")
    run(first, "bucket", "create", "high", "--level", "secret")
    steady = make_subject(first, "hal", "secret")
    client(first, steady).put_object(Bucket="high", Key="a", Body=b"a")
    floating = client(second, make_subject(first, "ann", "default..secret"))
    assert get(floating, "a", "high") == b"a"
    # The follower has the mark that this raised.
    assert answers_itself(second, lambda: get(client(second, steady), "a", "high")) == b"a"
    before = answers(second)
    for _ in range(8):
        assert get(floating, "a", "high") == b"a"
        time.sleep(0.5)
    assert answers(second) == before


def test_a_clearance_that_is_lowered_and_a_key_that_is_disabled_count_at_once(first, second):
    run(first, "level", "create", "secret", "--rank", "2")
    run(first, "bucket", "create", "high", "--level", "secret")
    who = make_subject(first, "hal", "secret")
    client(first, who).put_object(Bucket="high", Key="a", Body=b"a")
    there = client(second, who)
    assert answers_itself(second, lambda: get(there, "a", "high")) == b"a"
    run(first, "subject", "set", "hal", "--clearance", "default")
    assert refusal(there.get_object, Bucket="high", Key="a") == "NoSuchBucket"
    run(first, "subject", "set", "hal", "--clearance", "secret")
    assert answers_itself(second, lambda: get(there, "a", "high")) == b"a"
    run(first, "subject", "key", "disable", who[0])
    assert refusal(there.get_object, Bucket="high", Key="a") == "InvalidAccessKeyId"


def test_what_is_forbidden_is_forbidden_at_once_by_all(first, second):
    key = first.credentials()
    here, there = client(first, key), client(second, make_subject(first, "bob", "default"))
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="a", Body=b"a")
    deny = statement("Deny", "*", ["s3:GetObject"], arn(BUCKET, "*"))
    for _ in range(4):
        put(here, BUCKET, deny)
        assert refusal(there.get_object, Bucket=BUCKET, Key="a") == "AccessDenied"
        here.delete_bucket_policy(Bucket=BUCKET)
        assert answers_itself(second, lambda: get(there, "a")) == b"a"


def test_parts_conditions_and_pieces_are_told_as_by_the_owner(first, second):
    key = first.credentials()
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    body = content(20 * MIB, "film")
    etag = here.put_object(Bucket=BUCKET, Key="film", Body=body)["ETag"]
    film = {"Bucket": BUCKET, "Key": "film"}
    at = 17 * MIB - 5
    asked = {**film, "Range": f"bytes={at}-{at + 999}", "IfMatch": etag}
    piece = answers_itself(second, lambda: there.get_object(**asked))
    assert piece["Body"].read() == body[at : at + 1_000] and piece["ETag"] == etag
    unchanged = {**film, "IfNoneMatch": etag}
    assert answers_itself(second, lambda: refusal(there.head_object, **unchanged)) == "304"
    assert refusal(there.get_object, **film, IfMatch='"other"') == "PreconditionFailed"
    assert there.get_object(**film)["Body"].read() == body
    upload = {**film, "UploadId": here.create_multipart_upload(**film)["UploadId"]}
    for number in range(1, 4):
        (here if number % 2 else there).upload_part(**upload, PartNumber=number, Body=b"part")
        parts = there.list_parts(**upload)["Parts"]
        assert [part["PartNumber"] for part in parts] == list(range(1, number + 1))
    there.abort_multipart_upload(**upload)
    assert refusal(there.list_parts, **upload) == "NoSuchUpload"


def test_what_is_recorded_meanwhile_keeps_no_follower_from_answering(first, second):
    key = first.credentials()
    run(first, "level", "create", "watched", "--rank", "0", "--same-label", "--audit-data")
    run(first, "bucket", "create", "seen", "--level", "watched")
    here, there = client(first, key), client(second, key)
    here.create_bucket(Bucket=BUCKET)
    here.put_object(Bucket=BUCKET, Key="a", Body=b"a")
    answers_itself(second, lambda: get(there, "a"))
    before = answers(second)
    for number in range(30):
        here.put_object(Bucket="seen", Key=f"{number}", Body=b"x")
        time.sleep(0.2)
        assert get(there, "a") == b"a"
    assert answers(second) > before + 15


def test_reads_go_on_when_another_takes_over(tmp_path, store, first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    client(first, key).put_object(Bucket=BUCKET, Key="a", Body=b"1")
    with Gateway(tmp_path / "three", url_at(store)) as third:
        gateways = [second, third]
        for gateway in gateways:
            answers_itself(gateway, lambda gateway=gateway: get(client(gateway, key), "a"))
        first.kill()
        put = {"Bucket": BUCKET, "Key": "a", "Body": b"2"}
        answered(lambda: client(second, key).put_object(**put), 20)
        for gateway in gateways:
            _, body = answered(lambda gateway=gateway: get(client(gateway, key), "a"), 20)
            assert body == b"2"
        first.start()
        answers_itself(first, lambda: get(client(first, key), "a"))
        assert get(client(first, key), "a") == b"2"
