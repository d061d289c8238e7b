"""Streams: judges No gap at the consumer, and that each event crosses once (semantics §9, §7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment
from qns.history.world import Crossing, Link, World


@dataclass(slots=True)
class Streams:
    """The rules about the numbered streams between organisations."""

    world: World
    findings: Findings
    _crossed: dict[tuple[Link, str], int] = field(default_factory=dict)
    """Link, event -> the last record with which the event crossed."""

    def judge_consumed(self, number: int, record: Record) -> None:
        """Judges a `take` or a `skip`: its first number must be the next one of the stream."""
        self.findings.checks[Rule.NO_GAP].append(number)
        consumer = self.world.organisation(record["org"])
        due = consumer.branch.due.get((record["own"], record["source"], record["joined"]), 1)
        first = record["number"] if record["do"] == "take" else record["first"]
        if first != due:
            self.findings.broken(Rule.NO_GAP, [number], lambda: _gap(self.world, number, due))

    def judge_crossing(self, number: int, record: Record) -> None:
        """Judges a `cross`: an event has one number in a stream, unless an end was restored."""
        self.findings.checks[Rule.MINIMALITY].append(number)
        producer = self.world.organisation(record["org"])
        consumer = self.world.organisation(record["to"])
        link = self._link(record)
        key = link, record["event"]
        before = self._crossed.get(key, 0)
        if before and max(producer.restored, consumer.restored) < before:
            self.findings.broken(
                Rule.MINIMALITY, [before, number], lambda: _twice(self.world, before, number)
            )
        self._crossed[key] = number
        self.world.crossings[link].append(
            Crossing(number, record["epoch"], record["number"], record["event"])
        )

    def drop(self, record: Record) -> None:
        """Allows a dropped event to cross again, for a late subscriber."""
        self._crossed.pop((self._link(record), record["event"]), None)

    def _link(self, record: Record) -> Link:
        producer_incarnation = self.world.incarnation(record["org"], record["event"])
        return record["org"], producer_incarnation, record["to"], record["joined"]


def _gap(world: World, number: int, due: int) -> str:
    record = world.records[number - 1]
    is_take = record["do"] == "take"
    first = record["number"] if is_take else record["first"]
    what = f"number {first} (event {record['event']})" if is_take else f"a skip from {first} on"
    if first > due:
        missing = f"number {due}" if first == due + 1 else f"numbers {due} to {first - 1}"
        wrong = f"{missing} had been neither consumed nor declared as skipped"
    else:
        wrong = f"number {first} had been consumed before, and no restore had set the stream back"
    return (
        f"{record['org']} consumed {what} of the stream of {record['source']} (incarnation "
        f"{record['joined']}) {moment(world.records, number)}, when number {due} was due: {wrong}. "
        "A stream must be consumed 1, 2, 3, … without gaps or repetitions."
    )


def _twice(world: World, before: int, number: int) -> str:
    first, record = world.records[before - 1], world.records[number - 1]
    return (
        f"{record['org']} gave event {record['event']} number {record['number']} in its stream to "
        f"{record['to']} {moment(world.records, number)}, but had given it number "
        f"{first['number']} already, {moment(world.records, before)}, and neither of the two was "
        "restored in between. An organisation must get each event once, however many of its users "
        "want it."
    )
