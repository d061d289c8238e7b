"""Economy: an event crosses only to organisations with a matching subscription (semantics §6)."""

from __future__ import annotations

from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment
from qns.history.world import World


def judge_economy(world: World, findings: Findings, number: int, record: Record) -> None:
    """Judges a `cross` if there was a calm before the publication, so that views had settled, and
    neither end has joined, left or been restored since, and the producer has not started."""
    published = world.published(record["org"], record["event"])
    calm = world.last_calm_before(published[0].number) if published else 0
    if not calm:
        return
    producer, consumer = world.organisation(record["org"]), world.organisation(record["to"])
    disturbed = max(producer.restored, consumer.restored, producer.moved, consumer.moved)
    if max(disturbed, producer.started) > calm:
        return
    findings.checks[Rule.ECONOMY].append(number)
    for each in consumer.branch.subscriptions.values():
        if (not each.ended or each.ended > calm) and each.incarnation == consumer.incarnation:
            for publication in published:
                if publication.matches(each.meaning):
                    return
    first = published[0].number
    findings.broken(
        Rule.ECONOMY, [calm, first, number], lambda: _needless(world, calm, first, number)
    )


def judge_relay(world: World, findings: Findings, number: int) -> None:
    """Judges a `relay` at a calm: the event must have a number in the stream to its receiver.

    If clocks differ, a gathered history may have that number after the relay.
    """
    record = world.records[number - 1]
    findings.checks[Rule.ECONOMY].append(number)
    source, event = record["source"], record["event"]
    for publication in world.published(source, event):
        link = source, publication.incarnation, record["to"], record["joined"]
        if any(crossing.event == event for crossing in world.crossings.get(link, ())):
            return
    findings.broken(Rule.ECONOMY, [number], lambda: _unowed(world, number))


def _unowed(world: World, number: int) -> str:
    record = world.records[number - 1]
    return (
        f"{record['org']} relayed event {record['event']} of {record['source']} to {record['to']} "
        f"{moment(world.records, number)}, though {record['source']} had given it no number in its "
        f"stream to {record['to']}. Only events that are owed to an organisation are relayed to it."
    )


def _needless(world: World, calm: int, published: int, number: int) -> str:
    record = world.records[number - 1]
    return (
        f"{record['org']} sent event {record['event']}, published "
        f"{moment(world.records, published)}, to {record['to']} as number {record['number']} "
        f"{moment(world.records, number)}, though {record['to']} had no subscription that matches "
        f"it at any time since all was calm {moment(world.records, calm)}. An organisation must "
        "be sent only the events that match a subscription of one of its users."
    )
