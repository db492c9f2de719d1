"""What a petabyte, ten billion objects and a hundred gateways need: the tables of docs/SCALE.md.

    python3 bench/scale/compute.py            # prints them
    python3 bench/scale/compute.py --write    # and writes them into docs/SCALE.md

Counts with what `measure.py` found (measured.json), with sizes of docs/FORMAT.md, and with the
assumptions below. Nothing here takes another library.
"""

import json
import math
import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/SCALE.md"
MEASURED = json.loads((HERE / "measured.json").read_text())

# The task.
BYTES = 1e15
OBJECTS = 1e10
GATEWAYS = 100

# Assumptions; each can be changed here.
BUCKETS = 10_000
CHANGED_A_DAY = 0.01
"""Part of all objects that is written anew in a day."""
ZIPF = 1.0
"""How unequal buckets are: the n-th busiest gets 1/n of what the busiest gets."""
STORE_SECONDS = 0.020
"""How long a store takes for a small object; commits that come meanwhile share the next one."""
LEASE_SECONDS = 10
RENEWALS_A_LEASE = 3
PUT_DOLLARS = 0.005 / 1_000
"""List price of a PUT, Amazon S3 Standard, us-east-1."""
GATEWAY_BYTES_A_SECOND = 1e9
"""What a gateway reads from its store."""
KEEP_DAYS = 7

# docs/FORMAT.md and the lists of limits.
KEYSTORE_BYTES_A_BUCKET = 16 + 16 + 1 + 4 + 104 + 104
KEYSTORE_SLOT_BYTES = 4 << 20
HEAD_MAX_BYTES = 16 << 20
CHAIN_SEGMENTS = 2_048
CHAIN_SPARE_BYTES = 16 << 20
PAGE_BYTES = 4_096
DAY = 86_400


