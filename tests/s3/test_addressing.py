"""Virtual-host style beside path style."""

import socket

import pytest

from harness import raw
from harness.clients import drain, s3_client
from harness.content import content

DOMAIN = "s3.coffer.test"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from harness.server import Server

    with Server(tmp_path_factory.mktemp("domain"), arguments=["--domain", DOMAIN]) as running:
        yield running


@pytest.fixture
def names(monkeypatch):
    """Names below the domain lead to this machine."""
    real = socket.getaddrinfo

    def resolve(host, *rest, **options):
        name = host.decode() if isinstance(host, bytes) else host
        return real("127.0.0.1" if name and name.endswith(DOMAIN) else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_virtual_host_style(server, names):
    s3 = s3_client(
        server,
        endpoint=f"https://{DOMAIN}:{server.port}",
        s3={"addressing_style": "virtual"},
    )
    hosts = []
    s3.meta.events.register("before-send.s3", lambda request, **_: hosts.append(request.url))
    s3.create_bucket(Bucket="virtual")
    s3.put_object(Bucket="virtual", Key="dir/ä b", Body=content(100_000))
    assert s3.get_object(Bucket="virtual", Key="dir/ä b")["Body"].read() == content(100_000)
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="virtual")["Contents"]] == ["dir/ä b"]
    assert any(url.startswith(f"https://virtual.{DOMAIN}:") for url in hosts)
    by_path = s3_client(server)
    assert by_path.get_object(Bucket="virtual", Key="dir/ä b")["Body"].read() == content(100_000)
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "virtual", "Key": "dir/ä b"})
    path = url.partition(f":{server.port}")[2]
    host = f"virtual.{DOMAIN}"
    with raw.connect(server, host=host) as connection:
        head = raw.request_head(
            "GET", path, {"host": f"{host}:{server.port}", "connection": "close"}
        )
        connection.sendall(head)
        assert raw.receive(connection)[2] == content(100_000)
    drain(s3, "virtual")


def test_path_style_on_the_domain(server, names):
    s3 = s3_client(server, endpoint=f"https://{DOMAIN}:{server.port}")
    s3.create_bucket(Bucket="by-path")
    s3.put_object(Bucket="by-path", Key="a", Body=b"a")
    assert s3.get_object(Bucket="by-path", Key="a")["Body"].read() == b"a"
    drain(s3, "by-path")
