"""The driver: turns on a real SQLite store, gathered, committed, and begun anew after a failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from qns.cbr.index import DictionaryIndex
from qns.edl.layer import Send
from qns.edl.messages import Envelope, Hello
from qns.errors import Busy, NameNotKnown, StoreFull
from qns.federation.document_xml import write_federation
from qns.gateway import Gateway
from qns.iil.requests import (
    Deliveries,
    ListSubscriptions,
    Published,
    Read,
    Subscribe,
    Subscribed,
    Subscriptions,
)
from qns.inputs import Input, Output
from qns.recovery import Settings
from qns.runtime.driver import MOST_PER_TURN, Driver
from qns.store.lineage import FileLineage
from qns.store.sqlite import SqliteStore
from qns.tables import DELIVERIES, Transaction
from qns.tuning import Tuning
from tests.runtime.peers import PATIENCE_S, agencies_on_loopback, change

FEDERATION = agencies_on_loopback()


@dataclass
class Stage:
    """A driver on a real store, with other peers that never answer."""

    folder: Path
    commits: list[float] = field(default_factory=list)
    sent: list[Send] = field(default_factory=list)
    silent: bool = False
    """Whether others keep us waiting, instead of hanging up at once."""
    _over: list[tuple[Send, asyncio.Event]] = field(default_factory=list)
    store: SqliteStore | None = None
    opened: int = 0
    refusals: int = 0
    """How often the store cannot be opened."""
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        self.driver = Driver(
            self.open, self.exchange, committed=self.commits.append, most_waiting=500, pause_s=0.01
        )

    def open(self, now: float) -> Gateway:
        self.opened += 1
        if self.store is not None:
            self.store.close()
        if self.opened > 1 and self.refusals:
            self.refusals -= 1
            raise StoreFull("no room left on the disk")
        self.store = SqliteStore(self.folder / "inps.db", low_water_bytes=0)
        return Gateway.open(
            Settings("INPS", Tuning(), DictionaryIndex),
            self.store,
            FileLineage(self.folder / "lineage"),
            document=write_federation(FEDERATION),
            nonce=f"start{self.opened}",
            now=now,
        )

    async def exchange(self, send: Send) -> Envelope | None:
        self.sent.append(send)
        over = asyncio.Event()
        self._over.append((send, over))
        if self.silent:
            await over.wait()
        return None

    def hang_up(self, sends: list[Send]) -> None:
        """On these, without an answer."""
        for send, over in self._over:
            if any(each is send for each in sends):
                over.set()

    async def ask(self, input: Input) -> Output:
        return await self.driver.submit(input)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def staged(folder: Path, **settings: Any) -> AsyncIterator[Stage]:
    stage = Stage(folder, **settings)
    await stage.driver.start()
    try:
        yield stage
    finally:
        await stage.driver.stop()
        assert stage.store is not None
        stage.store.close()


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await story

    asyncio.run(bounded())


SUBSCRIBE = Subscribe("anna", "Enterprise/Holder", id="S1")


def test_what_gathers_during_a_commit_shares_the_next(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            before = len(stage.commits)
            answers = [stage.driver.submit(change(f"e{number}")) for number in range(400)]
            published = await asyncio.gather(*answers)
            assert [each.id for each in published if isinstance(each, Published)] == [
                f"e{number}" for number in range(400)
            ]
            commits = len(stage.commits) - before
            assert 400 / MOST_PER_TURN <= commits < 40

    run(story())


def test_an_answer_is_given_only_after_the_commit(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            assert isinstance(await stage.ask(SUBSCRIBE), Subscribed)
            await stage.ask(change("e1"))
            assert stage.store is not None
            copy = tmp_path / "copy.db"
            stage.store.backup(copy)
        with SqliteStore(copy) as found:
            assert [row.event for row in found.rows(DELIVERIES)] == ["e1"]

    run(story())


def test_reading_needs_no_commit(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            await stage.ask(change("e1"))
            before = len(stage.commits)
            read = await stage.ask(Read("anna", "S1"))
            assert isinstance(read, Deliveries)
            assert [each.event for each in read.deliveries] == ["e1"]
            assert len(stage.commits) == before

    run(story())


def test_an_error_is_an_answer_and_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = await asyncio.gather(
                stage.ask(Read("anna", "nothing")), stage.ask(change("e1"))
            )
            assert isinstance(answers[0], NameNotKnown)
            assert isinstance(answers[1], Published)

    run(story())


def test_beyond_the_bound_the_peer_is_busy_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = [stage.driver.submit(change(f"e{number}")) for number in range(520)]
            refused = [each for each in answers if each.done()]
            assert len(refused) == 20
            assert all(isinstance(each.result(), Busy) for each in refused)
            taken = await asyncio.gather(*answers[:500])
            assert all(isinstance(each, Published) for each in taken)

    run(story())


def test_a_failed_commit_is_told_and_the_peer_begins_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path, refusals=2) as stage:
            await stage.ask(SUBSCRIBE)
            epoch = stage.driver.peer.identity.epoch
            assert stage.store is not None
            stage.store.fail_next_commit()
            answers = await asyncio.gather(*(stage.ask(change(f"e{n}")) for n in range(5)))
            assert all(isinstance(each, StoreFull) for each in answers)
            assert stage.driver.trouble is not None
            assert "no room left" in stage.driver.trouble.reason
            meanwhile = await stage.ask(change("e9"))
            assert isinstance(meanwhile, Busy)
            assert "no room left" in str(meanwhile)

            await stage.until(lambda: stage.driver.trouble is None)
            assert stage.driver.commit_failures == 1
            assert stage.driver.peer.identity.epoch > epoch
            assert not stage.driver.gateway.restored
            again = await stage.ask(change("e0"))
            assert isinstance(again, Published)
            assert not again.again
            read = await stage.ask(Read("anna", "S1"))
            assert isinstance(read, Deliveries)
            assert [each.event for each in read.deliveries] == ["e0"]

    run(story())


def test_what_happened_while_the_disk_was_busy_is_lost_with_a_commit_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody hears of it, and it can be asked for again."""

    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            disk = threading.Event()

            def prepare(store: SqliteStore, transaction: Transaction) -> Callable[[], None]:
                def fail() -> None:
                    disk.wait(PATIENCE_S)
                    raise StoreFull("no room left on the disk")

                return fail

            monkeypatch.setattr(SqliteStore, "prepare", prepare)
            first = stage.driver.submit(change("e1"))
            await stage.until(lambda: "e1" in events_of(stage))
            more = [stage.driver.submit(change(f"e{number}")) for number in range(2, 5)]
            reading = stage.driver.submit(Read("anna", "S1"))
            await stage.until(lambda: "e2" in events_of(stage))
            assert not first.done()
            assert not any(each.done() for each in more)
            assert not reading.done()  # it would tell of deliveries that may never have been
            disk.set()
            answers = await asyncio.gather(first, *more, reading)
            assert all(isinstance(each, StoreFull) for each in answers)
            monkeypatch.undo()
            await stage.until(lambda: stage.driver.trouble is None)
            assert events_of(stage) == set()
            assert stage.driver.commit_failures == 1

    run(story())


