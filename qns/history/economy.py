"""Economy: an event crosses only to an organisation that has a use for it (semantics §6)."""

from __future__ import annotations

from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment
from qns.history.world import World


def judge_economy(world: World, findings: Findings, number: int, record: Record) -> None:
    """Judged where views had settled: at a calm before the publication, undisturbed since."""
    published = world.published(record["org"], record["event"])
    calm = world.last_calm_before(published[0].number) if published else 0
    if not calm:
        return
    producer, consumer = world.organisation(record["org"]), world.organisation(record["to"])
    if max(producer.restored, consumer.restored, producer.moved, consumer.moved) > calm:
        return
    findings.checks[Rule.ECONOMY].append(number)
    for each in consumer.branch.subscriptions.values():
        if (not each.ended or each.ended > calm) and each.joined == consumer.joined:
            for publication in published:
                if publication.matches(each.meaning):
                    return
    first = published[0].number
    findings.broken(
        Rule.ECONOMY, [calm, first, number], lambda: _needless(world, calm, first, number)
    )


def _needless(world: World, calm: int, published: int, number: int) -> str:
    record = world.records[number - 1]
    return (
        f"{record['org']} sent event {record['event']}, published "
        f"{moment(world.records, published)}, to {record['to']} as number {record['number']} "
        f"{moment(world.records, number)}, though {record['to']} had no subscription that matches "
        f"it at any time since all was calm {moment(world.records, calm)}. An organisation is "
        "sent all and only the events that some user of it wants; this one should have stayed."
    )
