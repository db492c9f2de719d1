"""`coffer backup` into a folder where two folders can't change places in one step."""

import json
import shutil
import subprocess
import sys

from harness.clients import s3_client
from harness.content import KIB, content
from harness.faults import refuse_exchange
from harness.server import coffer

BUCKET = "notes"


def back_up(server, folder):
    done = coffer("backup", folder, "--data", server.data, "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def checked_of(server, copy):
    source = f"file:{server.data}/root.key"
    done = coffer("verify", "--data", copy, "--root-key", source, "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["checked_count"]


EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
done = libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
print(os.strerror(ctypes.get_errno()) if done else "exchanged")
"""


def exchanged(one, other, **options):
    """What comes of having two folders change places in a process of its own."""
    command = [sys.executable, "-c", EXCHANGE, one, other]
    return subprocess.run(command, capture_output=True, check=True, text=True, **options).stdout


def test_where_folders_cant_be_exchanged_a_copy_is_replaced_in_two_steps(own_server, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir(mode=0o700)
    places = [tmp_path / "one", tmp_path / "other"]
    for place in places:
        place.mkdir()
    assert exchanged(*places) == "exchanged\n"
    assert exchanged(*places, preexec_fn=refuse_exchange()) == "Invalid argument\n"
    copy, previous = folder / "copy", folder / "previous"
    with own_server(confine=refuse_exchange()) as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket=BUCKET)
        for number in range(3):
            name = f"note {number}"
            s3.put_object(Bucket=BUCKET, Key=name, Body=content(100 * KIB, name))
            back_up(server, folder)
            assert checked_of(server, copy) == number + 1
            assert {path.name for path in folder.iterdir()} - {"lock"} == {"copy"}
        # Cut between the two steps: the copy before is whole, and the next run has a new one.
        shutil.copytree(copy, folder / "unfinished")
        copy.rename(previous)
        assert checked_of(server, previous) == 3
        s3.put_object(Bucket=BUCKET, Key="late", Body=content(100 * KIB, "late"))
        back_up(server, folder)
        assert checked_of(server, copy) == 4
        assert {path.name for path in folder.iterdir()} - {"lock"} == {"copy"}
