"""Tests that no delivery is acknowledged before the caller has got it."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import pytest

from qns.cli.commands.watch import _deliveries
from qns.cli.screen import Screen
from qns.client import AsyncClient, AsyncCollection, Client, Collection, Delivered, PeerUnreachable
from qns.client.address import Address
from qns.client.blocking import BlockingTransport
from qns.client.calls import Call
from qns.client.scope import Lease
from qns.iil.requests import Answer, Deliveries, Delivery, Ok, Subscribed, Subscriptions


class Away(BlockingTransport):
    """A peer with three deliveries, which is unreachable once, at the named request."""

    def __init__(self, away: str) -> None:
        super().__init__(Address.of("http://127.0.0.1:1/"))
        self.away = away
        self.acknowledged = 0

    async def exchange(self, call: Call, timeout_s: float) -> Answer:
        request: Any = call.request
        name = type(request).__name__
        if name == self.away:
            self.away = ""
            raise PeerUnreachable("no answer")
        if name == "PullDeliveries":
            left = [n for n in (1, 2, 3) if n > max(request.after, self.acknowledged)]
            return Deliveries(tuple(Delivery(n, "INPS", f"e{n}", b"") for n in left))
        if name == "AcknowledgeDeliveries":
            self.acknowledged = request.upto
            return Ok()
        if name == "ListSubscriptions":
            return Subscriptions(())
        return Subscribed(request.id, (), 0.0)


def client_of(transport: BlockingTransport) -> Client:
    client = Client("http://127.0.0.1:1/", "ann", patience_s=0.0)
    client._core._transport = transport
    return client


def test_get_returns_every_delivery_though_an_acknowledgement_fails() -> None:
    client = client_of(Away("AcknowledgeDeliveries"))
    holders = Collection(client, "Enterprise/Holder")
    got = [found.id for _ in range(3) if (found := holders.get(timeout_s=1)) is not None]
    assert got == ["e1", "e2", "e3"]


def test_watch_prints_every_delivery_though_a_renewal_fails() -> None:
    client = client_of(Away("Renew"))
    lease = Lease(lifetime_s=0.0)  # always due
    found = _deliveries(client, client.deliveries("s"), Screen(as_json=True), lease)
    seen = islice((each for each in found if each is not None), 2)
    assert [each.id for each in seen] == ["e1", "e2"]


def test_cancelled_asynchronous_get_loses_no_delivery() -> None:
    class Slow(Away):
        asked = False

        async def exchange(self, call: Call, timeout_s: float) -> Answer:
            if type(call.request).__name__ == "PullDeliveries" and not self.asked:
                self.asked = True  # only the first takes long
                await asyncio.sleep(60)
            return await super().exchange(call, timeout_s)

    async def run() -> list[Delivered | None]:
        client = AsyncClient("http://127.0.0.1:1/", "ann")
        client._transport = Slow("")
        holders = AsyncCollection(client, "Enterprise/Holder")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(holders.get(), 0.1)  # e1 is on its way
        return [await holders.get(), await holders.get()]

    assert [each.id for each in asyncio.run(run()) if each] == ["e1", "e2"]
