"""Networks that cut and alter: what reports success is whole, and nothing is left of the others."""

import http.client
import importlib.util
import random
import ssl
import threading

import httpx
import pytest

from harness import raw, sealed
from harness.clients import s3_client
from harness.content import MIB, content
from harness.proxy import Proxy
from harness.server import ROOT, Server, free_port

WORKERS = 4
NAMES = 3
HEADER, CHUNK, TAG = 56, 16384, 16


@pytest.fixture(scope="module")
def example():
    """The client of examples/ as a module."""
    place = ROOT / "examples/sealed_transfer.py"
    spec = importlib.util.spec_from_file_location("sealed_transfer", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def http_client(example, server):
    authority = ssl.create_default_context(cafile=str(server.ca))
    # A connection for each transfer: it is connections that are cut.
    alone = httpx.Limits(max_keepalive_connections=0)
    settings = {"verify": authority, "event_hooks": example.HOOKS, "limits": alone}
    return httpx.Client(auth=example.sign, timeout=3, **settings)


def counted(server, direction, outcome):
    """How many transfers ended so."""
    series = f'coffer_transfers_total{{direction="{direction}",outcome="{outcome}"}}'
    for line in raw.get_admin(server, "/metrics")[1].splitlines():
        if line.startswith(series):
            return float(line.split()[-1])
    raise AssertionError(f"no {series}")


def test_a_stream_that_is_altered_is_an_error(serving, client):
    bodies = [content(4 * CHUNK, number) for number in range(2)]
    for number, body in enumerate(bodies):
        client.put_object(Bucket="open", Key=f"film-{number}", Body=body)
    document, other = (sealed.offer(serving, f"/open/film-{number}") for number in range(2))
    came, came_of_other = sealed.fetch(serving, document), sealed.fetch(serving, other)
    assert sealed.opened(document, came) == bodies[0]
    size = CHUNK + TAG
    edits = {
        "a bit": came[:5] + bytes([came[5] ^ 1]) + came[6:],
        "cut off at a chunk's end": came[: -size - TAG],
        "without its last, empty chunk": came[:-TAG],
        "chunks swapped": came[size : 2 * size] + came[:size] + came[2 * size :],
        "a chunk of before": came[:size] + came[:size] + came[2 * size :],
        "another object's": came_of_other,
    }
    for what, edited in edits.items():
        assert edited != came
        with pytest.raises(sealed.DoesNotOpenError):
            sealed.opened(document, edited)
            pytest.fail(what)


def test_a_file_that_was_damaged_or_cut_off_is_never_taken_for_the_object(own_server):
    server = own_server().start()
    sealed.make_bucket(server, "open")
    body = content(MIB)
    for key in ("flipped", "cut", "headless"):
        s3_client(server).put_object(Bucket="open", Key=key, Body=body)
        (path,) = [one for one in server.blob_files() if one.stat().st_size > MIB]
        data = path.read_bytes()
        if key == "flipped":
            path.write_bytes(data[:500_000] + bytes([data[500_000] ^ 1]) + data[500_001:])
            document = sealed.offer(server, f"/open/{key}")
            with pytest.raises(sealed.DoesNotOpenError):
                sealed.opened(document, sealed.fetch(server, document))
        elif key == "cut":
            document = sealed.offer(server, f"/open/{key}")
            path.write_bytes(data[:-100_000])
            with pytest.raises((http.client.HTTPException, ConnectionError)):
                sealed.fetch(server, document)
            assert counted(server, "get", "damaged") == 1
            assert raw.metric(server, "coffer_damage_total") >= 1
        else:
            path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
            status, _, _ = sealed.ask_for(server, f"/open/{key}")
            assert status == 500
        path.unlink()


@pytest.mark.timeout(900)
def test_what_reports_success_is_whole(example, tmp_path, pytestconfig):
    rounds = pytestconfig.getoption("--transfer-rounds")
    seed = random.randrange(1 << 32)
    print("seed", seed)
    data_port = free_port()
    config = f'data-advertise = "http://127.0.0.1:{data_port}"\n'
    folder = tmp_path / "server"
    folder.mkdir()
    with Server(folder, config=config) as server:
        sealed.make_bucket(server, "open")
        access_key_id, secret = server.credentials()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", access_key_id)
            patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
            front = Proxy(server.port, cuts=0.1, seed=seed, most_bytes=1 << 17)
            data = Proxy(server.data_port, cuts=0.3, flips=0.05, seed=seed + 1)
            data.port = data_port
            with front, data:
                workers = [
                    Worker(example, server, front, folder, seed, number, rounds // WORKERS)
                    for number in range(WORKERS)
                ]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
        for worker in workers:
            assert worker.wrong is None, worker.wrong
        done, failed = (sum(getattr(one, name) for one in workers) for name in ("done", "failed"))
        print(f"{done} done, {failed} failed, {data.cut_count} cut, {data.flip_count} altered")
        assert done > rounds / 3 and failed > rounds / 20
        # What was not committed waits for ten minutes at most, or for the next start.
        server.restart()
        s3 = s3_client(server)
        held = 0
        for worker in workers:
            for name, possible in worker.possible.items():
                body = worker.now(s3, name)
                assert body in possible, f"{name} is neither what was put nor what was before"
                held += stored_bytes(body)
        assert server.blob_bytes_at_most(held), "something is left"
        assert server.blob_bytes() == held
        assert server.stop() == 0 and "panicked" not in server.log(), server.log()


def stored_bytes(body):
    """The length of a blob; nothing of an object that is not there."""
    return 0 if body is None else HEADER + len(body) + TAG * (len(body) // CHUNK + 1)


class Worker(threading.Thread):
    """Puts and gets under names of its own, and knows what each may hold."""

    def __init__(self, example, server, front, folder, seed, number, rounds):
        super().__init__(daemon=True)
        self.example, self.number, self.rounds = example, number, rounds
        self.s3 = http_client(example, server)
        self.url = f"https://127.0.0.1:{front.port}/open/"
        self.path = folder / f"file-{number}"
        self.random = random.Random(f"{seed}/{number}")
        self.possible = {f"{number}-{name}": [None] for name in range(NAMES)}
        self.done = self.failed = 0
        self.wrong = None

    def run(self):
        try:
            for number in range(self.rounds):
                self.round(number)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            self.wrong = error

    def round(self, number):
        name = self.random.choice(list(self.possible))
        if self.random.random() < 0.6:
            self.put(name, content(self.size(), f"{self.number}/{number}"))
        elif self.possible[name] != [None]:
            self.get(name)

    def size(self):
        return int(16_385 * (64 ** self.random.random()))

    def put(self, name, body):
        self.path.write_bytes(body)
        try:
            self.example.put(self.s3, self.url + name, self.path)
        except Exception:  # noqa: BLE001 - whatever a broken network makes of it
            self.failed += 1
            self.possible[name].append(body)
        else:
            self.done += 1
            self.possible[name] = [body]

    def get(self, name):
        try:
            self.example.get(self.s3, self.url + name, self.path)
        except Exception:  # noqa: BLE001 - so here
            self.failed += 1
            return
        self.done += 1
        got = self.path.read_bytes()
        # What failed may still have been committed, perhaps a moment later: all stay possible.
        assert got in self.possible[name], f"{name} came altered: {len(got)} bytes"

    def now(self, s3, name):
        try:
            return s3.get_object(Bucket="open", Key=name)["Body"].read()
        except s3.exceptions.NoSuchKey:
            return None
