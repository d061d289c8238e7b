"""Peer processes for tests: a federation on free ports, and requests over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from qns.d2q.event_json import EventReader
from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.iil.requests import Answer, ListSubscriptions, Publish, Request, Subscriptions
from qns.soap.local_client import read_local, write_local
from tests.certificates import certificate

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
WITHOUT_NUMBA = {"PYTHONPATH": str(Path(__file__).parents[1] / "without_numba")}
"""The environment of a peer as `pip install qns` installs it: it starts in half the time."""

T = TypeVar("T")


def free_ports(number: int) -> list[int]:
    """Returns different ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def agencies_on_loopback() -> Federation:
    """Returns the federation of INPS, INAIL and CoC, each on a free port."""
    names = list(AGENCIES_FEDERATION.organisations)
    organisations: dict[str, Organisation] = {
        name: replace(AGENCIES_FEDERATION[name], endpoint=f"http://127.0.0.1:{port}/")
        for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    return replace(AGENCIES_FEDERATION, organisations=organisations)


def configure(folder: Path, federation: Federation, name: str, more: str = QUICK) -> Path:
    """Writes the configuration of one organisation and returns its path."""
    (folder / "federation.xml").write_bytes(write_federation(federation))
    path = folder / f"{name}.toml"
    head = f'organisation = "{name}"\nfederation = "federation.xml"\n'
    # The folder stands for the whole host, so the lineage is in it.
    path.write_text(f'{head}lineage = "{name}.db.lineage"\n{more}', "utf-8")
    return path


def agencies_over_tls() -> Federation:
    """Returns the three agencies on free ports, with a TLS certificate each."""
    federation = agencies_on_loopback()
    organisations = {
        name: replace(
            each,
            endpoint=each.endpoint.replace("http:", "https:"),
            tls=(certificate(name).certificate,),
        )
        for name, each in federation.organisations.items()
    }
    return replace(federation, organisations=organisations)


def tls_files(folder: Path, name: str, own: NewCertificate) -> None:
    """Writes the key and the certificate of an organisation, each at once."""
    for end, content in (("key", own.key), ("pem", own.certificate.encode())):
        new = folder / f"{name}.tls.{end}.new"
        new.write_bytes(content)
        new.replace(folder / f"{name}.tls.{end}")


def tls_peer_in(
    folder: Path,
    federation: Federation,
    name: str,
    more: str = QUICK,
    own: NewCertificate | None = None,
) -> PeerProcess:
    """Returns the peer of one organisation over mutual TLS, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    tls_files(folder, name, own or certificate(name))
    local = f"127.0.0.1:{free_ports(1)[0]}"
    tls = f'\n[tls]\ncertificate = "{name}.tls.pem"\nkey = "{name}.tls.key"\n'
    path = configure(folder, federation, name, f'local = "{local}"\n{more}{tls}')
    return PeerProcess(path, f"http://{local}/")


def eventually(look: Callable[[], T | None], what: str) -> T:
    """Calls `look` until it returns something true; raises AssertionError after a timeout."""
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
    """A process `qns peer run`."""

    configuration: Path
    endpoint: str
    process: subprocess.Popen[str] | None = None
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.configuration.with_suffix(".log")

    def start(self) -> str:
        """Starts the process and returns the line that it prints when it is ready."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "qns.cli", "peer", "run", str(self.configuration)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **WITHOUT_NUMBA, "http_proxy": "http://127.0.0.1:9/"},
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready, self.log.read_text()
        return ready

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stops the process with a signal and returns its exit status."""
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

    def ask(self, request: Request, *, wait_s: float = 0.0, schema: Schema = AGENCIES) -> Answer:
        typed = schema if isinstance(request, Publish) else None
        body, action = write_local(request, wait_s=wait_s, schema=typed)
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        status, answer = self.http("POST", "/local", body, **headers)
        return read_local(request, status, answer)

    def health(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.http("GET", "/health")[1])
        return state

    def metrics(self) -> dict[str, float]:
        """Returns the values of the metrics by `name{labels}`."""
        lines = self.http("GET", "/metrics")[1].decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def records(self) -> list[dict[str, Any]]:
        """Returns the lines of its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def peer_in(folder: Path, federation: Federation, name: str, more: str = QUICK) -> PeerProcess:
    """Returns the peer of one organisation, configured in a folder of its own."""
    folder.mkdir(exist_ok=True)
    return PeerProcess(configure(folder, federation, name, more), federation[name].endpoint)


@contextmanager
def running(peers: Iterable[PeerProcess]) -> Iterator[None]:
    """Starts the peers and kills those that still run at the end."""
    started = list(peers)
    try:
        for each in started:
            each.start()
        yield
    finally:
        for each in started:
            if each.process is not None:
                each.kill()


@contextmanager
def agencies(folder: Path, more: str = QUICK) -> Iterator[dict[str, PeerProcess]]:
    """Starts all three peers and kills them at the end."""
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


def wait_until_stable(peer: PeerProcess, owner: str) -> None:
    """Waits until the subscriptions of an owner are stable at every producer."""

    def is_stable() -> bool:
        answer = peer.ask(ListSubscriptions(owner))
        assert isinstance(answer, Subscriptions)
        return not any(each.pending for each in answer.subscriptions)

    eventually(is_stable, f"the subscriptions of {owner} are stable")


def change(id: str, source: str = "INPS") -> Publish:
    """Returns a request to publish an event about the holder of an enterprise."""
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
    """Returns the bytes of a SOAP request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml; charset=utf-8\r\n"
        f"SOAPAction: {action}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
