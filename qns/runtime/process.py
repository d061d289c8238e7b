"""Process: runs one peer from its configuration until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import Final

from qns import __version__
from qns.errors import QnsError
from qns.federation.document import Federation
from qns.runtime.addresses import Listen
from qns.runtime.admin.operation import Context
from qns.runtime.admin.server import AdminServer
from qns.runtime.configuration import Configuration
from qns.runtime.drain import Drain
from qns.runtime.driver import Driver, Observer
from qns.runtime.file_limit import connections_within_limit
from qns.runtime.health import Health
from qns.runtime.incidents import Incidents
from qns.runtime.lineage_upkeep import LineageUpkeep
from qns.runtime.logs import log_event, log_exception
from qns.runtime.metrics import Metrics
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.own_key import OwnKey
from qns.runtime.own_seal import OwnSeal
from qns.runtime.peer_tls import PeerTls
from qns.runtime.quotas import Quotas
from qns.runtime.rehearsal import rehearse
from qns.runtime.reload import reload
from qns.runtime.server import MOST_CONNECTIONS, Server
from qns.runtime.service_manager import ServiceManager
from qns.runtime.store_upkeep import StoreUpkeep
from qns.runtime.stores import Stores
from qns.runtime.timestamper import Timestamper
from qns.runtime.tls_contexts import anonymous_context
from qns.runtime.tls_listener import TlsListener
from qns.runtime.traffic import Traffic
from qns.runtime.transport import Transport
from qns.runtime.twin import find_twin
from qns.runtime.ws_security import SignedMessages, read_call_key
from qns.soap.endpoint import Endpoint
from qns.soap.ws_security import MessageSecurity
from qns.soap.ws_signing import CallSigner

try:
    import uvloop
except ImportError:  # uvloop does not support Windows
    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_event_loop = uvloop.new_event_loop

_GC_THRESHOLDS: Final = (2_000, 10, 100)
_SWITCH_S: Final = 0.000_2
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(configuration: Configuration, path: Path) -> None:
    """Serves until SIGTERM or SIGINT; reads the configuration at `path` again at SIGHUP."""
    os.umask(0o077)  # the store contains personal data
    with asyncio.Runner(loop_factory=_new_event_loop) as runner:
        runner.run(serve(configuration, path))


async def serve(configuration: Configuration, path: Path) -> None:
    """Prints where it listens to standard output; returns after SIGTERM or SIGINT."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the peer runs, there is nothing to reload
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    tls = _tls_of(configuration)
    seal = None if configuration.seal is None else OwnSeal.read(configuration.seal)
    call_key = read_call_key(configuration.ws_security)
    sockets = [_bound(configuration.listen, "listen")]
    try:
        if configuration.local is not None:
            sockets.append(_bound(configuration.local, "local"))
        _rehearse(configuration.federation)
        twin = await find_twin(configuration, tls)
        if twin is not None:
            raise twin
        served = _with_ports(configuration, sockets)
        members = None if tls is None else sockets[0]
        running = await Running.start(
            served, sockets[-1], served.local_url, tls, members, seal, call_key
        )
        running.stores.configuration = configuration  # as in the file, with which it is compared
    except BaseException:
        for each in sockets:
            each.close()
        raise
    hang_up = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, hang_up.set)
    manager = ServiceManager.from_environment()
    status = f"{configuration.organisation} listens on {served.url}"
    if served.local is not None:
        status += f" for other peers, and on {served.local_url} for its own users"
    reloading = loop.create_task(_reload_at(hang_up, running, path, manager, status))
    watching = loop.create_task(manager.watch())
    print(status, flush=True)
    manager.ready(status)
    try:
        await stop.wait()
    finally:
        manager.stopping()
        reloading.cancel()
        log_event(logging.INFO, "stopping", organisation=configuration.organisation)
        await running.stop()
        watching.cancel()
        log_event(logging.INFO, "stopped", organisation=configuration.organisation)


async def _reload_at(
    hang_up: asyncio.Event, running: Running, path: Path, manager: ServiceManager, status: str
) -> None:
    """Reads the configuration again whenever the event is set."""
    stores = running.stores
    while True:
        await hang_up.wait()
        hang_up.clear()
        manager.reloading()
        try:
            if running.tls is not None:
                running.tls.own.refresh(always=True)
            for own in (stores.seal, running.call_key):
                if own is not None:
                    own.refresh()
            stores.configuration = await reload(running.driver, stores.configuration, path)
        except Exception:  # the next signal may succeed
            log_exception("the configuration was not reloaded")
        manager.ready(status)


