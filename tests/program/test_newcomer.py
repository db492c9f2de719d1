"""What a person who tries the program for the first time stumbles over."""

import json
import os
import shutil
import socket
import ssl

import pytest

from harness import age
from harness.administration import ask, from_afar, refused, run
from harness.clients import s3_client
from harness.server import BINARY, StartError, coffer, free_port


def typed_wrong(server, *words):
    """Runs a command that is refused as mistyped; what it says."""
    done = coffer("--data", server.data, *words)
    assert done.returncode == 2 and done.stdout == b"", done
    return done.stderr.decode()


def test_a_first_start_that_fails_says_what_to_keep_all_the_same(own_server, tmp_path):
    (tmp_path / "bad.pem").write_text("nothing of the kind")
    bad = ["--tls-cert", tmp_path / "bad.pem", "--tls-key", tmp_path / "bad.pem"]
    server = own_server(arguments=bad)
    with pytest.raises(StartError) as failed:
        server.start()
    assert "keep a copy of root.key apart" in failed.value.log
    server.arguments += ["--log-format", "json"]
    shutil.rmtree(server.data)
    server.log_path.unlink()
    with pytest.raises(StartError) as failed:
        server.start()
    lines = [json.loads(line) for line in failed.value.log.splitlines()]
    assert "bad.pem" in lines[-1]["error"]["message"]


