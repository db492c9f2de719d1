"""An engine that is begun on a copy whose keystore leaves a level out."""

from harness.administration import run
from harness.age import RECIPIENT
from harness.clients import s3_client
from harness.engines import Gateway, answered, client, url_at
from harness.sealed_copies import caught_up, made, replica, status
from harness.server import Server


def test_buckets_without_a_key_keep_no_write_from_others(tmp_path, store):
    url = url_at(store)
    with Server(made(tmp_path / "first")) as server:
        key = server.credentials()
        replica(server, "add", "far", url, "--with-keystore", "--recipient", RECIPIENT)
        run(server, "level", "create", "kept", "--rank", "0", "--same-label", "--no-export")
        run(server, "bucket", "create", "vault", "--level", "kept")
        s3 = s3_client(server)
        s3.create_bucket(Bucket="notes")
        s3.put_object(Bucket="vault", Key="gold", Body=b"gold")
        s3.put_object(Bucket="notes", Key="before", Body=b"before")
        caught_up(server)
        vault = next(name for name in status(server)["keystore"]["left_out"])
        assert vault == "kept"
    with Gateway(tmp_path / "one", url) as gateway:
        s3 = client(gateway, key, read_timeout=60)
        answered(lambda: s3.put_object(Bucket="notes", Key="after", Body=b"after"), 30)
        for name in ("before", "after"):
            assert s3.get_object(Bucket="notes", Key=name)["Body"].read() == name.encode()
        run(gateway, "subject", "create", "another", "--clearance", "default")
        told = status(gateway, "engine")
        assert told["state"] == "following", told
        assert "can't be opened" in told["problem"], told
