"""The log of an engine as a released format left it, with records behind its newest head: gateways
serve it for ever.

`museum/log-N.tar.gz` has all objects of one, made by the version that brought the format, and the
access key of its first subject, which no server has.
"""

import json
import tarfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from harness.engines import Gateway, answered, client, url_at

MUSEUM = Path(__file__).parent / "museum"


@pytest.fixture(params=sorted(MUSEUM.glob("*.tar.gz")), ids=lambda path: path.name.split(".")[0])
def old_key(request, store):
    """The access key of a log that is in the store now."""
    at = client(store, store.credentials())
    with tarfile.open(request.param) as log:
        for member in log.getmembers():
            body = log.extractfile(member).read()
            if member.name == "access-key.json":
                key = json.loads(body)
            else:
                at.put_object(Bucket="log", Key=member.name, Body=body)
    return key


def test_an_old_log_is_served_and_gone_on_with(tmp_path, store, old_key):
    written = []
    for name in ("one", "two"):
        with Gateway(tmp_path / name, url_at(store)) as gateway:
            s3 = client(gateway, old_key)
            assert answered(lambda s3=s3: read(s3, "small"), 30)[1] == b"A small object."
            assert read(s3, "large") == bytes(range(256)) * 80
            # What records alone have.
            assert read(s3, "later") == bytes(range(255)) * 70
            with pytest.raises(ClientError, match="NoSuchKey"):
                read(s3, "gone")
            assert all(read(s3, key) == b"new" for key in written)
            s3.put_object(Bucket="notes", Key=name, Body=b"new")
            written.append(name)


def read(s3, key):
    return s3.get_object(Bucket="notes", Key=key)["Body"].read()