def si(value, unit=""):
    """With three digits, and a prefix."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def shares(count=BUCKETS, power=ZIPF):
    """What part of all work each bucket has, the busiest first."""
    weights = [1 / number**power for number in range(1, count + 1)]
    whole = sum(weights)
    return [weight / whole for weight in weights]


def writes_a_second():
    return OBJECTS * CHANGED_A_DAY / DAY


def segments_a_second(seconds):
    """How many segments all buckets make, each at most one in so many seconds. Writes come by
    chance, so a bucket has one in a span unless none came."""
    rate = writes_a_second()
    return sum(-math.expm1(-rate * share * seconds) / seconds for share in shares())


def busiest_gateway(buckets, gateways, tries=200, seed=1):
    """How much more than the mean the busiest gateway has, where buckets are dealt out by chance:
    the median of some tries. A bucket has one owner, so it can't be parted."""
    chance, parts, found = random.Random(seed), shares(buckets), []
    for _ in range(tries):
        load = [0.0] * gateways
        for part in parts:
            load[chance.randrange(gateways)] += part
        found.append(max(load) * gateways)
    return sorted(found)[tries // 2]


def dealt_by_load(buckets, gateways):
    """The same, where the busiest bucket left goes to the gateway that has least."""
    load = [0.0] * gateways
    for part in shares(buckets):
        least = load.index(min(load))
        load[least] += part
    return max(load) * gateways


def rows():
    """What is needed: a name, how much, by what, and what bounds it."""
    catalog = OBJECTS * MEASURED["catalog_bytes_an_object"]
    a_catalog = catalog / BUCKETS
    head = MEASURED["head_bytes_a_bucket"] * BUCKETS
    rate = writes_a_second()
    engine = segments_a_second(STORE_SECONDS)
    segment = MEASURED["pages_a_commit"] * PAGE_BYTES
    renewals = RENEWALS_A_LEASE / LEASE_SECONDS
    keystore = KEYSTORE_BYTES_A_BUCKET * BUCKETS
    erase = MEASURED["seconds_to_erase_them"] / MEASURED["buckets"]
    start = MEASURED["seconds_to_start"] / MEASURED["buckets"]
    bases = max(engine / CHAIN_SEGMENTS, rate * segment / (a_catalog + CHAIN_SPARE_BYTES))
    files = OBJECTS / (1 << 32)
    full = KEYSTORE_SLOT_BYTES // KEYSTORE_BYTES_A_BUCKET
    taken = a_catalog * BUCKETS / GATEWAYS
    return [
        (
            "Catalogs",
            si(catalog, "B"),
            f"{si(a_catalog, 'B')} a bucket of {si(OBJECTS / BUCKETS)} objects",
            f"disk of a gateway's cache: {si(catalog / GATEWAYS, 'B')}",
        ),
        (
            "Keystore",
            si(keystore, "B"),
            f"{KEYSTORE_BYTES_A_BUCKET} B a bucket",
            f"its slot of 4 MiB is full at {full:,} buckets",
        ),
        (
            "Blobs as files of one file system",
            si(OBJECTS),
            "an object, one part",
            f"ext4 has 2^32 inodes, {files:.1f} times too few; XFS has enough",
        ),
        ("Writes", f"{si(rate)}/s", f"{CHANGED_A_DAY:.0%} of all objects a day", ""),
        (
            "Segments, engine",
            f"{si(engine)}/s",
            f"a bucket's commits of {STORE_SECONDS * 1e3:.0f} ms share one",
            f"${engine * PUT_DOLLARS * DAY:,.0f} a day, "
            f"{engine / rate:.2f} of what a PUT for each would cost",
        ),
        (
            "Bytes of segments, engine",
            si(rate * segment, "B/s"),
            f"{MEASURED['pages_a_commit']:.0f} pages a commit at most",
            "",
        ),
        (
            "New bases, engine",
            f"{si(bases * a_catalog, 'B')}/s",
            f"each {CHAIN_SEGMENTS:,} segments, one catalog",
            f"{bases * a_catalog / (rate * segment):.1f} times the segments themselves",
        ),
        (
            "Leases, one a bucket",
            f"{si(BUCKETS * renewals)}/s",
            f"{RENEWALS_A_LEASE} renewals in {LEASE_SECONDS} s",
            f"${BUCKETS * renewals * PUT_DOLLARS * DAY:,.0f} a day",
        ),
        (
            "Leases, one a gateway",
            f"{si(GATEWAYS * renewals)}/s",
            "the same",
            f"${GATEWAYS * renewals * PUT_DOLLARS * DAY:,.2f} a day",
        ),
        (
            "Heads of a copy",
            f"{si(head, 'B')}/s",
            "one a second, of all buckets",
            f"{si(head * DAY * KEEP_DAYS, 'B')} in {KEEP_DAYS} days; 16 MiB are reached at "
            f"{HEAD_MAX_BYTES // MEASURED['head_bytes_a_bucket']:,} buckets",
        ),
        ("Start of one server", f"{start * BUCKETS:.1f} s", f"{start * 1e3:.1f} ms a bucket", ""),
        (
            "Taking over a gateway that died",
            f"{taken / GATEWAY_BYTES_A_SECOND:.0f} s",
            f"{si(taken, 'B')} of catalogs, where all of them are fetched first",
            "10 s are allowed",
        ),
        (
            "Erase of a level with all buckets",
            f"{erase * BUCKETS:.1f} s",
            f"{erase * 1e3:.2f} ms a bucket",
            f"at a gateway that can't be reached: its lease, {LEASE_SECONDS} s",
        ),
        (
            "Verifying all",
            f"{BYTES / GATEWAY_BYTES_A_SECOND / GATEWAYS / 3_600:.1f} h",
            f"{GATEWAYS} gateways, {si(GATEWAY_BYTES_A_SECOND, 'B/s')} each",
            f"{BYTES / GATEWAY_BYTES_A_SECOND / DAY:.0f} days on one",
        ),
    ]


def balance():
    """Gateways' shares, by how buckets are dealt out."""
    for gateways in (2, 10, GATEWAYS):
        yield (
            gateways,
            busiest_gateway(BUCKETS, gateways),
            dealt_by_load(BUCKETS, gateways),
            shares()[0] * gateways,
        )


def tables():
    lines = ["| what | how much | how it is counted | what it meets |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows()]
    lines += [
        "",
        "| gateways | dealt by chance | by load | the busiest bucket alone |",
        "|---|---|---|---|",
    ]
    for gateways, chance, load, alone in balance():
        lines.append(f"| {gateways} | {chance:.2f} | {load:.2f} | {alone:.2f} |")
    return "\n".join(lines)


BETWEEN = re.compile(r"(<!-- computed -->\n).*(\n<!-- end -->)", re.DOTALL)


def main():
    found = tables()
    print(found)
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text()
        PAGE.write_text(BETWEEN.sub(lambda match: match[1] + found + match[2], text))


if __name__ == "__main__":
    main()
