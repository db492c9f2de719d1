"""coffer put and get by sealed transfer, where the bucket allows it."""

import contextlib
import json
import signal
import socket
import subprocess
import threading

import pytest

from harness import sealed as steps
from harness.content import MIB, content, digest, write_file
from harness.custodian import run
from harness.mover import Mover, wait_for_lines
from harness.server import free_port


@pytest.fixture
def mover(server, tmp_path):
    return Mover(server, tmp_path / "home")


@pytest.fixture(scope="module")
def sealed(server):
    """A bucket whose level lets clients have data keys."""
    run(server, "level", "create", "video", "--rank", "0", "--same-label", "--sealed-transfer")
    run(server, "bucket", "create", "films", "--level", "video")
    return "films"


@pytest.mark.parametrize("size", [100, 16 * 1024 + 1, 16 * MIB, 40 * MIB + 7])
def test_objects_are_the_same_however_they_went(mover, s3, sealed, tmp_path, size):
    source = write_file(tmp_path / "source", size)
    by = "sealed" if size > 16 * 1024 else "tls"
    put = mover.done("put", source, f"s3://{sealed}/x")
    assert (put["transfer"], put["verified"]) == (by, True)
    head = s3.head_object(Bucket=sealed, Key="x", ChecksumMode="ENABLED")
    assert "CRC64NVME " + head["ChecksumCRC64NVME"] == put["checksum"]
    assert "mtime" in head["Metadata"]
    for way, expected in (("auto", by), ("sealed", by), ("tls", "tls")):
        got = mover.done("get", f"s3://{sealed}/x", tmp_path / way, "--transfer", way)
        assert (got["transfer"], got["verified"]) == (expected, True)
        assert digest(tmp_path / way) == digest(source)
    out, _ = mover.run("get", f"s3://{sealed}/x", "-")
    assert out == source.read_bytes()


def test_what_others_stored_in_parts_comes_sealed(mover, s3, sealed, tmp_path):
    source = write_file(tmp_path / "source", 37 * MIB)
    s3.upload_file(str(source), sealed, "parts")
    got = mover.done("get", f"s3://{sealed}/parts", tmp_path / "got")
    assert got["transfer"] == "sealed"
    assert digest(tmp_path / "got") == digest(source)


def test_what_a_disk_damaged_is_not_blamed_on_the_way_alone(own_server, tmp_path):
    server = own_server().start()
    run(server, "level", "create", "video", "--rank", "0", "--same-label", "--sealed-transfer")
    run(server, "bucket", "create", "films", "--level", "video")
    mover = Mover(server, tmp_path / "home")
    mover.run("put", write_file(tmp_path / "source", 3 * MIB), "s3://films/x")
    [blob] = server.blob_files()
    sealed_bytes = bytearray(blob.read_bytes())
    sealed_bytes[MIB] ^= 1
    blob.write_bytes(sealed_bytes)
    _, told = mover.run("get", "s3://films/x", tmp_path / "got", code=1)
    assert "or the server's disk has damaged it" in told
    assert not (tmp_path / "got").exists()


