"""HTTP/1.1 as a peer serves it: one whole request after the other, everything bounded.

A protocol of our own on httptools, the parser of Node. A general server has routes, streams and
sessions, which nobody here needs, and took more time than all that SOAP does. Bounded are the
connections, the head and the body of a request, and the time that each may take to arrive.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from qns.runtime.http_messages import (
    NOT_WHOLE,
    TOO_SLOW,
    Flaw,
    Request,
    Response,
    parted,
    written,
)
from qns.runtime.logs import tell_exception

KEPT_S: Final = 75.0
"""More than clients keep an idle connection; a new one has as long for its first request."""
LINGER_S: Final = 2.0
"""How long the rest of a refused request is read, so that the sender sees the answer."""
MOST_HEAD_BYTES: Final = 32_768

_AT_A_TIME: Final = 16
"""Requests of one client that are seen to before others are heard."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class _Job(NamedTuple):
    """A request that waits for those before it on its connection."""

    request: Request | None
    """None if it could not even be read: then there is only the refusal."""
    version: str
    ends: bool
    """Whether the connection is over with its answer."""
    lingers: bool
    """Whether more of it may be on its way."""
    refusal: Response | None = None


Respond = Callable[[Response], None]
"""Its first call counts; who has hung up meanwhile gets nothing."""
Handle = Callable[[Request, Respond], "asyncio.Task[None] | None"]
"""Sees to a request. What it goes on with in a task is cancelled when the client hangs up."""


@dataclass(slots=True, eq=False)
class HttpServer:
    handle: Handle
    most_bytes: Callable[[str], int]
    """How long the body of a request to this path may be."""
    most_connections: int
    body_within_s: float
    connections: set[_Connection] = field(default_factory=set)
    _listener: asyncio.Server | None = None
    _is_empty: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_serving(self) -> bool:
        return self._listener is not None and self._listener.is_serving()

    async def start(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: _Connection(self), sock=sock, backlog=512)

    async def stop(self, within_s: float) -> None:
        """No more connections; what is under way is answered, as far as there is time."""
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

    def left(self, connection: _Connection) -> None:
        self.connections.discard(connection)
        self._is_empty.set()


