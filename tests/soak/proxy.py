"""Fault proxy: forwards the requests between peers and injects faults into them.

The proxy has a port for each receiver, which the federation document names as its endpoint.
Connections to the proxy are persistent. With the keys of the members it ends their TLS connections
and opens others to the receivers in the same names, so that the requests that it disturbs are
readable; the certificate names the sender. Without keys, the sender is read from the body.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import Event, StreamReader, StreamWriter
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from qns.runtime.tls_contexts import fingerprint_at
from tests.soak.http_framing import Message, read_message
from tests.soak.member_keys import MemberKeys
from tests.soak.weather import Fault, Weather

HOST = "127.0.0.1"
_LONGEST_WAIT_S = 15.0
"""How long to wait for a response, or for a later request before one that is held back."""
_LIMIT_BYTES = 1 << 24


@dataclass(slots=True, eq=False)
class FaultProxy:
    weather: Weather
    keys: Mapping[str, MemberKeys] = field(default_factory=dict)
    """The keys of all members; without any, the proxy forwards plain HTTP."""
    injected: Counter[Fault] = field(default_factory=Counter)
    passed: int = 0
    """The number of requests that were answered without a fault."""
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _contexts: dict[tuple[str, str], ssl.SSLContext] = field(default_factory=dict)
    """By sender and receiver, of the connections that the proxy opens."""
    _held: dict[tuple[str, str], list[Event]] = field(default_factory=dict)
    """By sender and receiver: requests that wait until a later one has passed."""

    async def listen(self, receiver: str, port: int) -> int:
        """Opens a port for the receiver, which listens on `port`, and returns it."""

        async def serve(reader: StreamReader, writer: StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._serve(receiver, port, reader, writer)
            except (ConnectionError, TimeoutError, asyncio.CancelledError):
                pass  # the sender has closed the connection, or the proxy is closing
            finally:
                self._tasks.discard(task)
                writer.close()

        tls = self.keys[receiver].as_server(self.keys) if self.keys else None
        server = await asyncio.start_server(serve, HOST, 0, limit=_LIMIT_BYTES, ssl=tls)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Releases and awaits all requests that are held back or sent a second time."""
        for waiting in self._held.values():
            for event in waiting:
                event.set()
        while any(task.get_name() == "straggler" for task in self._tasks):
            await asyncio.sleep(0.05)

    # --- one connection ---------------------------------------------------------------------------

    async def _serve(
        self, receiver: str, port: int, reader: StreamReader, writer: StreamWriter
    ) -> None:
        owner = self._owner_of(writer.transport)
        while (request := await read_message(reader)) is not None:
            link = owner or request.sender, receiver
            if link in self.weather.blocked:
                await self._swallow(link, reader, writer)
                return
            response = await self._carry(request, link, port, writer)
            if response is None:
                self._break(writer)
                return
            if (receiver, request.sender) in self.weather.blocked:
                await self._swallow((receiver, request.sender), reader, writer)
                return
            writer.write(response.whole)
            await writer.drain()
            if request.is_last or response.is_last:
                return

    def _owner_of(self, connection: asyncio.BaseTransport) -> str:
        """Returns the member whose certificate the other side has; "" without TLS."""
        used = fingerprint_at(connection)
        return next((name for name, own in self.keys.items() if own.fingerprint == used), "")

    async def _swallow(
        self, way: tuple[str, str], reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Closes the connection now, or when the sender gives up or the partition is healed."""
        self.injected[Fault.PARTITION] += 1
        if self.weather.chance.random() < 0.5:
            clock = asyncio.get_running_loop().time
            deadline = clock() + _LONGEST_WAIT_S
            while way in self.weather.blocked and not reader.at_eof() and clock() < deadline:
                await asyncio.sleep(0.1)
        self._break(writer)

    async def _carry(
        self, request: Message, link: tuple[str, str], port: int, writer: StreamWriter
    ) -> Message | None:
        """Returns the response to send back, or None if the connection must be closed instead."""
        weather = self.weather
        fault = weather.draw()
        if fault is not None:
            self.injected[fault] += 1
        if fault is Fault.DROP:
            return None
        if fault is Fault.CUT_REQUEST:
            await self._send_part(request.whole[: weather.cut(len(request.whole))], link, port)
            return None
        if fault is Fault.REORDER:
            self._later(self._hold_back(request, link, port))
            return None
        if fault is Fault.DELAY:
            await asyncio.sleep(weather.delay_s())
        if fault is Fault.DUPLICATE:
            self._later(self._repeat(request, link, port))
        response = await self._forward(request, link, port)
        self._let_go(link)
        if response is None or fault is Fault.LOSE_RESPONSE:
            return None
        if fault is Fault.CUT_RESPONSE:
            writer.write(response.whole[: weather.cut(len(response.whole))])
            await writer.drain()
            return None
        self.passed += fault is None
        return response

    def _break(self, writer: StreamWriter) -> None:
        """Closes or resets the connection."""
        if self.weather.chance.random() < 0.5:
            writer.close()
        else:
            writer.transport.abort()

    # --- what arrives at the receiver -------------------------------------------------------------

    async def _connect(self, link: tuple[str, str], port: int) -> tuple[StreamReader, StreamWriter]:
        """Opens a connection to the receiver in the name of the sender."""
        sender, receiver = link
        tls = self._contexts.get(link)
        if tls is None and self.keys:
            tls = self._contexts[link] = self.keys[sender].as_client(self.keys[receiver])
        return await asyncio.open_connection(HOST, port, limit=_LIMIT_BYTES, ssl=tls)

    async def _forward(self, request: Message, link: tuple[str, str], port: int) -> Message | None:
        """Returns the response, or None if the receiver is down or goes down."""
        try:
            reader, writer = await self._connect(link, port)
        except OSError:
            return None
        try:
            writer.write(request.whole)
            await writer.drain()
            async with asyncio.timeout(_LONGEST_WAIT_S):
                return await read_message(reader)
        except (ConnectionError, TimeoutError):
            return None
        finally:
            writer.close()

    async def _send_part(self, data: bytes, link: tuple[str, str], port: int) -> None:
        with suppress(OSError):
            _, writer = await self._connect(link, port)
            writer.write(data)
            with suppress(ConnectionError):
                await writer.drain()
            writer.close()

    async def _repeat(self, request: Message, link: tuple[str, str], port: int) -> None:
        await asyncio.sleep(self.weather.delay_s())
        await self._forward(request, link, port)

    async def _hold_back(self, request: Message, link: tuple[str, str], port: int) -> None:
        passed = Event()
        self._held.setdefault(link, []).append(passed)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await passed.wait()
        await self._forward(request, link, port)

    def _let_go(self, link: tuple[str, str]) -> None:
        for event in self._held.pop(link, ()):
            event.set()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="straggler")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