def test_a_sealed_upload_goes_on_after_kill(mover, sealed, tmp_path):
    source = write_file(tmp_path / "source", 100 * MIB + 1)
    process = mover.start("put", source, f"s3://{sealed}/x", "--jobs", "1")
    wait_for_lines(lambda: next(iter(mover.journals()), None), 3, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    put = mover.done("put", source, f"s3://{sealed}/x")
    assert put["kept_bytes"] >= 2 * 16 * MIB
    assert (put["transfer"], put["verified"]) == ("sealed", True)
    target = tmp_path / "target"
    process = mover.start("get", f"s3://{sealed}/x", target, "--jobs", "1")
    wait_for_lines(lambda: target.with_name(".target.coffer-journal"), 3, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    got = mover.done("get", f"s3://{sealed}/x", target)
    assert got["kept_bytes"] >= 2 * 16 * MIB
    assert digest(target) == digest(source)


@pytest.mark.parametrize("command", ["get", "put"])
def test_what_went_by_tls_is_kept_where_a_sealed_transfer_is_refused(
    mover, server, tmp_path, command
):
    run(server, "bucket", "create", f"plain-{command}")
    source = write_file(tmp_path / "source", 100 * MIB + 1)
    place, target = f"s3://plain-{command}/x", tmp_path / "target"
    ends = (source, place)
    if command == "get":
        mover.done("put", *ends)
        ends = (place, target)
    process = mover.start(command, *ends, "--jobs", "1")

    def journal():
        if command == "get":
            return target.with_name(".target.coffer-journal")
        return next(iter(mover.journals()), None)

    wait_for_lines(journal, 3, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    _, told = mover.run(command, *ends, "--transfer", "sealed", code=1)
    assert f"the bucket plain-{command} allows no sealed transfer" in told
    assert (left := journal()) and left.exists(), "what went before is gone"
    done = mover.done(command, *ends)
    assert done["kept_bytes"] >= 2 * 16 * MIB, done


def test_a_data_port_that_can_not_be_reached(own_server, tmp_path):
    unreachable = f"http://127.0.0.1:{free_port()}"
    server = own_server(arguments=["--data-advertise", unreachable]).start()
    run(server, "level", "create", "video", "--rank", "0", "--same-label", "--sealed-transfer")
    run(server, "bucket", "create", "films", "--level", "video")
    mover = Mover(server, tmp_path / "home")
    source = tmp_path / "source"
    source.write_bytes(content(MIB))
    events = mover.events("put", source, "s3://films/x")
    [note] = [event["message"] for event in events if event["event"] == "note"]
    assert "cannot be reached" in note
    assert note.endswith("going on by TLS")
    assert [event["transfer"] for event in events if event["event"] == "done"] == ["tls"]
    _, told = mover.run("put", source, "s3://films/x", "--transfer", "sealed", code=1)
    assert "cannot be reached" in told
    _, told = mover.run("get", "s3://films/x", "-", "--transfer", "sealed", code=1)
    assert "cannot be reached" in told
    # Nothing came that the next attempt would go on from.
    mover.run("get", "s3://films/x", tmp_path / "got", "--transfer", "sealed", code=1)
    assert list(tmp_path.glob("*got*")) == [] == list(tmp_path.glob(".*got*"))
    assert mover.run("get", "s3://films/x", "-")[0] == content(MIB)


def answers_nothing(_):
    pass


def answers_as_a_website(connection):
    connection.recv(65536)
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    connection.sendall(head + b"proxy")
    connection.close()


def answers_as_ssh(connection):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (answers_nothing, "it answers nothing"),
        (answers_as_a_website, "does not answer as a data port"),
        (answers_as_ssh, "is not HTTP"),
    ],
)
def test_what_is_no_data_port_is_gone_round(own_server, tmp_path, answer, why):
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        port = listening.getsockname()[1]
        kept = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    kept.append(listening.accept()[0])
                    with contextlib.suppress(OSError):
                        answer(kept[-1])

        threading.Thread(target=serve, daemon=True).start()
        server = own_server(arguments=["--data-advertise", f"http://127.0.0.1:{port}"]).start()
        run(server, "level", "create", "video", "--rank", "0", "--same-label", "--sealed-transfer")
        run(server, "bucket", "create", "films", "--level", "video")
        mover = Mover(server, tmp_path / "home")
        source = write_file(tmp_path / "source", 20 * MIB)
        for command in (
            ("put", source, "s3://films/x"),
            ("get", "s3://films/x", tmp_path / "got"),
        ):
            events = mover.events(*command, timeout=40)
            [note] = [event["message"] for event in events if event["event"] == "note"]
            assert why in note and note.endswith("going on by TLS")
            assert [it["transfer"] for it in events if it["event"] == "done"] == ["tls"]
        assert digest(tmp_path / "got") == digest(source)


def hold_all_tickets(server, bucket, size):
    """Announces as many uploads as one user may have; each can be given back."""
    held = [steps.announced(server, f"/{bucket}/held-{number}", size) for number in range(256)]
    assert all(document["transfer"] == "sealed" for document in held)
    return held


def give_back(server, held):
    """Uses tickets up: what comes is not as long as was announced."""
    for document in held:
        steps.request(server, "PUT", document["ticket"], b"x")


@pytest.mark.parametrize("command", ["put", "get"])
def test_a_ticket_is_waited_for_where_sealed_transfer_is_demanded(own_server, tmp_path, command):
    server = own_server().start()
    steps.make_bucket(server, "films")
    mover = Mover(server, tmp_path / "home")
    source = write_file(tmp_path / "source", MIB)
    mover.run("put", source, "s3://films/there", "--transfer", "tls")
    held = hold_all_tickets(server, "films", MIB)
    places = (source, "s3://films/new") if command == "put" else ("s3://films/there", "got")
    # Where it is left to the client, TLS is right.
    assert mover.done(command, *places)["transfer"] == "tls"
    running = mover.start(command, *places, "--transfer", "sealed", "--json")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(3)
    give_back(server, held)
    out, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    events = [json.loads(line) for line in out.splitlines()]
    [done] = [event for event in events if event["event"] == "done"]
    assert done["transfer"] == "sealed"
    notes = [event["message"] for event in events if event["event"] == "note"]
    assert notes == ["the server has no ticket for a sealed transfer now: one is waited for"]


def test_a_bucket_above_the_clearance_is_not_said_to_allow_no_sealed_transfer(serving, tmp_path):
    run(serving, "level", "create", "above", "--rank", 3, "--sealed-transfer")
    run(serving, "bucket", "create", "too-high", "--level", "above")
    run(serving, "bucket", "create", "usual", "--level", "default")
    source = write_file(tmp_path / "source", MIB)
    mover = Mover(serving, tmp_path / "home")
    sealed = ("--transfer", "sealed")
    _, unseen = mover.run("put", source, "s3://too-high/x", *sealed, code=1)
    assert "there is no bucket too-high" in unseen and "allows no" not in unseen, unseen
    # It is told as little as of a bucket that there is none of.
    _, unknown = mover.run("put", source, "s3://not-made/x", *sealed, code=1)
    assert unknown.replace("not-made", "too-high") == unseen
    _, told = mover.run("put", source, "s3://usual/x", *sealed, code=1)
    assert "the bucket usual allows no sealed transfer" in told, told
    # Once it is cleared, all is well.
    run(serving, "subject", "set", "first", "--clearance", "default..above")
    mover.run("put", source, "s3://too-high/x", *sealed)
