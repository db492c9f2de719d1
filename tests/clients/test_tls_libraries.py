"""The local authority, as clients with other TLS libraries than OpenSSL see it."""

import datetime
import ipaddress

import pytest
from awscrt import http, io
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from curl_cffi import CurlOpt, requests
from curl_cffi.requests.exceptions import RequestException

from harness.raw import metric
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


def offering(server, port, groups):
    """A request of curl with BoringSSL that offers these groups for the exchange of keys."""
    url = f"https://127.0.0.1:{port}/"
    options = {CurlOpt.SSL_EC_CURVES: groups}
    return requests.get(url, verify=str(server.ca), curl_options=options, timeout=30).status_code


def exchanged_by_ml_kem(server):
    return metric(server, "coffer_s3_handshakes_post_quantum_total")


@pytest.mark.parametrize("groups", ["X25519MLKEM768", "X25519MLKEM768:X25519:P-256"])
def test_keys_are_exchanged_beyond_quantum_computers_with_those_who_can(server, groups):
    before = exchanged_by_ml_kem(server)
    assert offering(server, server.port, groups) == 403
    assert exchanged_by_ml_kem(server) == before + 1
    assert offering(server, server.admin_port, groups) in (401, 403, 404)


@pytest.mark.parametrize("groups", ["X25519", "P-256", "P-384"])
def test_clients_without_post_quantum_exchange_are_served(server, groups):
    before = exchanged_by_ml_kem(server)
    assert offering(server, server.port, groups) == 403
    assert exchanged_by_ml_kem(server) == before
    assert offering(server, server.admin_port, groups) in (401, 403, 404)


def constrain_addresses(server):
    """Makes the authority what those of earlier servers were: the same key and name, but addresses
    constrained, and names."""
    made = x509.load_pem_x509_certificate(server.ca.read_bytes())
    key_path = server.ca.with_name("ca.key")
    key = serialization.load_pem_private_key(key_path.read_bytes(), None)
    addresses = [ipaddress.ip_network(text) for text in ("127.0.0.1/32", "::1/128")]
    permitted = [x509.DNSName("localhost"), *map(x509.IPAddress, addresses)]
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder(made.issuer, made.subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1000))
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
    )
    for extension in made.extensions:
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
