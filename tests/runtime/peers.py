"""Real peers for tests: a federation on free ports, processes, and requests over plain HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.iil.requests import Answer, Publish, Request
from qns.soap.local_client import read_local, write_local

QUICK = """
[tuning]
first_pause_s = 0.1
longest_pause_s = 0.5
acknowledge_after_s = 0.05
pull_after_s = 0.3
resend_after_s = 1.0
gossip_every_s = 0.3
"""
PATIENCE_S = 60.0

T = TypeVar("T")


def free_ports(number: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def agencies_on_loopback() -> Federation:
    """INPS, INAIL and CoC, each on a port of its own."""
    names = list(AGENCIES_FEDERATION.organisations)
    organisations: dict[str, Organisation] = {
        name: replace(AGENCIES_FEDERATION[name], endpoint=f"http://127.0.0.1:{port}/")
        for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    return replace(AGENCIES_FEDERATION, organisations=organisations)


def configure(folder: Path, federation: Federation, name: str, more: str = QUICK) -> Path:
    """The configuration file of one of them."""
    (folder / "federation.xml").write_bytes(write_federation(federation))
    path = folder / f"{name}.toml"
    path.write_text(f'organisation = "{name}"\nfederation = "federation.xml"\n{more}', "utf-8")
    return path


def eventually(look: Callable[[], T | None], what: str) -> T:
    """What `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE_S:g} s")
        time.sleep(0.02)


@dataclass
class PeerProcess:
    """One real `qns peer run`."""

    configuration: Path
    endpoint: str
    process: subprocess.Popen[str] | None = None
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.configuration.with_suffix(".log")

    def start(self) -> str:
        """The line with which it says that it is ready."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "qns.cli", "peer", "run", str(self.configuration)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "http_proxy": "http://127.0.0.1:9/"},
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready, self.log.read_text()
        return ready

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Its exit status."""
        return self._end(how)

    def _end(self, how: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return status

    # -- requests ----------------------------------------------------------------------------------

    def http(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ask(self, request: Request, *, wait_s: float = 0.0) -> Answer:
        schema = AGENCIES if isinstance(request, Publish) else None
        body, action = write_local(request, wait_s=wait_s, schema=schema)
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        status, answer = self.http("POST", "/local", body, **headers)
        return read_local(request, status, answer)

    def health(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.http("GET", "/health")[1])
        return state

    def metrics(self) -> dict[str, float]:
        """`name{labels}` -> value."""
        lines = self.http("GET", "/metrics")[1].decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def records(self) -> list[dict[str, Any]]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def agencies(folder: Path, more: str = QUICK) -> Iterator[dict[str, PeerProcess]]:
    """All three, started, and gone at the end whatever happens."""
    federation = agencies_on_loopback()
    peers = {
        name: PeerProcess(configure(folder, federation, name, more), each.endpoint)
        for name, each in federation.organisations.items()
    }
    try:
        for each in peers.values():
            each.start()
        yield peers
    finally:
        for each in peers.values():
            if each.process is not None:
                each.kill()


def change(id: str, source: str = "INPS") -> Publish:
    """An event about an enterprise's holder."""
    fields = {
        "id": id,
        "class": "Enterprise/Holder",
        "source": source,
        "data": {"Name": "M. Mecalla"},
        "quality": {"Name.Accuracy": "low"},
    }
    return Publish(EventReader(AGENCIES).from_fields(fields))


def address(peer: PeerProcess) -> tuple[str, int]:
    parts = urlsplit(peer.endpoint)
    assert parts.port is not None
    return "127.0.0.1", parts.port


def post(path: str, body: bytes, action: str) -> bytes:
    """The bytes of a SOAP request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml; charset=utf-8\r\n"
        f"SOAPAction: {action}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
