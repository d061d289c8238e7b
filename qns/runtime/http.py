"""HTTP/1.1 server of a peer: handles one complete request after the other on each connection.

It is an asyncio protocol. A general server has routes, streams and sessions, which a peer does not
need, and took more time than all SOAP processing. The number of connections, the sizes of heads and
bodies, and the time to receive them are bounded. When all places are taken, a new connection gets
the place of one that waits for a request, so that idle connections keep nobody out.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from logging import WARNING
from typing import Final, cast

from qns.runtime.http_messages import TOO_SLOW, Request, Response, response_bytes
from qns.runtime.http_reader import Job, RequestReader
from qns.runtime.logs import log_event, log_exception
from qns.runtime.peer_tls import Identity
from qns.runtime.tls_listener import TlsListener

KEPT_S: Final = 75.0
"""How long an idle or a new connection is kept: longer than clients keep an idle connection."""
MOST_OF_MEMBER: Final = 16
"""The most connections of one member; a peer of QNS has one, and a few for its operator."""
LINGER_S: Final = 2.0
"""How long the rest of a rejected request is read, so that the sender can read the response."""

_JOBS_PER_RUN: Final = 16
"""The most requests of one connection that are handled before the event loop serves others."""
_REFUSED: Final = "a request was refused unread"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


Respond = Callable[[Response], None]
"""Sends the response. Further calls, and calls after the client has disconnected, do nothing."""
Handle = Callable[[Request, Respond], "asyncio.Future[None] | None"]
"""Handles a request. A future that it returns is cancelled when the client disconnects."""


@dataclass(slots=True, eq=False)
class HttpServer:
    handle: Handle
    most_bytes: Callable[[str], int]
    """Returns the largest size of a body for a path."""
    most_connections: int
    body_within_s: float
    is_own_host: Callable[[str], bool]
    """True for a name, without its port, by which clients may address this server."""
    identify: Callable[[asyncio.BaseTransport], Identity | None] | None = None
    """Returns who has connected; a connection of nobody is closed. None: anybody may connect."""
    connections: set[_Connection] = field(default_factory=set)
    _listener: asyncio.Server | TlsListener | None = None
    _is_empty: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_serving(self) -> bool:
        return self._listener is not None and self._listener.is_serving()

    async def start(self, sock: socket.socket, tls: TlsListener | None = None) -> None:
        """Listens on a bound socket, in plain HTTP unless there is a listener for TLS."""
        loop = asyncio.get_running_loop()
        if tls is not None:
            tls.start(sock, lambda: _Connection(self))
            self._listener = tls
            return
        self._listener = await loop.create_server(lambda: _Connection(self), sock=sock, backlog=512)

    async def stop(self, within_s: float) -> None:
        """Accepts no more connections and waits at most `within_s` for pending responses."""
        if self._listener is None:
            return
        self._listener.close()
        for connection in list(self.connections):
            connection.finish()
        try:
            async with asyncio.timeout(within_s):
                while self.connections:
                    self._is_empty.clear()
                    await self._is_empty.wait()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
        await self._listener.wait_closed()

    def make_room(self) -> bool:
        """Closes the connections that wait longest for a request; False if all are in use.

        Those that have never sent a complete request are closed first. Several are closed at once,
        because finding them takes time in proportion to the number of connections.
        """
        waiting = [each for each in self.connections if each.is_waiting]
        number = max(1, self.most_connections // 100)
        for each in nsmallest(number, waiting, key=_precedence):
            each.give_way()
        return bool(waiting)

    def make_room_for(self, member: str) -> bool:
        """Closes an idle connection of a member that has too many; False if all are in use."""
        its = [
            each
            for each in self.connections
            if each.identity is not None and each.identity.organisation == member
        ]
        if len(its) < MOST_OF_MEMBER:
            return True
        idle = min((each for each in its if each.is_idle), key=_precedence, default=None)
        if idle is not None:
            idle.give_way()
        return idle is not None

    def connection_closed(self, connection: _Connection) -> None:
        self.connections.discard(connection)
        self._is_empty.set()


class _Connection(asyncio.Protocol):
    """One connection: reads requests, has each handled after the one before, and responds."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._job: Job | None = None
        """The job that is being handled."""
        self._task: asyncio.Future[None] | None = None
        """The task that handles it, if there is one."""
        self._is_processing = False
        self._timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._is_write_paused = False
        """True while the client does not read its responses."""
        self._is_reading = True
        self._has_served = False
        """True if a request was answered on this connection."""
        self._idle_since = self._loop.time()
        self.identity: Identity | None = None
        """Who is at the other end; None if that is not known."""

    @property
    def is_waiting(self) -> bool:
        """True if no request is being handled."""
        return self._job is None

    @property
    def is_idle(self) -> bool:
        """True if it waits, has served a request and receives none."""
        return self._job is None and self._has_served and not self._reader.has_begun

    def precedence(self) -> tuple[bool, float]:
        """Returns a key: of two connections that wait, the one with the smaller key gives way."""
        return self._has_served, self._idle_since

    # --- the connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._server
        self._transport = cast(asyncio.Transport, transport)
        self._reader = RequestReader(server.most_bytes, server.is_own_host, _address(transport))
        if server.identify is not None:
            self.identity = self._reader.identity = server.identify(transport)
            if self.identity is None:
                self._close_with(b"")
                return
        if self.identity is not None and not server.make_room_for(self.identity.organisation):
            self._close_with(_TOO_MANY)
            return
        if len(server.connections) >= server.most_connections and not server.make_room():
            self._close_with(_TOO_MANY)
            return
        server.connections.add(self)
        self._timer = self._loop.call_later(KEPT_S, self._close_if_idle)

    def connection_lost(self, _: Exception | None) -> None:
        """Cancels what the client was waiting for."""
        self._reader.end()
        for timer in (self._timer, self._body_timer):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._server.connection_closed(self)

    def finish(self) -> None:
        """Closes the connection as soon as all pending requests are answered."""
        self._is_stopping = True
        if self._job is None and not self._reader.jobs and not self._reader.has_head:
            self._transport.close()

    def give_way(self) -> None:
        """Closes a connection that waits; a client that has sent half a request gets an answer."""
        self._server.connection_closed(self)
        if self._is_write_paused:
            self._transport.abort()
        else:
            self._close_with(_TOO_MANY if self._reader.has_head else b"")

    def _close_with(self, last: bytes) -> None:
        self._reader.end()
        self._transport.write(last)
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._loop.call_soon(
            self._process_jobs
        )  # the transport must not be closed in this callback

    def _close_if_idle(self) -> None:
        left = KEPT_S
        if self._job is None and not self._reader.has_head:
            left = self._idle_since + KEPT_S - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left + 0.01, self._close_if_idle)
        elif self._is_write_paused:  # the client does not read: do not wait until it does
            self._transport.abort()
        else:
            self._transport.close()

    # --- reading ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        reader, before = self._reader, len(self._reader.jobs)
        reader.feed(data)
        if len(reader.jobs) > before:
            self._idle_since = self._loop.time()
            self._stop_body_timer()
        if reader.has_head and self._body_timer is None:
            within_s = self._server.body_within_s
            self._body_timer = self._loop.call_later(within_s, self._abandon_request)
        if reader.expects_continue and self._job is None and not reader.jobs:
            reader.expects_continue = False
            self._transport.write(_CONTINUE)
        self._process_jobs()
        if reader.jobs:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if self._is_reading and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def _abandon_request(self) -> None:
        """Ends a request whose body takes too long."""
        self._body_timer = None
        self._reader.abandon(TOO_SLOW, Response(408, b""))
        self._process_jobs()

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    # --- answering --------------------------------------------------------------------------------

    def _process_jobs(self) -> None:
        """Handles the queued requests in order, each after the response to the one before it.

        After some requests it yields to the event loop, so that other connections are served.
        """
        if self._is_processing:
            return  # a request was answered immediately: the loop of the outer call continues
        self._is_processing = True
        try:
            for _ in range(_JOBS_PER_RUN):
                if not self._can_process:
                    break
                self._job = self._reader.jobs.popleft()
                self._start_job(self._job)
        finally:
            self._is_processing = False
        if self._can_process:
            self._loop.call_soon(self._process_jobs)
        elif not (self._reader.jobs or self._job or self._is_reading or self._cannot_write):
            self._is_reading = True
            self._transport.resume_reading()

    @property
    def _can_process(self) -> bool:
        return bool(self._reader.jobs) and self._job is None and not self._cannot_write

    @property
    def _cannot_write(self) -> bool:
        return self._is_write_paused or self._transport.is_closing()

    def _start_job(self, job: Job) -> None:
        respond = partial(self._respond, job)
        if job.request is None:
            assert job.refusal is not None
            status, body, *_ = job.refusal
            words = body.decode().strip()
            address = self._reader.address
            log_event(WARNING, _REFUSED, reason=words, status=status, address=address)
            respond(job.refusal)
            return
        try:
            task = self._server.handle(job.request, respond)
        except Exception:
            log_exception("a request failed")
            respond(Response(500, b""))
        else:
            self._task = task if self._job is job else None
            if self._task is not None and self.identity is not None:
                self._pause_reading()  # its turn has not come: what it sends meanwhile can wait

    def _respond(self, job: Job, response: Response) -> None:
        if self._job is not job:
            return  # the request was answered already
        self._job = self._task = None
        self._has_served = True
        self._idle_since = self._loop.time()
        if not self._transport.is_closing():
            self._answer(job, response)

    def _answer(self, job: Job, response: Response) -> None:
        ends = job.ends or (self._is_stopping and not self._reader.jobs)
        is_head = job.request is not None and job.request.method == "HEAD"
        self._transport.write(response_bytes(response, job.version, ends=ends, is_head=is_head))
        if not ends:
            self._process_jobs()
        elif job.lingers:
            self._loop.call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()


def _precedence(connection: _Connection) -> tuple[bool, float]:
    return connection.precedence()


def _address(transport: asyncio.BaseTransport) -> str:
    """Returns the address of the client, such as 127.0.0.1:40312; empty if there is none."""
    name = transport.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
