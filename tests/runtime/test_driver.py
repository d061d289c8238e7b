"""The driver: group commits on a SQLite store, failures, wake-ups and stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from qns.edl.merge_subscriptions_table import Digest, ViewState
from qns.edl.messages import ChangeSub, Envelope, Hello, Standing
from qns.edl.requests import Send
from qns.errors import Busy, NameNotKnown, StoreFailed, StoreFull
from qns.iil.requests import (
    Deliveries,
    ListSubscriptions,
    Published,
    PullDeliveries,
    Subscribe,
    Subscribed,
    Subscriptions,
)
from qns.peer.backoff import Backoff
from qns.peer.gateway import Gateway
from qns.peer.inputs import Output
from qns.peer.tables import DELIVERIES
from qns.peer.turn import Transaction
from qns.peer.turn_queue import MOST_PER_TURN
from qns.store.sqlite import SqliteStore
from tests.runtime.driver_stage import Stage, run, staged
from tests.runtime.peers import PATIENCE_S, change

SUBSCRIBE = Subscribe("anna", "Enterprise/Holder", id="S1")


def test_inputs_that_arrive_during_a_commit_share_the_next_one(tmp_path: Path) -> None:
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


def test_answer_is_given_only_after_the_commit(tmp_path: Path) -> None:
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


def test_chore_runs_while_no_turn_and_no_commit_is_under_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            driver = stage.driver
            ran = []

            def chore(gateway: Gateway) -> None:
                assert driver._commit is None
                assert driver._queue.is_idle
                gateway.renew_mark(f"renewed-{len(ran)}")
                ran.append(gateway.peer.identity.nonce)

            asking = [driver.submit(change(f"e{number}")) for number in range(300)]
            await asyncio.gather(*(driver.between_turns(chore) for _ in range(3)))
            assert ran == ["renewed-0", "renewed-1", "renewed-2"]
            answers = await asyncio.gather(*asking)
            assert all(isinstance(each, Published) for each in answers)

            def fail(_: Gateway) -> None:
                raise StoreFailed("no")

            with pytest.raises(StoreFailed, match="no"):
                await driver.between_turns(fail)
            assert isinstance(await stage.ask(change("after")), Published)
        with pytest.raises(Busy, match="stopping"):
            await driver.between_turns(chore)

    run(story())


def test_pull_needs_no_commit(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            await stage.ask(change("e1"))
            before = len(stage.commits)
            read = await stage.ask(PullDeliveries("anna", "S1"))
            assert isinstance(read, Deliveries)
            assert [each.event for each in read.deliveries] == ["e1"]
            assert len(stage.commits) == before

    run(story())


def test_rejected_input_does_not_affect_others_of_the_same_turn(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = await asyncio.gather(
                stage.ask(PullDeliveries("anna", "nothing")), stage.ask(change("e1"))
            )
            assert isinstance(answers[0], NameNotKnown)
            assert isinstance(answers[1], Published)

    run(story())


def test_inputs_beyond_the_bound_are_answered_with_busy_immediately(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = [stage.driver.submit(change(f"e{number}")) for number in range(520)]
            refused = [each for each in answers if each.done()]
            assert len(refused) == 20
            assert all(isinstance(each.result(), Busy) for each in refused)
            taken = await asyncio.gather(*answers[:500])
            assert all(isinstance(each, Published) for each in taken)

    run(story())


def test_failed_commit_fails_its_inputs_and_the_store_is_opened_again(tmp_path: Path) -> None:
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
            read = await stage.ask(PullDeliveries("anna", "S1"))
            assert isinstance(read, Deliveries)
            assert [each.event for each in read.deliveries] == ["e0"]

    run(story())


def test_turns_during_a_commit_fail_if_that_commit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of their effects has left, so that the callers can retry."""

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
            reading = stage.driver.submit(PullDeliveries("anna", "S1"))
            await stage.until(lambda: "e2" in events_of(stage))
            assert not first.done()
            assert not any(each.done() for each in more)
            assert not reading.done()  # it would contain deliveries that are not committed
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
    """Makes commits wait for the returned event; calls `prepared` before rows are written."""
    disk, original = threading.Event(), SqliteStore.prepare

    def prepare(store: SqliteStore, transaction: Transaction) -> Callable[[], None]:
        prepared()
        finish = original(store, transaction)

        def slowly() -> None:
            disk.wait(PATIENCE_S)
            finish()

        return slowly

    monkeypatch.setattr(SqliteStore, "prepare", prepare)
    return disk


