"""A delivery that the client acknowledges and nobody has seen is lost."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import pytest

from qns.cli.screen import Screen
from qns.cli.watch import _deliveries
from qns.client import Client, Collection, Delivered, PeerUnreachable
from qns.client.async_client import AsyncClient
from qns.client.async_collection import AsyncCollection
from qns.client.scope import Lease
from qns.iil.requests import Deliveries, Delivery, Ok, Subscribed, Subscriptions


class Away(Client):
    """A peer with three deliveries, which is away at the named request once."""

    def __init__(self, away: str) -> None:
        super().__init__("http://127.0.0.1:1/", "ann", patience_s=0.0)
        self.away = away
        self.acknowledged = 0

    def _ask(self, request: Any, kind: Any, *, wait_s: float = 0.0) -> Any:
        name = type(request).__name__
        if name == self.away:
            self.away = ""
            raise PeerUnreachable("no answer")
        if name == "Read":
            left = [n for n in (1, 2, 3) if n > max(request.after, self.acknowledged)]
            return Deliveries(tuple(Delivery(n, "INPS", f"e{n}", b"") for n in left))
        if name == "AcknowledgeDeliveries":
            self.acknowledged = request.upto
            return Ok()
        if name == "ListSubscriptions":
            return Subscriptions(())
        return Subscribed(request.id, (), 0.0)


def test_get_returns_what_it_took_though_the_acknowledgement_failed() -> None:
    client = Away("AcknowledgeDeliveries")
    holders = Collection(client, "Enterprise/Holder")
    got = [found.id for _ in range(3) if (found := holders.get(timeout_s=1)) is not None]
    assert got == ["e1", "e2", "e3"]


def test_watch_shows_what_it_took_though_the_renewal_failed() -> None:
    client = Away("Renew")
    lease = Lease(renew_at=0.0)
    seen = islice(_deliveries(client, client.deliveries("s"), Screen(as_json=True), lease), 2)
    assert [each.id for each in seen] == ["e1", "e2"]


def test_an_asynchronous_get_that_is_given_up_loses_nothing() -> None:
    class Slow(AsyncClient):
        inner = Away("")
        asked = False

        async def _ask(self, request: Any, kind: Any, *, wait_s: float = 0.0) -> Any:
            if type(request).__name__ == "Read" and not self.asked:
                self.asked = True  # only the first takes long
                await asyncio.sleep(60)
            return self.inner._ask(request, kind)

    async def run() -> list[Delivered | None]:
        holders = AsyncCollection(Slow("http://127.0.0.1:1/", "ann"), "Enterprise/Holder")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(holders.get(), 0.1)  # e1 is on its way
        return [await holders.get(), await holders.get()]

    assert [each.id for each in asyncio.run(run()) if each] == ["e1", "e2"]
