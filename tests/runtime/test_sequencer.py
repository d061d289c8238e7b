"""Sequencer: one request of a member at a time, and nothing is lost when a client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from qns.runtime.sequencer import Begin, Sequencer


class Stage:
    def __init__(self) -> None:
        self.sequencer = Sequencer()
        self.begun: list[str] = []
        self.ends: dict[str, Callable[[], None]] = {}

    def run(self, member: str, name: str) -> asyncio.Future[None] | None:
        return self.sequencer.run(member, self._begin(name))

    def _begin(self, name: str) -> Begin:
        def begin(on_end: Callable[[], None]) -> None:
            self.begun.append(name)
            self.ends[name] = on_end

        return begin

    async def end(self, name: str) -> None:
        self.ends[name]()
        for _ in range(3):
            await asyncio.sleep(0)


def test_requests_of_a_member_begin_one_after_the_other_in_order() -> None:
    async def story() -> None:
        stage = Stage()
        assert stage.run("A", "a1") is None
        waiting = [stage.run("A", name) for name in ("a2", "a3")]
        assert None not in waiting
        await asyncio.sleep(0)
        assert stage.begun == ["a1"]
        await stage.end("a1")
        assert stage.begun == ["a1", "a2"]
        await stage.end("a2")
        await stage.end("a3")
        assert stage.begun == ["a1", "a2", "a3"]
        assert not stage.sequencer._waiting

    asyncio.run(story())


def test_members_do_not_wait_for_each_other() -> None:
    async def story() -> None:
        stage = Stage()
        stage.run("A", "a1")
        assert stage.run("B", "b1") is None
        assert stage.begun == ["a1", "b1"]

    asyncio.run(story())


def test_request_that_is_answered_at_once_leaves_nothing() -> None:
    async def story() -> None:
        stage = Stage()
        assert stage.sequencer.run("A", lambda on_end: on_end()) is None
        assert not stage.sequencer._waiting

    asyncio.run(story())


def test_request_begins_that_came_just_before_the_other_ended() -> None:
    async def story() -> None:
        stage = Stage()
        stage.run("A", "a1")
        stage.run("A", "a2")
        await stage.end("a1")
        assert stage.begun == ["a1", "a2"]
        await stage.end("a2")
        assert not stage.sequencer._waiting

    asyncio.run(story())


def test_request_whose_client_disconnects_is_dropped_and_the_next_one_begins() -> None:
    async def story() -> None:
        stage = Stage()
        stage.run("A", "a1")
        gone = [stage.run("A", name) for name in ("a2", "a3")]
        stage.run("A", "a4")
        for each in gone:
            assert each is not None
            each.cancel()
        await stage.end("a1")
        assert stage.begun == ["a1", "a4"]
        await stage.end("a4")
        assert not stage.sequencer._waiting

    asyncio.run(story())


def test_client_that_disconnects_just_when_its_turn_has_come_delays_nobody() -> None:
    async def story() -> None:
        stage = Stage()
        stage.run("A", "a1")
        gone = stage.run("A", "a2")
        stage.run("A", "a3")
        await asyncio.sleep(0)
        stage.ends["a1"]()
        assert gone is not None
        gone.cancel()
        await asyncio.sleep(0.01)
        await stage.end("a2")  # it has begun, and its answer goes nowhere
        await stage.end("a3")
        assert stage.begun == ["a1", "a2", "a3"]
        assert not stage.sequencer._waiting

    asyncio.run(story())
