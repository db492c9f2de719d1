"""What the mover says of names, keys and authorities that are not what was meant."""

import datetime
import os
from http.server import BaseHTTPRequestHandler

import pytest

from harness.administration import ask
from harness.mover import Mover, answering

KEY_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


def test_a_folders_name_with_bytes_is_not_done(mover, s3, bucket, tmp_path):
    for key, body in {"p/data/": b"bytes", "p/data/file": b"file", "p/empty/": b""}.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    into = tmp_path / "into"
    _, told = mover.run("get", "-r", f"s3://{bucket}/p/", into, code=1)
    assert "p/data/ has bytes, and a name that ends with / can't be a file's" in told
    assert "1 failed, 2 went well" in told
    assert (into / "data/file").read_bytes() == b"file"
    assert (into / "empty").is_dir()
    # By itself it comes, as is advised.
    mover.run("get", f"s3://{bucket}/p/data/", tmp_path / "alone")
    assert (tmp_path / "alone").read_bytes() == b"bytes"


def test_a_folder_that_is_not_there_is_named(mover, s3, bucket):
    s3.put_object(Bucket=bucket, Key="x", Body=b"x")
    for target in ("newdir/", "newdir/x"):
        _, told = mover.run("get", f"s3://{bucket}/x", target, code=1)
        assert "newdir is no folder that there is: make it first" in told
        assert "coffer-journal" not in told
    assert not (mover.home / "newdir").exists()


def test_half_an_access_key_and_a_profile_that_is_not_there_are_told(mover, bucket):
    mover.run("ls", f"s3://{bucket}")
    _, told = mover.run("ls", "--profile", "nix", code=1)
    assert "profile nix: there is no such profile" in told
    folder = mover.home / ".aws"
    folder.mkdir()
    id_and_secret = [mover.environment[name] for name in KEY_VARIABLES]
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id={}\naws_secret_access_key={}\n".format(*id_and_secret)
    )
    del mover.environment["AWS_SECRET_ACCESS_KEY"]
    _, told = mover.run("ls", f"s3://{bucket}", code=1)
    assert "AWS_ACCESS_KEY_ID: is set without AWS_SECRET_ACCESS_KEY: set both" in told
    del mover.environment["AWS_ACCESS_KEY_ID"]
    mover.run("ls", f"s3://{bucket}")


def test_the_marker_of_the_folder_itself_is_done(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="dir/", Body=b"")
    for into in (tmp_path / "into", tmp_path / "into"):
        events = mover.events("get", "-r", f"s3://{bucket}/dir/", into)
        assert (events[-1]["done"], events[-1]["failed"]) == (1, 0)
        assert list(into.iterdir()) == []
    s3.put_object(Bucket=bucket, Key="full/", Body=b"bytes")
    _, told = mover.run("get", "-r", f"s3://{bucket}/full/", tmp_path / "full", code=1)
    assert "full/ has bytes" in told


def test_a_prefix_that_no_name_has_is_told(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="here/a", Body=b"a")
    into = tmp_path / "into"
    for command in (
        ("ls", f"s3://{bucket}/gone/"),
        ("get", "-r", f"s3://{bucket}/gone/", into),
        ("cp", "-r", f"s3://{bucket}/gone/", f"s3://{bucket}/to/"),
        ("rm", "-r", "--yes", f"s3://{bucket}/gone/"),
    ):
        _, told = mover.run(*command, code=1)
        assert "no name begins with gone/" in told
    assert not into.exists()
    s3.delete_object(Bucket=bucket, Key="here/a")
    # An empty bucket is as empty here.
    mover.run("get", "-r", f"s3://{bucket}", into)
    mover.run("rm", "-r", "--yes", f"s3://{bucket}")
    s3.create_bucket(Bucket="copies-of-nothing")
    mover.run("cp", "-r", f"s3://{bucket}", "s3://copies-of-nothing/to/")
    s3.delete_bucket(Bucket="copies-of-nothing")


