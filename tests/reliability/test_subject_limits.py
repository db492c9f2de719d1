"""What one subject, or one address, may take: connections, uploads under way, buckets."""

import contextlib
import socket
import ssl

from harness import raw
from harness.administration import make_subject
from harness.clients import s3_client

BUCKET = "shared"


def connection(server, stack, source="127.0.0.1"):
    """A connection from one of this machine's many addresses."""
    address = ("127.0.0.1", server.port)
    plain = socket.create_connection(address, timeout=30, source_address=(source, 0))
    sealed = raw.tls_context(server).wrap_socket(plain, server_hostname="127.0.0.1")
    return stack.enter_context(contextlib.closing(sealed))


def asks(server, sealed, credentials=None):
    """Lists the buckets; gives the status and the text of the answer."""
    signed = raw.signed_headers(server, "GET", "/", credentials=credentials)
    sealed.sendall(raw.request_head("GET", "/", signed))
    status, _, body = raw.receive(sealed)
    return status, body.decode()


def works(server, sealed, name, credentials=None):
    """Begins an upload and does not go on."""
    path, headers = f"/{BUCKET}/{name}", {"content-length": "60000000"}
    signed = raw.signed_headers(server, "PUT", path, headers=headers, credentials=credentials)
    sealed.sendall(raw.request_head("PUT", path, signed) + b"A" * 100_000)


def was_closed(sealed):
    sealed.settimeout(5)
    try:
        return sealed.recv(1) == b""
    except TimeoutError:
        return False


def test_a_subject_has_so_many_connections_and_the_oldest_idle_one_goes(own_server):
    config = "[limits]\nconnections-per-subject = 3\n"
    with own_server(config=config) as server, contextlib.ExitStack() as stack:
        s3_client(server).create_bucket(Bucket=BUCKET)
        other = make_subject(server, "other", "default")
        own = [connection(server, stack) for _ in range(4)]
        for sealed in own:
            assert asks(server, sealed)[0] == 200
        assert was_closed(own[0])
        # Those at work are left alone, and what would be one more is refused by a sentence.
        for number, sealed in enumerate(own[1:]):
            works(server, sealed, str(number))
        late = connection(server, stack, "127.0.0.2")
        while raw.metric(server, "coffer_s3_requests_in_flight") < 3:
            pass
        status, text = asks(server, late)
        assert status == 503 and "<Code>SlowDown</Code>" in text
        assert "3 connections at work, as many as one may have" in text
        assert asks(server, connection(server, stack), other)[0] == 200
        own[1].close()
        while raw.metric(server, "coffer_s3_requests_in_flight") > 2:
            pass
        assert asks(server, connection(server, stack))[0] == 200


def test_an_address_has_so_many_connections(own_server):
    config = "[limits]\nconnections-per-address = 2\n"
    with own_server(config=config) as server, contextlib.ExitStack() as stack:
        client = s3_client(server)
        client.create_bucket(Bucket=BUCKET)
        client.close()
        for number in range(2):
            works(server, connection(server, stack), str(number))
        while raw.metric(server, "coffer_s3_requests_in_flight") < 2:
            pass
        with contextlib.suppress(OSError, ssl.SSLError):
            connection(server, stack)
            raise AssertionError("a third connection of an address shook hands")
        assert asks(server, connection(server, stack, "127.0.0.2"))[0] == 200
        assert raw.metric(server, "coffer_s3_connections_kept_out_total") >= 1
