"""Listener: accepts connections and completes their TLS handshakes, within bounds.

A connection reaches the HTTP server only after its handshake. The number of unfinished handshakes
is bounded, in total and for each address, so that nobody can use up the places of others.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from time import monotonic
from typing import Final

from qns.runtime.causes import tls_cause
from qns.runtime.logs import log_event, log_exception
from qns.runtime.quotas import Bucket

HANDSHAKE_WITHIN_S: Final = 5.0
MOST_HANDSHAKES: Final = 128
MOST_HANDSHAKES_PER_ADDRESS: Final = 32
HANDSHAKES_PER_S: Final = 100
"""How many handshakes of one address begin in a second: each costs about a millisecond, whether its
connection stays or not."""
_MOST_ADDRESSES: Final = 10_000
_GOODBYE_WITHIN_S: Final = 2.0
"""How long a closed connection waits for the end of the other side."""
_ACCEPTS_PER_RUN: Final = 16
_PAUSE_S: Final = 0.2
_BACKLOG: Final = 512
_IPV6_NETWORK_BYTES: Final = 8
"""A host has a whole network of this prefix, so that one address of it stands for all."""


@dataclass(slots=True, eq=False)
class TlsListener:
    context: Callable[[], ssl.SSLContext]
    """Returns the context for a new connection."""
    _unfinished: Counter[str] = field(default_factory=Counter)
    _begun: dict[str, Bucket] = field(default_factory=dict)
    """Address -> the handshakes that it may begin now."""
    _handshakes: set[asyncio.Task[None]] = field(default_factory=set)
    _socket: socket.socket | None = None
    _accepting: asyncio.Task[None] | None = None

    def start(self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Listens on a bound socket; `protocol` makes the protocol of a connection."""
        sock.listen(_BACKLOG)
        self._socket = sock
        self._accepting = asyncio.create_task(self._accept(sock, protocol), name="tls accept")

    def is_serving(self) -> bool:
        return self._socket is not None

    def close(self) -> None:
        """Accepts no more connections and gives up the handshakes that are under way."""
        if self._accepting is not None:
            self._accepting.cancel()
        for task in self._handshakes:
            task.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def wait_closed(self) -> None:
        tasks = [*self._handshakes, *([self._accepting] if self._accepting else [])]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        loop = asyncio.get_running_loop()
        accepted = 0
        while True:
            try:
                connection, address = await loop.sock_accept(sock)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:  # for example, no more files can be opened
                log_event(logging.WARNING, "a connection was not accepted", reason=str(error))
                await asyncio.sleep(_PAUSE_S)
                continue
            origin = _origin(address[0])
            refusal = self._refusal(origin)
            if refusal:
                connection.close()
                words = "a connection was refused before its TLS handshake"
                log_event(logging.WARNING, words, reason=refusal, address=address[0])
            else:
                self._unfinished[origin] += 1
                task = loop.create_task(self._handshake(connection, address, protocol))
                self._handshakes.add(task)
                task.add_done_callback(partial(self._finished, origin))
            accepted += 1
            if accepted % _ACCEPTS_PER_RUN == 0:
                await asyncio.sleep(0)

    def _refusal(self, origin: str) -> str:
        if self._unfinished[origin] >= MOST_HANDSHAKES_PER_ADDRESS:
            return f"{MOST_HANDSHAKES_PER_ADDRESS} handshakes with this address are unfinished"
        if len(self._handshakes) >= MOST_HANDSHAKES:
            return f"{MOST_HANDSHAKES} handshakes are unfinished"
        now, bucket = monotonic(), self._begun.get(origin)
        if bucket is None:
            if len(self._begun) >= _MOST_ADDRESSES:
                self._begun.clear()
            bucket = self._begun[origin] = Bucket(HANDSHAKES_PER_S, now)
        if bucket.wait_s(now):
            return f"{HANDSHAKES_PER_S} handshakes of this address have begun in a second"
        bucket.take(now, 1)
        return ""

    def _finished(self, origin: str, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        self._unfinished[origin] -= 1
        if not self._unfinished[origin]:
            del self._unfinished[origin]

    async def _handshake(
        self,
        connection: socket.socket,
        address: tuple[str, int],
        protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        connection.setblocking(False)
        try:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                protocol,
                connection,
                ssl=self.context(),
                ssl_handshake_timeout=HANDSHAKE_WITHIN_S,
                ssl_shutdown_timeout=_GOODBYE_WITHIN_S,
            )
        except (OSError, TimeoutError) as error:  # an error of TLS is an OSError
            where = f"{address[0]}:{address[1]}"
            reason = tls_cause(error) or "the handshake took too long, or was broken off"
            log_event(logging.WARNING, "a TLS handshake failed", reason=reason, address=where)
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
        except Exception:
            log_exception("a TLS handshake failed")
            connection.close()


def _origin(address: str) -> str:
    """Returns what counts as one address: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped) if mapped else parsed.packed[:_IPV6_NETWORK_BYTES].hex()
