"""Custody: what a forwarder has promised to bring arrives, also when its publisher is gone (§9)."""

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
    world: World
    findings: Findings
    _promises: list[tuple[int, Record]] = field(default_factory=list)
    """Made since the last calm, and not judged yet."""
    _arrived: set[tuple[str, int | None, str, str]] = field(default_factory=set)
    """Organisation, its incarnation, source, event: taken there, or held back until its turn. A
    restore does not undo it: who promised was told that it had come."""

    def promise(self, number: int, record: Record) -> None:
        self._promises.append((number, record))

    def take(self, record: Record) -> None:
        self._arrived.add((record["org"], record["own"], record["source"], record["event"]))

    def hold_back(self, _: int, record: Record) -> None:
        own = self.world.organisation(record["org"]).joined
        self._arrived.add((record["org"], own, record["source"], record["event"]))

    def settle(self) -> None:
        """All is calm: what was promised has come, or is owed by its producer as ever."""
        self._promises.clear()

    def judge(self, lull: int, absent: Set[str]) -> None:
        """Those who are there have done all they could: each promise between them is kept."""
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
        """Whether both ends are there as they were, and the promise has not been undone."""
        by, to, source = (self.world.organisation(record[role]) for role in ("org", "to", "source"))
        return (
            by.name not in absent
            and to.name not in absent
            and by.joined is not None
            and by.moved < promised
            and promised in by.branch.promises
            and to.joined == record["joined"]
            and self._is_settled(to)
            and self._is_settled(source)
            and source.came < promised  # else what it owed as its former self comes from itself
            and not self._is_withdrawn(to, record)
        )

    def _is_settled(self, end: Organisation) -> bool:
        """Not if restored since the last calm: epochs and numbers may be at odds until the next."""
        calms = self.world.calms
        return end.restored <= (calms[-1] if calms else 0)

    def _is_withdrawn(self, to: Organisation, record: Record) -> bool:
        """The producer gave it up, or published another event of this id, which is refused."""
        published = self.world.published(record["source"], record["event"])
        return len(published) > 1 or any(
            is_declared_lost(self.world, to, publication) for publication in published
        )

    def _broken(self, promised: int, lull: int) -> None:
        def words() -> str:
            record = self.world.records[promised - 1]
            return (
                f"{record['org']} took event {record['event']} of {record['source']} in custody "
                f"for {record['to']} {moment(self.world.records, promised)}, and both are there, "
                f"but {record['to']} had not received it when nothing was under way any more "
                f"{moment(self.world.records, lull)}. A promise outlives a crash, and does not "
                "need the publisher to be kept."
            )

        self.findings.broken(Rule.CUSTODY, [promised, lull], words)
