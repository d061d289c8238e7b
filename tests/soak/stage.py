"""Stage: a federation of real peer processes in a folder, each known to the others by the proxy."""

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

from qns.cli.history import federation_of, open_stores
from qns.cli.rest import unrest
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from tests.soak.proxy import HOST, FaultProxy
from tests.soak.weather import Weather

CLASSES = ("Report/Temperature", "Report/Wind", "Report/Wind/Gust", "Report/Precipitation")

_CONFIGURATION = """\
organisation = "{name}"
federation = "federation.xml"
listen = "{host}:{port}"
history = true
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
"""Shorter times than in production: a minute holds what takes an hour there."""
_READY_WITHIN_S = 60.0
_ENDS_WITHIN_S = 30.0
_PORTS = range(20_000, 32_000)
"""Below those that a system gives to connections: a peer finds its own free at every start."""


class Unwell(Exception):
    """A peer does not start, ends by itself, does not end when asked; or they never rest."""


@dataclass(slots=True, eq=False)
class PeerProcess:
    name: str
    folder: Path
    port: int
    lives: int = 0
    _is_ended: bool = False
    """By us: nobody is surprised when it is down."""
    _process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Until it says that it listens, or is killed before."""
        self.lives += 1
        log = os.open(self.folder / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "qns.cli", "peer", "run"),
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
        """SIGKILL: whatever it is doing."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    async def stop(self) -> None:
        """SIGTERM: it ends by itself, with status 0."""
        process = self._process
        if process is None or not self.is_up:
            return
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_ENDS_WITHIN_S):
                status = await process.wait()
        except TimeoutError:
            await self.kill()
            raise Unwell(f"{self.name} did not end within {_ENDS_WITHIN_S:.0f} s") from None
        if status != 0:
            raise Unwell(f"{self.name} ended with status {status} when asked to stop")

    def check(self) -> None:
        """Whoever is down was ended by us."""
        process = self._process
        if process is not None and not self.is_up and not self._is_ended:
            raise Unwell(
                f"{self.name} ended by itself with status {process.returncode}: see {self.name}.log"
            )


@dataclass(slots=True, eq=False)
class Stage:
    folder: Path
    federation: Federation
    proxy: FaultProxy
    peers: dict[str, PeerProcess] = field(default_factory=dict)

    @classmethod
    async def build(cls, folder: Path, number: int, chance: Random) -> Stage:
        proxy = FaultProxy(Weather(chance))
        ports = _free_ports(number, chance)
        organisations, peers = {}, {}
        for index, port in enumerate(ports, start=1):
            name = f"Met{index:02}"
            endpoint = f"http://{HOST}:{await proxy.listen(name, port)}/"
            organisations[name] = Organisation(
                name, frozenset(some_classes(chance)), endpoint, capability=chance.choice((1, 2, 2))
            )
            peers[name] = PeerProcess(name, folder, port)
            configuration = _CONFIGURATION.format(name=name, host=HOST, port=port)
            (folder / f"{name}.toml").write_text(configuration, encoding="utf-8")
        stage = cls(folder, Federation("weather", WEATHER, organisations), proxy, peers)
        stage.install(stage.federation)
        return stage

    def install(self, federation: Federation) -> None:
        """Whoever starts next has this document, and tells the others."""
        self.federation = federation
        new = self.folder / "federation.new"
        new.write_bytes(write_federation(federation))
        new.replace(self.folder / "federation.xml")

    @property
    def stores(self) -> dict[str, Path]:
        return {name: self.folder / f"{name}.db" for name in self.peers}

    async def start(self, *names: str) -> None:
        """Those that are down."""
        down = [self.peers[name] for name in names or self.peers if not self.peers[name].is_up]
        await asyncio.gather(*(peer.start() for peer in down))

    async def stop(self) -> None:
        await asyncio.gather(*(peer.stop() for peer in self.peers.values()))

    async def end(self) -> None:
        """Whatever has happened: nothing of it goes on."""
        await asyncio.gather(*(peer.kill() for peer in self.peers.values()))
        await self.proxy.close()

    def check(self) -> None:
        for peer in self.peers.values():
            peer.check()

    def unrest(self, absent: Collection[str] = ()) -> str | None:
        """What is still under way, as the stores tell; the peers do not run."""
        with ExitStack() as opened:
            stores = open_stores(self.stores.values(), opened)
            return unrest(federation_of(stores), stores, absent)


def some_classes(chance: Random) -> list[str]:
    """What an organisation hosts."""
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
