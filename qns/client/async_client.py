"""AsyncClient: the same as Client, for programs that run an event loop.

async with AsyncClient("http://127.0.0.1:8701/", "maria") as client:
    async with client.deliveries("bad-names") as deliveries:
        async for delivered in deliveries:
            print(delivered.fields)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from qns.cbr.event import Event
from qns.client.address import Address, PeerUnreachable
from qns.client.calls import LONGEST_WAIT_S, Call, delivered, new_id, schema_of
from qns.client.cursor import Cursor
from qns.client.delivered import Delivered
from qns.client.patience import Patience
from qns.client.publication import publication
from qns.d2q.schema import Schema
from qns.errors import DocumentError, QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    ListSubscriptions,
    Ok,
    Pause,
    Published,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.soap.typed_event import TypedPublish

T = TypeVar("T", bound=Answer)


class AsyncClient:
    """One user of one peer, for any number of tasks. `Client` tells what the methods do."""

    def __init__(
        self,
        peer: str,
        owner: str,
        *,
        schema: Schema | str | None = None,
        token: str = "",
        timeout_s: float = 30.0,
        patience_s: float = 60.0,
    ) -> None:
        self.address = Address.of(peer)
        self.owner = owner
        self.schema = schema_of(schema)
        self.token = token
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    def sibling(self, *, patience_s: float) -> AsyncClient:
        """The same user at the same peer, to be closed on its own."""
        return AsyncClient(
            self.address.base,
            self.owner,
            schema=self.schema,
            token=self.token,
            timeout_s=self.timeout_s,
            patience_s=patience_s,
        )

    async def subscribe(
        self, text: str, *, id: str = "", group: str = "", lifetime_s: float = inf
    ) -> Subscribed:
        request = Subscribe(self.owner, text, id or new_id(), group, lifetime_s)
        return await self._ask(request, Subscribed)

    async def unsubscribe(self, id: str) -> Unsubscribed:
        return await self._ask(Unsubscribe(self.owner, id), Unsubscribed)

    async def renew(self, id: str, *, lifetime_s: float = inf) -> Subscribed:
        return await self._ask(Renew(self.owner, id, lifetime_s), Subscribed)

    async def pause(self, id: str) -> None:
        await self._ask(Pause(self.owner, id), Ok)

    async def resume(self, id: str) -> None:
        await self._ask(Resume(self.owner, id), Ok)

    async def subscriptions(self) -> tuple[SubscriptionInfo, ...]:
        return (await self._ask(ListSubscriptions(self.owner), Subscriptions)).subscriptions

    async def publish(self, event: Mapping[str, Any] | Event) -> Published:
        return await self._ask(publication(event, self.owner, self.schema), Published)

    async def pull(
        self, id: str, *, after: int = 0, limit: int = 100, wait_s: float = 0.0
    ) -> list[Delivered]:
        request = Read(self.owner, id, after, limit)
        return delivered(await self._ask(request, Deliveries, wait_s=wait_s), self.schema)

    async def acknowledge(self, id: str, upto: int) -> None:
        await self._ask(AcknowledgeDeliveries(self.owner, id, upto), Ok)

    def deliveries(self, id: str, *, after: int = 0, limit: int = 100) -> AsyncDeliveryStream:
        return AsyncDeliveryStream(self, id, after, limit)

    async def _ask(
        self, request: Request | TypedPublish, kind: type[T], *, wait_s: float = 0.0
    ) -> T:
        call = Call.of(request, wait_s=wait_s, token=self.token)
        patience = Patience(monotonic() + self.patience_s)
        while True:
            try:
                answer = await self._try(call)
            except QnsError as problem:
                if self._is_closed or not call.may_follow(problem):
                    raise
                pause_s = patience.next_pause_s(monotonic())
                if pause_s is None:
                    raise
            else:
                assert isinstance(answer, kind)
                return answer
            await asyncio.sleep(pause_s)

    async def _try(self, call: Call) -> Answer:
        if self._is_closed:
            raise PeerUnreachable("this client is closed", remedy="make a new one")
        if self._session is None:  # made inside the loop that uses it
            connector = aiohttp.TCPConnector(limit=0)  # a pull holds its connection for long
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        timeout = aiohttp.ClientTimeout(total=self.timeout_s + call.wait_s)
        try:
            async with self._session.post(
                self.address.url,
                data=call.body,
                headers=call.headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                body = await response.read()
        except aiohttp.ClientConnectorError as problem:
            raise self.address.unreachable(problem, may_be_done=False) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise self.address.unreachable(problem, may_be_done=True) from None
        return call.answer(self.address, response.status, response.content_type, body)


class AsyncDeliveryStream:
    """The deliveries of one subscription, in order, each once: see DeliveryStream."""

    def __init__(self, client: AsyncClient, id: str, after: int = 0, limit: int = 100) -> None:
        self.id = id
        self._client = client
        self._limit = limit
        self._cursor = Cursor.after(after, monotonic())

    @property
    def cursor(self) -> int:
        """The number of the last delivery that was handed out."""
        return self._cursor.handed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        while True:
            if (found := await self.take(LONGEST_WAIT_S)) is not None:
                return found

    async def take(self, wait_s: float = 0.0) -> Delivered | None:
        """The next delivery, or None if none comes within so many seconds (at most 60)."""
        self._cursor.consume()
        if self._cursor.wants_check(monotonic()):
            await self._check()
        if self._cursor.owes(monotonic()):
            await self._acknowledge()
        found = self._cursor.take(monotonic())
        if found is None:
            after = self._cursor.consumed
            pulled = await self._client.pull(self.id, after=after, limit=self._limit, wait_s=wait_s)
            self._cursor.pulled(pulled, monotonic())
            found = self._cursor.take(monotonic())
        return found

    async def acknowledge(self) -> None:
        """You are done with what you got so far; when this returns, the peer knows."""
        self._cursor.consume()
        await self._acknowledge()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.acknowledge()
            return
        with suppress(QnsError):  # the error that ends the block matters more
            await self._acknowledge()

    async def _check(self) -> None:
        known: dict[str, int] = {}
        with suppress(DocumentError):  # so many subscriptions that the list is too long to read
            known = {each.id: each.delivered for each in await self._client.subscriptions()}
        self._cursor.check(self.id, known.get(self.id), monotonic())

    async def _acknowledge(self) -> None:
        upto = self._cursor.consumed
        if upto > self._cursor.acknowledged:
            await self._client.acknowledge(self.id, upto)
            self._cursor.was_acknowledged(upto, monotonic())
