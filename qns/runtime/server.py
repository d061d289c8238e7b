"""Server: the HTTP side of a peer. Takes requests in, gives each to the driver, answers.

`POST /peer` and `POST /local` are the two SOAP ports, `GET /health` and `GET /metrics` tell how the
peer is. Everything is bounded: connections, bytes, the time that a body may take to arrive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import lru_cache
from time import perf_counter, time
from typing import Final, cast

from aiohttp import HttpVersion11, web
from aiohttp.http import SERVER_SOFTWARE
from aiohttp.http_exceptions import HttpProcessingError

from qns.edl.messages import Done, Envelope, Fault, SendAll
from qns.errors import Busy, NotAllowed, QnsError, StoreFailed, shorten
from qns.iil.requests import Deliveries, Read
from qns.inputs import Output, Received
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.logs import LOG, tell, tell_exception
from qns.runtime.metrics import Metrics
from qns.runtime.traffic import RECEIVED, Traffic
from qns.soap.endpoint import Call, Endpoint, HttpReply, SoapRefusal
from qns.soap.hardening import LOCAL, PEER
from qns.soap.parts import Assembly, PartedChange, ViewPart
from qns.soap.shapes import Port

BODY_WITHIN_S: Final = 15.0
MOST_CONNECTIONS: Final = 2_000
MOST_PULLS: Final = 1_000
"""That wait for deliveries at a time; more are answered at once."""
KEPT_S: Final = 75.0
"""More than clients keep an idle connection; a new one has as long for its first request."""
LINGER_S: Final = 2.0
"""How long the rest of a refused body is read, so that the sender sees the answer."""
LONGEST_WAIT_S: Final = 60.0
STOP_WITHIN_S: Final = 10.0

_PORTS: Final = {"/peer": Port.PEER, "/local": Port.LOCAL}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
_QUIET: Final = logging.getLogger("qns.runtime.http")
"""What aiohttp says about malformed requests: no incident of ours."""


@dataclass(slots=True, eq=False)
class Server:
    driver: Driver
    endpoint: Callable[[], Endpoint]
    """For the schema in force."""
    health: Health
    metrics: Metrics
    traffic: Traffic
    most_connections: int = MOST_CONNECTIONS
    most_pulls: int = MOST_PULLS
    body_within_s: float = BODY_WITHIN_S
    parts: Assembly = field(default_factory=Assembly)
    _server: web.Server | None = None
    _listener: asyncio.Server | None = None
    _wsdl: tuple[Endpoint, bytes] | None = field(default=None)
    _url: str = ""

    async def start(self, sock: socket.socket, url: str) -> None:
        """Listens on a bound socket, known to others under this URL."""
        self._url = url
        loop = asyncio.get_running_loop()
        _QUIET.setLevel(logging.CRITICAL)
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # who hangs up waits no longer
            auto_decompress=False,
            keepalive_timeout=KEPT_S,
            lingering_time=LINGER_S,
            access_log=None,
            logger=_QUIET,
        )
        self._listener = await loop.create_server(self._protocol, sock=sock, backlog=512)

    async def stop(self) -> None:
        """No more connections; what is under way is answered."""
        if self._listener is None or self._server is None:
            return
        self._listener.close()
        self.driver.wake_waiters()
        self._server.pre_shutdown()  # idle connections end at once
        await self._server.shutdown(STOP_WITHIN_S)
        await self._listener.wait_closed()

    # --- HTTP -------------------------------------------------------------------------------------

    def _protocol(self) -> asyncio.Protocol:
        assert self._server is not None
        if len(self._server.connections) >= self.most_connections:
            return _TooMany()
        return self._server()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        port = _PORTS.get(path)
        if port is not None and request.method == "POST":
            return await self._post(port, request)
        if request.method == "GET":
            return self._get(path, port, request)
        if port is None and path not in ("/health", "/metrics"):
            return _text(404, "there is nothing here: POST to /peer or /local, GET /peer?wsdl")
        return _text(405, "SOAP requests are sent with POST", Allow="GET, POST" if port else "GET")

    def _get(self, path: str, port: Port | None, request: web.BaseRequest) -> web.Response:
        if path == "/health":
            state = self.health.state()
            status = 503 if state["status"] == "failing" else 200
            body = json.dumps(state, ensure_ascii=False).encode()
            return web.Response(status=status, body=body, content_type="application/json")
        if path == "/metrics":
            body, content_type = self.metrics.page()
            return web.Response(body=body, headers={"Content-Type": content_type})
        if port is not None and "wsdl" in {name.lower() for name in request.query}:
            return web.Response(
                body=self._served_wsdl(), headers={"Content-Type": "text/xml; charset=utf-8"}
            )
        if port is not None:
            return _text(405, "SOAP requests are sent with POST; the contract is at ?wsdl")
        return _text(404, "there is nothing here: POST to /peer or /local, GET /peer?wsdl")

    def _served_wsdl(self) -> bytes:
        endpoint = self.endpoint()
        if self._wsdl is None or self._wsdl[0] is not endpoint:
            self._wsdl = endpoint, endpoint.wsdl(self._url)
        return self._wsdl[1]

    # --- SOAP -------------------------------------------------------------------------------------

    async def _post(self, port: Port, request: web.BaseRequest) -> web.StreamResponse:
        started = perf_counter()
        endpoint = self.endpoint()
        call, body, outcome, problem = None, b"", "failure", ""
        try:
            body = await self._body(request, PEER.bytes if port is Port.PEER else LOCAL.bytes)
            call = endpoint.decode(port, request.headers, body)
            output = await self._output(call)
            assert output is not None, "an answer to a request"
            reply = endpoint.reply(call, output)
            outcome = _outcome(output)
            problem = output.problem if isinstance(output, QnsError) else ""
        except SoapRefusal as refusal:
            reply, outcome, problem = refusal.reply, "refused", refusal.problem
        except _Unreadable as error:
            reply, outcome, problem = endpoint.failure(None), "refused", str(error)
            reply = reply._replace(status=error.status)
        except Exception:
            tell_exception("a request failed", operation=call.operation if call else "")
            reply = endpoint.failure(call)
        operation = call.operation if call is not None else "unreadable"
        self.traffic.count(port.value, operation, RECEIVED, outcome, len(body), len(reply.body))
        if outcome == "refused":
            tell(logging.WARNING, "a request was refused", port=port.value, operation=operation)
        if LOG.isEnabledFor(logging.DEBUG):
            self._log(call, operation, outcome, problem, started)
        return await _answered(request, reply)

    async def _body(self, request: web.BaseRequest, most: int) -> bytes:
        """All of it; of one that is too long only so much that the endpoint refuses it."""
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0  # the answer itself begins after this
        pieces, size = [], 0
        try:
            if request.content.is_eof():  # it came with its head, as most do
                return request.content.read_nowait()
            async with asyncio.timeout(self.body_within_s):
                while size <= most and (piece := await request.content.readany()):
                    pieces.append(piece)
                    size += len(piece)
        except TimeoutError:
            raise _Unreadable(408, "its body took too long to arrive") from None
        except (web.RequestPayloadError, HttpProcessingError, OSError):
            raise _Unreadable(400, "its body did not arrive whole") from None
        return b"".join(pieces)

    async def _output(self, call: Call) -> Output:
        if isinstance(call.input, Received):
            return await self._answer(call.input.envelope)
        if not call.wait_s or not isinstance(call.input, Read):
            return await self.driver.submit(call.input)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(call.wait_s, LONGEST_WAIT_S)
        with self.driver.deliveries_of(call.input.id) as news:
            while True:
                output = await self.driver.submit(call.input)
                if not isinstance(output, Deliveries) or output.deliveries:
                    return output
                left = deadline - loop.time()
                if left <= 0 or self._is_closing or self.driver.pulls > self.most_pulls:
                    return output
                if not await news.wait(left):
                    return output

    async def _answer(self, envelope: Envelope) -> Output:
        """A request of another peer; the parts of a large one wait here for the rest."""
        body: object = envelope.body
        if not isinstance(body, ViewPart | PartedChange):
            return await self.driver.submit(Received(envelope))
        peer, sender = self.driver.peer, envelope.sender
        if sender not in peer.federation:
            return NotAllowed(f"{shorten(sender)} is not a member of the federation")
        reply: Done | SendAll = Done()
        try:
            if isinstance(body, ViewPart):
                self.parts.keep(sender, body)
            else:
                change = self.parts.whole(sender, body)
                if change is not None:
                    return await self.driver.submit(Received(replace(envelope, body=change)))
                reply = SendAll()
        except Busy as problem:
            return problem
        return Envelope(peer.me, peer.federation.version, (), reply)

    @property
    def _is_closing(self) -> bool:
        return self._listener is None or not self._listener.is_serving()

    def _log(
        self, call: Call | None, operation: str, outcome: str, problem: str, started: float
    ) -> None:
        received = call.input if call is not None else None
        sender = (
            received.envelope.sender
            if isinstance(received, Received)
            else getattr(received, "owner", "")
        )
        tell(
            logging.DEBUG,
            "answered",
            operation=operation,
            message_id=call.message_id if call is not None else "",
            sender=sender,
            outcome=outcome,
            **({"problem": problem} if problem else {}),
            ms=round((perf_counter() - started) * 1000, 3),
        )


class _Unreadable(Exception):
    """A body that did not arrive; answered with this status."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class _TooMany(asyncio.Protocol):
    """A connection beyond the bound is told so and closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.WriteTransport, transport)
        transport.write(_TOO_MANY)
        transport.close()


def _outcome(output: Output) -> str:
    if isinstance(output, QnsError):
        return "busy" if isinstance(output, Busy | StoreFailed) else "fault"
    return "fault" if isinstance(output, Envelope) and isinstance(output.body, Fault) else "ok"


class _Written(web.StreamResponse):
    """What aiohttp is given when the answer is on its way already."""

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        pass

    async def write_eof(self, data: bytes = b"") -> None:
        pass


_WRITTEN: Final = _Written()


async def _answered(request: web.BaseRequest, reply: HttpReply) -> web.StreamResponse:
    if reply.status != 200 or request.version != HttpVersion11 or not request.keep_alive:
        return web.Response(
            status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type}
        )
    # The same as aiohttp makes of a Response, without a dictionary of headers for each.
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {reply.content_type}\r\n"
        f"Content-Length: {len(reply.body)}\r\nDate: {_date(int(time()))}\r\n"
        f"Server: {SERVER_SOFTWARE}\r\n\r\n"
    )
    with suppress(ConnectionError):  # nobody is there any longer
        await request.writer.write(head.encode() + reply.body)
    return _WRITTEN


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def _text(status: int, words: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=f"{words}\n", headers=headers)
