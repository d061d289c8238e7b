"""The peers of the demo: three agencies as real processes, in a folder of their own.

CoC has capability 1: what it sends to both others goes to INAIL, and from there to INPS.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from time import monotonic
from typing import Final

from qns.errors import QnsError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION

READY_WITHIN_S: Final = 30.0
_STOP_WITHIN_S: Final = 10.0
_PORTS: Final = range(15_000, 32_000)  # below those that systems give to whoever asks for any
_CAPABILITIES: Final = {"CoC": 1}
_TUNING: Final = """
[tuning]
first_pause_s = 0.2
longest_pause_s = 1.0
acknowledge_after_s = 0.2
pull_after_s = 1.0
resend_after_s = 5.0
"""


class DemoFailed(QnsError):
    """A peer of the demo did not do what it should."""


@dataclass(slots=True, eq=False)
class PeerProcess:
    name: str
    url: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def configuration(self) -> Path:
        return self.folder / f"{self.name.lower()}.toml"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name.lower()}.log"

    @property
    def process_id(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Does not wait until it is ready: several start at the same time."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "qns.cli", "peer", "run", str(self.configuration)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which stops it
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def wait_until_ready(self) -> None:
        """Until it says that it listens."""
        assert self.process is not None
        assert self.process.stdout is not None
        deadline = monotonic() + READY_WITHIN_S
        told = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in told:
                if not selector.select(max(0.0, deadline - monotonic())):
                    raise self._failure(f"{self.name} was not ready in {READY_WITHIN_S:g} s")
                more = os.read(self.process.stdout.fileno(), 4096)
                if not more:
                    raise self._failure(f"{self.name} did not start")
                told += more
        self.process.stdout.close()

    def kill(self) -> None:
        """As kill -9 does: it has no time for anything."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def wait_until_stopped(self) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name with its labels."""
        lines = self._page("/metrics").decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def is_acquainted(self, others: int) -> bool:
        """Whether it has compared notes with so many others, and all of them answer."""
        return self.metrics()["qns_peers_unreachable"] == 0 and self.sent("hello") >= others

    def _page(self, path: str) -> bytes:
        connection = HTTPConnection(self.url.split("/")[2], timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        except (OSError, HTTPException) as error:
            raise self._failure(f"{self.name} does not answer: {error}") from None
        finally:
            connection.close()

    def sent(self, operation: str) -> int:
        """How many calls of this kind to other peers were answered, in its present life."""
        return int(
            sum(
                value
                for name, value in self.metrics().items()
                if name.startswith("qns_soap_messages_total{")
                and f'operation="{operation}"' in name
                and 'direction="sent"' in name
                and 'outcome="ok"' in name
            )
        )

    def _failure(self, problem: str) -> DemoFailed:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        told = f"; its last words: {lines[-1][:300]}" if lines else ""
        return DemoFailed(f"{problem}{told}")


@dataclass(slots=True, eq=False)
class DemoPeers:
    peers: dict[str, PeerProcess] = field(default_factory=dict)

    @classmethod
    def prepared(cls, folder: Path) -> DemoPeers:
        """Configured and addressed, not started."""
        federation = _federation(free_ports(len(AGENCIES_FEDERATION.organisations)))
        (folder / "federation.xml").write_bytes(write_federation(federation))
        peers = cls()
        for name, organisation in federation.organisations.items():
            peer = peers.peers[name] = PeerProcess(name, organisation.endpoint, folder)
            peer.configuration.write_text(
                f'organisation = "{name}"\nfederation = "federation.xml"\n{_TUNING}',
                encoding="utf-8",
            )
        return peers

    def __getitem__(self, name: str) -> PeerProcess:
        return self.peers[name]

    def start(self) -> None:
        for peer in self.peers.values():
            peer.start()

    def wait_until_ready(self) -> None:
        for peer in self.peers.values():
            peer.wait_until_ready()

    def are_acquainted(self) -> bool:
        return all(peer.is_acquainted(len(self.peers) - 1) for peer in self.peers.values())

    def stop(self) -> None:
        for peer in self.peers.values():
            peer.ask_to_stop()
        for peer in self.peers.values():
            peer.wait_until_stopped()

    def sent(self, operation: str) -> int:
        return sum(peer.sent(operation) for peer in self.peers.values())


def _federation(ports: Iterable[int]) -> Federation:
    known: Mapping[str, int] = dict(zip(AGENCIES_FEDERATION.organisations, ports, strict=True))
    return replace(
        AGENCIES_FEDERATION,
        organisations={
            name: replace(
                each,
                endpoint=f"http://127.0.0.1:{known[name]}/",
                capability=_CAPABILITIES.get(name, each.capability),
            )
            for name, each in AGENCIES_FEDERATION.organisations.items()
        },
    )


def free_ports(number: int) -> list[int]:
    free: list[int] = []
    for port in Random().sample(_PORTS, len(_PORTS)):  # noqa: S311
        if len(free) == number:
            break
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            free.append(port)
    return free
