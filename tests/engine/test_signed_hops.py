"""Headers of a connection that are signed: they are not forwarded, and count for the signature."""

import subprocess

from harness import raw
from harness.engines import answered, client

BUCKET = "notes"


def curl(gateway, key, *arguments):
    """Signed by curl, which signs each header that it is given."""
    command = ["curl", "-sS", "--cacert", str(gateway.ca), "-w", "%{http_code}"]
    command += ["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", ":".join(key)]
    command += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def asked(gateway, key, path, headers, sent=None):
    signed = raw.signed_headers(
        gateway, "PUT", path, headers={"content-length": "1"} | headers, credentials=key
    )
    with raw.connect(gateway) as connection:
        connection.sendall(raw.request_head("PUT", path, signed | (sent or {})) + b"x")
        return raw.receive(connection, "PUT")[0]


def test_what_curl_signs_of_its_connection_holds_at_each_gateway(tmp_path, first, second):
    key = first.credentials()
    s3 = client(first, key)
    s3.create_bucket(Bucket=BUCKET)
    answered(lambda: client(second, key).list_buckets(), 30)
    (tmp_path / "body").write_bytes(b"body" * 1000)
    for gateway, name in ((first, "one"), (second, "two")):
        for number, header in enumerate(("Expect: 100-continue", "TE: trailers")):
            url = f"{gateway.endpoint}/{BUCKET}/{name}-{number}"
            told = curl(gateway, key, "-H", header, "-T", str(tmp_path / "body"), url)
            assert told == "200", (name, header, told)
            found = s3.get_object(Bucket=BUCKET, Key=f"{name}-{number}")["Body"].read()
            assert found == b"body" * 1000
            # A refusal that comes before the body ends nothing else.
            missing = f"{gateway.endpoint}/none-such/x"
            told = curl(gateway, key, "-H", header, "-T", str(tmp_path / "body"), missing)
            assert told.endswith("404") and "NoSuchBucket" in told, (name, header, told)


def test_what_is_signed_of_a_connection_is_to_be_as_it_was_signed(first, second):
    key = first.credentials()
    client(first, key).create_bucket(Bucket=BUCKET)
    answered(lambda: client(second, key).list_buckets(), 30)
    hops = {"te": "trailers", "connection": "te", "keep-alive": "timeout=5"}
    for gateway in (first, second):
        path = f"/{BUCKET}/signed"
        assert asked(gateway, key, path, hops) == 200
        assert asked(gateway, key, path, hops, {"te": "gzip"}) == 403
        # No client says it in a gateway's name.
        told = {"te": "gzip", "x-coffer-gateway-of-connection": "te:trailers"}
        assert asked(gateway, key, path, hops, told) == 403
