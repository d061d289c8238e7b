"""One producer as a process on a real disk, and two consumers: one is near, the other goes away."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from benchmarks.soap_federation import free_port, process, wind_event
from benchmarks.soap_load import Connection
from benchmarks.soap_members import Members, Security
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    ChangeSub,
    Done,
    Envelope,
    Hello,
    Notification,
    Notified,
    Notify,
    Outcome,
    Standing,
    SubChanged,
    entry_of,
)
from qns.iil.requests import Publish
from qns.peer.inputs import Received
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import write_local
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port

PRODUCER, NEAR, AWAY = "Met01", "Met02", "Met03"
_WANTED = "only Report/Wind"


class Consumer:
    """Takes every notification for it at once, as a consumer does after its commit."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.port = free_port()
        self.last = 0
        self._early: dict[int, str] = {}
        """Number -> the event, of numbers that came before their predecessors."""
        self.on_event: Callable[[str], None] = lambda _: None
        self._endpoint = endpoint
        self._runner: web.AppRunner | None = None

    async def arrive(self) -> None:
        application = web.Application(client_max_size=2**24)
        application.router.add_post("/peer", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def leave(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @property
    def standing(self) -> Standing:
        return Standing(1, 1, 1, 1, self.last)

    async def _answer(self, request: web.Request) -> web.Response:
        call = self._endpoint.decode(Port.PEER, request.headers, await request.read())
        assert isinstance(call.input, Received)
        body = call.input.envelope.body
        reply: Any = Done()
        if isinstance(body, Notify):
            reply = Notified(tuple(map(self._take, body.items)), self.standing)
        elif isinstance(body, Hello):
            reply = Hello(1, 1, 0, (), 1, 0, "", self.standing, 1, _digest())
        elif isinstance(body, ChangeSub):
            reply = SubChanged(body.version, 1, 0, 1, ())
        found = self._endpoint.reply(call, Envelope(self.name, 1, (), reply))
        return web.Response(body=found.body, status=found.status, content_type="text/xml")

    def _take(self, item: Any) -> Outcome:
        entry = entry_of(item)
        if entry.receiver != self.name:  # this consumer does not relay
            return Outcome(False, f"this is for {entry.receiver}", permanent=True)
        assert isinstance(item, Notification), item
        if entry.number > self.last:
            self._early[entry.number] = item.event
        while (event := self._early.pop(self.last + 1, None)) is not None:
            self.last += 1
            self.on_event(event)
        return Outcome(True)


class AwayFederation:
    """The producer and its consumers, with what is measured of the producer."""

    async def __aenter__(self) -> Self:
        endpoint = Endpoint(WEATHER)
        self.near, self.away = Consumer(NEAR, endpoint), Consumer(AWAY, endpoint)
        self._folder = tempfile.TemporaryDirectory(prefix="qns-bench-")
        ports = {NEAR: self.near.port, AWAY: self.away.port, PRODUCER: 9}
        members = Members.make(Path(self._folder.name), Security.PLAIN, ports)
        federation = members.federation(
            members.organisation(name, port) for name, port in ports.items()
        )
        path = members.configuration(PRODUCER, federation, port=0, local=0)
        self._store = path.with_suffix(".db")
        self._process = process("-m", "qns.cli", "peer", "run", str(path))
        self.pid, self.port = await asyncio.to_thread(self._process.__enter__)
        self._reader = EventReader(WEATHER)
        self.published = 0
        for consumer in (self.near, self.away):
            await consumer.arrive()
            await self._subscribe(consumer)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for consumer in (self.near, self.away):
            await consumer.leave()
        await asyncio.to_thread(self._process.__exit__, None, None, None)
        self._folder.cleanup()

    async def _subscribe(self, consumer: Consumer) -> None:
        texts = [_element()]
        change = ChangeSub(1, 1, 1, None, 1, tuple(texts), (), _digest())
        connection = Connection(self.port, "/peer")
        await connection.call(*write_call(Envelope(consumer.name, 1, (), change)))
        await connection.close()

    def body(self) -> tuple[str, bytes, str]:
        """Returns the id and the call that publishes the next event."""
        self.published += 1
        id = f"e{self.published:07}"
        event = self._reader.from_fields(wind_event(id, PRODUCER))
        return id, *write_local(Publish(event), schema=WEATHER)

    async def publish(self, number: int, connections: int) -> float:
        """Publishes as fast as the producer accepts; returns the seconds."""
        began, left = time.perf_counter(), iter(range(number))

        async def work() -> None:
            connection = Connection(self.port, "/local")
            for _ in left:
                _, *call = self.body()
                await connection.call(*call)
            await connection.close()

        await asyncio.gather(*(work() for _ in range(connections)))
        return time.perf_counter() - began

    def is_caught_up(self) -> bool:
        return self.near.last == self.away.last == self.published

    def is_near_caught_up(self) -> bool:
        return self.near.last == self.published

    def memory_bytes(self) -> int:
        """Returns the resident memory of the producer."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4_096

    def log_bytes(self) -> int:
        """Returns the size of the write-ahead log of the store."""
        return self._store.with_name(f"{self._store.name}-wal").stat().st_size

    def disk_bytes(self) -> int:
        """Returns the size of the store with its log."""
        files = self._store.parent.glob(f"{self._store.name}*")
        return sum(each.stat().st_size for each in files)


def _element() -> str:
    return write_subscription(parse_subscription(_WANTED, WEATHER), WEATHER).decode()


def _digest() -> str:
    return str(Digest([_element()]))
