"""Tests of the collections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest

from qns.client import AsyncClient, AsyncCollection, Client, Collection, Delivered
from qns.client.scope import Scope
from qns.errors import LanguageError
from tests.client.peers import holder
from tests.client.test_client import marked


def company(id: str, mark: str) -> dict[str, Any]:
    fields = {"class": "Enterprise", "quality": {}, "data": {"Code": mark}}
    return {**holder(f"{id}-{mark}"), **fields}


@pytest.fixture
def companies(client: Client, mark: str) -> Iterator[Collection]:
    """The companies with one code. Holders, a class below, have the same code."""
    with Collection(client, f"Enterprise where Code = '{mark}'") as made:
        yield made


def below(id: str, mark: str) -> dict[str, Any]:
    return {**marked(id, mark), "data": {"Enterprise.Code": mark}}


def test_get_returns_added_events(companies: Collection, mark: str) -> None:
    assert companies.get(timeout_s=0) is None
    companies.add(company("e1", mark))
    companies.add(company("e2", mark))
    found = companies.get()
    assert found is not None
    assert found.id == f"e1-{mark}"
    assert next(iter(companies)).id == f"e2-{mark}"
    assert companies.get(timeout_s=0) is None


def test_contains_concerns_the_class_and_contains_all_also_the_classes_below(
    companies: Collection, mark: str
) -> None:
    exactly: Queue[Delivered] = Queue()
    everything: Queue[Delivered] = Queue()
    companies.contains(exactly.put)
    companies.contains_all(everything.put)
    companies.add(company("e1", mark))
    companies.add(below("e2", mark))
    companies.add(company("e3", mark))
    assert [exactly.get(timeout=30).id for _ in range(2)] == [f"e1-{mark}", f"e3-{mark}"]
    assert [everything.get(timeout=30).id for _ in range(3)] == [
        *(f"e1-{mark}", f"e2-{mark}", f"e3-{mark}")
    ]


def test_late_callback_gets_events_that_are_still_available(
    companies: Collection, mark: str
) -> None:
    companies.add(company("gone", mark))
    companies.add({**company("kept", mark), "available": "INF"})
    found: Queue[Delivered] = Queue()
    companies.contains(found.put)
    companies.add(company("new", mark))
    assert [found.get(timeout=30).id for _ in range(2)] == [f"kept-{mark}", f"new-{mark}"]


def test_one_of_three_members_removes_each_event(peer: str, owner: str, mark: str) -> None:
    with Client(peer, owner) as client:
        collections = [Collection(client, f"Enterprise where Code = '{mark}'") for _ in range(3)]
        taken: Queue[tuple[int, str]] = Queue()

        def taker(member: int) -> Callable[[Delivered], None]:
            return lambda delivered: taken.put((member, delivered.id))

        for member, collection in enumerate(collections):
            collection.remove(taker(member))
        for number in range(30):
            collections[0].add(company(str(number), mark))
        found = [taken.get(timeout=30) for _ in range(30)]
        assert sorted(id for _, id in found) == sorted(f"{number}-{mark}" for number in range(30))
        assert {member for member, _ in found} == {0, 1, 2}
        collections[0].close()
        for number in range(30, 40):
            collections[1].add(company(str(number), mark))
        found = [taken.get(timeout=30) for _ in range(10)]
        assert {id for _, id in found} == {f"{number}-{mark}" for number in range(30, 40)}
        assert {member for member, _ in found} == {1, 2}
        for collection in collections[1:]:
            collection.close()
        assert taken.empty()
        assert client.subscriptions() == ()


def test_removed_event_is_not_removed_again_after_its_member_has_left(
    peer: str, owner: str, mark: str
) -> None:
    with Client(peer, owner) as client:
        first, second = (Collection(client, f"Enterprise where Code = '{mark}'") for _ in "12")
        taken: Queue[str] = Queue()
        first.remove(lambda delivered: taken.put(delivered.id))
        first.add(company("e1", mark))
        assert taken.get(timeout=30) == f"e1-{mark}"
        second.remove(lambda delivered: taken.put(delivered.id))
        first.close()
        second.add(company("e2", mark))
        assert taken.get(timeout=30) == f"e2-{mark}"
        second.close()


def test_collection_unsubscribes_at_the_end_of_its_block(client: Client) -> None:
    with Collection(client, "Enterprise") as companies:
        companies.get(timeout_s=0)
        companies.contains(print)
        companies.contains_all(print)
        companies.remove(print)
        assert len(client.subscriptions()) == 4
    assert client.subscriptions() == ()


def test_error_of_a_callback_is_raised_at_the_next_use(client: Client, mark: str) -> None:
    class Wrong(Exception):
        pass

    called: Queue[str] = Queue()

    def fail(delivered: Delivered) -> None:
        called.put(delivered.id)
        raise Wrong

    companies = Collection(client, f"Enterprise where Code = '{mark}'")
    companies.contains(fail)
    companies.add(company("e1", mark))
    called.get(timeout=30)
    with pytest.raises(Wrong):
        companies.close()
    assert called.empty()
    assert client.subscriptions() == ()


@pytest.mark.parametrize("text", ["only Enterprise", "<Enterprise, _, _>", "", "ONLY x", "3"])
def test_text_of_a_collection_must_begin_with_its_class(text: str) -> None:
    with pytest.raises(LanguageError, match="its class first"):
        Scope(text)


def test_class_name_may_begin_with_only() -> None:
    assert Scope("Only_Child").exactly == "only Only_Child"


def test_async_collection_has_the_methods_of_collection(peer: str, owner: str, mark: str) -> None:
    async def story() -> None:
        async with AsyncClient(peer, owner) as client:
            text = f"Enterprise where Code = '{mark}'"
            exactly: asyncio.Queue[str] = asyncio.Queue()
            everything: asyncio.Queue[str] = asyncio.Queue()
            removed: asyncio.Queue[str] = asyncio.Queue()

            async def put_later(delivered: Delivered) -> None:
                await everything.put(delivered.id)

            async with AsyncCollection(client, text) as companies:
                assert await companies.get(timeout_s=0) is None
                await companies.contains(lambda delivered: exactly.put_nowait(delivered.id))
                await companies.contains_all(put_later)
                for _ in range(3):
                    await companies.remove(lambda delivered: removed.put_nowait(delivered.id))
                await companies.add(company("e1", mark))
                await companies.add(below("e2", mark))
                await companies.add(company("e3", mark))
                wanted = [f"e1-{mark}", f"e3-{mark}"]
                async with asyncio.timeout(30):
                    assert [await exactly.get() for _ in range(2)] == wanted
                    assert sorted([await removed.get() for _ in range(2)]) == wanted
                    assert [await everything.get() for _ in range(3)] == [
                        *(f"e1-{mark}", f"e2-{mark}", f"e3-{mark}")
                    ]
                    found = await companies.get()
                    assert found is not None
                    assert found.id == f"e1-{mark}"
                    async for again in companies:
                        assert again.id == f"e3-{mark}"
                        break
                assert len(await client.subscriptions()) == 6
            assert removed.empty()
            assert await client.subscriptions() == ()

    asyncio.run(story())


def test_error_of_an_awaited_callback_is_raised_at_the_next_use(
    peer: str, owner: str, mark: str
) -> None:
    async def fail(delivered: Delivered) -> None:
        raise ZeroDivisionError(delivered.id)

    async def story() -> None:
        async with AsyncClient(peer, owner) as client:
            companies = AsyncCollection(client, f"Enterprise where Code = '{mark}'")
            await companies.contains(fail)
            await companies.add(company("e1", mark))
            with pytest.raises(ZeroDivisionError):
                async with asyncio.timeout(30):
                    await companies.get()
            with pytest.raises(ZeroDivisionError):
                await companies.close()
            assert await client.subscriptions() == ()

    asyncio.run(story())
