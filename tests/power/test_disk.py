"""The simulated disk loses what was not synced, and nothing else; the ledger knows what may be."""

import random

from harness.power.disk import SECTOR_BYTES, Disk, digest
from harness.power.ledger import Ledger
from harness.power.tape import CREATE, RENAME, SYNC, SYNC_FOLDER, SYNC_REFUSED, WRITE, Step


def step(what, inode=0, number=0, path="", second="", data=b""):
    return Step(what, inode, number, path, second, data)


def cut(disk, data="none", names="none", seed=0):
    """What is left, as bytes by path."""
    left = {}
    for path, content in disk.cut(random.Random(seed), data, names).items():
        whole = bytearray(content.length)
        for place, sector in content.sectors.items():
            kept = sector[: content.length - place * SECTOR_BYTES]
            whole[place * SECTOR_BYTES : place * SECTOR_BYTES + len(kept)] = kept
        left[path] = bytes(whole)
    return left


def after(*steps):
    disk = Disk()
    for one in steps:
        disk.apply(one)
    return disk


MADE = step(CREATE, 1, path="a")
WRITTEN = step(WRITE, 1, 0, "a", data=b"x" * 1000)


def test_a_name_lasts_when_its_folder_is_synced_and_bytes_when_their_file_is():
    assert cut(after(MADE, WRITTEN, step(SYNC, 1, path="a"))) == {}
    assert cut(after(MADE, WRITTEN, step(SYNC_FOLDER))) == {"a": b""}
    both = after(MADE, WRITTEN, step(SYNC, 1, path="a"), step(SYNC_FOLDER))
    for seed in range(20):
        assert cut(both, "mixed", "subset", seed) == {"a": b"x" * 1000}


def test_a_rename_leaves_one_of_both_names():
    durable = (MADE, WRITTEN, step(SYNC, 1, path="a"), step(SYNC_FOLDER))
    renamed = after(*durable, step(RENAME, path="a", second="b"))
    found = {tuple(cut(renamed, "mixed", "subset", seed)) for seed in range(50)}
    assert found == {("a",), ("b",)}


def test_what_is_not_synced_is_torn_by_sectors():
    disk = after(MADE, step(SYNC_FOLDER), WRITTEN)
    seen = {cut(disk, "torn", seed=seed)["a"] for seed in range(200)}
    first, second = b"x" * SECTOR_BYTES, b"x" * (1000 - SECTOR_BYTES)
    assert seen == {b"", first, bytes(SECTOR_BYTES) + second, first + second}
    images = {digest(disk.cut(random.Random(seed), "torn")) for seed in range(200)}
    assert len(images) == len(seen)


def test_what_a_failed_sync_was_for_is_not_saved_by_a_later_one():
    lost = set()
    for number in range(40):
        # The number of the step decides what is lost.
        before = [step(SYNC_FOLDER)] * number
        steps = [MADE, *before, WRITTEN, step(SYNC_REFUSED, 1, path="a")]
        disk = after(*steps, step(SYNC, 1, path="a"), step(SYNC_FOLDER))
        lost.add(cut(disk)["a"])
    assert len(lost) > 1 and b"x" * 1000 in lost


def test_the_ledger_allows_what_was_acknowledged_or_is_in_doubt():
    ledger = Ledger({("object",): "old"})
    with ledger.trying({("object",): "refused"}) as answer:
        answer.is_("no")
    with ledger.trying({("object",): "doubtful"}):
        pass
    assert ledger.standing(ledger.log)[("object",)] == ["old", "doubtful"]
    with ledger.trying({("object",): "new", ("other",): 1}) as answer:
        under_way = list(ledger.log)
        answer.is_("yes")
    assert ledger.standing(under_way)[("object",)] == ["old", "doubtful", "new"]
    assert ledger.standing(ledger.log)[("object",)] == ["new"]
    found = {("object",): "new", ("other",): None}
    ((act, told),) = ledger.halves(under_way, found)
    assert told == {("object",): True, ("other",): False}
