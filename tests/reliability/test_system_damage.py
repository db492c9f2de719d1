"""Damaged pages of `system.db`: found by `verify`, one and all, and no stop of administration."""

import shutil

import pytest

from harness.administration import make_subject, run
from harness.clients import s3_client
from harness.server import StartError, coffer

PAGE_BYTES = 4096


def flip(path, page):
    with path.open("r+b") as file:
        at = page * PAGE_BYTES + 1000
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    return read_page(path, page)


def read_page(path, page):
    with path.open("rb") as file:
        file.seek(page * PAGE_BYTES)
        return file.read(PAGE_BYTES)


def verified(server):
    return coffer("--data", server.data, "verify")


def test_every_page_of_the_servers_database(own_server, tmp_path):
    server = own_server("damaged").start()
    make_subject(server, "ann", "default", "--roles", "data-user")
    run(server, "bucket", "create", "doomed")
    done = verified(server)
    assert done.returncode == 0, done
    assert server.stop() == 0
    database = server.data / "system.db"
    whole = tmp_path / "whole"
    shutil.copytree(server.data, whole)
    pages = database.stat().st_size // PAGE_BYTES
    found = disabled = erased = 0
    for page in range(1, pages):
        server.start()
        damaged = flip(database, page)
        done = verified(server)
        said = done.stdout.decode()
        if read_page(database, page) == damaged:
            found += 1
            assert done.returncode == 1, f"page {page}: {said}"
            assert f"page {page + 1}" in said and "system.db" in said, said
        # Or the server had it in memory still, and has written it anew.
        for _ in range(2):
            done = coffer("--data", server.data, "subject", "disable", "ann")
            disabled += done.returncode == 0
        done = coffer("--data", server.data, "bucket", "erase", "doomed", "--yes")
        erased += done.returncode == 0
        server.kill()
        shutil.rmtree(server.data)
        shutil.copytree(whole, server.data)
    assert found >= pages - 4, f"{found} of {pages - 1}"
    # All but the pages that these acts need.
    assert disabled >= 2 * (pages - 1 - 4), f"{disabled} of {2 * (pages - 1)}"
    assert erased >= pages - 1 - 6, f"{erased} of {pages - 1}"


def start_refused(server):
    server.log_path.unlink(missing_ok=True)
    with pytest.raises(StartError) as caught:
        server.start()
    return caught.value.log.strip().splitlines()[-1]


def test_a_start_that_a_damaged_page_stops_says_which_and_what_helps(own_server, tmp_path):
    server = own_server("stopped").start()
    s3_client(server).create_bucket(Bucket="kept")
    s3_client(server).put_object(Bucket="kept", Key="object", Body=b"as before")
    make_subject(server, "ann", "default", "--roles", "data-user")
    run(server, "level", "create", "passing", "--rank", "2")
    run(server, "level", "erase", "passing", "--yes")
    assert server.stop() == 0
    database = server.data / "system.db"
    whole = tmp_path / "whole"
    shutil.copytree(server.data, whole)
    stopped = 0
    for page in range(database.stat().st_size // PAGE_BYTES):
        flip(database, page)
        try:
            server.start()
        except StartError as error:
            stopped += 1
            said = error.log.strip().splitlines()[-1]
            assert f"{database} is damaged" in said and "put a copy of it back" in said, said
            assert page == 0 or f"page {page + 1}" in said, said
        else:
            # What does not need the page is served, and it is named.
            body = s3_client(server).get_object(Bucket="kept", Key="object")["Body"].read()
            assert body == b"as before", page
            done = verified(server)
            said = done.stdout.decode()
            assert done.returncode == 1 and f"page {page + 1}" in said, said
            server.kill()
        server.log_path.unlink(missing_ok=True)
        shutil.rmtree(server.data)
        shutil.copytree(whole, server.data)
    assert stopped > 3
    server.start()


def test_a_damaged_log_of_the_servers_database_is_told_with_what_helps(own_server, tmp_path):
    server = own_server("log").start()
    for name in ("ann", "bob", "cleo"):
        make_subject(server, name, "default", "--roles", "data-user")
    server.kill()
    saved = {name: (server.data / name).read_bytes() for name in ("system.db", "system.db-wal")}
    log = server.data / "system.db-wal"
    for offset in (16, len(saved["system.db-wal"]) // 2):
        damaged = bytearray(saved["system.db-wal"])
        damaged[offset] ^= 4
        log.write_bytes(damaged)
        for _ in range(2):
            said = start_refused(server)
            assert f"{log} is damaged" in said and "put copies of" in said, said
        assert log.read_bytes() == damaged
    # Both put back, as it says.
    # Without `lock`, by which a copy of a folder that is served is known.
    left_out = shutil.ignore_patterns("admin.sock", "lock")
    shutil.copytree(server.data, tmp_path / "damaged", ignore=left_out)
    for name, content in saved.items():
        (server.data / name).write_bytes(content)
    server.start()
    assert "cleo" in run(server, "subject", "list")
    server.kill()
    # Or without the log.
    shutil.rmtree(server.data)
    shutil.copytree(tmp_path / "damaged", server.data)
    log.unlink()
    assert "ROLLBACK" in start_refused(server)
    server.arguments = ["--accept-rollback"]
    server.start()
    assert "first" in run(server, "subject", "list")