def test_prove_finds_the_port_and_is_no_success_when_it_could_not_look(server, tmp_path):
    def prove(*words, **options):
        done = coffer("prove", "--data", server.data, *words, **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    code, out, _ = prove("--json")
    assert code == 0 and json.loads(out)["canary"]["through"] == server.endpoint
    code, _, said = prove("--s3", "bogus")
    assert code == 2 and "--s3" in said
    code, out, _ = prove("--s3", f"https://127.0.0.1:{free_port()}", "--json")
    told = json.loads(out)
    assert (code, told["failed"], told["proven"]) == (2, True, True)


def test_prove_with_a_wrong_passphrase(own_server, tmp_path):
    def descriptor(text):
        (tmp_path / "passphrase").write_text(text)
        return os.open(tmp_path / "passphrase", os.O_RDONLY)

    server = own_server().start()
    right = descriptor("lantern-gravel-uncle-seventeen-otters\n")
    move = ("keystore", "move", "--to", "passphrase", "--passphrase-fd", right)
    done = coffer("--data", server.data, *move, pass_fds=[right])
    assert done.returncode == 0, done.stderr
    server.stop()
    for text, code in [("wrong", 2), ("lantern-gravel-uncle-seventeen-otters", 0)]:
        number = descriptor(text)
        done = coffer("prove", "--data", server.data, "--passphrase-fd", number, pass_fds=[number])
        assert done.returncode == code, done
        os.close(number)
    os.close(right)


def test_the_root_key_is_not_moved_to_another_name_in_the_folder(server):
    before = ask(server, "keystore", "status")["generation"]
    for name in ["elsewhere.key", "buckets/root.key"]:
        said = refused(server, "keystore", "move", "--to", f"file:{server.data}/{name}")
        assert "is in the data folder" in said and name in said
    assert ask(server, "keystore", "status")["generation"] == before


def test_what_is_mistyped_says_what_there_is(server):
    said = typed_wrong(server, "audit", "show", "--act", "lvel")
    assert "lvel" in said and "level.erase" in said and "keystore.backup" in said
    assert "level.create" not in run(server, "audit", "show", "--act", "bucket")
    for name in ["x", "ab", "xn--abc"]:
        assert name in typed_wrong(server, "bucket", "create", name)
    both = ["--all-buckets", "--grant", "kept=read"]
    assert "cannot be used with" in typed_wrong(server, "subject", "set", "first", *both)
    typed_wrong(server, "level", "create", "x", "--rank", "1", "--categories", "c1024")
    done = coffer("--data", server.data, "audit", "show", "--since", "2026-01-01 00:00", "--json")
    assert done.returncode == 0 and done.stdout
    assert run(server, "audit", "show", "--since", "1h", "--last", "1")


def test_errors_name_what_they_are_about(server):
    run(server, "bucket", "create", "named")
    for words, told in [
        (("level", "show", "lost"), "there is no level lost"),
        (("level", "erase", "lost", "--yes"), "there is no level lost"),
        (("bucket", "show", "lost"), "there is no bucket lost"),
        (("bucket", "delete", "lost"), "there is no bucket lost"),
        (("bucket", "create", "named"), "there is a bucket named already"),
        (("bucket", "create", "other", "--level", "lost"), "there is no level lost"),
        (("subject", "show", "lost"), "there is no subject lost"),
        (("subject", "disable", "lost"), "there is no subject lost"),
    ]:
        assert told in refused(server, *words), words


def test_what_is_typed_wrong_is_told_as_json_to_programs():
    for words, part in (
        (("subject", "create", "--json"), "NAME"),
        (("bucket", "list", "--json", "--jason"), "--jason"),
        (("level", "create", "a", "--rank", "high", "--json"), "high"),
    ):
        done = coffer(*words)
        told = json.loads(done.stderr)["error"]
        assert (done.returncode, told["code"], done.stdout) == (2, "invalid_argument", b"")
        assert part in told["message"] and "\n" not in told["message"], told


def test_errors_are_json_for_who_asks_for_json(server):
    done = coffer("--data", server.data, "level", "show", "lost", "--json")
    told = json.loads(done.stderr)["error"]
    assert told == {"code": "no_such_level", "message": "there is no level lost"}
    assert done.returncode == 1 and done.stdout == b""
    done = coffer("--data", server.folder, "level", "list", "--json")
    assert json.loads(done.stderr)["error"]["code"] == "unreachable"
    made = coffer("--data", server.data, "level", "create", "Bad", "--rank", "1", "--json")
    assert json.loads(made.stderr)["error"]["code"] == "invalid_request" and made.returncode == 2


def test_a_server_that_is_not_trusted_or_not_administration(server, tmp_path):
    credentials = server.credentials()
    done = from_afar(server, credentials, "level", "list", folder=tmp_path)
    assert done.returncode == 0
    place = ["--endpoint", server.admin_endpoint, "--credentials", tmp_path / "profile"]
    done = coffer(*place, "level", "list")
    assert done.returncode == 1 and b"give that with --ca" in done.stderr, done
    place = ["--endpoint", server.endpoint, "--credentials", tmp_path / "profile"]
    done = coffer(*place, "--ca", server.ca, "level", "list")
    said = done.stderr.decode()
    assert done.returncode == 1 and "an S3 service answers there" in said and "9001" in said


def test_help_that_can_not_be_written_is_no_success():
    for words in [["--help"], ["serve", "--help"], ["help"], ["--version"]]:
        assert os.system(f"{BINARY} {' '.join(words)} > /dev/full 2> /dev/null") != 0  # noqa: S605
        assert os.system(f"{BINARY} {' '.join(words)} > /dev/null") == 0  # noqa: S605
    assert coffer("help").stdout == coffer("--help").stdout
    assert b"--rank" in coffer("help", "level", "create").stdout


def test_plain_http_gets_a_sentence(server):
    for port in [server.port, server.admin_port]:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            body = b"x" * 10_000
            head = f"PUT /b/k HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n"
            plain.sendall(head.encode() + body)
            answer = b"".join(iter(lambda c=plain: c.recv(4096), b"")).decode()
        head, _, text = answer.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 400 Bad Request") and "https://" in text, answer
        assert f"content-length: {len(text)}" in head
        # TLS goes on as before.
        context = ssl.create_default_context(cafile=str(server.ca))
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        with context.wrap_socket(plain, server_hostname="localhost"):
            pass


def test_erasing_the_default_level_asks_more_and_says_how_to_make_it_anew(own_server):
    server = own_server().start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="kept")
    erase = ("--data", server.data, "level", "erase", "default")
    for words, typed in [((), b"default\n"), (("--yes",), b"")]:
        done = coffer(*erase, *words, input=typed)
        assert done.returncode == 2 and b"nothing was erased" in done.stderr, done
        said = b"nothing was typed where" if not typed else b"that is not erase default"
        assert b"error: " + said in done.stderr and b"NAME" not in done.stderr, done
    assert [one["Name"] for one in s3.list_buckets()["Buckets"]] == ["kept"]
    done = coffer(*erase, input=b"erase default\n")
    assert done.returncode == 0, done
    assert b"coffer level create default --rank 0" in done.stderr
    run(server, "level", "create", "default", "--rank", "0")
    s3.create_bucket(Bucket="again")
    assert ask(server, "bucket", "show", "again")["level"] == "default"
    assert coffer(*erase, "--yes", "--yes").returncode == 0


def test_a_bucket_whose_folder_is_missing_is_not_adopted(own_server, tmp_path):
    here, there = own_server("here").start(), own_server("there").start()
    run(here, "level", "create", "moving", "--rank", "1")
    bucket = ask(here, "bucket", "create", "of-moving", "--level", "moving")["id"]
    out, identity = tmp_path / "moving.age", tmp_path / "key.txt"
    run(here, "key", "export", "moving", "--to", age.RECIPIENT, "--out", out)
    identity.write_text(age.IDENTITY + "\n")
    run(there, "key", "import", out, "--identity", identity)
    done = coffer("--data", there.data, "key", "adopt", bucket)
    assert done.returncode == 1 and b"copy it into DATA/buckets" in done.stderr, done
    shutil.copytree(here.data / "buckets" / bucket, there.data / "buckets" / bucket)
    run(there, "key", "adopt", bucket)
