"""What a gateway makes of answers that it forwards."""

import time

from harness import raw
from harness.engines import Gateway, client, url_at
from harness.proxy import Proxy

BUCKET = "notes"
#: So many headers a request may have, with those that sign it.
HEADERS_MAX = 256


def asked(connection, gateway, credentials, method, path, headers):
    signed = raw.signed_headers(gateway, method, path, headers=headers, credentials=credentials)
    connection.sendall(raw.request_head(method, path, signed))
    return raw.receive(connection, method)[0], len(signed)


def test_headers_that_are_too_many_with_what_is_told_beside_end_no_connection(first, second):
    """The gateway that serves refuses them before it has read them all: they are not this
    connection's to refuse."""
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    empty = {"content-length": "0"}
    many = empty | {f"x-many-{number}": "a" for number in range(HEADERS_MAX - 5)}
    with raw.connect(second) as connection:
        told = asked(connection, second, key, "PUT", f"/{BUCKET}/many", many)
        assert told == (400, HEADERS_MAX)
        for name in ("one", "two"):
            told = asked(connection, second, key, "PUT", f"/{BUCKET}/{name}", empty)
            assert told[0] == 200
    found = client(second, key).list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [item["Key"] for item in found] == ["one", "two"]


def test_an_upload_that_is_forwarded_outlasts_a_store_that_only_its_gateway_does_not_reach(
    tmp_path, store, first
):
    """The gateway that serves is at it all the time."""
    key, piece = first.credentials(), b"z" * 10_000
    client(first, key).create_bucket(Bucket=BUCKET)
    with Proxy(store.port) as proxy:
        url = url_at(store).replace(f":{store.port}", f":{proxy.port}")
        with Gateway(tmp_path / "two", url) as second, raw.connect(second) as connection:
            path, length = f"/{BUCKET}/slow", {"content-length": str(40 * len(piece))}
            signed = raw.signed_headers(second, "PUT", path, headers=length, credentials=key)
            connection.sendall(raw.request_head("PUT", path, signed))
            for number in range(40):
                # Longer than any request about a lease may take.
                proxy.waits_seconds = 3.0 if 5 <= number < 15 else 0.0
                connection.sendall(piece)
                time.sleep(0.1)
            status, _, body = raw.receive(connection, "PUT")
    assert status == 200, body
    found = client(first, key).get_object(Bucket=BUCKET, Key="slow")["Body"].read()
    assert found == 40 * piece