def slow_disk(
    monkeypatch: pytest.MonkeyPatch, prepared: Callable[[], None] = lambda: None
) -> threading.Event:
    """No commit is over before the event; each is told of when its rows are about to be written."""
    disk, original = threading.Event(), SqliteStore.prepare

    def prepare(store: SqliteStore, transaction: Transaction) -> Callable[[], None]:
        prepared()
        make_last = original(store, transaction)

        def slowly() -> None:
            disk.wait(PATIENCE_S)
            make_last()

        return slowly

    monkeypatch.setattr(SqliteStore, "prepare", prepare)
    return disk


def test_while_the_disk_is_busy_the_peer_works_ahead_and_commits_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            disk = slow_disk(monkeypatch)
            before = len(stage.commits)
            answers: list[asyncio.Future[Output]] = []
            for last in (0, 5, 12):
                answers += [
                    stage.driver.submit(change(f"e{number}"))
                    for number in range(len(answers), last + 1)
                ]
                await stage.until(lambda id=f"e{last}": id in events_of(stage))  # type: ignore[misc]
            disk.set()
            published = await asyncio.gather(*answers)
            assert all(isinstance(each, Published) for each in published)
            assert len(stage.commits) - before == 2

    run(story())


def test_the_next_commit_begins_before_everybody_is_told_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            told: list[str] = []
            disk = slow_disk(monkeypatch, lambda: told.append("commit"))
            for id in ("e0", "e1", "e2", "e3", "e4"):
                stage.driver.ask(change(id), lambda _, id=id: told.append(id))  # type: ignore[misc]
                if id == "e0":
                    await stage.until(lambda: told == ["commit"])
            await stage.until(lambda: "e4" in events_of(stage))
            disk.set()
            await stage.until(lambda: len(told) == 7)
            assert told == ["commit", "commit", "e0", "e1", "e2", "e3", "e4"]

    run(story())


def test_who_waits_for_an_answer_and_fails_stops_nobody(tmp_path: Path) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a mistake")

    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            stage.driver.ask(change("e0"), fail)
            assert isinstance(await stage.ask(change("e1")), Published)
            assert events_of(stage) == {"e0", "e1"}
            assert stage.driver.commit_failures == 0

    run(story())


def test_who_waits_for_a_turn_that_the_disk_refuses_hears_it_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            told: list[object] = []
            assert stage.store is not None
            stage.store.fail_next_commit()
            for nth in range(3):
                stage.driver.ask(change(f"e{nth}"), told.append)
            await stage.until(lambda: len(told) >= 3 and stage.driver.trouble is None)
            assert [type(each) for each in told] == [StoreFull] * 3

    run(story())


