"""The folder of a gateway that runs no more: what reads it, and what is said of it."""

from harness.engines import answered, answers_itself, client
from harness.server import coffer

BUCKET = "notes"


def test_what_a_gateway_held_that_only_followed_is_read_offline(first, second):
    key = first.credentials()
    s3, there = client(first, key), client(second, key)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="small", Body=b"acknowledged")
    answered(lambda: there.head_bucket(Bucket=BUCKET))
    answers_itself(second, lambda: there.get_object(Bucket=BUCKET, Key="small")["Body"].read())
    first.kill()
    second.kill()
    at = ("--data", second.data)
    listed = coffer("offline", "ls", BUCKET, *at, text=True)
    assert listed.returncode == 0 and "small" in listed.stdout, listed
    read = coffer("offline", "cat", BUCKET, "small", *at)
    assert (read.returncode, read.stdout) == (0, b"acknowledged"), read
    for asked in [("bucket", "list"), ("keystore", "status")]:
        done = coffer(*asked, *at, text=True)
        assert done.returncode != 0 and "standby" not in done.stderr, done
        assert "folder of a gateway of an engine" in done.stderr, done
    backup = coffer("serve", *at, "--listen", "127.0.0.1:0", text=True)
    assert backup.returncode != 0 and "`coffer serve --engine URL" in backup.stderr, backup