@dataclass(slots=True, eq=False)
class Running:
    """The parts of a running peer."""

    stores: Stores
    driver: Driver
    transport: Transport
    server: Server
    admin: AdminServer
    upkeep: StoreUpkeep
    lineage: LineageUpkeep
    tls: PeerTls | None
    call_key: OwnKey[CallSigner] | None
    timestamper: Timestamper

    @classmethod
    async def start(
        cls,
        configuration: Configuration,
        sock: socket.socket,
        url: str,
        tls: PeerTls | None = None,
        members: socket.socket | None = None,
        seal: OwnSeal | None = None,
        call_key: OwnKey[CallSigner] | None = None,
    ) -> Running:
        """Starts a peer on bound sockets: one for all, or with TLS also one for the members."""
        traffic = Traffic()
        metrics = Metrics(traffic)
        stores = Stores(configuration, seal)
        drain = Drain(configuration.drain)
        quotas = Quotas(configuration.tuning, lambda: driver.status.federation.organisations)
        # The driver needs the transport, and the transport gets endpoints from the driver's peer.
        settings = configuration.ws_security
        signed = settings and SignedMessages(
            configuration.organisation, settings, lambda: driver.status.federation, call_key
        )
        transport = Transport(
            lambda name: _endpoint_of(driver.status.federation, name),
            traffic,
            tls=tls,
            envelope_for=signed.envelope_for if signed else lambda _: None,
        )
        driver = Driver(
            stores.open,
            transport.send,
            observers=(metrics.observe, Incidents().observe, *_observers(tls)),
            on_commit=metrics.committed,
            on_turn=quotas.charge_all,
            refuse=drain.refusal,
        )
        try:
            await driver.start()
        except BaseException:
            await driver.stop()
            await transport.close()
            stores.close()
            raise
        own = None
        if tls is not None:
            own, tls.federation = tls.own, lambda: driver.status.federation
        served = configuration.served
        stamper = Timestamper.of(configuration.evidence, driver)
        health = Health(
            driver, configuration.store, time(), drain, served, own, seal, call_key, quotas, stamper
        )
        metrics.show(driver, health)
        most = connections_within_limit(MOST_CONNECTIONS)
        endpoints = Endpoints(driver, signed.checks() if signed else None)
        server = Server(driver, endpoints, health, metrics, traffic, most, quotas=quotas, tls=tls)
        context = Context(configuration, driver, health, metrics, drain, tls)
        admin = AdminServer(configuration.admin, context)
        upkeep = StoreUpkeep(driver, stores.current)
        lineage = LineageUpkeep(driver)
        running = cls(
            stores, driver, transport, server, admin, upkeep, lineage, tls, call_key, stamper
        )
        try:
            await admin.start()
            await server.start(sock, url, _local_tls(configuration))
            if tls is not None and members is not None:
                await server.start_members(members)
                tls.start()
            upkeep.start()
            lineage.start()
            stamper.start()
        except BaseException:
            await running.stop()
            raise
        # The garbage collector need not traverse the recovered objects again. It also runs less
        # often, because the many events that a peer keeps are in no reference cycles.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        # With the default interval, the commit thread would wait long for a busy event loop
        # before it can report that the disk has finished.
        sys.setswitchinterval(_SWITCH_S)
        log_event(
            logging.INFO,
            "started",
            organisation=configuration.organisation,
            url=url if tls is None else configuration.url,
            version=__version__,
            epoch=driver.status.epoch,
            document=driver.status.federation.version,
            store=str(configuration.store),
            restored=driver.gateway.restored,
        )
        return running

    async def stop(self) -> None:
        """Answers pending requests, finishes the current turn and closes everything."""
        if self.tls is not None:
            self.tls.stop()
        self.upkeep.stop()
        self.timestamper.stop()
        await self.admin.stop()
        await self.server.stop()
        await self.driver.stop()
        await self.lineage.stop()
        await self.transport.close()
        self.stores.close()


@dataclass(slots=True, eq=False)
class Endpoints:
    """Returns the SOAP endpoint; makes a new one only when the schema of the federation changes."""

    driver: Driver
    security: MessageSecurity | None = None
    _federation: Federation | None = None
    _endpoint: Endpoint | None = None

    def __call__(self) -> Endpoint:
        federation = self.driver.status.federation
        if self._endpoint is None or federation is not self._federation:
            if self._federation is None or federation.schema != self._federation.schema:
                self._endpoint = Endpoint(federation.schema, self.security)
            self._federation = federation
        assert self._endpoint is not None
        return self._endpoint


def _rehearse(federation: Federation) -> None:
    try:
        rehearse(federation, Endpoint(federation.schema))
    except Exception:  # the peer works without it; its first calls are just slower
        log_exception("the rehearsal failed")


def _endpoint_of(federation: Federation, name: str) -> str:
    return federation[name].endpoint if name in federation else ""


def _observers(tls: PeerTls | None) -> Iterator[Observer]:
    """Yields what closes the connections of former members as soon as a document is in force."""
    if tls is not None:
        yield lambda _, __: tls.take_document()


def _tls_of(configuration: Configuration) -> PeerTls | None:
    """Reads the key and the certificate; raises ValueRefused if they cannot be used."""
    if configuration.tls is None:
        return None
    return PeerTls(OwnCertificate.read(configuration.tls), lambda: configuration.federation)


def _local_tls(configuration: Configuration) -> TlsListener | None:
    """Returns the listener for users over TLS; None if they are served in plain HTTP."""
    if configuration.local_tls is None:
        return None
    own = OwnCertificate.read(configuration.local_tls)

    def context() -> ssl.SSLContext:
        own.refresh()
        return anonymous_context(own)

    return TlsListener(context)


def _with_ports(configuration: Configuration, sockets: list[socket.socket]) -> Configuration:
    """Returns the configuration with the ports that the system has chosen for port 0."""
    listen, *local = (Listen(*each.getsockname()[:2]) for each in sockets)
    if configuration.listen.port:
        listen = configuration.listen
    if configuration.local is None or configuration.local.port:
        return replace(configuration, listen=listen)
    return replace(configuration, listen=listen, local=local[0])


def _bound(listen: Listen, key: str) -> socket.socket:
    """Returns a socket that is bound but does not listen yet, so that no client has to wait."""
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
            remedy=f"stop the program that uses the port, or set another one with {key}",
        ) from None
    sock.setblocking(False)
    return sock
