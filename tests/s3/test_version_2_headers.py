"""URLs presigned by version 2 whose request has a header that was not signed."""

import http.client

import pytest

from harness import raw
from harness.clients import s3_client


@pytest.mark.parametrize("name", ["Content-Type", "Content-MD5"])
def test_a_header_that_was_not_signed_is_named(server, bucket, name):
    old = s3_client(server, signature_version="s3")
    url = old.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "k"})
    path = url.removeprefix(server.endpoint)
    told = []
    for headers in ({name: "nQTUgAVq8bAcxnYr7uJg7w=="}, {}):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=raw.tls_context(server), timeout=30
        )
        connection.request("PUT", path, b"x", headers)
        response = connection.getresponse()
        told.append((response.status, response.read().decode()))
        connection.close()
    (refused, words), (stored, _) = told
    assert (refused, stored) == (403, 200)
    assert f"signed without a {name}, and the request has one" in words
