"""Gateways of an engine over one store, which is another coffer."""

import signal
import time

from harness.age import IDENTITY
from harness.clients import s3_client
from harness.raw import metric
from harness.sealed_copies import made
from harness.server import Server, free_port

#: Within which a gateway that died is replaced.
REPLACED_SECONDS = 10


def url_at(store, prefix="engine"):
    secrets = store.credentials_path
    return f"s3://log/{prefix}?endpoint={store.endpoint}&ca={store.ca}&credentials={secrets}"


class Gateway(Server):
    """One gateway, with a cache of its own; it has an identity, or the root-key source given."""

    def __init__(self, folder, url, *arguments, config="", root_key=None):
        identity = made(folder) / "identity"
        identity.write_text(f"{IDENTITY}\n")
        self.gateway_port = free_port()
        key = ["--root-key", root_key] if root_key else ["--identity", str(identity)]
        engine = ["--engine", url, *key]
        engine += ["--gateway-listen", f"127.0.0.1:{self.gateway_port}"]
        super().__init__(folder, config=config, arguments=[*engine, *arguments])

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


def client(gateway, credentials, **config):
    """Through this gateway, by the engine's first access key."""
    return s3_client(gateway, credentials=credentials, **config)


def answered(call, seconds=REPLACED_SECONDS):
    """Asks until it is answered; how long that took, and the answer."""
    began = time.monotonic()
    while True:
        try:
            return time.monotonic() - began, call()
        except Exception as error:
            if time.monotonic() - began > seconds:
                raise AssertionError(f"not within {seconds} s: {error}") from error
            time.sleep(0.1)


def answers(gateway):
    """How many requests a gateway has answered itself."""
    return metric(gateway, "coffer_s3_requests_total")


def answers_itself(gateway, read, seconds=30):
    """Reads until the gateway answers itself; the last answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = answers(gateway)
        told = read()
        if answers(gateway) > before:
            return told
        time.sleep(0.1)
    raise AssertionError(f"all was forwarded\n{gateway.log()}")
