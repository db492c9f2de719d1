"""A sealed stream ends when what let its subject have the object is taken back."""

import datetime
import time

import pytest

from harness import sealed
from harness.administration import make_subject
from harness.clients import s3_client
from harness.content import MIB, content
from harness.lists import block, id_of, own
from harness.policies import account_of, arn, put, statement, user

FILM = content(40 * MIB, "film")


@pytest.fixture(scope="module")
def anna(serving):
    """A subject that owns its buckets."""
    return s3_client(serving, credentials=make_subject(serving, "anna", "open"))


@pytest.fixture(scope="module")
def ben(serving):
    """A subject without a right in anna's buckets."""
    return make_subject(serving, "ben", "open", "--grant", "open=read")


def shelf(anna, name, *, has_lists):
    """A bucket of anna's, with a film."""
    ownership = "ObjectWriter" if has_lists else "BucketOwnerEnforced"
    level = {"LocationConstraint": "open"}
    anna.create_bucket(Bucket=name, CreateBucketConfiguration=level)
    own(anna, name, ownership)
    block(anna, name)
    anna.put_object(Bucket=name, Key="film", Body=FILM, Tagging="shown=yes")


def let_by_list(anna, name, id):
    anna.put_object_acl(Bucket=name, Key="film", GrantRead=f"id={id}")


def taken_off_the_list(anna, name):
    anna.put_object_acl(Bucket=name, Key="film", ACL="private")


def let_by_policy(anna, name, id):
    who = user(account_of(anna), "ben")
    put(anna, name, statement("Allow", who, ["s3:GetObject"], arn(name, "*")))


def policy_removed(anna, name):
    anna.delete_bucket_policy(Bucket=name)


def let_by_tag(anna, name, id):
    who = user(account_of(anna), "ben")
    shown = {"StringEquals": {"s3:ExistingObjectTag/shown": "yes"}}
    what = statement("Allow", who, ["s3:GetObject"], arn(name, "*"), Condition=shown)
    put(anna, name, what)


def tag_removed(anna, name):
    anna.delete_object_tagging(Bucket=name, Key="film")


WAYS = {
    "list": (let_by_list, taken_off_the_list, True),
    "policy-beside-lists": (let_by_policy, policy_removed, True),
    "policy": (let_by_policy, policy_removed, False),
    "tag-beside-lists": (let_by_tag, tag_removed, True),
    "tag": (let_by_tag, tag_removed, False),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_ends_with_what_let_it(serving, anna, ben, way):
    let, take_back, has_lists = WAYS[way]
    name = f"shelf-{way}"
    shelf(anna, name, has_lists=has_lists)
    let(anna, name, id_of(s3_client(serving, credentials=ben)))
    path = f"/{name}/film"
    waiting = sealed.offer(serving, path, credentials=ben)
    streaming = sealed.offer(serving, path, credentials=ben)
    with sealed.Slow(serving, streaming) as stream:
        # What is let goes on: the right is looked at more than once.
        time.sleep(1)
        take_back(anna, name)
        began = time.monotonic()
        assert sealed.request(serving, "GET", waiting["ticket"])[0] == 404
        time.sleep(max(0, began + 1 - time.monotonic()))
        stream.socket.settimeout(5)
        was_reset, received = stream.rest()
    assert received < streaming["bytes"], "the stream went on"
    assert was_reset, "what the kernel held went on"


def test_a_stream_that_is_let_goes_to_its_end(serving, anna, ben):
    shelf(anna, "shelf-let", has_lists=True)
    let_by_list(anna, "shelf-let", id_of(s3_client(serving, credentials=ben)))
    streaming = sealed.offer(serving, "/shelf-let/film", credentials=ben)
    with sealed.Slow(serving, streaming) as stream:
        time.sleep(1.5)
        # The connection stays open for another.
        while stream.received < streaming["bytes"]:
            stream.received += len(stream.socket.recv(1 << 20))


@pytest.mark.parametrize("by", ["clock", "age"])
def test_a_time_in_a_policy_ends_streams_and_tickets(serving, anna, ben, by):
    name = f"until-{by}"
    shelf(anna, name, has_lists=False)
    who = user(account_of(anna), "ben")
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=4)
    before = {
        "clock": {"DateLessThan": {"aws:CurrentTime": until.strftime("%Y-%m-%dT%H:%M:%SZ")}},
        "age": {"NumericLessThan": {"s3:signatureAge": "4000"}},
    }[by]
    actions = ["s3:GetObject", "s3:PutObject"]
    put(anna, name, statement("Allow", who, actions, arn(name, "*"), Condition=before))
    film, new = f"/{name}/film", f"/{name}/new"
    stream, waits = (sealed.offer(serving, film, credentials=ben) for _ in range(2))
    coming, late = (sealed.announced(serving, new, MIB, credentials=ben) for _ in range(2))
    message = sealed.seal(coming, FILM[:MIB])
    with (
        sealed.Slow(serving, stream) as reading,
        sealed.Dripping(serving, coming, message) as writing,
    ):
        writing.send(50_000)
        while datetime.datetime.now(datetime.UTC) < until + datetime.timedelta(seconds=2):
            time.sleep(0.1)
        # What is signed anew is young.
        again = sealed.ask_for(serving, film, credentials=ben)[0]
        assert again == {"clock": 403, "age": 200}[by]
        assert writing.ends_within(3)
        was_reset, received = reading.rest()
        assert was_reset or received < stream["bytes"]
    assert sealed.request(serving, "GET", waits["ticket"])[0] == 404
    sent = sealed.seal(late, FILM[:MIB])
    with sealed.Dripping(serving, late, sent) as refused:
        assert refused.ends_within(3)
