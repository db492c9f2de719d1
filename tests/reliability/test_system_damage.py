"""Damaged pages of `system.db`: found by `verify`, one and all, and no stop of administration."""

import shutil

from harness.administration import make_subject, run
from harness.server import coffer

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
