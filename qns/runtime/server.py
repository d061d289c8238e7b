"""Server: receives HTTP requests, passes each to the driver and sends the answer.

`POST /peer` and `POST /local` are the two SOAP ports; `GET /health` and `GET /metrics` report the
state of the peer. Connections, bytes and the time to receive a body are bounded. With mutual TLS,
other peers have a listener of their own, which serves nothing but the port Peer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from qns.edl.messages import Done, Envelope, Fault, SendAll
from qns.errors import Busy, NotAllowed, shorten
from qns.iil.requests import Deliveries, PullDeliveries
from qns.iil.requests import Request as LocalRequest
from qns.peer.inputs import Output, Received
from qns.peer.turn_queue import OnAnswer
from qns.runtime.addresses import host_names
from qns.runtime.admission import Admission
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.http import Handle, HttpServer, Respond
from qns.runtime.http_messages import Request, Response
from qns.runtime.logs import log_event
from qns.runtime.metrics import Metrics
from qns.runtime.peer_tls import PeerTls
from qns.runtime.posted_call import PostedCall
from qns.runtime.quotas import Quotas
from qns.runtime.sequencer import Sequencer
from qns.runtime.tls_listener import TlsListener
from qns.runtime.traffic import Traffic
from qns.soap.endpoint import Call, Endpoint
from qns.soap.hardening import LOCAL, PEER
from qns.soap.parts import Assembly, PartedChange, ViewPart
from qns.soap.shapes import Port

BODY_WITHIN_S: Final = 15.0
MOST_CONNECTIONS: Final = 2_000
MOST_PULLS: Final = 1_000
"""The most pulls that wait as long as they ask; further ones wait for a moment only."""
CROWDED_WAIT_S: Final = 1.0
"""How long further pulls wait. An answer at once would make their clients ask in a loop."""
LONGEST_WAIT_S: Final = 60.0
STOP_WITHIN_S: Final = 10.0

_NOT_FOUND: Final = "there is nothing here: use POST /peer, POST /local or GET /peer?wsdl"
_PEER_IS_ELSEWHERE: Final = "the port Peer is served only over mutual TLS, at another address"
_MEMBERS_ONLY: Final = "there is nothing here for other peers: use POST /peer or GET /health"
_NOT_NAMED: Final = "a request of no member was refused"
_PORTS: Final = {"/peer": Port.PEER, "/local": Port.LOCAL}
_MOST_BYTES: Final = {"/peer": PEER.bytes, "/local": LOCAL.bytes}


@dataclass(slots=True, eq=False)
class Server:
    driver: Driver
    endpoint: Callable[[], Endpoint]
    """Returns the endpoint for the schema in force."""
    health: Health
    metrics: Metrics
    traffic: Traffic
    most_connections: int = MOST_CONNECTIONS
    most_pulls: int = MOST_PULLS
    crowded_wait_s: float = CROWDED_WAIT_S
    body_within_s: float = BODY_WITHIN_S
    parts: Assembly = field(default_factory=Assembly)
    admission: Admission = field(init=False)
    sequencer: Sequencer = field(default_factory=Sequencer)
    quotas: Quotas = field(default_factory=Quotas)
    tls: PeerTls | None = None
    """Who may call the port Peer; None if it is served in plain HTTP beside the port Local."""
    _http: HttpServer | None = None
    _members: HttpServer | None = None
    """Serves the members over TLS."""
    _url: str = ""
    _names: frozenset[str] = frozenset()
    """The host names of the address on which this server listens."""

    def __post_init__(self) -> None:
        self.admission = Admission(self.most_connections)

    async def start(self, sock: socket.socket, url: str, tls: TlsListener | None = None) -> None:
        """Listens on a bound socket; `url` is its address for clients."""
        self._url = url
        self._names = host_names(url)
        is_own_host = self._is_own_host if tls is None else _is_any_host
        self._http = self._new_http(self._handle, is_own_host)
        await self._http.start(sock, tls)

    async def start_members(self, sock: socket.socket) -> None:
        """Listens for other peers, over mutual TLS, on a bound socket."""
        assert self.tls is not None
        self._members = members = self._new_http(self._handle_member, _is_any_host)
        members.identify = self.tls.identify
        self.tls.connections = lambda: members.connections
        await members.start(sock, TlsListener(self.tls.server_context))

    def _new_http(self, handle: Handle, is_own_host: Callable[[str], bool]) -> HttpServer:
        most = self.most_connections if self.tls is None else max(1, self.most_connections // 2)
        return HttpServer(
            handle,
            lambda path: _MOST_BYTES.get(path, 0),
            most,
            self.body_within_s,
            is_own_host,
        )

    async def stop(self) -> None:
        """Accepts no more connections and answers pending requests."""
        listeners = [each for each in (self._http, self._members) if each is not None]
        if listeners:
            stopping = [asyncio.create_task(each.stop(STOP_WITHIN_S)) for each in listeners]
            await asyncio.sleep(0)  # from now on, pulls are answered immediately
            self.driver.waiters.wake_all()
            await asyncio.gather(*stopping)

    def _is_own_host(self, host: str) -> bool:
        status = self.driver.status
        if host in self._names or not status.is_member:
            return host in self._names
        return host in host_names(status.federation[status.organisation].endpoint)

    # --- HTTP -------------------------------------------------------------------------------------

    def _handle(self, request: Request, respond: Respond) -> asyncio.Future[None] | None:
        path = request.path
        port = _PORTS.get(path)
        if port is not None and request.method == "POST":
            if port is Port.PEER and self.tls is not None:
                respond(_text(404, _PEER_IS_ELSEWHERE))
                return None
            return PostedCall(self, port, self.endpoint(), respond, request).begin()
        respond(self._other(path, port, request))
        return None

    def _handle_member(self, request: Request, respond: Respond) -> asyncio.Future[None] | None:
        """Handles a request on the listener of the members."""
        assert self.tls is not None
        member = self.tls.organisation(request.identity)
        if not member:
            log_event(logging.WARNING, _NOT_NAMED, address=request.address)
            respond(_text(403, f"{_NOT_NAMED}: its certificate is not in force"))
        elif request.path == "/peer" and request.method == "POST":
            call = PostedCall(self, Port.PEER, self.endpoint(), respond, request, member)
            return self.sequencer.run(member, call.begin_in_turn)
        elif request.path == "/peer":
            respond(self._other(request.path, Port.PEER, request))
        elif request.path == "/health" and request.method == "GET":
            body = json.dumps(self.health.for_members(), ensure_ascii=False).encode()
            respond(Response(200, body, "application/json; charset=utf-8"))
        else:
            respond(_text(404, _MEMBERS_ONLY))
        return None

    def _other(self, path: str, port: Port | None, request: Request) -> Response:
        if request.method == "GET":
            return self._get(path, port, request)
        if port is None and path not in ("/health", "/metrics"):
            return _text(404, _NOT_FOUND)
        return _text(405, "send SOAP requests with POST", Allow="GET, POST" if port else "GET")

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
            wsdl = self.endpoint().wsdl(self._url_for(request), first=port)
            return Response(200, wsdl, "text/xml; charset=utf-8")
        if port is not None:
            return _text(405, "send SOAP requests with POST; the contract is at ?wsdl")
        return _text(404, _NOT_FOUND)

    def _url_for(self, request: Request) -> str:
        """Returns the address at which this client calls: a member at that of the document."""
        status = self.driver.status
        if request.identity is None or not status.is_member:
            return self._url
        return f"{status.federation[status.organisation].endpoint.rstrip('/')}/"

    # --- SOAP -------------------------------------------------------------------------------------

    async def deliveries(self, call: Call) -> Output:
        """Answers a pull as soon as there is a delivery or its time is over."""
        assert isinstance(call.input, PullDeliveries)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(call.wait_s, LONGEST_WAIT_S)
        with self.driver.waiters.of(call.input.id) as waiter:
            while True:
                output = await self.driver.submit(call.input)
                if not isinstance(output, Deliveries) or output.deliveries:
                    return output
                left = deadline - loop.time()
                if left <= 0 or self._is_closing:
                    return output
                if len(self.driver.waiters) > self.most_pulls:
                    left = min(left, self.crowded_wait_s)
                if not await waiter.wait(left):
                    return output

    def ask(
        self, input: Received | LocalRequest, on_answer: OnAnswer, member: str | None = None
    ) -> None:
        """Passes an input to the driver; keeps the parts of a large change until it is complete.

        `member` is the organisation whose connection it is, if that is known: it may speak only
        for itself. Nothing is kept of an input in the name of another.
        """
        if isinstance(input, Received) and member not in (None, input.envelope.sender):
            on_answer(self._forged(input.envelope.sender, member))
            return
        body = input.envelope.body if isinstance(input, Received) else None
        if not isinstance(input, Received) or not isinstance(body, ViewPart | PartedChange):
            self.driver.ask(input, on_answer)
            return
        status, sender = self.driver.status, input.envelope.sender
        if sender not in status.federation:
            on_answer(NotAllowed(f"{shorten(sender)} is not a member of the federation"))
            return
        reply: Done | SendAll = Done()
        try:
            if isinstance(body, ViewPart):
                self.parts.keep(sender, body)
            else:
                change = self.parts.whole(sender, body)
                if change is not None:
                    self.driver.ask(Received(input.envelope._replace(body=change)), on_answer)
                    return
                reply = SendAll()
        except Busy as problem:
            on_answer(problem)
            return
        on_answer(Envelope(status.organisation, status.federation.version, (), reply))

    def _forged(self, sender: str, member: str | None) -> Envelope:
        status = self.driver.status
        reason = (
            f"the connection is that of {member}, and the message says that {shorten(sender)} "
            f"sends it: the peer of {member} may speak only for {member}"
        )
        fault = Fault(reason, permanent=True)
        return Envelope(status.organisation, status.federation.version, (), fault)

    @property
    def _is_closing(self) -> bool:
        return self._http is None or not self._http.is_serving


def _is_any_host(_: str) -> bool:
    """Over TLS the certificate decides whether a client has found the right server."""
    return True


def _text(status: int, words: str, **headers: str) -> Response:
    return Response(status, f"{words}\n".encode(), more=tuple(headers.items()))
