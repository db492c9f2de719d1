"""URLs presigned by version 2 whose request has a header that was not signed."""

import http.client

import pytest

from harness import raw
from harness.clients import s3_client

BOTH = ("Content-Type", "Content-MD5")


@pytest.mark.parametrize("names", [("Content-Type",), ("Content-MD5",), BOTH])
def test_headers_that_were_not_signed_are_named(server, bucket, names):
    old = s3_client(server, signature_version="s3")
    url = old.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "k"})
    path = url.removeprefix(server.endpoint)
    told = []
    for headers in (dict.fromkeys(names, "nQTUgAVq8bAcxnYr7uJg7w=="), {}):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=raw.tls_context(server), timeout=30
        )
        connection.request("PUT", path, b"x", headers)
        response = connection.getresponse()
        told.append((response.status, response.read().decode()))
        connection.close()
    (refused, words), (stored, _) = told
    assert (refused, stored) == (403, 200)
    sent = "both" if names == BOTH else "one"
    assert f"signed without a {' and a '.join(names)}, and the request has {sent}" in words