def test_a_folders_name_without_r_is_told_what_takes_it(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="2026/a", Body=b"a")
    place = f"s3://{bucket}/2026/"
    _, told = mover.run("rm", place, code=1)
    assert "no object 2026/ in the bucket" in told and "with -r all" in told
    for into in (tmp_path, tmp_path / "alone"):
        _, told = mover.run("get", place, into, code=1)
        assert "-r" in told, told
    s3.put_object(Bucket=bucket, Key="2026/", Body=b"")
    mover.run("rm", place)
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["2026/a"]
    _, told = mover.run("rm", "-r", place, code=2, input=b"")
    assert "nothing was typed where `yes` was asked for; nothing was deleted" in told
    assert "scripts say --yes" in told


def test_a_name_that_is_not_there_is_not_deleted(mover, s3):
    bucket = "names-that-are-not-there"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"k")["VersionId"]
    mover.run("rm", f"s3://{bucket}/k")
    for name, options, told_is in (
        ("missing", (), "there is no object missing in the bucket"),
        ("k", (), "there is no object k in the bucket"),
        ("missing", ("--version-id", version), f"there is no version {version} of the object"),
    ):
        _, told = mover.run("rm", f"s3://{bucket}/{name}", *options, code=1)
        assert told_is in told, told
    [marker] = s3.list_object_versions(Bucket=bucket)["DeleteMarkers"]
    # A marker has no content that could be looked at, and is there.
    mover.run("rm", f"s3://{bucket}/k", "--version-id", marker["VersionId"])
    mover.run("rm", f"s3://{bucket}/k", "--version-id", version)
    s3.delete_bucket(Bucket=bucket)


