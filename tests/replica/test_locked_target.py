"""A sealed copy in a bucket that locks by default all that is put there."""

from harness.clients import s3_client
from harness.sealed_copies import (
    caught_up,
    check,
    keys_of,
    made,
    put,
    replica,
    restore,
    served,
    verify,
)
from harness.server import Server


def test_a_copy_lies_where_all_is_locked(server, tmp_path):
    """S3 wants a checksum of what a default retention will lock. Nothing that the copy has given up
    is lost there before its time, for each removal leaves the version."""
    with Server(made(tmp_path / "other")) as other:
        s3 = s3_client(other)
        s3.create_bucket(Bucket="copies", ObjectLockEnabledForBucket=True)
        s3.put_object_lock_configuration(
            Bucket="copies",
            ObjectLockConfiguration={
                "ObjectLockEnabled": "Enabled",
                "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}},
            },
        )
        url = (
            f"s3://copies/of-first?endpoint={other.endpoint}&ca={other.ca}"
            f"&credentials={other.credentials_path}"
        )
        assert "checksum" in replica(server, "add", "far", url, expect=1).lower()
        wrong = replica(server, "add", "far", url + "&checksum=md5", expect=1)
        assert "its checksum is sha256 or crc64nvme" in wrong
        url += "&checksum=sha256"
        replica(server, "add", "far", url)
        put(server, ["small-1", "middle-1", "large-1"])
        caught_up(server, seconds=60)
        assert verify(server)[-1]["damage_count"] == 0
        # What the check was recorded as is held by the keystore.
        told = caught_up(server, seconds=60)
        keys = keys_of(server, tmp_path / "restored")
        (tmp_path / "credentials").write_text(server.credentials_path.read_text())
        server.kill()
        done = restore(url, keys, "--head", told["head"])
        assert done["blob_count"] == 2, done
        with served(tmp_path / "second", keys) as second:
            check(second, ["small-1", "middle-1", "large-1"])
        versions = s3.list_object_versions(Bucket="copies")["Versions"]
        head = s3.head_object(
            Bucket="copies", Key=versions[0]["Key"], VersionId=versions[0]["VersionId"]
        )
        assert head["ObjectLockMode"] == "GOVERNANCE"
