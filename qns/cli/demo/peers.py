"""Peers: the peers of three agencies as processes, with their files in one folder.

They authenticate each other by mutual TLS and seal their events, with certificates that are made
for each demo.
CoC has capability 1, so an event for both other agencies goes to INAIL, and from there to INPS.
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
from time import monotonic, time
from typing import Any, Final

from qns.errors import QnsError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.runtime.admin.client import call
from qns.runtime.configuration import read_admin_path

READY_WITHIN_S: Final = 30.0
_STOP_WITHIN_S: Final = 10.0
_PORTS: Final = range(15_000, 32_000)  # below the ephemeral ports
_DAYS: Final = 30
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
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
    """A peer of the demo did not do what the demo expects."""


@dataclass(slots=True, eq=False)
class PeerProcess:
    """The process of one peer."""

    name: str
    url: str
    """Where its users and programs reach it."""
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
        """Starts the process and does not wait, so that several can start at the same time."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "qns.cli", "peer", "run", str(self.configuration)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the demo, which stops the peers
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def wait_until_ready(self) -> None:
        """Waits for the line that the peer prints when it is ready."""
        assert self.process is not None
        assert self.process.stdout is not None
        deadline = monotonic() + READY_WITHIN_S
        printed = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in printed:
                if not selector.select(max(0.0, deadline - monotonic())):
                    raise self._failure(f"{self.name} was not ready in {READY_WITHIN_S:g} s")
                more = os.read(self.process.stdout.fileno(), 4096)
                if not more:
                    raise self._failure(f"{self.name} did not start")
                printed += more
        self.process.stdout.close()

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
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
        """Returns every sample of /metrics by its name with its labels."""
        lines = self._page("/metrics").decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def tables(self) -> dict[str, Any]:
        """Returns the tables of the peer, as `qns peer tables` does."""
        return call(read_admin_path(self.configuration), "tables", {})

    def is_acquainted(self, others: int) -> bool:
        """True if the peer has exchanged hello with that number of others and all are reachable."""
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
        """Returns the number of answered calls to other peers since the start of the process."""
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
        log = f"; the last line of its log: {lines[-1][:300]}" if lines else ""
        return DemoFailed(f"{problem}{log}")


@dataclass(slots=True, eq=False)
class DemoPeers:
    """The peers of all agencies."""

    peers: dict[str, PeerProcess] = field(default_factory=dict)

    @classmethod
    def prepared(cls, folder: Path) -> DemoPeers:
        """Writes the configuration of all peers. Does not start them."""
        names = list(AGENCIES_FEDERATION.organisations)
        ports = free_ports(2 * len(names))
        tls = {name: new_certificate(name, time(), days=_DAYS) for name in names}
        seals = {name: new_certificate(name, time(), days=_DAYS, is_tls=False) for name in names}
        federation = _federation(ports[: len(names)], tls, seals)
        (folder / "federation.xml").write_bytes(write_federation(federation))
        peers = cls()
        for name, port in zip(names, ports[len(names) :], strict=True):
            peer = peers.peers[name] = PeerProcess(name, f"http://127.0.0.1:{port}/", folder)
            sections = [
                _write_key_files(folder, name, kind, made[name])
                for kind, made in (("tls", tls), ("seal", seals))
            ]
            peer.configuration.write_text(
                f'organisation = "{name}"\nfederation = "federation.xml"\n'
                f'lineage = "{name}.db.lineage"\nlocal = "127.0.0.1:{port}"\n'
                f"{_TUNING}\n{''.join(sections)}",
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


def _write_key_files(folder: Path, name: str, kind: str, made: NewCertificate) -> str:
    """Writes a certificate and its key; returns the section of the configuration for them."""
    with open(os.open(folder / f"{name}.{kind}.key", _NEW, 0o600), "wb") as key:
        key.write(made.key)
    (folder / f"{name}.{kind}.pem").write_text(made.certificate, encoding="ascii")
    return f'\n[{kind}]\ncertificate = "{name}.{kind}.pem"\nkey = "{name}.{kind}.key"\n'


def _federation(
    ports: Iterable[int], tls: Mapping[str, NewCertificate], seals: Mapping[str, NewCertificate]
) -> Federation:
    known: Mapping[str, int] = dict(zip(AGENCIES_FEDERATION.organisations, ports, strict=True))
    return replace(
        AGENCIES_FEDERATION,
        organisations={
            name: replace(
                each,
                endpoint=f"https://127.0.0.1:{known[name]}/",
                tls=(tls[name].certificate,),
                seals=(seals[name].certificate,),
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
