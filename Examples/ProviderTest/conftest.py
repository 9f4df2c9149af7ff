"""Fixtures for pytest: a simulated HTTP/2 provider API, which says what arrived. Needs apnscope on the PATH, and httpx."""

import os
import subprocess
import time

import httpx
import pytest

APNSCOPE = os.environ.get("apnscope", "apnscope")


class Gateway:
    """A simulator that runs: `url` is for the sender, `ask` for the test."""

    def __init__(self, folder):
        ready = folder / "ready"
        self.process = subprocess.Popen(
            [APNSCOPE, "simulate", "--http2", "127.0.0.1:0", "--trust", "any", "--plain",
             "--control", "127.0.0.1:0", "--ready-file", ready], stdout=subprocess.DEVNULL)
        while not ready.exists():  # It appears when connections are accepted.
            assert self.process.poll() is None, "the simulator does not start"
            time.sleep(0.01)
        places = dict(line.split() for line in ready.read_text().splitlines())
        self.url = "http://" + places["http2"]
        self.control = httpx.Client(base_url=places["control"], timeout=60)

    def ask(self, method, path, **arguments):
        answer = self.control.request(method, path, **arguments)
        answer.raise_for_status()  # 408: it did not come in time.
        return answer.json() if answer.content else None

    def wait(self, count=1, **filters):
        return self.ask("GET", "/notifications/wait", params={"count": count, "within_s": 10, **filters})["notifications"]

    def reject(self, token, reason, times=1):
        self.ask("POST", "/faults/rejections", json={"token": token, "reason": reason, "times": times})


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("apnscope"))
    yield gateway
    gateway.process.terminate()
    assert gateway.process.wait() == 0


@pytest.fixture
def apns(gateway):
    """The gateway without what earlier tests sent and changed; connections stay open."""
    gateway.ask("POST", "/reset")
    return gateway
