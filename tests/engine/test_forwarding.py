"""What a gateway makes of answers that it forwards."""

from harness import raw
from harness.engines import client

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
