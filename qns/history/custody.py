"""Custody: an event that a forwarder has in custody arrives, even without its publisher (§9)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from qns.history.losses import is_declared_lost
from qns.history.organisation import Organisation
from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment
from qns.history.world import World


@dataclass(slots=True)
class Custody:
    """The rule Custody, with the promises that it has not judged yet."""

    world: World
    findings: Findings
    _promises: list[tuple[int, Record]] = field(default_factory=list)
    """Promises made since the last calm and not judged yet, each with its record number."""
    _arrived: set[tuple[str, int | None, str, str]] = field(default_factory=set)
    """Organisation, its incarnation, source, event: the organisation took the event or holds it
    back as early. A restore does not remove an arrival, because the forwarder has received the
    acknowledgement and does not hold the event any more."""

    def promise(self, number: int, record: Record) -> None:
        self._promises.append((number, record))

    def take(self, record: Record) -> None:
        self._arrived.add((record["org"], record["own"], record["source"], record["event"]))

    def hold_back(self, _: int, record: Record) -> None:
        incarnation = self.world.organisation(record["org"]).incarnation
        self._arrived.add((record["org"], incarnation, record["source"], record["event"]))

    def settle(self) -> None:
        """Forgets all promises at a calm: Liveness and Completeness judge what has not arrived."""
        self._promises.clear()

    def judge(self, lull: int, absent: Set[str]) -> None:
        """Judges at a lull each promise between organisations that are present."""
        still_open = []
        for promised, record in self._promises:
            key = record["to"], record["joined"], record["source"], record["event"]
            counts, arrived = self._counts(promised, record, absent), key in self._arrived
            if counts:
                self.findings.checks[Rule.CUSTODY].append(lull)
            if counts and not arrived:
                self._broken(promised, lull)
            elif not arrived:
                still_open.append((promised, record))
        self._promises = still_open

    def _counts(self, promised: int, record: Record, absent: Set[str]) -> bool:
        """True if both ends are present and unchanged, and the promise has not been undone."""
        by, to, source = (self.world.organisation(record[role]) for role in ("org", "to", "source"))
        return (
            by.name not in absent
            and to.name not in absent
            and by.incarnation is not None
            and by.moved < promised
            and promised in by.branch.promises
            and to.incarnation == record["joined"]
            and self._is_settled(to)
            and self._is_settled(source)
            and source.came < promised  # a producer that rejoined delivers its old debts itself
            and (to.name, record["joined"], source.name, record["event"]) not in by.branch.discards
            and not self._is_withdrawn(to, record)
        )

    def _is_settled(self, end: Organisation) -> bool:
        """False if the organisation was restored since the last calm: until the next one it may
        disagree with others about epochs and numbers."""
        calms = self.world.calms
        return end.restored <= (calms[-1] if calms else 0)

    def _is_withdrawn(self, to: Organisation, record: Record) -> bool:
        """True if the producer declared the event lost, or published another event with its id,
        which the receiver may reject."""
        published = self.world.published(record["source"], record["event"])
        return len(published) > 1 or any(
            is_declared_lost(self.world, to, publication) for publication in published
        )

    def _broken(self, promised: int, lull: int) -> None:
        def words() -> str:
            record = self.world.records[promised - 1]
            return (
                f"{record['org']} took event {record['event']} of {record['source']} in custody "
                f"for {record['to']} {moment(self.world.records, promised)}. Both are present, "
                f"but {record['to']} had not received it when nothing was under way any more "
                f"{moment(self.world.records, lull)}. A forwarder must deliver what it has in "
                "custody, even after a crash and while the publisher is absent."
            )

        self.findings.broken(Rule.CUSTODY, [promised, lull], words)
