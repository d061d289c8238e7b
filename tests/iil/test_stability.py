"""Stability: subscriptions that are pending at producers, held events and late subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.federation.document import Federation
from qns.history.judge import judge
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    Pause,
    Publish,
    PullDeliveries,
    Resume,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from qns.iil.stability import Stability
from qns.peer.tables import WAITING, WaitingRow
from qns.peer.turn import Turn
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.node import Disk
from qns.simulation.rest import unrest
from qns.simulation.world import World
from tests.iil.single_peer import DELIVERY_TABLES
from tests.store.rows import content

HOSTS = dict.fromkeys(("INPS", "INAIL", "CoC"), AGENCIES.classes)
CHAIN = Federation.of("agencies", AGENCIES, HOSTS, capability=1)
"""Each peer sends an event to one other, which takes custody for the remaining receivers."""
READER = EventReader(AGENCIES)


class Agencies:
    """Three agencies; by default INAIL subscribes and INPS publishes."""

    def __init__(self, make_disk: Callable[[], Disk] = MemoryDisk) -> None:
        self.world = World(0, CHAIN, make_disk=make_disk)
        self.world.start()
        self.world.run_for(1)

    def subscribe(
        self, id: str, text: str = "Enterprise", *, org: str = "INAIL", group: str = ""
    ) -> Subscribed:
        answer = self.world.do(org, Subscribe("ann", text, id, group))
        assert isinstance(answer, Subscribed)
        return answer

    def publish(self, *ids: str, org: str = "INPS", available: Any = 0, **data: str) -> None:
        for id in ids:
            fields = {"id": id, "class": "Enterprise", "source": org, "available": available}
            self.world.do(org, Publish(READER.from_fields(fields | {"data": data})))

    def read(self, id: str, *, org: str = "INAIL") -> list[str]:
        answer = self.world.do(org, PullDeliveries("ann", id))
        assert isinstance(answer, Deliveries)
        return [each.event for each in answer.deliveries]

    def acknowledge(self, id: str, *, org: str = "INAIL") -> None:
        self.world.do(org, AcknowledgeDeliveries("ann", id, 1_000))

    def pending(self, id: str) -> tuple[str, ...]:
        gateway = self.world.nodes["INAIL"].gateway
        assert gateway is not None
        return tuple(gateway.peer.iil.stability.pending(id))

    def settle(self) -> None:
        """Runs the world until it is at rest."""
        for _ in range(120):
            self.world.run_for(1)
            if unrest(self.world) is None:
                return
        raise AssertionError(unrest(self.world))

    def check(self) -> None:
        self.settle()
        verdict = judge([*self.world.history, {"t": self.world.now, "do": "calm"}])
        assert [each.explain() for each in verdict.violations] == []

    def left_over(self) -> dict[str, dict[str, list[Any]]]:
        found = {}
        for name, node in self.world.nodes.items():
            assert node.gateway is not None
            rows = content(node.gateway.store)
            found[name] = {table: rows[table] for table in DELIVERY_TABLES if table in rows}
        return {name: rows for name, rows in found.items() if rows}


@pytest.fixture(params=[MemoryDisk, SqliteDisk], ids=["memory", "sqlite"])
def agencies(request: pytest.FixtureRequest) -> Any:
    opened = Agencies(request.param)
    yield opened
    for node in opened.world.nodes.values():
        node.disk.discard()


def test_subscription_is_pending_until_every_producer_has_confirmed_it(agencies: Agencies) -> None:
    assert agencies.subscribe("s").pending == ("CoC", "INPS")
    agencies.settle()
    assert agencies.pending("s") == ()
    assert agencies.subscribe("s").pending == ()
    agencies.publish("e1")
    agencies.settle()
    assert agencies.read("s") == ["e1"]
    agencies.check()


def test_subscription_is_stable_at_once_if_its_text_is_subscribed_already(
    agencies: Agencies,
) -> None:
    agencies.subscribe("s")
    agencies.settle()
    sent = agencies.world.messages["ChangeSub"]
    assert agencies.subscribe("t").pending == ()
    agencies.settle()
    assert agencies.world.messages["ChangeSub"] == sent


def test_late_subscriber_gets_already_received_events_without_new_notifications(
    agencies: Agencies,
) -> None:
    agencies.subscribe("s")
    agencies.settle()
    agencies.publish("e1", "e2", available="INF")
    agencies.settle()
    agencies.acknowledge("s")
    notified = agencies.world.messages["Notify"]
    agencies.world.kill("INAIL")
    agencies.world.start("INAIL")
    agencies.subscribe("late")
    agencies.settle()
    assert agencies.read("late") == ["e1", "e2"]
    assert agencies.world.messages["Notify"] == notified
    agencies.check()


def test_late_subscriber_gets_available_events_from_the_producer(
    agencies: Agencies,
) -> None:
    agencies.publish("e1", "e2", available="INF")
    agencies.publish("gone", available=0)
    agencies.settle()
    agencies.subscribe("late")
    agencies.settle()
    agencies.publish("e3")
    agencies.settle()
    assert agencies.read("late") == ["e1", "e2", "e3"]
    agencies.check()


def test_wider_subscription_gets_old_and_new_events_in_publication_order(
    agencies: Agencies,
) -> None:
    """The peer has some of the old events; the others come from the producer."""
    agencies.subscribe("narrow", 'Enterprise where Code = "a"')
    agencies.settle()
    for number, code in enumerate("abab"):
        agencies.publish(f"e{number}", available="INF", Code=code)
    agencies.settle()
    agencies.subscribe("wide")
    agencies.publish("e4", "e5", available="INF", Code="a")
    agencies.settle()
    agencies.publish("e6", Code="b")
    agencies.settle()
    assert agencies.read("narrow") == ["e0", "e2", "e4", "e5"]
    assert agencies.read("wide") == [f"e{number}" for number in range(7)]
    agencies.check()


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_events_are_held_until_the_producer_has_confirmed_the_view(
    agencies: Agencies, crash: bool
) -> None:
    world = agencies.world
    agencies.subscribe("narrow", 'Enterprise where Code = "a"')
    agencies.settle()
    agencies.publish("e1", available="INF", Code="b")
    world.network.cut("INAIL", "INPS")
    agencies.subscribe("wide")
    agencies.publish("e2", available="INF", Code="a")
    world.run_for(1)
    assert agencies.read("narrow") == ["e2"]
    assert agencies.read("wide") == []
    if crash:
        world.kill("INAIL")
        world.start("INAIL")
    world.run_for(1)
    assert agencies.read("wide") == []
    assert "INPS" in agencies.pending("wide")
    world.network.heal()
    agencies.settle()
    assert agencies.read("wide") == ["e1", "e2"]
    agencies.check()


def hold_one_event(agencies: Agencies) -> None:
    """Makes the peer hold one event for the pending subscription `wide`."""
    agencies.subscribe("narrow", 'Enterprise where Code = "a"')
    agencies.settle()
    agencies.world.network.cut("INAIL", "INPS")
    agencies.subscribe("wide")
    agencies.publish("e1", Code="a")
    agencies.world.run_for(1)
    assert agencies.read("wide") == []


def test_held_events_are_dropped_and_counted_when_the_subscription_ends(agencies: Agencies) -> None:
    hold_one_event(agencies)
    answer = agencies.world.do("INAIL", Unsubscribe("ann", "wide"))
    assert answer == Unsubscribed("wide", 1)
    agencies.world.network.heal()
    agencies.settle()
    agencies.acknowledge("narrow")
    assert agencies.left_over() == {}
    agencies.check()


def test_pause_of_a_pending_subscription_continues_when_it_becomes_stable(
    agencies: Agencies,
) -> None:
    hold_one_event(agencies)
    agencies.world.do("INAIL", Pause("ann", "wide"))
    agencies.world.network.heal()
    agencies.settle()
    agencies.publish("e2", Code="b")
    agencies.settle()
    assert agencies.read("wide") == []
    agencies.world.do("INAIL", Resume("ann", "wide"))
    assert agencies.read("wide") == ["e1", "e2"]
    agencies.check()


def test_resuming_a_pending_subscription_delivers_no_held_events(agencies: Agencies) -> None:
    hold_one_event(agencies)
    for request in (Pause("ann", "wide"), Resume("ann", "wide")):
        agencies.world.do("INAIL", request)
    assert agencies.read("wide") == []
    agencies.world.network.heal()
    agencies.settle()
    assert agencies.read("wide") == ["e1"]
    agencies.check()


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_events_held_for_a_group_go_to_a_member_that_is_not_paused(
    agencies: Agencies, crash: bool
) -> None:
    agencies.subscribe("narrow", 'Enterprise where Code = "a"')
    agencies.settle()
    agencies.world.network.cut("INAIL", "INPS")
    for member in ("one", "two"):
        agencies.subscribe(member, group="desk")
    agencies.world.do("INAIL", Pause("ann", "one"))
    agencies.publish("e1", Code="a")
    agencies.world.run_for(1)
    assert agencies.read("two") == []
    if crash:
        agencies.world.kill("INAIL")
        agencies.world.start("INAIL")
    agencies.world.network.heal()
    agencies.settle()
    assert agencies.read("two") == ["e1"]
    agencies.world.do("INAIL", Resume("ann", "one"))
    assert agencies.read("one") == []
    agencies.check()


def test_events_of_the_own_organisation_are_not_held(agencies: Agencies) -> None:
    hold_one_event(agencies)
    agencies.publish("own", org="INAIL")
    assert agencies.read("wide") == ["own"]


def test_no_peer_keeps_rows_when_no_event_is_owed(agencies: Agencies) -> None:
    for org in HOSTS:
        agencies.subscribe(f"s of {org}", org=org)
    agencies.settle()
    for number in range(6):
        org = tuple(HOSTS)[number % 3]
        agencies.publish(f"e{number}", org=org, available=(0, 20)[number % 2])
    agencies.settle()
    for org in HOSTS:
        events = agencies.read(f"s of {org}", org=org)
        assert sorted(events) == [f"e{number}" for number in range(6)]
        agencies.acknowledge(f"s of {org}", org=org)
    agencies.world.run_for(30)
    assert agencies.left_over() == {}
    for node in agencies.world.nodes.values():
        assert node.gateway is not None
        assert len(node.gateway.peer.log) == 0
    promised = [each for each in agencies.world.history if each["do"] == "promise"]
    assert promised, "nothing went through custody"
    agencies.check()


# --- the component alone --------------------------------------------------------------------------


def waiting_rows(turn: Turn) -> dict[tuple[Any, ...], WaitingRow | None]:
    return {key: row for table, rows in turn.transaction.changes() for key, row in rows.items()}


def test_subscription_waits_for_its_version_and_then_for_the_backlog() -> None:
    stability, turn = Stability(), Turn(0.0)
    stability.wait(turn, "s", "INPS", 3, None, late=True)
    stability.confirm(turn, "INPS", 2, 10)
    assert stability.pop_stable(turn, "INPS", 100) == []
    stability.confirm(turn, "INPS", 3, 10)
    assert stability.pop_stable(turn, "INPS", 9) == []
    assert stability.is_pending("s", "INPS")
    assert stability.pop_stable(turn, "INPS", 10) == [WaitingRow("s", "INPS", 3, 10, 1)]
    assert not stability.is_pending("s", "INPS")
    assert waiting_rows(turn) == {("s", "INPS"): None}


def test_later_confirmation_does_not_change_the_end_of_the_backlog() -> None:
    stability, turn = Stability(), Turn(0.0)
    stability.wait(turn, "s", "INPS", 1, None, late=False)
    stability.confirm(turn, "INPS", 1, 5)
    stability.confirm(turn, "INPS", 2, 50)
    assert [row.subscription for row in stability.pop_stable(turn, "INPS", 5)] == ["s"]


def test_waiting_again_keeps_the_mark_of_a_late_subscriber() -> None:
    stability, turn = Stability(), Turn(0.0)
    stability.wait(turn, "s", "INPS", 1, None, late=True)
    stability.wait(turn, "s", "INPS", 2, 7, late=False)
    assert waiting_rows(turn) == {("s", "INPS"): WaitingRow("s", "INPS", 2, 7, 1)}
    assert stability.pop_stable(turn, "INPS", 7)[0].late == 1


def test_forgotten_subscriptions_and_producers_leave_no_waiting_rows() -> None:
    stability, turn = Stability(), Turn(0.0)
    for subscription in ("s", "t"):
        for producer in ("INPS", "CoC"):
            stability.wait(turn, subscription, producer, 1, None, late=False)
    stability.forget(turn, "s")
    assert stability.pending("s") == []
    assert stability.pending("t") == ["CoC", "INPS"]
    assert [row.subscription for row in stability.pop_producer(turn, "CoC")] == ["t"]
    assert stability.pending("t") == ["INPS"]
    assert (stability.has_pending("INPS"), stability.has_pending("CoC")) == (True, False)
    assert stability.pop_producer(turn, "nobody") == []


def test_recovered_subscription_is_pending_as_before() -> None:
    before, turn = Stability(), Turn(0.0)
    before.wait(turn, "s", "INPS", 1, None, late=True)
    ((_, rows),) = turn.transaction.changes()
    after = Stability()
    for row in rows.values():
        assert isinstance(row, WAITING.row)
        after.recover(row)
    assert after.pending("s") == ["INPS"]
