"""A lease that lies in the clear, and that no gateway wrote."""

import json

import pytest

from harness.engines import answered, client

BUCKET = "notes"
LEASE = {"Bucket": "log", "Key": "engine/lease.json"}


@pytest.mark.parametrize(
    "altered",
    [
        {"number": 2**64 - 1},
        {"renewals": 2**64 - 1},
        {"lasts_ms": 2**63},
        {"address": "x" * 1_000},
    ],
    ids=lambda altered: next(iter(altered)),
)
def test_gateways_serve_again_once_a_lease_beyond_all_limits_is_removed(
    store, first, second, altered
):
    s3 = client(second, first.credentials(), read_timeout=60)
    s3.create_bucket(Bucket=BUCKET)
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="before", Body=b"x"))
    at = client(store, store.credentials())
    lease = json.loads(at.get_object(**LEASE)["Body"].read())
    lease |= {"gateway": "ab" * 16} | altered
    at.put_object(**LEASE, Body=json.dumps(lease).encode())

    def told_by_both():
        assert all("lease is none that is known" in each.log() for each in (first, second))

    answered(told_by_both, 20)
    at.delete_object(**LEASE)
    answered(lambda: s3.put_object(Bucket=BUCKET, Key="after", Body=b"x"), 20)
    for gateway in (first, second):
        assert gateway.process.poll() is None and "panicked" not in gateway.log()