class _Connection(asyncio.Protocol):
    """One client; what the parser finds is called out to the methods `on_…`."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job] = deque()
        self._job: _Job | None = None
        """The one that is being seen to."""
        self._task: asyncio.Task[None] | None = None
        """That sees to it, if it needs one."""
        self._is_going_on = False
        self._timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._is_ending = False
        """Nothing that comes is looked at any more."""
        self._is_stopping = False
        self._is_choked = False
        """The client does not read its answers."""
        self._is_reading = True
        self._since = self._loop.time()
        self._begin_request()

    def _begin_request(self) -> None:
        self._parser = HttpRequestParser(self)
        self._is_inside = self._has_head = False
        self._received = 0
        self.on_message_begin()

    # --- the connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._server.connections) >= self._server.most_connections:
            self._is_ending = True
            self._transport.write(_TOO_MANY)
            self._transport.close()
            return
        self._server.connections.add(self)
        self._timer = self._loop.call_later(KEPT_S, self._look_whether_idle)

    def connection_lost(self, _: Exception | None) -> None:
        """Who hangs up waits no longer."""
        self._is_ending = True
        self._jobs.clear()
        for timer in (self._timer, self._body_timer):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._server.left(self)

    def finish(self) -> None:
        """Ends when what is under way is answered."""
        self._is_stopping = True
        if self._job is None and not self._jobs and not self._has_head:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def pause_writing(self) -> None:
        self._is_choked = True

    def resume_writing(self) -> None:
        self._is_choked = False
        self._loop.call_soon(self._go_on)  # asyncio does not expect to be closed in here

    def _look_whether_idle(self) -> None:
        left = KEPT_S
        if self._job is None and not self._has_head:
            left = self._since + KEPT_S - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left + 0.01, self._look_whether_idle)
        elif self._is_choked:  # what it has not read by now it will not read any more
            self._transport.abort()
        else:
            self._transport.close()

    # --- reading ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        while data and not self._is_ending:
            self._received += len(data)
            try:
                self._parser.feed_data(data)
                data = b""
            except HttpParserUpgrade as offer:  # which is not taken up: what follows is HTTP still
                data = self._without_offer() + data[offer.args[0] :]
                self._begin_request()
            except HttpParserError:
                self._break_off(NOT_WHOLE, 400, "this is not HTTP as it should be")
            if not self._has_head and self._received > MOST_HEAD_BYTES:
                self._refuse(431, "the head of the request is too long")
        if self._has_head and self._body_timer is None and not self._is_ending:
            self._body_timer = self._loop.call_later(
                self._server.body_within_s, self._break_off, TOO_SLOW, 408, ""
            )
        self._go_on()
        if self._jobs and self._is_reading and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._pieces: list[bytes] = []
        self._size = self._most = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_ending:
            return
        if len(self._url) + self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(431, "the head of the request is too long")
            return
        self._version = self._parser.get_http_version()
        if self._parser.should_upgrade():
            if self._parser.get_method() == b"CONNECT":
                self._refuse(405, "this is no proxy")
            return
        self._has_head = True
        self._path, self._query = parted(self._url)
        self._most = self._server.most_bytes(self._path)
        if (
            self._headers.get("expect", "").lower() == "100-continue"
            and self._version == "1.1"
            and self._job is None
            and not self._jobs
        ):
            self._transport.write(_CONTINUE)

    def on_body(self, piece: bytes) -> None:
        if not self._is_ending:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > self._most:
                self._arrived(ends=True, lingers=True)

    def on_message_complete(self) -> None:
        if self._has_head and not self._is_ending:
            self._arrived(ends=not self._parser.should_keep_alive())

    def _without_offer(self) -> bytes:
        """The same head again: the parser takes a body after an offer for the other protocol."""
        wanted = self._headers.pop("connection", "").lower()
        self._headers.pop("upgrade", None)
        if "close" in wanted:
            self._headers["connection"] = "close"
        first = f"{self._parser.get_method().decode()} {self._url.decode('latin-1')}"
        lines = [f"{name}: {value}\r\n" for name, value in self._headers.items()]
        return f"{first} HTTP/{self._version}\r\n{''.join(lines)}\r\n".encode("latin-1")

    def _break_off(self, flaw: Flaw, status: int, problem: str) -> None:
        """Nothing more can be read of this request."""
        if self._is_ending:
            return
        if self._has_head:
            self._arrived(ends=True, lingers=True, flaw=flaw)
        else:
            self._refuse(status, problem)
        self._go_on()

    def _refuse(self, status: int, problem: str) -> None:
        """A request of which not even the head can be read."""
        self._is_ending = True
        refusal = Response(status, f"{problem}\n".encode())
        self._jobs.append(_Job(None, "1.1", True, True, refusal))

    def _arrived(self, *, ends: bool, lingers: bool = False, flaw: Flaw | None = None) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
        self._has_head = False
        self._received = 0
        self._since = self._loop.time()
        self._is_ending = ends
        method = self._parser.get_method().decode("latin-1")
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        request = Request(method, self._path, self._query, self._headers, body, flaw)
        self._jobs.append(_Job(request, self._version, ends, lingers))

    # --- answering --------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """The next requests, each once the answer before it is on its way; a few at a time."""
        if self._is_going_on:
            return  # one that was answered at once: the loop further up goes on
        self._is_going_on = True
        try:
            for _ in range(_AT_A_TIME):
                if not self._may_go_on:
                    break
                self._job = self._jobs.popleft()
                self._see_to(self._job)
        finally:
            self._is_going_on = False
        if self._may_go_on:
            self._loop.call_soon(self._go_on)
        elif not (self._jobs or self._job or self._is_reading or self._is_held_up):
            self._is_reading = True
            self._transport.resume_reading()

    @property
    def _may_go_on(self) -> bool:
        return bool(self._jobs) and self._job is None and not self._is_held_up

    @property
    def _is_held_up(self) -> bool:
        return self._is_choked or self._transport.is_closing()

    def _see_to(self, job: _Job) -> None:
        respond = partial(self._respond, job)
        if job.request is None:
            assert job.refusal is not None
            respond(job.refusal)
            return
        try:
            task = self._server.handle(job.request, respond)
        except Exception:
            tell_exception("a request failed")
            respond(Response(500, b""))
        else:
            self._task = task if self._job is job else None

    def _respond(self, job: _Job, response: Response) -> None:
        if self._job is not job:
            return  # it was answered before
        self._job = self._task = None
        self._since = self._loop.time()
        if not self._transport.is_closing():
            self._answer(job, response)

    def _answer(self, job: _Job, response: Response) -> None:
        ends = job.ends or (self._is_stopping and not self._jobs)
        is_head = job.request is not None and job.request.method == "HEAD"
        self._transport.write(written(response, job.version, ends=ends, is_head=is_head))
        if not ends:
            self._go_on()
        elif job.lingers:
            self._loop.call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()
