"""Stage: a federation of peer processes in a folder, which reach each other through the proxy.

They authenticate each other by mutual TLS and seal what they send. The proxy has the keys of all
of them: a sender sees the certificate of the receiver, and the receiver that of the sender.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from qns.cli.commands.history import federation_of, open_stores
from qns.cli.pending_work import pending_work
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from tests.soak.member_keys import MemberKeys
from tests.soak.proxy import HOST, FaultProxy
from tests.soak.weather import Weather

CLASSES = ("Report/Temperature", "Report/Wind", "Report/Wind/Gust", "Report/Precipitation")

_CONFIGURATION = """\
organisation = "{name}"
federation = "federation.xml"
lineage = "{name}.db.lineage"
listen = "{host}:{port}"
local = "{host}:{local}"
history = true
[tls]
certificate = "{name}.tls.pem"
key = "{name}.tls.key"
[seal]
certificate = "{name}.seal.pem"
key = "{name}.seal.key"
[log]
level = "info"
[tuning]
first_pause_s = 0.25
longest_pause_s = 2.0
acknowledge_after_s = 0.3
pull_after_s = 0.5
resend_after_s = 2.0
gossip_every_s = 2.0
lease_s = 6.0
"""
"""The times are shorter than in production, so that more happens in a minute."""
_READY_WITHIN_S = 60.0
_ENDS_WITHIN_S = 30.0
_PORTS = range(20_000, 32_000)
"""Below the ephemeral ports of the system, so that a peer's port is free at every start."""


class Unwell(Exception):
    """Raised if a peer does not start or stop, or exits by itself, or if messages never cease."""


@dataclass(slots=True, eq=False)
class PeerProcess:
    name: str
    folder: Path
    local: int
    """The port that its users call."""
    starts: int = 0
    _is_ended: bool = False
    """True if the test has ended the process."""
    _process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.local}/"

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Starts the process and waits until it listens or is killed."""
        self.starts += 1
        log = os.open(self.folder / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "qns.cli",
                "peer",
                "run",
                str(self.folder / f"{self.name}.toml"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        finally:
            os.close(log)
        self._process, self._is_ended = process, False
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_READY_WITHIN_S):
                line = await process.stdout.readline()
        except TimeoutError:
            line = b""
        if b"listens on" not in line and not self._is_ended:
            await self.kill()
            raise Unwell(f"{self.name} did not start: see {self.name}.log")

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_up:
            self._is_ended |= number in (signal.SIGKILL, signal.SIGTERM)
            self._process.send_signal(number)

    async def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    async def stop(self) -> None:
        """Stops the process with SIGTERM; raises Unwell unless it exits with status 0 in time."""
        process = self._process
        if process is None or not self.is_up:
            return
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_ENDS_WITHIN_S):
                status = await process.wait()
        except TimeoutError:
            await self.kill()
            raise Unwell(f"{self.name} did not exit within {_ENDS_WITHIN_S:.0f} s") from None
        if status != 0:
            raise Unwell(f"{self.name} exited with status {status} after SIGTERM")

    def check(self) -> None:
        """Raises Unwell if the process has exited by itself."""
        process = self._process
        if process is not None and not self.is_up and not self._is_ended:
            raise Unwell(
                f"{self.name} exited by itself with status {process.returncode}: "
                f"see {self.name}.log"
            )


@dataclass(slots=True, eq=False)
class Stage:
    folder: Path
    federation: Federation
    proxy: FaultProxy
    peers: dict[str, PeerProcess] = field(default_factory=dict)

    @classmethod
    async def build(cls, folder: Path, number: int, chance: Random) -> Stage:
        names = [f"Met{index:02}" for index in range(1, number + 1)]
        keys = {name: MemberKeys.make(folder, name) for name in names}
        proxy = FaultProxy(Weather(chance), keys)
        ports = _free_ports(2 * number, chance)
        organisations, peers = {}, {}
        for name, port, local in zip(names, ports[:number], ports[number:], strict=True):
            organisations[name] = Organisation(
                name,
                frozenset(some_classes(chance)),
                f"https://{HOST}:{await proxy.listen(name, port)}/",
                tls=(keys[name].tls,),
                seals=(keys[name].seal,),
                capability=chance.choice((1, 2, 2)),
            )
            peers[name] = PeerProcess(name, folder, local)
            configuration = _CONFIGURATION.format(name=name, host=HOST, port=port, local=local)
            (folder / f"{name}.toml").write_text(configuration, encoding="utf-8")
        stage = cls(folder, Federation("weather", WEATHER, organisations), proxy, peers)
        stage.install(stage.federation)
        return stage

    def install(self, federation: Federation) -> None:
        """Writes the document that peers read when they start."""
        self.federation = federation
        new = self.folder / "federation.new"
        new.write_bytes(write_federation(federation))
        new.replace(self.folder / "federation.xml")

    @property
    def stores(self) -> dict[str, Path]:
        return {name: self.folder / f"{name}.db" for name in self.peers}

    async def start(self, *names: str) -> None:
        """Starts the named peers, or all, unless they are running."""
        down = [self.peers[name] for name in names or self.peers if not self.peers[name].is_up]
        await asyncio.gather(*(peer.start() for peer in down))

    async def stop(self) -> None:
        await asyncio.gather(*(peer.stop() for peer in self.peers.values()))

    async def end(self) -> None:
        """Kills all processes and closes the proxy."""
        await asyncio.gather(*(peer.kill() for peer in self.peers.values()))
        await self.proxy.close()

    def check(self) -> None:
        for peer in self.peers.values():
            peer.check()

    def unrest(self, absent: Collection[str] = ()) -> str | None:
        """Returns what is still under way according to the stores of the stopped peers, or None."""
        with ExitStack() as opened:
            stores = open_stores(self.stores.values(), opened)
            return pending_work(federation_of(stores), stores, absent)


def some_classes(chance: Random) -> list[str]:
    """Draws the classes that an organisation hosts."""
    return ["Report", *(each for each in CLASSES if chance.random() < 0.6)]


def _free_ports(number: int, chance: Random) -> list[int]:
    found: list[int] = []
    while len(found) < number:
        port = chance.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found
