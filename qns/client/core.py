"""Client core: the requests of one user to one peer, as coroutines over any transport.

`AsyncClient` is this core over aiohttp. `Client` runs the same coroutines with `run_blocking`, over
a transport that blocks. So requests, answers and retries are written once.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from math import inf
from time import monotonic
from typing import Any, Protocol, Self, TypeVar

from qns.cbr.event import Event
from qns.client.address import Address
from qns.client.calls import Call, delivered, is_of_an_older_contract, new_id, schema_of
from qns.client.delivered import Delivered
from qns.client.patience import Patience
from qns.client.publication import publication
from qns.d2q.schema import Schema
from qns.errors import Busy, QnsError
from qns.iil.cursor import Cursor
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    ListSubscriptions,
    Ok,
    Pause,
    Published,
    PullDeliveries,
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
from qns.soap.shapes import CONTRACT
from qns.soap.typed_event import TypedPublish

T = TypeVar("T")
A = TypeVar("A", bound=Answer)


class Transport(Protocol):
    """Brings calls to a peer, and waits. Threads and event loops have one each."""

    @property
    def address(self) -> Address: ...

    @property
    def is_closed(self) -> bool: ...

    def another(self) -> Self:
        """Returns a new transport to the same peer, which is closed on its own."""
        ...

    async def exchange(self, call: Call, timeout_s: float) -> Answer:
        """Sends a call once and returns the answer. Raises PeerUnreachable or the peer's fault."""
        ...

    async def pause(self, seconds: float) -> bool:
        """Waits. Returns True if the transport was closed and the call must not be repeated."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end without an event loop. Its transport must block."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("a coroutine over a blocking transport was suspended")


class ClientCore:
    """One user of one peer."""

    def __init__(
        self,
        transport: Transport,
        owner: str,
        *,
        schema: Schema | str | None = None,
        token: str = "",
        timeout_s: float = 30.0,
        patience_s: float = 60.0,
    ) -> None:
        self.owner = owner
        self.schema = schema_of(schema)
        self.token = token
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self._transport = transport
        self._contract = CONTRACT

    @property
    def address(self) -> Address:
        return self._transport.address

    # --- subscriptions ----------------------------------------------------------------------------

    async def subscribe(
        self, text: str, *, id: str = "", group: str = "", lifetime_s: float = inf
    ) -> Subscribed:
        """See `Client.subscribe`."""
        request = Subscribe(self.owner, text, id or new_id(), group, lifetime_s)
        return await self._ask(request, Subscribed)

    async def unsubscribe(self, id: str) -> Unsubscribed:
        """See `Client.unsubscribe`."""
        return await self._ask(Unsubscribe(self.owner, id), Unsubscribed)

    async def renew(self, id: str, *, lifetime_s: float = inf) -> Subscribed:
        """See `Client.renew`."""
        return await self._ask(Renew(self.owner, id, lifetime_s), Subscribed)

    async def pause(self, id: str) -> None:
        """See `Client.pause`."""
        await self._ask(Pause(self.owner, id), Ok)

    async def resume(self, id: str) -> None:
        """See `Client.resume`."""
        await self._ask(Resume(self.owner, id), Ok)

    async def subscriptions(self) -> tuple[SubscriptionInfo, ...]:
        """See `Client.subscriptions`."""
        return (await self._ask(ListSubscriptions(self.owner), Subscriptions)).subscriptions

    # --- events -----------------------------------------------------------------------------------

    async def publish(self, event: Mapping[str, Any] | Event) -> Published:
        """See `Client.publish`."""
        return await self._ask(publication(event, self.owner, self.schema), Published)

    async def pull(
        self, id: str, *, after: int | str = 0, limit: int = 100, wait_s: float = 0.0
    ) -> list[Delivered]:
        """See `Client.pull`."""
        cursor = Cursor.of(after)
        request = PullDeliveries(self.owner, id, cursor.number, limit, cursor.series)
        return delivered(await self._ask(request, Deliveries, wait_s=wait_s), self.schema)

    async def acknowledge(self, id: str, upto: int | str) -> None:
        """See `Client.acknowledge`."""
        await self._ask(AcknowledgeDeliveries(self.owner, id, *Cursor.of(upto)), Ok)

    # --- asking -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    def sibling(self, *, patience_s: float) -> ClientCore:
        """Returns a client of the same user at the same peer with a transport of its own."""
        return ClientCore(
            self._transport.another(),
            self.owner,
            schema=self.schema,
            token=self.token,
            timeout_s=self.timeout_s,
            patience_s=patience_s,
        )

    async def _ask(
        self, request: Request | TypedPublish, kind: type[A], *, wait_s: float = 0.0
    ) -> A:
        """Sends a request and repeats it, if that is safe, until the patience is over."""
        call = self._call(request, wait_s)
        patience = Patience(monotonic() + self.patience_s)
        while True:
            try:
                answer = await self._transport.exchange(call, self.timeout_s + wait_s)
            except QnsError as problem:
                if call.contract > 1 and is_of_an_older_contract(problem):
                    self._contract = 1
                    call = self._call(request, wait_s)
                    continue
                if self._transport.is_closed or not call.may_follow(problem):
                    raise
                least_s = problem.retry_after_s if isinstance(problem, Busy) else 0.0
                pause_s = patience.next_pause_s(monotonic(), least_s)
                if pause_s is None or await self._transport.pause(pause_s):
                    raise
            else:
                assert isinstance(answer, kind)
                return answer

    def _call(self, request: Request | TypedPublish, wait_s: float) -> Call:
        return Call.of(request, wait_s=wait_s, token=self.token, contract=self._contract)
