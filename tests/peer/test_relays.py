"""An event reaches a consumer through other peers while its producer cannot reach the consumer."""

from __future__ import annotations

import pytest

from qns.edl.intake import Intake
from qns.edl.messages import Item, Notification, Notify, Outcome, RelayAcknowledgement
from qns.history.judge import judge
from qns.iil.requests import AcknowledgeDeliveries
from qns.peer.turn import Turn
from qns.simulation.node import KillPoint
from qns.simulation.world import World
from tests.edl.peers import OWNER, delivered, install, peer_of, publish, subscribe, world_of
from tests.resting import comes_to_rest_and_holds

BREAKS = {
    "to the consumer": [("A", "C")],
    "to the producer": [("C", "A")],
    "in both directions": [("A", "C"), ("C", "A")],
}


def world_with(*names: str, subscribed: str = "C", **tuning: float) -> World:
    """Returns a world in which these peers have subscribed to every report; others only forward."""
    world = world_of(*names, **tuning)
    for name in subscribed.split():
        subscribe(world, name)
    world.run_for(2.0)
    return world


def break_links(world: World, *pairs: tuple[str, str]) -> None:
    for sender, receiver in pairs:
        world.network.cut(sender, receiver)


def separate(world: World, one: str, other: str) -> None:
    break_links(world, (one, other), (other, one))


def relayed(world: World) -> list[tuple[str, str, str]]:
    """Returns the relay, the receiver and the event of each relayed notification."""
    return [
        (record["org"], record["to"], record["event"])
        for record in world.history
        if record["do"] == "relay"
    ]


def notified(world: World, name: str) -> list[str]:
    """Returns the events of which the users of an organisation were notified, in order."""
    return [
        record["event"]
        for record in world.history
        if record["do"] == "ntfy" and record["org"] == name
    ]


def owed(world: World, producer: str, consumer: str) -> int:
    stream = peer_of(world, producer).edl.producer.streams[consumer]
    return stream.number - stream.acknowledged


def copies(world: World, event: str, to: str) -> int:
    """Returns how many requests that carry the event were sent to a peer."""
    return sum(
        isinstance(item, Notification) and item.event == event
        for _, _, receiver, body in world.traffic
        if receiver == to and isinstance(body, Notify)
        for item in body.items
    )


@pytest.mark.parametrize("interested", ["C", "B C"], ids=["forwards only", "subscribed itself"])
@pytest.mark.parametrize("pairs", BREAKS.values(), ids=BREAKS)
def test_event_published_before_the_break_is_known_arrives_through_another_peer(
    pairs: list[tuple[str, str]], interested: str
) -> None:
    world = world_with("A", "B", "C", subscribed=interested)
    break_links(world, *pairs)
    publish(world, "A", "e1")
    world.run_for(20.0)
    assert delivered(world, "C") == ["e1"]
    assert owed(world, "A", "C") == 0  # the acknowledgement has come back
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1"]


def test_relay_that_is_not_subscribed_delivers_nothing_to_its_own_users() -> None:
    world = world_with("A", "B", "C")
    subscribe(world, "B", text="Report/Wind")
    world.run_for(2.0)
    separate(world, "A", "C")
    publish(world, "A", "e1", available=60)
    world.run_for(20.0)
    assert relayed(world) == [("B", "C", "e1")]
    subscribe(world, "B", "late")  # the event is not available from the relay's own store
    world.run_for(0.001)
    assert delivered(world, "B", "late") == []
    world.run_for(5.0)
    assert delivered(world, "B", "late") == ["e1"]  # it came from the producer
    assert delivered(world, "B") == []
    comes_to_rest_and_holds(world)


