"""The local authority, as clients with other TLS libraries than OpenSSL see it."""

import datetime
import ipaddress

import pytest
from awscrt import http, io
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from curl_cffi import requests
from curl_cffi.requests.exceptions import RequestException

from harness.server import coffer


def boringssl(server):
    """curl with BoringSSL."""
    return requests.get(server.endpoint, verify=str(server.ca), timeout=30).status_code


def s2n(server):
    """The client of the AWS Common Runtime, which uses s2n-tls."""
    group = io.EventLoopGroup(1)
    bootstrap = io.ClientBootstrap(group, io.DefaultHostResolver(group))
    options = io.TlsContextOptions()
    options.override_default_trust_store_from_path(None, str(server.ca))
    tls = io.ClientTlsContext(options).new_connection_options()
    tls.set_server_name("127.0.0.1")
    made = http.HttpClientConnection.new(
        "127.0.0.1", server.port, bootstrap, tls_connection_options=tls
    )
    connection = made.result(30)
    headers = http.HttpHeaders([("host", "127.0.0.1")])
    told = []
    stream = connection.request(
        http.HttpRequest("GET", "/", headers),
        on_response=lambda http_stream, status_code, headers, **_: told.append(status_code),
    )
    stream.activate()
    stream.completion_future.result(30)
    connection.close()
    return told[0]


@pytest.mark.parametrize("client", [boringssl, s2n])
def test_the_local_authority_is_accepted(server, client):
    assert client(server) == 403


def constrain_addresses(server):
    """Makes the authority what those of earlier servers were: the same key and name, but addresses
    constrained beside names."""
    made = x509.load_pem_x509_certificate(server.ca.read_bytes())
    key_path = server.ca.with_name("ca.key")
    key = serialization.load_pem_private_key(key_path.read_bytes(), None)
    names = made.extensions.get_extension_for_class(x509.NameConstraints).value
    addresses = [ipaddress.ip_network(text) for text in ("127.0.0.1/32", "::1/128")]
    permitted = [*names.permitted_subtrees, *map(x509.IPAddress, addresses)]
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder(made.issuer, made.subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1000))
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
    )
    for extension in made.extensions:
        if extension.oid != x509.NameConstraints.oid:
            builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(key, hashes.SHA256())
    server.ca.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def test_an_older_authority_is_kept_told_and_renewed_by_a_command(own_server):
    server = own_server().start()
    constrain_addresses(server)
    older = server.ca.read_bytes()
    server.restart()
    assert server.ca.read_bytes() == older, "clients would lose what they trust"
    assert "coffer tls renew-authority" in server.log()
    with pytest.raises(RequestException, match="unsupported name constraint"):
        boringssl(server)
    told = coffer("tls", "renew-authority", "--data", server.data)
    assert told.returncode == 0 and str(server.ca) in told.stdout.decode(), told
    server.log_path.unlink()
    server.restart()
    assert server.ca.read_bytes() != older
    assert "renew-authority" not in server.log()
    assert boringssl(server) == 403


def test_there_must_be_an_authority_to_renew(tmp_path):
    told = coffer("tls", "renew-authority", "--data", tmp_path)
    assert told.returncode == 1 and told.stderr.startswith(b"error: "), told
    assert b"ca.pem" in told.stderr
