"""Deliveries that an operator's limit dropped are declared to every reader, with a real peer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from qns.client import AsyncClient, Client, Collection, DeliveriesDropped, Dropped
from qns.errors import NotAllowed
from qns.iil.requests import PullDeliveries
from qns.soap.local_client import read_local, write_local
from tests.client.peers import PeerProcess, holder, running_peer

LIMITED = "[tuning]\nlongest_queue = 2\n"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    """A peer whose queues hold two deliveries."""
    with running_peer(tmp_path_factory.mktemp("limited"), settings=LIMITED) as process:
        yield process


@pytest.fixture
def reader(limited: PeerProcess, owner: str) -> Iterator[Client]:
    with Client(limited.url, owner) as made:
        yield made


def overflow(client: Client, count: int = 5) -> str:
    """Subscribes and publishes more than the queue holds; returns the subscription's id."""
    id = client.subscribe("Enterprise/Holder").id
    for number in range(1, count + 1):
        client.publish(holder(f"{id}-{number}"))
    return id


def health(peer: PeerProcess) -> dict[str, object]:
    with urlopen(f"{peer.url}health") as answer:
        state: dict[str, object] = json.load(answer)
    return state


def post(url: str, body: bytes) -> tuple[int, bytes]:
    request = Request(url, body, {"Content-Type": "text/xml; charset=utf-8"})
    try:
        with urlopen(request) as answer:
            return answer.status, answer.read()
    except HTTPError as fault:
        return fault.code, fault.read()


def test_pull_declares_dropped_numbers_until_the_reader_continues_after_them(
    reader: Client,
) -> None:
    id = overflow(reader)
    for _ in range(2):
        with pytest.raises(DeliveriesDropped, match=r"deliveries 1 to 3 of subscription") as caught:
            reader.pull(id)
    assert caught.value.dropped == (Dropped(1, 3),)
    assert (caught.value.id, caught.value.last) == (id, 3)
    assert [each.number for each in reader.pull(id, after=caught.value.last)] == [4, 5]
    reader.acknowledge(id, 3)
    assert [each.number for each in reader.pull(id)] == [4, 5]


def test_stream_raises_once_for_dropped_numbers_and_continues_after_them(reader: Client) -> None:
    id = overflow(reader)
    with reader.deliveries(id) as stream:
        with pytest.raises(DeliveriesDropped):
            next(stream)
        assert [next(stream).number, next(stream).number] == [4, 5]
    assert reader.pull(id) == []


def test_loss_that_a_stream_has_raised_is_not_raised_again_after_a_restart(
    reader: Client,
) -> None:
    id = overflow(reader)
    with pytest.raises(DeliveriesDropped), reader.deliveries(id) as stream:
        next(stream)
    with reader.deliveries(id) as again:
        assert next(again).number == 4


def test_reader_that_waits_learns_of_a_loss_while_its_subscription_is_paused(
    reader: Client,
) -> None:
    id = reader.subscribe("Enterprise/Holder").id
    reader.pause(id)
    for number in range(1, 5):
        reader.publish(holder(f"{id}-{number}"))
    with pytest.raises(DeliveriesDropped) as caught:
        reader.pull(id, wait_s=30)
    assert caught.value.dropped == (Dropped(1, 2),)
    reader.resume(id)
    assert [each.number for each in reader.pull(id, after=2)] == [3, 4]


def test_async_stream_raises_once_for_dropped_numbers(limited: PeerProcess, owner: str) -> None:
    with Client(limited.url, owner) as client:
        id = overflow(client)

    async def read() -> list[int]:
        async with AsyncClient(limited.url, owner) as client:
            stream = client.deliveries(id)
            with pytest.raises(DeliveriesDropped):
                await anext(stream)
            return [(await anext(stream)).number, (await anext(stream)).number]

    assert asyncio.run(read()) == [4, 5]


def test_collection_raises_a_loss_at_the_next_get(reader: Client) -> None:
    with Collection(reader, "Enterprise/Holder") as holders:
        assert holders.get(timeout_s=0) is None
        for number in range(1, 4):
            holders.add(holder(f"{reader.owner}-{number}"))
        with pytest.raises(DeliveriesDropped):
            holders.get()
        found = holders.get()
        assert found is not None
        assert found.number == 2


def test_reader_of_the_released_contract_gets_a_fault_that_it_can_read(
    limited: PeerProcess, reader: Client
) -> None:
    id = overflow(reader)
    request = PullDeliveries(reader.owner, id)
    body, _ = write_local(request, contract=1)
    with pytest.raises(NotAllowed, match=r"deliveries 1 to 3 of .* were dropped") as caught:
        read_local(request, *post(f"{limited.url}local", body))
    assert type(caught.value) is NotAllowed, "its schema does not know the ranges"
    later = PullDeliveries(reader.owner, id, after=3)
    answer = read_local(later, *post(f"{limited.url}local", write_local(later, contract=1)[0]))
    assert [each.number for each in answer.deliveries] == [4, 5]  # type: ignore[union-attr]


def test_operator_sees_dropped_deliveries_until_the_reader_acknowledges_them(
    tmp_path: Path,
) -> None:
    peer = PeerProcess(tmp_path, settings=LIMITED)
    try:
        peer.start()
        with Client(peer.url, "an owner") as client:
            id = overflow(client)
            state = health(peer)
            assert state["status"] == "degraded"
            assert state["reasons"] == [
                f"the limit longest_queue has dropped 3 deliveries of subscription {id}: read the "
                f"rest with qns pull {id} --owner 'an owner' --ack, or end it with "
                f"qns unsubscribe {id} --owner 'an owner'"
            ]
            with urlopen(f"{peer.url}metrics") as answer:
                assert b'qns_declared_losses_total{kind="queue"} 3.0' in answer.read()
            (listed,) = client.subscriptions()
            assert (listed.delivered, listed.dropped, listed.waiting) == (5, 3, 2)
            assert peer.log().count("the queue of a subscription is full") == 1
            peer.kill()
            peer.start()
            assert health(peer)["status"] == "degraded"
            client.acknowledge(id, 5)
            assert health(peer)["status"] == "ok"
    finally:
        peer.kill()
