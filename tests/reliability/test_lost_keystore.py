"""Both copies of the keystore are gone: exports of its levels are the way back."""

import shutil

import pytest

from harness.clients import s3_client
from harness.content import content
from harness.custodian import ask, run
from harness.server import StartError

# An identity of age for tests, and its recipient.
IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

NAMES = {"small": 2_000, "large": 700_000}


def test_exported_levels_come_back_in_a_new_folder(own_server, tmp_path):
    lost, new = own_server("lost").start(), own_server("new")
    s3 = s3_client(lost)
    s3.create_bucket(Bucket="mine")
    export = tmp_path / "default.age"
    run(lost, "key", "export", "default", "--to", RECIPIENT, "--out", export)
    # What is stored after the export is covered as well: it holds the bucket's key.
    for name, size_bytes in NAMES.items():
        s3.put_object(Bucket="mine", Key=name, Body=content(size_bytes, name))
    lost.stop()
    (lost.data / "keystore").write_bytes(bytes(9 << 20))
    with pytest.raises(StartError) as refusal:
        lost.start()
    assert "coffer key import" in refusal.value.log and "panicked" not in refusal.value.log

    new.start()
    for folder in (lost.data / "buckets").iterdir():
        shutil.copytree(folder, new.data / "buckets" / folder.name)
    identity = tmp_path / "identity"
    identity.write_text(IDENTITY)
    imported = ask(
        new, "key", "import", export, "--identity", identity, "--as", "recovered", "--same-label"
    )
    assert [(row["name"], row["state"]) for row in imported["buckets"]] == [("mine", "adopted")]
    s3 = s3_client(new)
    for name, size_bytes in NAMES.items():
        read = s3.get_object(Bucket="mine", Key=name)["Body"].read()
        assert read == content(size_bytes, name)
    s3.put_object(Bucket="mine", Key="more", Body=b"and it goes on")
    run(new, "verify")
