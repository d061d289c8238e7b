"""Process: one peer, from its configuration to its graceful stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import time
from typing import Final

from qns import __version__
from qns.cbr.index import MatchingIndex
from qns.errors import QnsError, StoreFailed
from qns.federation.document import Federation
from qns.gateway import Gateway
from qns.peer import Peer
from qns.recovery import Settings
from qns.runtime.addresses import Listen
from qns.runtime.configuration import Configuration
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.incidents import Incidents
from qns.runtime.logs import tell, tell_exception
from qns.runtime.metrics import Metrics
from qns.runtime.rehearsal import rehearse
from qns.runtime.server import Server
from qns.runtime.traffic import Traffic
from qns.runtime.transport import Transport
from qns.soap.endpoint import Endpoint
from qns.store.lineage import FileLineage
from qns.store.sqlite import SqliteStore
from qns.turn import Record

try:
    import uvloop
except ImportError:  # on Windows there is none
    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_event_loop = uvloop.new_event_loop

_COLLECT_AFTER: Final = (2_000, 10, 100)
_SWITCH_S: Final = 0.000_2
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)


def run(configuration: Configuration) -> None:
    """Serves until the process is asked to stop."""
    os.umask(0o077)  # the store holds personal data
    with asyncio.Runner(loop_factory=_new_event_loop) as runner:
        runner.run(serve(configuration))


async def serve(configuration: Configuration) -> None:
    """Says on standard output where it listens; returns after SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    sock = _bound(configuration.listen)
    try:
        _rehearse(configuration.federation)
        listen = Listen(*sock.getsockname()[:2])
        running = await Running.start(configuration, sock, listen.url)
    except BaseException:
        sock.close()
        raise
    print(f"{configuration.organisation} listens on {listen.url}", flush=True)
    try:
        await stop.wait()
    finally:
        tell(logging.INFO, "stopping", organisation=configuration.organisation)
        await running.stop()
        tell(logging.INFO, "stopped", organisation=configuration.organisation)


@dataclass(slots=True, eq=False)
class Running:
    """The parts of a peer that serves."""

    stores: Stores
    driver: Driver
    transport: Transport
    server: Server

    @classmethod
    async def start(cls, configuration: Configuration, sock: socket.socket, url: str) -> Running:
        traffic = Traffic()
        metrics = Metrics(traffic)
        stores = Stores(configuration)
        # The driver needs the transport and the transport asks the driver's peer for addresses.
        transport = Transport(lambda name: _endpoint_of(driver.peer.federation, name), traffic)
        incidents = Incidents()

        def watch(peer: Peer, records: list[Record], now: float) -> None:
            metrics.watch(peer, records, now)
            incidents.watch(peer, records, now)

        driver = Driver(stores.open, transport.exchange, watch=watch, committed=metrics.committed)
        try:
            await driver.start()
        except BaseException:
            await driver.stop()
            await transport.close()
            stores.close()
            raise
        metrics.show(driver)
        endpoints = Endpoints(driver)
        server = Server(
            driver,
            endpoints,
            Health(driver, configuration.store, time()),
            metrics,
            traffic,
        )
        await server.start(sock, url)
        # What was recovered stays: the collector need not look through it again and again. Events
        # that are kept are many and in no cycle, so it need not look for them often either.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        # The commit thread has the disk's answer long before a busy loop lets it say so.
        sys.setswitchinterval(_SWITCH_S)
        tell(
            logging.INFO,
            "started",
            organisation=configuration.organisation,
            url=url,
            version=__version__,
            epoch=driver.peer.identity.epoch,
            document=driver.peer.federation.version,
            store=str(configuration.store),
            restored=driver.gateway.restored,
        )
        return cls(stores, driver, transport, server)

    async def stop(self) -> None:
        """Answers what is under way, finishes the turn, closes."""
        await self.server.stop()
        await self.driver.stop()
        await self.transport.close()
        self.stores.close()


@dataclass(slots=True, eq=False)
class Stores:
    """Opens the store of a peer; again after a failure, when nobody trusts the open one."""

    configuration: Configuration
    _store: SqliteStore | None = None

    def open(self, now: float) -> Gateway:
        configuration = self.configuration
        if self._store is not None:
            gc.unfreeze()  # what the peer before was made of can be freed now
        self.close()
        self._store = SqliteStore(configuration.store)
        return Gateway.open(
            Settings(
                configuration.organisation,
                configuration.tuning,
                MatchingIndex,
                recording=configuration.history,
            ),
            self._store,
            FileLineage(configuration.lineage),
            document=configuration.document,
            nonce=secrets.token_hex(8),
            now=now,
        )

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(StoreFailed):  # it may be what failed
                store.close()


@dataclass(slots=True, eq=False)
class Endpoints:
    """The SOAP side for the schema in force, which changes with the federation document."""

    driver: Driver
    _federation: Federation | None = None
    _endpoint: Endpoint | None = None

    def __call__(self) -> Endpoint:
        federation = self.driver.peer.federation
        if self._endpoint is None or federation is not self._federation:
            if self._federation is None or federation.schema != self._federation.schema:
                self._endpoint = Endpoint(federation.schema)
            self._federation = federation
        assert self._endpoint is not None
        return self._endpoint


def _rehearse(federation: Federation) -> None:
    try:
        rehearse(federation, Endpoint(federation.schema))
    except Exception:  # then the first callers wait a little
        tell_exception("the rehearsal failed")


def _endpoint_of(federation: Federation, name: str) -> str:
    return federation[name].endpoint if name in federation else ""


def _bound(listen: Listen) -> socket.socket:
    """A socket that has the address but does not listen yet: others are not kept waiting."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(listen)
    except OSError as error:
        sock.close()
        raise QnsError(
            f"cannot listen on {listen.url}: {error.strerror or error}",
            remedy="stop who uses the port, or give another one: listen in the configuration",
        ) from None
    sock.setblocking(False)
    return sock
