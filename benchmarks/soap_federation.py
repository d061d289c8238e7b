"""One peer process, and simulated producers that send to it and answer it."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from aiohttp import web

from benchmarks.soap_load import Connection
from benchmarks.soap_members import FEDERATION, Members, Security
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import WEATHER
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Done,
    Entry,
    Envelope,
    Gossip,
    Hello,
    Item,
    Notification,
    Notify,
    Standing,
    SubChanged,
)
from qns.edl.seals import Sealer
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Subscribe,
    Subscriptions,
)
from qns.peer.inputs import Received
from qns.runtime.addresses import peer_url
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import read_local, write_local
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port
from qns.soap.ws_signing import CallSigner

PRODUCERS = 32
"""Each has one call under way: enough to keep a server busy while it waits for its disk."""
RECEIVER = "Receiver"


@contextmanager
def process(*command: str) -> Iterator[tuple[int, int]]:
    """Runs a server in a process of its own; yields its process id and port once it listens.

    Of a peer with two ports, it is that for users.
    """
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout is not None
        try:
            line = running.stdout.readline()
            port = int(re.findall(r"127\.0\.0\.1:(\d+)", line)[-1])
            yield running.pid, port
        finally:
            running.terminate()


@contextmanager
def served(kind: str) -> Iterator[tuple[int, int]]:
    with process("-m", "benchmarks.soap_servers", kind) as found:
        yield found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wind_event(id: str, source: str) -> dict[str, Any]:
    """Returns the fields of an event that every subscription of the benchmark matches."""
    return {
        "id": id,
        "class": "Report/Wind",
        "source": source,
        "data": {"Region": "north", "Speed": 30},
        "quality": {"Speed.accuracy": 0.5, "Speed.currency": 0.2},
        "previous": {"Speed.accuracy": 0.7},
    }


class Federated:
    """The peer under load. Its producers answer the requests that a peer sends until it is at
    rest. With TLS, every producer has a certificate and an address of its own."""

    def __init__(self, security: Security = Security.PLAIN) -> None:
        self.security = security
        self.tls: dict[str, ssl.SSLContext] = {}
        """The contexts of the calls of producers to the peer; empty without TLS."""
        self.names = [f"Met{nth:02}" for nth in range(1, PRODUCERS + 1)]
        self.sent = dict.fromkeys(self.names, 0)
        self.endpoint = Endpoint(WEATHER)
        self.reader = EventReader(WEATHER)
        self._kept: dict[int, dict[str, list[bytes]]] = {}
        self._sealers: dict[str, Sealer] = {}
        self._signers: dict[str, CallSigner] = {}

    async def __aenter__(self) -> Self:
        producers = web.Application()
        producers.router.add_post("/{name}/peer", self._answer)
        self._runner = web.AppRunner(producers, access_log=None)
        await self._runner.setup()
        self._folder = tempfile.TemporaryDirectory(prefix="qns-bench-")
        path = await self._configure(Path(self._folder.name))
        self._process = process("-m", "qns.cli", "peer", "run", str(path))
        self.pid, self.port = await asyncio.to_thread(self._process.__enter__)
        await self._subscribe()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._process.__exit__, None, None, None)
        await self._runner.cleanup()
        self._folder.cleanup()

    async def _configure(self, folder: Path) -> Path:
        members = Members.make(folder, self.security, (*self.names, RECEIVER))
        self.peer_port = free_port()
        organisations = [members.organisation(RECEIVER, self.peer_port)]
        for nth, name in enumerate(self.names):
            if nth == 0 or self.security is not Security.PLAIN:
                tls = members.server(name, [RECEIVER])
                await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls).start()
            port = self._runner.addresses[-1][1]
            organisations.append(members.organisation(name, port, f"{name}/"))
            context, sealer = members.client(name, RECEIVER), members.sealer(name)
            if context is not None:
                self.tls[name] = context
            if sealer is not None:
                self._sealers[name] = sealer
            signer = members.call_signer(name)
            if signer is not None:
                self._signers[name] = signer
        federation = members.federation(organisations)
        self._address = peer_url(federation[RECEIVER].endpoint)
        return members.configuration(RECEIVER, federation, self.peer_port, local=0)

    async def _subscribe(self) -> None:
        local = Connection(self.port, "/local")
        request = Subscribe("bench", "Report", id="all")
        read_local(request, 200, await local.call(*write_local(request)))
        while (await self._listed(local)).subscriptions[0].pending:
            await asyncio.sleep(0.05)
        await local.close()

    async def delivered(self) -> int:
        local = Connection(self.port, "/local")
        found = (await self._listed(local)).subscriptions[0].delivered
        await local.close()
        return found

    async def read(self) -> None:
        """Acknowledges all deliveries, so that the user's queue does not become full."""
        local = Connection(self.port, "/local")
        upto = (await self._listed(local)).subscriptions[0].delivered
        request = AcknowledgeDeliveries("bench", "all", upto)
        read_local(request, 200, await local.call(*write_local(request)))
        await local.close()

    async def _listed(self, local: Connection) -> Subscriptions:
        request = ListSubscriptions("bench")
        answer = read_local(request, 200, await local.call(*write_local(request)))
        assert isinstance(answer, Subscriptions)
        return answer

    async def _answer(self, request: web.Request) -> web.Response:
        call = self.endpoint.decode(Port.PEER, request.headers, await request.read())
        assert isinstance(call.input, Received)
        body = call.input.envelope.body
        if isinstance(body, Hello):
            reply: Any = Hello(1, 1, 0, (), 1, 0, "", Standing(1, 1, 1, 1, 0), 0, "")
        elif isinstance(body, ChangeSub):
            reply = SubChanged(body.version, 1, 0, 1, ())
        elif isinstance(body, Acknowledge | Gossip):
            reply = Done()
        else:
            raise TypeError(f"unexpected {type(body).__name__}")
        envelope = Envelope(request.match_info["name"], 1, (), reply)
        found = self.endpoint.reply(call, envelope)
        return web.Response(body=found.body, status=found.status, content_type="text/xml")

    def calls(self, number: int, per_call: int, *, fresh: bool) -> dict[str, list[bytes]]:
        """Returns the envelopes of each producer.

        `fresh` ones continue the streams, which QNS checks; other servers get the same ones again.
        """
        each = max(1, number // per_call // PRODUCERS)
        if not fresh and per_call in self._kept:
            return {name: bodies[:each] for name, bodies in self._kept[per_call].items()}
        sent = self.sent if fresh else dict.fromkeys(self.names, 0)
        calls = {
            name: [self._notify(sent, name, per_call) for _ in range(each)] for name in self.names
        }
        if not fresh:
            self._kept[per_call] = calls
        return calls

    def _notify(self, sent: dict[str, int], name: str, per_call: int) -> bytes:
        """Returns one call; what it has was sealed as one commit."""
        items: list[Item] = []
        for _ in range(per_call):
            sent[name] += 1
            number = sent[name]
            fields = {**wind_event(f"{name}-{number}", name), "published": "2026-01-31T12:00:00Z"}
            xml = write_event(self.reader.from_fields(fields), WEATHER)
            entry = Entry(RECEIVER, 1, 1, number, 1)
            items.append(Notification(name, 1, 1, number, fields["id"], xml, 0.0, entry, (name,)))
        sealer = self._sealers.get(name)
        if sealer is not None:
            sealed = sealer.seal(FEDERATION, [(each, RECEIVER) for each in items])
            items = [each for each in sealed if isinstance(each, Notification)]
        envelope = Envelope(name, 1, (), Notify(tuple(items)))
        signer = self._signers.get(name)
        if signer is None:
            return write_call(envelope)[0]
        signed = partial(signer.envelope, to=self._address, now=time.time())
        return write_call(
            envelope, f"urn:uuid:{uuid4()}", lambda content, id: signed(content, message_id=id)
        )[0]