def events_of(stage: Stage) -> set[str]:
    """Those that the peer holds in memory."""
    return {known.event.id for known in stage.driver.peer.log}


def test_the_answer_to_a_request_of_an_earlier_life_is_nobodys(tmp_path: Path) -> None:
    """Request numbers begin anew with each life: an old answer would be taken for a new one."""

    async def story() -> None:
        async with staged(tmp_path, silent=True) as stage:
            await stage.until(lambda: len(stage.sent) == 2)
            assert stage.store is not None
            stage.store.fail_next_commit()
            assert isinstance(await stage.ask(SUBSCRIBE), StoreFull)
            await stage.until(lambda: len(stage.sent) == 4)
            old, new = stage.sent[:2], stage.sent[2:]
            assert {each.number for each in old} == {each.number for each in new}
            stage.hang_up(old)
            await stage.ask(Read("anna", "nothing"))
            assert all(map(stage.driver.peer.edl.membership.reachable, ("INAIL", "CoC")))
            stage.hang_up(new)
            await stage.until(lambda: not stage.driver.peer.edl.membership.reachable("CoC"))

    run(story())


def test_the_start_says_hello_and_silence_is_noticed(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.until(lambda: len(stage.sent) >= 2)
            greeted = {each.to for each in stage.sent if isinstance(each.envelope.body, Hello)}
            assert greeted == {"INAIL", "CoC"}
            await stage.until(lambda: not stage.driver.peer.edl.membership.reachable("CoC"))

    run(story())


def test_the_peer_wakes_up_by_itself(tmp_path: Path) -> None:
    """A link without an answer is tried again after its pause, though nothing comes in."""

    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.until(lambda: len([s for s in stage.sent if s.to == "CoC"]) >= 2)

    run(story())


def test_who_waits_for_deliveries_is_woken_by_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            with stage.driver.deliveries_of("S1") as news:
                waiting = asyncio.create_task(news.wait(PATIENCE_S))
                await stage.ask(change("e1"))
                assert await waiting
                assert not await news.wait(0.0)
            with stage.driver.deliveries_of("S1") as news:
                waiting = asyncio.create_task(news.wait(PATIENCE_S))
                await asyncio.sleep(0)
                stage.driver.wake_waiters()
                assert await waiting

    run(story())


def test_an_unexpected_error_ends_the_turn_but_not_the_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            with pytest.raises(KeyError):
                await stage.ask("nonsense")  # type: ignore[arg-type]
            await stage.until(lambda: stage.driver.trouble is None)
            assert isinstance(await stage.ask(change("e1")), Published)

    run(story())
    assert any(record.exc_info for record in caplog.records)


def test_the_stop_answers_what_waits(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = [stage.driver.submit(change(f"e{number}")) for number in range(300)]
            await stage.driver.stop()
            assert all(isinstance(each.result(), Published) for each in answers)
            assert isinstance(await stage.driver.submit(change("late")), Busy)

    run(story())


def test_the_clock_never_goes_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 90.0, 110.0])
    monkeypatch.setattr("qns.runtime.driver.time", lambda: next(times))
    stage = Stage(tmp_path)
    first, second, third = (stage.driver.now() for _ in range(3))
    assert first == 100.0
    assert 100.0 <= second < 110.0
    assert third == 110.0


def test_a_pause_while_the_clocks_are_read_does_not_put_it_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two peers of one machine agree, however busy that is: a history is gathered by time."""
    at, pauses = [1_000.0], iter([0.5, 0.5])

    def read() -> float:
        at[0] += next(pauses, 0.0)  # somebody else has the processor, after either of the two
        return at[0]

    monkeypatch.setattr("qns.runtime.driver.time", read)
    monkeypatch.setattr("qns.runtime.driver.monotonic", read)
    driver = Stage(tmp_path).driver
    for _ in range(5):
        driver.now()
        at[0] += 0.1
        assert driver.now() <= at[0]
    assert driver.now() == at[0]


def test_while_the_disk_is_full_readers_go_on_and_the_store_is_opened_less_and_less(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        stage = Stage(tmp_path)
        driver = stage.driver
        driver.pause_s = 0.2
        await driver.start()
        for nth in range(3):
            assert stage.store is not None
            stage.store.fail_next_commit()
            assert isinstance(await driver.submit(change(f"e{nth}")), StoreFull)
            while driver.trouble is not None:
                await asyncio.sleep(0.01)
            opened = stage.opened
            refused = [await driver.submit(change(f"e{nth}")) for _ in range(5 if nth else 0)]
            assert all(isinstance(each, StoreFull) for each in refused)
            assert isinstance(await driver.submit(ListSubscriptions("ann")), Subscriptions)
            assert stage.opened == opened
            while driver._full_until > monotonic():
                await asyncio.sleep(0.01)
        assert isinstance(await driver.submit(change("e9")), Published)
        assert stage.opened == 4
        await driver.stop()

    asyncio.run(play())