def test_relay_carries_an_event_that_it_has_received_and_forgotten() -> None:
    world = world_with("A", "B", "C", subscribed="B C")
    separate(world, "A", "C")
    world.kill("C")
    publish(world, "A", "e1")
    world.run_for(0.5)
    assert delivered(world, "B") == ["e1"]
    world.do("B", AcknowledgeDeliveries(OWNER, "s", 1))
    world.run_for(0.5)
    assert ("A", "e1") not in peer_of(world, "B").log
    world.start("C")
    world.run_for(40.0)
    assert delivered(world, "C") == ["e1"]
    assert delivered(world, "B") == []
    comes_to_rest_and_holds(world)


def test_relay_keeps_its_promise_when_the_producer_crashes_after_the_handover() -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    world.absent.add("A")
    publish(world, "A", "e1")
    while not relayed(world):
        world.run_for(0.001)
    world.kill("A")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1"]
    world.absent.clear()
    comes_to_rest_and_holds(world)


@pytest.mark.parametrize("returns", [True, False])
def test_event_arrives_when_the_relay_crashes_after_its_promise(returns: bool) -> None:
    world = world_with("A", "B", "C", "D")
    separate(world, "A", "C")
    publish(world, "A", "e1")
    relays = peer_of(world, "A").edl.producer.relays
    while (relay := relays.hop("C")) is None:
        world.run_for(0.001)
    world.kill(relay, KillPoint.AFTER_COMMIT)
    world.run_for(0.5)
    assert [by for by, _, _ in relayed(world)] == [relay]
    assert delivered(world, "C") == []
    if returns:
        world.start(relay)
    world.run_for(30.0)
    assert delivered(world, "C") == ["e1"]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


def test_relayed_events_keep_publication_order() -> None:
    world = world_with("A", "B", "C", "D", subscribed="B C")
    publish(world, "A", "e0")
    separate(world, "A", "C")
    ids = [f"e{nth}" for nth in range(1, 40)]
    for id in ids:
        publish(world, "A", id)
        world.run_for(0.3)
    world.run_for(20.0)
    assert notified(world, "C") == ["e0", *ids]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


def test_consumer_that_restarts_during_the_break_gets_every_event_once() -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    publish(world, "A", "e1", "e2")
    world.run_for(4.0)
    world.kill("C")
    publish(world, "A", "e3")
    world.run_for(4.0)
    world.start("C")
    publish(world, "A", "e4")
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", "e4"]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


@pytest.mark.parametrize("after_s", [2.01, 2.05, 2.2, 3.0, 5.0])
def test_event_arrives_once_when_the_link_heals_in_between(after_s: float) -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    publish(world, "A", "e1", "e2")
    world.run_for(after_s)
    world.network.heal()
    publish(world, "A", "e3")
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2", "e3"]


def test_event_travels_over_several_relays_if_no_single_one_reaches_both_ends() -> None:
    world = world_with("A", "B", "D", "C")
    for one, other in (("A", "C"), ("A", "D"), ("B", "C")):
        separate(world, one, other)
    publish(world, "A", "e1", "e2")
    world.run_for(90.0)
    assert delivered(world, "C") == ["e1", "e2"]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


def test_producer_that_left_and_joins_again_delivers_its_debts_through_another_peer() -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    publish(world, "A", "e1")
    world.run_for(0.1)
    member, left = world.federation["A"], world.federation.without("A")
    install(world, left, "B", "A")
    world.run_for(1.0)
    install(world, left.with_organisation(member), "B")  # A still owes e1 and installs it later
    world.run_for(40.0)
    assert peer_of(world, "A").identity.incarnation == 3  # nothing was owed any more
    assert delivered(world, "C") == []  # the subscription is pending at the new incarnation
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1"]


def test_declared_skip_reaches_the_consumer_through_another_peer() -> None:
    world = world_with("A", "B", "C", most_owed=2)
    separate(world, "A", "C")
    world.kill("B")
    publish(world, "A", "e1", "e2", "e3", "e4")
    world.run_for(1.0)
    world.start("B")
    world.run_for(40.0)
    assert delivered(world, "C") == ["e3", "e4"]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


