"""Queues: judges that a user's queue keeps each delivery, or declares that it drops it (semantics
§8, §9)."""

from __future__ import annotations

from dataclasses import dataclass

from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment
from qns.history.world import World


@dataclass(slots=True)
class Queues:
    """The rule about the numbered deliveries of each subscription."""

    world: World
    findings: Findings

    def judge(self, number: int, record: Record) -> None:
        """Judges an `ack`: the queue must have had every unread delivery up to its number."""
        unread = self.world.organisation(record["org"]).branch.unread_upto(record)
        if unread is None:
            return
        self.findings.checks[Rule.NO_GAP].append(number)
        if len(unread) != record["count"]:
            self.findings.broken(Rule.NO_GAP, [number], lambda: _wrong(self.world, number, unread))


def _wrong(world: World, number: int, unread: list[int]) -> str:
    record = world.records[number - 1]
    due = f"{len(unread)} deliveries"
    if unread:
        due += f" with numbers from {unread[0]} to {unread[-1]}"
    return (
        f"{record['org']} removed {record['count']} deliveries of subscription {record['sub']} "
        f"when its reader acknowledged number {record['upto']} {moment(world.records, number)}, "
        f"but {due} had been notified and neither acknowledged nor declared as dropped. A queue "
        "must keep each delivery until it is acknowledged, or declare that it drops it."
    )
