"""Outcomes: each action in a turn appears in the typed outcomes of its effects."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Envelope, Notified, Notify, Outcome, Skip
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Received
from qns.peer.outcomes import Incident, IncidentKind, Outcomes, Rejection
from qns.peer.tables import DeliveryRow
from qns.peer.turn import Turn
from qns.simulation.world import TUNING
from tests.edl.peers import (
    OWNER,
    deliver_request,
    federation,
    lone_gateway,
    peer_of,
    publish,
    subscribe,
    world_of,
)

ALONE = federation("P")
PAIR = federation("P", "C")


def report(id: str, *, source: str = "P") -> Event:
    return EventReader(WEATHER).from_fields({"id": id, "class": "Report", "source": source})


def run_to_rest(gateways: dict[str, Gateway], sender: str, effects: Effects) -> dict[str, Outcomes]:
    """Carries requests and answers between the gateways until none is left.

    Returns the outcomes of each gateway, including those of `effects`.
    """
    outcomes = {name: Outcomes() for name in gateways}
    outcomes[sender] = effects.outcomes
    waiting = [(sender, each) for each in effects.sends]
    while waiting:
        caller, send = waiting.pop(0)
        handled = gateways[send.to].run([Received(send.envelope)], 1.0)
        (answer,) = handled.answers
        assert isinstance(answer, Envelope)
        answered = gateways[caller].run([Answered(send.number, answer)], 1.0)
        for name, each in ((send.to, handled), (caller, answered)):
            outcomes[name] = outcomes[name].joined(each.outcomes)
            waiting += [(name, further) for further in each.sends]
    return outcomes


def opened_pair() -> dict[str, Gateway]:
    """Returns P and C, which have exchanged hellos."""
    gateways = {name: lone_gateway(PAIR, name) for name in ("P", "C")}
    for name, gateway in gateways.items():
        run_to_rest(gateways, name, gateway.first)
    return gateways


def outcomes_of(gateway: Gateway, inputs: Sequence[Input], now: float = 1.0) -> Outcomes:
    return gateway.run(inputs, now).outcomes


# --- users ----------------------------------------------------------------------------------------


def test_subscription_without_other_producers_is_subscribed_and_stable_in_one_turn() -> None:
    outcomes = outcomes_of(lone_gateway(ALONE), [Subscribe(OWNER, "Report", id="s")])
    assert outcomes == Outcomes(subscribed=["s"], stable=["s"])


def test_subscription_appears_as_stable_when_its_producer_has_confirmed_it() -> None:
    gateways = opened_pair()
    effects = gateways["C"].run([Subscribe(OWNER, "Report", id="s")], 1.0)
    assert effects.outcomes == Outcomes(subscribed=["s"])
    outcomes = run_to_rest(gateways, "C", effects)
    assert outcomes["C"] == Outcomes(subscribed=["s"], stable=["s"])
    assert outcomes["P"] == Outcomes()


def test_repeated_subscribe_has_no_outcome() -> None:
    gateway = lone_gateway(ALONE)
    request = Subscribe(OWNER, "Report", id="s")
    gateway.run([request], 1.0)
    assert outcomes_of(gateway, [request]) == Outcomes()


def test_published_event_appears_as_one_delivery_for_each_matching_subscription() -> None:
    gateway = lone_gateway(ALONE)
    gateway.run([Subscribe(OWNER, "Report", id=id) for id in ("s", "t")], 1.0)
    gateway.run([Subscribe(OWNER, "Report/Wind", id="wind")], 1.0)
    outcomes = outcomes_of(gateway, [Publish(report("e1"))], 2.5)
    published_us = 2_500_000
    assert [each.subscription for each in outcomes.deliveries] == ["s", "t"]
    assert outcomes.published_us == [published_us, published_us]
    assert outcomes_of(gateway, [Publish(report("e1"))], 3.0) == Outcomes()


def test_event_of_another_organisation_appears_as_a_delivery_at_the_consumer_only() -> None:
    gateways = opened_pair()
    run_to_rest(gateways, "C", gateways["C"].run([Subscribe(OWNER, "Report", id="s")], 1.0))
    effects = gateways["P"].run([Publish(report("e1"))], 2.0)
    outcomes = run_to_rest(gateways, "P", effects)
    assert outcomes["P"] == Outcomes()
    assert [each.subscription for each in outcomes["C"].deliveries] == ["s"]
    assert outcomes["C"].published_us == [2_000_000]


def test_unsubscribed_and_expired_subscriptions_appear_as_ended() -> None:
    gateway = lone_gateway(ALONE)
    gateway.run(
        [Subscribe(OWNER, "Report", id="s"), Subscribe(OWNER, "Report", id="t", lifetime_s=5.0)],
        1.0,
    )
    assert outcomes_of(gateway, [Unsubscribe(OWNER, "s")], 2.0) == Outcomes(ended=["s"])
    assert outcomes_of(gateway, [], 6.0) == Outcomes(ended=["t"])


def test_rejected_request_has_no_outcome() -> None:
    assert outcomes_of(lone_gateway(ALONE), [Unsubscribe(OWNER, "unknown")]) == Outcomes()


# --- rejections and incidents ---------------------------------------------------------------------


def test_notification_that_its_receiver_rejects_appears_as_a_rejection() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    peer = peer_of(world, "P")
    _, effects = peer.turn([Publish(report("e1"))], world.now)
    (send,) = effects.sends
    assert isinstance(send.envelope.body, Notify)
    reply = Envelope("C", 1, (), Notified((Outcome(False, "unreadable", True),), None))
    _, effects = peer.turn([Answered(send.number, reply)], world.now)
    assert effects.outcomes.rejections == [Rejection(1, "C", "P", "e1", "unreadable")]
    assert list(peer.edl.forwarder.custody.dead_letters) == [1]


def test_dead_letters_of_an_earlier_start_appear_as_rejections_at_the_next_start() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    gateway = world.nodes["P"].gateway
    assert gateway is not None
    (send,) = gateway.run([Publish(report("e1"))], world.now).sends
    reply = Envelope("C", 1, (), Notified((Outcome(False, "unreadable", True),), None))
    gateway.run([Answered(send.number, reply)], world.now)
    world.kill("P")
    world.start("P")
    gateway = world.nodes["P"].gateway
    assert gateway is not None
    assert gateway.first.outcomes.rejections == [Rejection(1, "C", "P", "e1", "unreadable")]


def test_lapsed_lease_of_a_group_member_appears_as_an_incident() -> None:
    gateway = lone_gateway(ALONE)
    gateway.run([Subscribe(OWNER, "Report", id=id, group="desk") for id in ("a", "b")], 1.0)
    gateway.run([Publish(report("e1"))], 1.0)
    outcomes = outcomes_of(gateway, [], 1.0 + TUNING.lease_s)
    fields = {"sub": "a", "group": "desk", "source": "P", "event": "e1"}
    assert outcomes.incidents == [Incident(IncidentKind.LAPSE, fields)]
    assert [each.subscription for each in outcomes.deliveries] == ["b"]


def test_skip_of_a_producer_appears_as_an_incident() -> None:
    peer = lone_gateway(PAIR, "C").peer
    skip = Skip("P", 1, Entry("C", 1, 1, 1, 0), 3, "no longer kept")
    (incident,) = deliver_request(peer, "P", Notify((skip,)), 1.0).outcomes.incidents
    assert incident.kind is IncidentKind.SKIP
    assert (incident.fields["source"], incident.fields["why"]) == ("P", "no longer kept")
    assert (incident.fields["first"], incident.fields["last"]) == (1, 3)


def test_event_beyond_the_retention_limit_appears_as_an_incident() -> None:
    world = world_of("P", "C", most_owed=1)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", "e1")
    peer = peer_of(world, "P")
    _, effects = peer.turn([Publish(report("e2"))], world.now)
    (incident,) = effects.outcomes.incidents
    assert incident.kind is IncidentKind.DROP
    assert incident.fields["to"] == "C"


def test_incident_is_recorded_in_the_history_under_the_name_of_its_kind() -> None:
    turn = Turn(1.0)
    turn.report(IncidentKind.REWIND, source="P")
    assert turn.records == [{"do": "rewind", "source": "P"}]
    assert turn.outcomes.incidents == [Incident(IncidentKind.REWIND, {"source": "P"})]


def test_joined_outcomes_have_those_of_both_turns_in_order() -> None:
    row = DeliveryRow("s", 1, "P", "e1", inf)
    first = Outcomes([row], [None], ["s"], ["s"], ["x"])
    second = Outcomes(ended=["s"], incidents=[Incident(IncidentKind.LAPSE, {})], overflows=["t"])
    joined = first.joined(second)
    assert joined == Outcomes([row], [None], ["s"], ["s"], ["x", "s"], [], second.incidents, ["t"])
    assert first.ended == ["x"]