def test_who_may_delete_and_not_read_deletes(server, mover, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"k")
    key = ask(server, "subject", "create", "deleter", "--grant", f"{bucket}=delete")
    mover.environment |= {
        "AWS_ACCESS_KEY_ID": key["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": key["secret_access_key"],
    }
    mover.run("rm", f"s3://{bucket}/k")
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_bucket_that_is_not_there_is_named(mover, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="k", Body=b"k")
    (tmp_path / "folder").mkdir()
    for name, size in (("small", 10), ("large", 17 << 20), ("folder/a", 10), ("folder/b", 10)):
        (tmp_path / name).write_bytes(bytes(size))
    place, there = "s3://not-there/k", f"s3://{bucket}/k"
    for command in (
        ("put", tmp_path / "small", place),
        ("put", tmp_path / "large", place),
        ("put", tmp_path / "small", tmp_path / "large", "s3://not-there/"),
        ("put", "-r", tmp_path / "folder", place),
        ("get", place, tmp_path / "out"),
        ("get", "-r", place, tmp_path / "out"),
        ("ls", "s3://not-there"),
        ("ls", "--versions", "s3://not-there"),
        ("cp", place, there),
        ("cp", there, place),
        ("cp", "-r", place, f"s3://{bucket}/to/"),
        ("cp", "-r", f"s3://{bucket}", place),
        ("rm", place),
        ("rm", "-r", "--yes", place),
        ("rm", "-r", "--versions", "--yes", place),
    ):
        _, told = mover.run(*command, code=1)
        assert "there is no bucket not-there" in told, (command, told)
        assert "`coffer ls` lists" in told and "`coffer bucket create not-there`" in told, told


class Bare(BaseHTTPRequestHandler):
    """Has no bucket, and does not tell which one was asked for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b"<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>"
        self.send_response(404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer


def test_a_bucket_that_is_not_at_another_server_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with answering(Bare) as service:
        mover = Mover.elsewhere(service, tmp_path / "home")
        place = "s3://no%20where/k"
        commands = [("put", tmp_path / "file", place), ("get", place, "out"), ("ls", place)]
        commands += [("rm", place), ("cp", place, "s3://here/k")]
        for command in commands:
            _, told = mover.run(*command, code=1)
            assert "there is no bucket no%20where" in told, (command, told)
            assert "`aws s3 mb s3://no%20where`" in told, told


def test_a_lock_is_told_as_what_it_is(mover, s3):
    bucket = "locked-for-an-hour"
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"k", **lock)["VersionId"]
    s3.put_object(Bucket=bucket, Key="l", Body=b"l")
    _, told = mover.run("rm", f"s3://{bucket}/k", "--version-id", version, code=1)
    assert "no access key may, while a lock for compliance" in told
    assert "this access key may not" not in told
    events = mover.events("rm", "-r", "--versions", f"s3://{bucket}", "--yes", code=1)
    [failed] = [event for event in events if event["event"] == "failed"]
    assert failed["what"] == f"s3://{bucket}/k (version {version})"
    assert "--bypass-governance-retention" in failed["message"]
    assert (events[-1]["done"], events[-1]["failed"]) == (1, 1)


def test_a_prefix_is_not_copied_into_itself(mover, s3, bucket):
    for key in ("a", "f/b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    for source, target in (("", "zz/"), ("f", "f/g"), ("f/", "f/")):
        command = ("cp", "-r", f"s3://{bucket}/{source}", f"s3://{bucket}/{target}")
        _, told = mover.run(*command, code=2)
        assert "lies in what is copied" in told
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2
    mover.run("cp", "-r", f"s3://{bucket}/f", f"s3://{bucket}/fg")
    assert s3.get_object(Bucket=bucket, Key="fg/b")["Body"].read() == b"x"


def test_a_prefix_is_not_copied_over_what_is_not_copied_yet(mover, s3, bucket):
    bodies = {"y/y/z": b"inner", "y/z": b"outer"}
    for key, body in bodies.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    for target in ("", "y/"):
        command = ("cp", "-r", f"s3://{bucket}/y/y/", f"s3://{bucket}/{target}")
        _, told = mover.run(*command, code=2)
        assert "holds what is copied" in told
    _, told = mover.run("cp", "-r", f"s3://{bucket}/y/", f"s3://{bucket}/", code=2)
    assert "holds what is copied" in told
    for key, body in bodies.items():
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2
    # Another bucket holds none of it.
    s3.create_bucket(Bucket="copies-beside")
    mover.run("cp", "-r", f"s3://{bucket}/y/", "s3://copies-beside/")
    for key, body in {"y/z": b"inner", "z": b"outer"}.items():
        assert s3.get_object(Bucket="copies-beside", Key=key)["Body"].read() == body
        s3.delete_object(Bucket="copies-beside", Key=key)
    s3.delete_bucket(Bucket="copies-beside")


def test_a_wrong_key_is_told_as_such(mover, s3, bucket, tmp_path):
    for key, body in (("a", b"a"), ("empty", b"")):
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    right = dict(mover.environment)
    for variable, value, code in (
        ("AWS_SECRET_ACCESS_KEY", "w" * 40, "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7UNKNOWN", "InvalidAccessKeyId"),
    ):
        mover.environment = right | {variable: value}
        for key in ("a", "empty"):
            _, told = mover.run("get", f"s3://{bucket}/{key}", tmp_path / "target", code=1)
            assert code in told
            assert "may not do that" not in told
        source = f"s3://{bucket}/a"
        _, told = mover.run("cp", source, f"s3://{bucket}/b", code=1)
        assert code in told
    assert not (tmp_path / "target").exists()


def test_the_authority_of_a_data_folder_is_used_before_the_environments(mover, server, own_server):
    other = own_server("other").start()
    mover.environment["AWS_CA_BUNDLE"] = str(other.ca)
    del mover.environment["AWS_ENDPOINT_URL"]
    mover.run("ls", "--data", server.data)
    # What was typed is used before it, also where the environment names the same.
    _, told = mover.run("ls", "--data", server.data, "--ca", other.ca, code=1)
    assert "not trusted here" in told
    keys = ("--credentials", server.credentials_path, "--endpoint", server.endpoint)
    mover.run("ls", *keys, "--ca", server.ca)
    _, told = mover.run("ls", *keys, code=1)
    assert "not trusted here" in told
    assert "AWS_CA_BUNDLE" in told


def test_help_names_the_port_of_objects_and_what_is_kept(mover):
    for command in ("put", "get", "ls", "rm", "cp", "migrate"):
        out, _ = mover.run(command, "--help")
        assert b"https://coffer.example.org:9000" in out, command
    for command in ("put", "get"):
        out, _ = mover.run(command, "--help")
        assert b"objects of up to 16 KiB have no sealed form" in b" ".join(out.split())
        assert b"modes and owners are not" in b" ".join(out.replace(b"their ", b"").split())


@pytest.mark.parametrize("end", ["part", "journal"])
def test_a_link_where_unfinished_files_lie_is_not_written_through(mover, s3, bucket, end):
    s3.put_object(Bucket=bucket, Key="x", Body=b"from the bucket")
    victim = mover.home / f"victim-{end}"
    victim.write_bytes(b"precious")
    beside = mover.home / f".x.coffer-{end}"
    beside.symlink_to(victim)
    _, told = mover.run("get", f"s3://{bucket}/x", "x", code=1)
    assert "is a link, or no regular file" in told
    beside.unlink()
    # A pipe is not waited for.
    os.mkfifo(beside)
    mover.run("get", f"s3://{bucket}/x", "x", code=1)
    beside.unlink()
    assert victim.read_bytes() == b"precious"
    mover.run("get", f"s3://{bucket}/x", "x")
    assert (mover.home / "x").read_bytes() == b"from the bucket"
    (mover.home / "x").unlink()


def test_what_concerns_the_server_as_a_whole_ends_a_folder_at_the_first(
    mover, own_server, s3, bucket, tmp_path
):
    files = tmp_path / "files"
    files.mkdir()
    for number in range(30):
        (files / f"{number}").write_text("x")
    other = own_server("other").start()
    # Where keys are wrong: that server hears nothing more of such a key for a minute.
    there = Mover(other, tmp_path / "there").environment
    here = mover.environment
    for wrong, said, to in (
        (here | {"AWS_CA_BUNDLE": str(other.ca)}, "not trusted here", bucket),
        (here | {"AWS_ENDPOINT_URL": "https://nowhere.invalid:9000"}, "nowhere.invalid", bucket),
        (here, "NoSuchBucket", "not-there"),
        (there | {"AWS_ACCESS_KEY_ID": "AKIANOTTHERE"}, "InvalidAccessKeyId", bucket),
        (there | {"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch", bucket),
    ):
        mover.environment = wrong
        _, told = mover.run("put", "-r", files, f"s3://{to}/", code=1)
        assert told.count(said) == 1 and len(told.splitlines()) == 1, (said, told)
    # So it does where several are named.
    mover.environment = here
    _, told = mover.run("put", "-r", files, files / "1", "s3://not-there/", code=1)
    assert told.count("NoSuchBucket") == 1 and len(told.splitlines()) == 1, told
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    mover.run("put", "-r", files, f"s3://{bucket}/")
    assert len(s3.list_objects_v2(Bucket=bucket)["Contents"]) == 30
    _, told = mover.run("cp", "-r", f"s3://{bucket}/", "s3://not-there/", code=1)
    assert told.count("NoSuchBucket") == 1 and "failed" not in told
    # Of several buckets, one that is missing says nothing of the others.
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    wanted = ("s3://not-there/1", f"s3://{bucket}/2")
    _, told = mover.run("get", *wanted, fetched, code=1)
    assert "1 failed, 1 went well" in told and (fetched / "2").exists()