def test_turns_during_a_commit_are_committed_together(
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
        with SqliteStore(tmp_path / "inps.db") as store:
            delivered = [row.event for row in store.rows(DELIVERIES)]
            assert delivered == [f"e{number}" for number in range(13)]

    run(story())


def test_requests_to_other_peers_leave_only_after_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with staged(tmp_path, answer=hello_in_reply) as stage:
            views = stage.driver.peer.edl.consumer.merger.table.views
            await stage.until(
                lambda: all(view.state is ViewState.IN_FORCE for view in views.values())
            )
            disk = slow_disk(monkeypatch)
            answer = stage.driver.submit(SUBSCRIBE)
            await stage.until(lambda: "S1" in stage.driver.peer.iil.table)
            await asyncio.sleep(0.05)  # time in which a request could leave
            assert not any(isinstance(each.envelope.body, ChangeSub) for each in stage.sent)
            disk.set()
            assert isinstance(await answer, Subscribed)
            await stage.until(
                lambda: any(isinstance(each.envelope.body, ChangeSub) for each in stage.sent)
            )

    run(story())


def hello_in_reply(send: Send) -> Envelope | str:
    """Answers a hello as a producer does that has the view already."""
    asked = send.envelope.body
    if not isinstance(asked, Hello):
        return "there is no answer"
    held = (asked.epoch, asked.version, asked.digest)
    standing = Standing(asked.incarnation, 1, 1, 0, 0)
    return Envelope(send.to, 1, (), Hello(1, 1, 0, (), *held, standing, 0, str(Digest())))


def test_next_commit_begins_before_the_effects_of_the_last_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            calls: list[str] = []
            disk = slow_disk(monkeypatch, lambda: calls.append("commit"))
            for id in ("e0", "e1", "e2", "e3", "e4"):
                stage.driver.ask(change(id), lambda _, id=id: calls.append(id))  # type: ignore[misc]
                if id == "e0":
                    await stage.until(lambda: calls == ["commit"])
            await stage.until(lambda: "e4" in events_of(stage))
            disk.set()
            await stage.until(lambda: len(calls) == 7)
            assert calls == ["commit", "commit", "e0", "e1", "e2", "e3", "e4"]

    run(story())


def test_failing_callback_does_not_stop_the_driver(tmp_path: Path) -> None:
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


def test_callback_of_a_turn_that_is_not_committed_is_called_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers: list[object] = []
            assert stage.store is not None
            stage.store.fail_next_commit()
            for nth in range(3):
                stage.driver.ask(change(f"e{nth}"), answers.append)
            await stage.until(lambda: len(answers) >= 3 and stage.driver.trouble is None)
            assert [type(each) for each in answers] == [StoreFull] * 3

    run(story())


def events_of(stage: Stage) -> set[str]:
    """Returns the ids of the events in the peer's log."""
    return {known.event.id for known in stage.driver.peer.log}


def test_answer_to_a_request_of_an_earlier_gateway_is_ignored(tmp_path: Path) -> None:
    """Each gateway numbers its requests from the beginning, so that numbers occur again."""

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
            await stage.ask(PullDeliveries("anna", "nothing"))
            assert all(map(stage.driver.peer.edl.reachability.reachable, ("INAIL", "CoC")))
            stage.hang_up(new)
            await stage.until(lambda: not stage.driver.peer.edl.reachability.reachable("CoC"))

    run(story())


def test_start_sends_hello_and_detects_peers_that_do_not_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.until(lambda: len(stage.sent) >= 2)
            greeted = {each.to for each in stage.sent if isinstance(each.envelope.body, Hello)}
            assert greeted == {"INAIL", "CoC"}
            await stage.until(lambda: not stage.driver.peer.edl.reachability.reachable("CoC"))

    run(story())


def test_driver_runs_a_turn_at_the_wake_up_time(tmp_path: Path) -> None:
    """A request without an answer is retried after a pause, although there is no input."""

    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.until(lambda: len([s for s in stage.sent if s.to == "CoC"]) >= 2)

    run(story())


def test_delivery_wakes_the_waiter_of_its_subscription(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(SUBSCRIBE)
            with stage.driver.waiters.of("S1") as waiter:
                waiting = asyncio.create_task(waiter.wait(PATIENCE_S))
                await stage.ask(change("e1"))
                assert await waiting
                assert not await waiter.wait(0.0)
            with stage.driver.waiters.of("S1") as waiter:
                waiting = asyncio.create_task(waiter.wait(PATIENCE_S))
                await asyncio.sleep(0)
                stage.driver.waiters.wake_all()
                assert await waiting

    run(story())


def test_unexpected_error_fails_the_turn_but_not_the_peer(
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


def test_stop_answers_all_waiting_inputs(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            answers = [stage.driver.submit(change(f"e{number}")) for number in range(300)]
            await stage.driver.stop()
            assert all(isinstance(each.result(), Published) for each in answers)
            assert isinstance(await stage.driver.submit(change("late")), Busy)

    run(story())


def test_full_disk_rejects_publications_without_a_commit_and_serves_readers(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        stage = Stage(tmp_path)
        driver = stage.driver
        driver.backoff = Backoff(0.2, 30.0)
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
            while driver._full_disk._until > monotonic():
                await asyncio.sleep(0.01)
        assert isinstance(await driver.submit(change("e9")), Published)
        assert stage.opened == 4
        await driver.stop()

    asyncio.run(play())
