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
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Final
from urllib.parse import parse_qsl

from qns.edl.messages import Done, Envelope, Fault, SendAll
from qns.errors import Busy, NotAllowed, QnsError, StoreFailed, shorten
from qns.iil.requests import Deliveries, Read
from qns.inputs import Output, Received
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.http import HttpServer, Request, Response
from qns.runtime.logs import LOG, tell, tell_exception
from qns.runtime.metrics import Metrics
from qns.runtime.traffic import RECEIVED, Traffic
from qns.soap.endpoint import Call, Endpoint, SoapRefusal
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

    async def _handle(self, request: Request) -> Response:
        path = request.path
        port = _PORTS.get(path)
        if port is not None and request.method == "POST":
            return await self._post(port, request)
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

    async def _post(self, port: Port, request: Request) -> Response:
        started = perf_counter()
        endpoint = self.endpoint()
        call, body, outcome, problem = None, request.body, "failure", ""
        try:
            if request.flaw is not None:
                reply, outcome, problem = endpoint.failure(None), "refused", request.flaw.problem
                reply = reply._replace(status=request.flaw.status)
            else:
                call = endpoint.decode(port, request.headers, body)
                output = await self._output(call)
                assert output is not None, "an answer to a request"
                reply = endpoint.reply(call, output)
                outcome = _outcome(output)
                problem = output.problem if isinstance(output, QnsError) else ""
        except SoapRefusal as refusal:
            reply, outcome, problem = refusal.reply, "refused", refusal.problem
        except Exception:
            tell_exception("a request failed", operation=call.operation if call else "")
            reply = endpoint.failure(call)
        operation = call.operation if call is not None else "unreadable"
        self.traffic.count(port.value, operation, RECEIVED, outcome, len(body), len(reply.body))
        if outcome == "refused":
            tell(logging.WARNING, "a request was refused", port=port.value, operation=operation)
        if LOG.isEnabledFor(logging.DEBUG):
            self._log(call, operation, outcome, problem, started)
        return Response(*reply)

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
        return self._http is None or not self._http.is_serving

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


def _outcome(output: Output) -> str:
    if isinstance(output, QnsError):
        return "busy" if isinstance(output, Busy | StoreFailed) else "fault"
    return "fault" if isinstance(output, Envelope) and isinstance(output.body, Fault) else "ok"


def _text(status: int, words: str, **headers: str) -> Response:
    return Response(status, f"{words}\n".encode(), more=tuple(headers.items()))