def test_declared_skip_reaches_the_consumer_over_several_relays() -> None:
    world = world_with("A", "B", "D", "C", most_owed=2)
    for one, other in (("A", "C"), ("A", "D"), ("B", "C")):
        separate(world, one, other)
    world.kill("B")
    publish(world, "A", "e1", "e2", "e3", "e4")
    world.run_for(1.0)
    world.start("B")
    world.run_for(120.0)
    assert delivered(world, "C") == ["e3", "e4"]
    assert owed(world, "A", "C") == 0
    comes_to_rest_and_holds(world)


# --- peers of version 0.2.0 -----------------------------------------------------------------------


def reject_relayed(_: Intake, turn: Turn, sender: str, item: Item) -> Outcome:
    return Outcome(False, "this is for another organisation", True)


def test_event_waits_for_the_link_if_no_other_peer_relays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with("A", "B", "C", "D")
    monkeypatch.setattr(Intake, "_relay", reject_relayed)
    separate(world, "A", "C")
    publish(world, "A", "e1", "e2")
    world.run_for(60.0)
    assert copies(world, "e1", "B") == copies(world, "e1", "D") == 1
    assert peer_of(world, "A").edl.reachability.unreachable() == ("C",)
    assert not peer_of(world, "A").edl.forwarder.custody.dead_letters
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2"]


def test_restarted_peer_is_tried_as_relay_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    with monkeypatch.context() as patch:
        patch.setattr(Intake, "_relay", reject_relayed)
        publish(world, "A", "e1")
        world.run_for(10.0)
    assert delivered(world, "C") == []
    world.kill("B")
    world.run_for(1.0)
    world.start("B")  # with a version that relays
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1"]
    comes_to_rest_and_holds(world)


# --- economy --------------------------------------------------------------------------------------


def test_relayed_event_is_sent_to_the_consumer_once() -> None:
    world = world_with("A", "B", "C", "D")
    separate(world, "A", "C")
    publish(world, "A", "e1")
    world.run_for(60.0)
    sent = [
        sender
        for _, sender, to, body in world.traffic
        if to == "C" and isinstance(body, Notify) and sender != "A"
    ]
    assert len(sent) == 1
    comes_to_rest_and_holds(world)


def test_interested_peer_is_preferred_as_relay() -> None:
    world = world_with("A", "B", "C", "D", subscribed="C D")
    separate(world, "A", "C")
    publish(world, "A", "e1")
    world.run_for(20.0)
    assert relayed(world) == [("D", "C", "e1")]
    comes_to_rest_and_holds(world)


def test_consumer_that_no_peer_reaches_costs_one_relayed_event_per_peer() -> None:
    """A consumer that is down looks like one behind a broken link until the others have tried."""
    world = world_with("A", "B", "C", "D", "E")
    world.kill("C")
    publish(world, "A", *(f"e{nth}" for nth in range(50)))
    world.run_for(120.0)
    assert len(relayed(world)) <= 3
    assert {event for _, _, event in relayed(world)} <= {"e0"}
    comes_to_rest_and_holds(world)


def test_no_event_is_relayed_while_every_link_works() -> None:
    world = world_with("A", "B", "C", "D", subscribed="B C D")
    publish(world, "A", *(f"e{nth}" for nth in range(20)))
    comes_to_rest_and_holds(world)
    assert relayed(world) == []
    assert not world.messages[RelayAcknowledgement.__name__]


def test_consumer_that_never_acknowledges_is_sent_relayed_events_ever_more_rarely() -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    peer = peer_of(world, "C")
    peer.edl.forwarder.routes.refuse("B")  # so that it can acknowledge nothing
    publish(world, "A", "e1")
    world.run_for(600.0)
    assert delivered(world, "C") == ["e1"]
    assert copies(world, "e1", "B") <= 8
    comes_to_rest_and_holds(world)


def test_judge_counts_relays_apart() -> None:
    world = world_with("A", "B", "C")
    separate(world, "A", "C")
    publish(world, "A", "e1")
    world.run_for(20.0)
    comes_to_rest_and_holds(world)
    assert judge(world.history).counts.relayed == 1
