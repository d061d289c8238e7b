"""Users: subscribe, read, pause, renew, unsubscribe and publish over SOAP under faults.

A request is retried until it is answered. Answered requests are written into the ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random

import aiohttp

from qns.d2q.event_xml import read_event
from qns.errors import Busy, NotAllowed, ValueRefused
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Pause,
    Publish,
    PullDeliveries,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.soap.local_client import read_local, write_local
from tests.soak.ledger import Ledger, Reader, Subscription
from tests.soak.stage import Stage
from tests.soak.workload import OWNER, Workload

_ANSWER_WITHIN_S = 10.0
_UNANSWERED = (aiohttp.ClientError, OSError, TimeoutError, Busy)
_UNKNOWN = ValueRefused
"""The error for a subscription that does not exist."""


class TooLate(Exception):
    """Raised if a request was not answered in time; whether it had an effect is unknown."""


@dataclass(slots=True)
class ActiveSubscription:
    """A subscription that has not been ended."""

    organisation: str
    id: str
    lifetime_s: float
    is_paused: bool = False

    @property
    def who(self) -> Subscription:
        return self.organisation, self.id


@dataclass(slots=True, eq=False)
class Users:
    stage: Stage
    session: aiohttp.ClientSession
    chance: Random
    workload: Workload
    ledger: Ledger = field(default_factory=Ledger)
    idle: dict[str, list[ActiveSubscription]] = field(default_factory=dict)
    """By organisation: subscriptions that no task uses at the moment."""
    requests: int = 0
    retries: int = 0
    is_over: bool = False
    """True if users must stop after what they are doing."""

    # --- requests ---------------------------------------------------------------------------------

    async def ask(
        self, organisation: str, request: Request, *, wait_s: float = 0.0, until: float = inf
    ) -> Answer:
        """Sends a request until the peer answers; raises TooLate after `until`."""
        url = self.stage.peers[organisation].url + "local"
        body, action = write_local(request, wait_s=wait_s, schema=self.stage.federation.schema)
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        while True:
            self.requests += 1
            try:
                async with self.session.post(
                    url,
                    data=body,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=_ANSWER_WITHIN_S + wait_s),
                ) as response:
                    return read_local(request, response.status, await response.read())
            except _UNANSWERED:
                self.retries += 1
                if time.time() > until:
                    raise TooLate from None
                await asyncio.sleep(self.chance.uniform(0.05, 0.4))

    # --- publishers -------------------------------------------------------------------------------

    async def publish(self, source: str, published: Callable[[str], None]) -> None:
        """Publishes in bursts until it is over; calls `published` for each accepted event."""
        while not self.is_over:
            await asyncio.sleep(self.chance.expovariate(2.0))
            if self.chance.random() < 0.05:
                await self.publish_many(source, 40)
            for _ in range(self.chance.choice((1, 1, 2, 4))):
                await self.publish_one(source)
                published(source)

    async def publish_many(self, source: str, number: int) -> None:
        """Publishes events concurrently."""
        await asyncio.gather(*(self.publish_one(source) for _ in range(number)))

    async def publish_one(self, source: str) -> None:
        event = self.workload.event(source)
        key = source, event.id
        self.ledger.events[key] = event
        with suppress(NotAllowed):  # its organisation has ceased to host the class
            await self.ask(source, Publish(event))
            self.ledger.published.add(key)

    # --- subscribers ------------------------------------------------------------------------------

    async def subscribe(self, organisation: str) -> None:
        """Uses one subscription after the other until it is over; the last one is kept."""
        while not self.is_over:
            idle = self.idle.setdefault(organisation, [])
            one = idle.pop() if idle else await self._subscribe(organisation)
            if one is not None and await self._use(one):
                idle.append(one)

    async def _subscribe(self, organisation: str) -> ActiveSubscription | None:
        request = self.workload.subscription(organisation)
        one = ActiveSubscription(organisation, request.id, request.lifetime_s)
        self.ledger.readers[one.who] = Reader(request.group)
        if not await self._begin(one, request):
            return None
        self.ledger.subscribed.add(one.who)
        return one

    async def _begin(self, one: ActiveSubscription, request: Subscribe) -> bool:
        until = time.time() + 0.7 * request.lifetime_s
        try:
            await self.ask(one.organisation, request, until=until)
        except TooLate:  # it may have begun and expired; a retry would begin it again
            self.ledger.readers[one.who].is_over = True
            return False
        return True

    async def _use(self, one: ActiveSubscription) -> bool:
        """Uses a subscription for a while; True if it still exists then."""
        leaves_at = time.time() + self.chance.uniform(3.0, 30.0)
        try:
            while not self.is_over:
                if time.time() > leaves_at:
                    await self._unsubscribe(one)
                    return False
                await self._act(one)
        except _UNKNOWN as problem:
            self._gone(one, problem)
            return False
        return True

    async def _act(self, one: ActiveSubscription) -> None:
        chance = self.chance.random()
        if one.is_paused or chance < 0.05:
            await self._pause_or_resume(one)
            await asyncio.sleep(self.chance.uniform(0.2, 2.0))
        elif chance < 0.10:
            await self.ask(one.organisation, Renew(OWNER, one.id, one.lifetime_s))
        else:
            await self.read(one, wait_s=1.0)

    async def _pause_or_resume(self, one: ActiveSubscription) -> None:
        request = Resume(OWNER, one.id) if one.is_paused else Pause(OWNER, one.id)
        try:
            await self.ask(one.organisation, request)
        except NotAllowed as problem:  # an earlier attempt succeeded without an answer
            if "already" not in problem.problem:
                raise
        one.is_paused = not one.is_paused

    async def read(self, one: ActiveSubscription, *, wait_s: float = 0.0) -> int:
        """Reads new deliveries and usually acknowledges them; returns their number."""
        reader, chance = self.ledger.readers[one.who], self.chance.random()
        forgot = chance < 0.1  # the reader forgets its cursor and reads unacknowledged ones again
        request = PullDeliveries(
            OWNER, one.id, 0 if forgot else reader.cursor, 3 if chance > 0.8 else 100
        )
        answer = await self.ask(one.organisation, request, wait_s=0.0 if forgot else wait_s)
        assert isinstance(answer, Deliveries)
        for delivery in answer.deliveries:
            event = read_event(delivery.xml, self.stage.federation.schema)
            self.ledger.read(one.who, delivery, event)
        if answer.deliveries and self.chance.random() < 0.8:
            upto = answer.deliveries[-1].number
            await self.ask(one.organisation, AcknowledgeDeliveries(OWNER, one.id, upto))
            reader.acknowledged = max(reader.acknowledged, upto)
        return len(answer.deliveries)

    async def _unsubscribe(self, one: ActiveSubscription) -> None:
        self.ledger.readers[one.who].is_over = True
        with suppress(_UNKNOWN):  # an earlier attempt succeeded without an answer
            await self.ask(one.organisation, Unsubscribe(OWNER, one.id))
        self.ledger.unsubscribed.add(one.who)

    def _gone(self, one: ActiveSubscription, problem: Exception) -> None:
        """Marks a subscription as over, and as lost unless it can have expired."""
        self.ledger.readers[one.who].is_over = True
        if one.lifetime_s == inf:
            self.ledger.wrong.append(f"lost: subscription {one.who}: {problem}")

    # --- at the end -------------------------------------------------------------------------------

    async def resume_all(self) -> None:
        for one in self._all_idle():
            if one.is_paused:
                with suppress(_UNKNOWN):
                    await self._pause_or_resume(one)

    async def read_all(self) -> None:
        """Reads all remaining deliveries."""
        for one in self._all_idle():
            reader = self.ledger.readers[one.who]
            try:
                while await self._read_rest(one, reader):
                    pass
            except _UNKNOWN as problem:
                self._gone(one, problem)

    async def _read_rest(self, one: ActiveSubscription, reader: Reader) -> bool:
        before = reader.cursor
        await self.read(one)
        answer = await self.ask(one.organisation, PullDeliveries(OWNER, one.id, reader.cursor, 1))
        assert isinstance(answer, Deliveries)
        return bool(answer.deliveries) or reader.cursor > before

    def _all_idle(self) -> list[ActiveSubscription]:
        return [one for many in self.idle.values() for one in many]
