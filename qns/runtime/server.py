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
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final
from urllib.parse import parse_qsl

from qns.edl.messages import Done, Envelope, Fault, SendAll
from qns.errors import Busy, NotAllowed, QnsError, StoreFailed, shorten
from qns.iil.requests import Deliveries, Read
from qns.iil.requests import Request as LocalRequest
from qns.inputs import Output, Received
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.http import HttpServer, Respond
from qns.runtime.http_messages import Request, Response
from qns.runtime.logs import LOG, tell, tell_exception
from qns.runtime.metrics import Metrics
from qns.runtime.traffic import RECEIVED, Traffic
from qns.runtime.waiting import Then
from qns.soap.endpoint import Call, Endpoint, HttpReply, SoapRefusal
from qns.soap.hardening import LOCAL, PEER
from qns.soap.parts import Assembly, PartedChange, ViewPart
from qns.soap.shapes import Port

BODY_WITHIN_S: Final = 15.0
MOST_CONNECTIONS: Final = 2_000
MOST_PULLS: Final = 1_000
"""That wait for deliveries at a time; more are answered at once."""
LONGEST_WAIT_S: Final = 60.0
STOP_WITHIN_S: Final = 10.0

_PORTS: Final = {"/peer": Port.PEER, "/local": Port.LOCAL}
_MOST_BYTES: Final = {"/peer": PEER.bytes, "/local": LOCAL.bytes}


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
    _http: HttpServer | None = None
    _wsdl: tuple[Endpoint, bytes] | None = field(default=None)
    _url: str = ""

    async def start(self, sock: socket.socket, url: str) -> None:
        """Listens on a bound socket, known to others under this URL."""
        self._url = url
        self._http = HttpServer(
            self._handle,
            lambda path: _MOST_BYTES.get(path, 0),
            self.most_connections,
            self.body_within_s,
        )
        await self._http.start(sock)

    async def stop(self) -> None:
        """No more connections; what is under way is answered."""
        if self._http is not None:
            stopping = asyncio.create_task(self._http.stop(STOP_WITHIN_S))
            await asyncio.sleep(0)  # from here on pulls are answered at once
            self.driver.wake_waiters()
            await stopping

    # --- HTTP -------------------------------------------------------------------------------------

    def _handle(self, request: Request, respond: Respond) -> asyncio.Task[None] | None:
        path = request.path
        port = _PORTS.get(path)
        if port is not None and request.method == "POST":
            return _Posted(self, port, self.endpoint(), respond, len(request.body)).begin(request)
        respond(self._other(path, port, request))
        return None

    def _other(self, path: str, port: Port | None, request: Request) -> Response:
        if request.method == "GET":
            return self._get(path, port, request)
        if port is None and path not in ("/health", "/metrics"):
            return _text(404, "there is nothing here: POST to /peer or /local, GET /peer?wsdl")
        return _text(405, "SOAP requests are sent with POST", Allow="GET, POST" if port else "GET")

    def _get(self, path: str, port: Port | None, request: Request) -> Response:
        if path == "/health":
            state = self.health.state()
            status = 503 if state["status"] == "failing" else 200
            body = json.dumps(state, ensure_ascii=False).encode()
            return Response(status, body, "application/json; charset=utf-8")
        if path == "/metrics":
            return Response(200, *self.metrics.page())
        asked = parse_qsl(request.query, keep_blank_values=True)
        if port is not None and "wsdl" in {name.lower() for name, _ in asked}:
            return Response(200, self._served_wsdl(), "text/xml; charset=utf-8")
        if port is not None:
            return _text(405, "SOAP requests are sent with POST; the contract is at ?wsdl")
        return _text(404, "there is nothing here: POST to /peer or /local, GET /peer?wsdl")

    def _served_wsdl(self) -> bytes:
        endpoint = self.endpoint()
        if self._wsdl is None or self._wsdl[0] is not endpoint:
            self._wsdl = endpoint, endpoint.wsdl(self._url)
        return self._wsdl[1]

    # --- SOAP -------------------------------------------------------------------------------------

    async def deliveries(self, call: Call) -> Output:
        """The answer to a pull, as soon as there is a delivery or it has waited long enough."""
        assert isinstance(call.input, Read)
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

    def ask(self, input: Received | LocalRequest, then: Then) -> None:
        """Has the peer answer; the parts of another peer's large request wait here for the rest."""
        body = input.envelope.body if isinstance(input, Received) else None
        if not isinstance(input, Received) or not isinstance(body, ViewPart | PartedChange):
            self.driver.ask(input, then)
            return
        peer, sender = self.driver.peer, input.envelope.sender
        if sender not in peer.federation:
            then(NotAllowed(f"{shorten(sender)} is not a member of the federation"))
            return
        reply: Done | SendAll = Done()
        try:
            if isinstance(body, ViewPart):
                self.parts.keep(sender, body)
            else:
                change = self.parts.whole(sender, body)
                if change is not None:
                    self.driver.ask(Received(input.envelope._replace(body=change)), then)
                    return
                reply = SendAll()
        except Busy as problem:
            then(problem)
            return
        then(Envelope(peer.me, peer.federation.version, (), reply))

    @property
    def _is_closing(self) -> bool:
        return self._http is None or not self._http.is_serving


