"""Tests of every method of `AsyncClient` with a real peer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import pytest

from qns.client import AsyncClient, CursorAhead, PeerUnreachable
from qns.errors import NotAllowed, ValueRefused
from qns.iil.cursor import Cursor
from tests.client.peers import LossyWire, PeerProcess, holder
from tests.client.test_client import HOLDERS, marked

Story = Callable[[AsyncClient], Awaitable[None]]


def play(peer: str, owner: str, story: Story, **options: Any) -> None:
    async def run() -> None:
        async with AsyncClient(peer, owner, **options) as client:
            await story(client)

    asyncio.run(run())


def test_every_request_about_a_subscription_works(peer: str, owner: str, mark: str) -> None:
    async def story(client: AsyncClient) -> None:
        made = await client.subscribe(HOLDERS.format(mark), id=f"s-{mark}", lifetime_s=3_600)
        (listed,) = await client.subscriptions()
        assert (listed.id, made.id) == (f"s-{mark}", f"s-{mark}")
        assert (await client.renew(made.id)).expires_at == inf
        assert (await client.publish(marked("e1", mark))).again is False
        assert (await client.publish(marked("e1", mark))).again is True
        (first,) = await client.pull(made.id)
        assert first.event.id == f"e1-{mark}"
        await client.pause(made.id)
        await client.publish(marked("e2", mark))
        assert await client.pull(made.id, after=1) == []
        await client.resume(made.id)
        assert [each.number for each in await client.pull(made.id)] == [1, 2]
        await client.acknowledge(made.id, 1)
        assert (await client.unsubscribe(made.id)).dropped == 1
        assert await client.subscriptions() == ()

    play(peer, owner, story, schema="agencies")


def test_fault_of_the_peer_is_raised(peer: str, owner: str) -> None:
    async def story(client: AsyncClient) -> None:
        with pytest.raises(ValueRefused, match=r"no property 'Nmae' \(did you mean Name"):
            await client.subscribe("Enterprise/Holder where Nmae = 'x'")
        with pytest.raises(NotAllowed, match="cannot publish for CoC"):
            await client.publish({**holder(1), "source": "CoC"})

    play(peer, owner, story)


def test_pull_waits_for_the_first_delivery(peer: str, owner: str, mark: str) -> None:
    async def story(client: AsyncClient) -> None:
        id = (await client.subscribe(HOLDERS.format(mark))).id
        waiting = asyncio.create_task(client.pull(id, wait_s=60))
        await client.publish(marked("e1", mark))
        assert [each.id for each in await waiting] == [f"e1-{mark}"]

    play(peer, owner, story)


def test_deliveries_are_in_order_and_acknowledged(peer: str, owner: str, mark: str) -> None:
    async def story(client: AsyncClient) -> None:
        id = (await client.subscribe(HOLDERS.format(mark))).id
        for number in range(5):
            await client.publish(marked(number, mark))
        seen = []
        async with client.deliveries(id, limit=2) as stream:
            async for delivered in stream:
                seen.append(delivered.id)
                if len(seen) == 3:
                    break
            assert Cursor.of(stream.cursor).number == 3
        assert seen == [f"{number}-{mark}" for number in range(3)]
        assert [each.number for each in await client.pull(id)] == [4, 5]
        with pytest.raises(CursorAhead):
            await client.deliveries(id, after=99).take()

    play(peer, owner, story)


def test_delivery_comes_again_after_an_exception(peer: str, owner: str, mark: str) -> None:
    async def story(client: AsyncClient) -> None:
        id = (await client.subscribe(HOLDERS.format(mark))).id
        for number in range(3):
            await client.publish(marked(number, mark))

        async def read() -> None:
            async with client.deliveries(id) as stream:
                async for delivered in stream:
                    if delivered.number == 2:
                        raise RuntimeError("the second")

        with pytest.raises(RuntimeError, match="the second"):
            await read()
        assert [each.number for each in await client.pull(id)] == [2, 3]

    play(peer, owner, story)


def test_idempotent_requests_are_repeated_after_a_lost_answer(wire: LossyWire, owner: str) -> None:
    async def story(client: AsyncClient) -> None:
        wire.answers_to_lose = 1
        assert (await client.publish(holder(f"lost-{wire.url}"))).again is True
        wire.answers_to_lose = 1
        id = (await client.subscribe("Enterprise")).id
        assert [each.id for each in await client.subscriptions()] == [id]
        wire.answers_to_lose = 1
        with pytest.raises(PeerUnreachable) as raised:
            await client.unsubscribe(id)
        assert raised.value.may_be_done
        assert wire.lost == 3
        assert await client.subscriptions() == ()

    play(wire.url, owner, story)


def test_request_waits_for_a_peer_that_restarts(own_peer: PeerProcess) -> None:
    async def story(client: AsyncClient) -> None:
        id = (await client.subscribe("Enterprise/Holder")).id
        await client.publish(holder("before"))
        own_peer.kill()
        publishing = asyncio.create_task(client.publish(holder("after")))
        await asyncio.to_thread(own_peer.start)
        assert (await publishing).again is False
        assert [each.id for each in await client.pull(id)] == ["before", "after"]

    play(own_peer.url, "maria", story)


def test_unreachable_peer_is_reported_with_a_remedy() -> None:
    async def story(client: AsyncClient) -> None:
        with pytest.raises(PeerUnreachable, match=r"\(start it with qns peer run"):
            await client.subscriptions()
        await client.close()
        with pytest.raises(PeerUnreachable, match="closed"):
            await client.subscriptions()

    play("http://127.0.0.1:1/", "maria", story, patience_s=0)
