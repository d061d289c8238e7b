"""Routing tables: what an operator sees of both layers, with bounded rows."""

from __future__ import annotations

from qns.edl.messages import Entry, Envelope, Fault, Notify
from qns.peer.inputs import Answered
from qns.peer.routing_tables import ExternalView, Promise, RoutingTables, Rows, StreamFrom, StreamTo
from qns.simulation.world import World
from tests.edl.peers import (
    federation,
    lone_gateway,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
    world_with_custody,
)


def tables(world: World, name: str, limit: int = 10) -> RoutingTables:
    return peer_of(world, name).status.routing_tables(world.now, limit)


def test_tables_show_both_ends_of_a_subscription_and_a_stream() -> None:
    world = world_of("P", "C", "D")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2")
    world.run_for(3.0)
    consumer, producer = tables(world, "C"), tables(world, "P")
    assert (consumer.merge, producer.merge) == (Rows(1, ("Report",)), Rows(0, ()))
    assert consumer.views.total == 2
    (of_p,) = (view for view in consumer.views.rows if view.producer == "P")
    assert (of_p.version, of_p.state, of_p.pending) == (1, "in force", 0)
    assert of_p.elements == Rows(1, ("Report",))
    assert producer.external == Rows(1, (ExternalView("C", 1, Rows(1, ("Report",))),))
    assert StreamTo("C", 1, "caught up", 2, 2) in producer.streams_to.rows
    assert all(stream.lag_events == 0 for stream in producer.streams_to.rows)
    assert StreamFrom("P", 1, 1, 2, 0, None) in consumer.streams_from.rows
    assert producer.links.total == 2
    assert {link.problem for link in producer.links.rows} == {""}


def test_tables_show_a_pending_view_and_a_resting_link_with_its_problem() -> None:
    world = world_of("P", "C")
    world.kill("P")
    subscribe(world, "C")
    world.run_for(30.0)
    found = tables(world, "C")
    (view,) = found.views.rows
    assert (view.pending, view.elements.total) == (1, 1)
    assert view.state != "in force"
    (link,) = found.links.rows
    assert (link.other, link.problem) == ("P", "there was no answer")
    assert link.failures > 1
    if link.state == "resting":
        assert link.next_try_s is not None


def test_tables_show_a_promise_and_what_is_missing_before_an_early_entry() -> None:
    world = world_with_custody()
    assert tables(world, "F").custody == Rows(1, (Promise("Z", "P", "e1", 1),))
    item = notification("P", "e9", Entry("F", 1, 1, 5, 0), path=("P", "Z"))
    send(world, "Z", "F", Notify((item,)))
    world.run_for(0.1)
    (stream,) = (each for each in tables(world, "F").streams_from.rows if each.producer == "P")
    assert (stream.last, stream.early, stream.gap) == (1, 1, (2, 4))


def test_every_table_is_cut_at_the_limit_and_keeps_its_total() -> None:
    world = world_of("P", "C", "D", "E")
    for number in range(5):
        subscribe(world, "C", f"s{number}", f"Report where Station = 'S{number}'")
    world.run_for(2.0)
    found = tables(world, "C", limit=2)
    assert [(table.total, len(table.rows)) for table in found[1:5]] == [
        (3, 2),
        (0, 0),
        (3, 2),
        (3, 2),
    ]
    assert [view.producer for view in found.views.rows] == ["D", "E"]
    assert (found.views.rows[0].elements.total, len(found.views.rows[0].elements.rows)) == (5, 2)
    assert (found.links.total, len(found.links.rows)) == (3, 2)


def test_link_keeps_the_reason_of_a_refusal_until_the_next_answer() -> None:
    gateway = lone_gateway(federation("P", "C"))
    (hello,) = gateway.first.sends
    refusal = Envelope("C", 1, (), Fault("P is unknown here", permanent=True))
    effects = gateway.run([Answered(hello.number, refusal)], 1.0)
    (link,) = gateway.status.routing_tables(1.0, 10).links.rows
    assert (link.problem, link.state) == ("Hello was refused: P is unknown here", "resting")
    (again,) = gateway.run([], effects.wake_at).sends
    gateway.run([Answered(again.number, None, "the name does not resolve")], 9.0)
    (link,) = gateway.status.routing_tables(9.0, 10).links.rows
    assert link.problem == "the name does not resolve"