@dataclass(slots=True, eq=False)
class _Posted:
    """A SOAP call, from its bytes to those of its answer."""

    server: Server
    port: Port
    endpoint: Endpoint
    respond: Respond
    bytes_in: int
    started: float = field(default_factory=perf_counter)
    call: Call | None = None

    def begin(self, request: Request) -> asyncio.Task[None] | None:
        if request.flaw is not None:
            reply = self.endpoint.failure(None)._replace(status=request.flaw.status)
            self._answer(reply, "refused", request.flaw.problem)
            return None
        try:
            self.call = call = self.endpoint.decode(self.port, request.headers, request.body)
            if call.wait_s and isinstance(call.input, Read):
                return asyncio.get_running_loop().create_task(self._wait(call))
            self.server.ask(call.input, self.answered)
        except SoapRefusal as refusal:
            self._answer(refusal.reply, "refused", refusal.problem)
        except Exception:
            self._fail()
        return None

    async def _wait(self, call: Call) -> None:
        try:
            self.answered(await self.server.deliveries(call))
        except Exception:
            self._fail()

    def answered(self, output: Output | Exception) -> None:
        if isinstance(output, Exception) and not isinstance(output, QnsError):
            self._answer(self.endpoint.failure(self.call), "failure")  # the driver has told why
            return
        try:
            assert self.call is not None
            assert output is not None, "an answer to a request"
            reply = self.endpoint.reply(self.call, output)
            problem = output.problem if isinstance(output, QnsError) else ""
            self._answer(reply, _outcome(output), problem)
        except Exception:
            self._fail()

    def _fail(self) -> None:
        """Of the exception that is being handled only the log tells more."""
        tell_exception("a request failed", operation=self.call.operation if self.call else "")
        self._answer(self.endpoint.failure(self.call), "failure")

    def _answer(self, reply: HttpReply, outcome: str, problem: str = "") -> None:
        operation = self.call.operation if self.call is not None else "unreadable"
        port = self.port.value
        self.server.traffic.count(
            port, operation, RECEIVED, outcome, self.bytes_in, len(reply.body)
        )
        if outcome == "refused":
            tell(logging.WARNING, "a request was refused", port=port, operation=operation)
        if LOG.isEnabledFor(logging.DEBUG):
            self._log(operation, outcome, problem)
        self.respond(Response(*reply))

    def _log(self, operation: str, outcome: str, problem: str) -> None:
        received = self.call.input if self.call is not None else None
        sender = (
            received.envelope.sender
            if isinstance(received, Received)
            else getattr(received, "owner", "")
        )
        tell(
            logging.DEBUG,
            "answered",
            operation=operation,
            message_id=self.call.message_id if self.call is not None else "",
            sender=sender,
            outcome=outcome,
            **({"problem": problem} if problem else {}),
            ms=round((perf_counter() - self.started) * 1000, 3),
        )


def _outcome(output: Output) -> str:
    if isinstance(output, QnsError):
        return "busy" if isinstance(output, Busy | StoreFailed) else "fault"
    return "fault" if isinstance(output, Envelope) and isinstance(output.body, Fault) else "ok"


def _text(status: int, words: str, **headers: str) -> Response:
    return Response(status, f"{words}\n".encode(), more=tuple(headers.items()))
