"""Regression tests of defects that the simulator found, each with the few steps that show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import ChangeSub, Envelope, Fault
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument, Pause, Publish, Subscribe, Unsubscribe
from qns.peer.inputs import Received
from qns.simulation.world import World
from tests.resting import comes_to_rest_and_holds

EVERYTHING = ("Report", "Report/Wind", "Report/Wind/Gust", "Report/Temperature")


class Pair:
    """A simulated world with a producer, a consumer and perhaps other organisations."""

    def __init__(self, *more: str) -> None:
        names = ("Consumer", "Producer", *more)
        organisations = {name: Organisation(name, frozenset(EVERYTHING)) for name in names}
        self.world = World(3, Federation("weather", WEATHER, organisations))
        self.world.start()
        self.world.run_for(2)

    def subscribe(self, sub: str, text: str, group: str = "") -> None:
        self.world.do("Consumer", Subscribe("user", text, id=sub, group=group))

    def publish(self, id: str, **fields: Any) -> None:
        event = {"id": id, "class": "Report", "source": "Producer", **fields}
        self.world.do("Producer", Publish(EventReader(WEATHER).from_fields(event)))

    def install(self, federation: Federation) -> None:
        self.world.federation = federation
        for name in self.world.nodes:
            self.world.do(name, InstallDocument(write_federation(federation)))

    def notified(self, sub: str) -> list[str]:
        return [
            record["event"]
            for record in self.world.history
            if record["do"] == "ntfy" and record["sub"] == sub
        ]

    def rests(self) -> None:
        comes_to_rest_and_holds(self.world)


def test_subscription_made_while_a_backlog_is_under_way_becomes_stable() -> None:
    pair = Pair()
    pair.publish("e1", available="INF")
    pair.subscribe("s1", "Report")
    pair.world.network.cut("Producer", "Consumer")  # the answer arrived, the backlog is lost
    pair.world.run_for(0.5)
    pair.subscribe("s2", "only Report")
    pair.rests()
    assert pair.notified("s1") == pair.notified("s2") == ["e1"]


def test_stale_change_sub_does_not_replace_a_newer_view() -> None:
    pair = Pair()
    pair.subscribe("s1", "Report/Wind")
    pair.world.run_for(2)
    (old,) = [body for *_, body in pair.world.traffic if isinstance(body, ChangeSub)]
    pair.subscribe("s2", "Report/Temperature")
    pair.world.run_for(2)
    producer = pair.world.nodes["Producer"].gateway
    assert producer is not None
    whole_view = replace(old, base=None)
    effects = producer.run([Received(Envelope("Consumer", 1, (), whole_view))], pair.world.now)
    (answer,) = effects.answers
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Fault)
    assert len(producer.peer.edl.producer.table.view("Consumer")) == 2


def test_producer_with_a_wrong_view_of_the_right_version_gets_the_whole_view() -> None:
    pair = Pair()
    pair.subscribe("s1", "Report/Wind")
    pair.world.run_for(2)
    pair.world.back_up("Consumer")
    pair.world.do("Consumer", Unsubscribe("user", "s1"))
    pair.subscribe("s2", "Report/Temperature")
    pair.world.run_for(2)
    backup = pair.world.nodes["Consumer"].backups[-1]
    pair.world.put_back(
        "Consumer", backup
    )  # s1 again, with the version that s2 has at the producer
    pair.world.run_for(2)
    pair.publish("e1", **{"class": "Report/Wind"})
    pair.rests()
    assert pair.notified("s1") == ["e1"]


def test_event_received_before_its_class_was_withdrawn_reaches_later_subscribers_once() -> None:
    pair = Pair()
    pair.subscribe("s1", "Report")
    pair.world.run_for(2)
    pair.publish("e1", **{"class": "Report/Wind", "available": "INF"})
    pair.world.run_for(2)
    pair.install(pair.world.federation.hosting("Producer", ["Report"]))
    pair.subscribe("s2", "Report/Wind")
    pair.world.run_for(2)
    pair.install(pair.world.federation.hosting("Producer", EVERYTHING))
    pair.rests()
    assert pair.notified("s2") == ["e1"]


def test_subscription_stops_waiting_for_a_restored_producer_that_hosts_fewer_classes() -> None:
    pair = Pair()
    pair.publish("e1", **{"class": "Report/Wind", "available": "INF"})
    pair.world.back_up("Producer")
    pair.world.network.cut("Producer", "Consumer")
    pair.subscribe("s1", "Report/Wind")
    pair.world.run_for(3)
    pair.world.network.heal()
    pair.world.run_for(0.2)
    pair.install(pair.world.federation.hosting("Producer", ["Report"]))
    pair.world.put_back("Producer", pair.world.nodes["Producer"].backups[-1])
    pair.rests()


@pytest.mark.parametrize("comes_back", [True, False])
def test_consumer_that_left_stops_pulling_events_that_are_not_owed(comes_back: bool) -> None:
    pair = Pair("Third")
    pair.subscribe("s1", "Report")
    pair.world.run_for(2)
    pair.world.network.cut("Producer", "Consumer")
    for nth in range(3):
        pair.publish(f"e{nth}")
    former = pair.world.federation["Consumer"]
    pair.world.note("Consumer", "leave", joined=former.incarnation)
    pair.install(pair.world.federation.without("Consumer"))
    if comes_back:
        pair.world.run_for(2)
        pair.install(pair.world.federation.with_organisation(former))
        joined = pair.world.federation["Consumer"].incarnation
        pair.world.note("Consumer", "join", joined=joined)
    pair.rests()


def test_element_of_two_producers_views_has_the_scope_of_each_producer() -> None:
    pair = Pair("Third")
    pair.install(pair.world.federation.hosting("Third", ["Report", "Report/Wind"]))
    pair.subscribe("all", "Report from Producer, Third")
    pair.subscribe("narrow", "Report/Wind from Third where Speed > 20")
    pair.subscribe("only", "only Report/Wind where Speed > 20")
    pair.world.run_for(2)
    pair.world.do("Consumer", Unsubscribe("user", "all"))
    pair.world.run_for(2)
    producer = pair.world.nodes["Producer"].gateway
    assert producer is not None
    (element,) = producer.peer.edl.producer.table.view("Consumer").values()
    assert element.scope == {"Report/Wind"}
    pair.rests()


def test_event_queued_for_a_paused_member_goes_to_another_member_of_its_group() -> None:
    pair = Pair()
    pair.install(pair.world.federation.hosting("Producer", ["Report"]))
    pair.subscribe("s5", 'Report where Region = "north"', "desk")
    pair.subscribe("s24", 'Report from Producer where Region = "north"', "desk")
    pair.world.run_for(2)
    pair.world.network.cut("Consumer", "Producer")
    pair.subscribe("s30", "Report")  # its view does not reach the producer for a while
    pair.install(pair.world.federation.hosting("Producer", EVERYTHING))
    pair.publish("e1", data={"Region": "north"})
    pair.world.run_for(2)
    assert pair.notified("s5") == pair.notified("s24") == []
    pair.world.do("Consumer", Pause("user", "s5"))
    pair.world.kill("Consumer")  # after the restart, s24 becomes stable before s5
    pair.world.start("Consumer")
    pair.rests()
    assert pair.notified("s24") == ["e1"]


def test_event_whose_withdrawal_a_restored_producer_forgot_is_delivered_late() -> None:
    pair = Pair()
    pair.publish("e1", **{"class": "Report/Wind", "available": "INF"})
    pair.publish("e2", available="INF")
    pair.world.back_up("Producer")
    pair.install(pair.world.federation.hosting("Producer", ["Report"]))
    pair.subscribe("s1", "Report")
    pair.world.run_for(2)
    pair.install(pair.world.federation.hosting("Producer", EVERYTHING))
    pair.world.put_back("Producer", pair.world.nodes["Producer"].backups[-1])
    pair.rests()
    assert pair.notified("s1") == ["e2", "e1"]


@pytest.mark.xfail(strict=True, reason="no peer compares the versions of views across a setback")
def test_subscription_that_a_snapshot_undid_is_declared_if_a_producer_held_its_view() -> None:
    pair = Pair()
    pair.subscribe("s1", "Report/Wind")
    pair.world.run_for(2)
    snapshot = pair.world.snapshot("Consumer")
    pair.subscribe("s2", "Report/Temperature")
    pair.world.run_for(2)  # the producer has the view of both subscriptions
    pair.world.put_back("Consumer", snapshot)
    pair.rests()
    consumer = pair.world.nodes["Consumer"].gateway
    assert consumer is not None
    assert consumer.status.setback is not None or any(
        record["do"] == "start" and record["restored"] for record in pair.world.history
    )


@pytest.mark.xfail(strict=True, reason="an available event that is in the log is not offered again")
def test_available_event_published_again_after_a_setback_reaches_later_subscribers() -> None:
    pair = Pair()
    pair.world.back_up("Producer")
    pair.subscribe("s1", "Report")
    pair.world.run_for(2)
    pair.publish("e1", available=2)
    pair.world.run_for(4)  # s1 has not read it, so that the consumer keeps it
    pair.subscribe("s2", "Report")  # too late: the event is not available any more
    pair.world.run_for(2)
    pair.world.put_back("Producer", pair.world.nodes["Producer"].backups[-1])
    pair.world.run_for(2)
    pair.publish("e1", available=2)  # the factory repeats it, and s2 is stable
    pair.world.run_for(4)
    assert pair.notified("s1") == pair.notified("s2") == ["e1"]


@pytest.mark.xfail(strict=True, reason="a consumer that started again offers it to nobody")
def test_event_published_again_reaches_later_subscribers_of_a_consumer_that_started_again() -> None:
    pair = Pair()
    pair.world.back_up("Producer")
    pair.subscribe("s1", "Report")
    pair.world.run_for(2)
    pair.publish("e1")
    pair.world.run_for(2)  # s1 has not read it, so that the consumer keeps it
    pair.world.kill("Consumer")
    pair.world.start("Consumer")
    pair.subscribe("s2", "Report")
    pair.world.run_for(2)
    pair.world.put_back("Producer", pair.world.nodes["Producer"].backups[-1])
    pair.world.run_for(2)
    pair.publish("e1")
    pair.world.run_for(4)
    assert pair.notified("s2") == ["e1"]
