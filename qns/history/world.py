"""World: everything that the records read so far have made true."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from qns.d2q.schema import Schema
from qns.history.meaning import Meaning
from qns.history.organisation import Organisation
from qns.history.publication import Publication
from qns.history.records import Record


@dataclass(slots=True, eq=False)
class Stable:
    """A producer's view covers a subscription, for events of some classes, backlog included."""

    number: int
    t: float
    epoch: int
    """The producer's, as far as the consumer knew."""
    classes: frozenset[str]
    until_number: float = inf
    """It counts for what is published before this record, …"""
    until_t: float = inf
    """… and up to this time."""

    def end(self, number: int) -> None:
        self.until_number = min(self.until_number, number)


class Crossing(NamedTuple):
    number: int
    """Of its record."""
    epoch: int
    place: int
    """The number in the stream."""
    event: str


Link = tuple[str, int, str, int]
"""Producer and consumer, each with its incarnation."""
View = tuple[str, str, str, int]
"""Consumer, subscription, producer, incarnation of the producer."""


@dataclass(slots=True)
class World:
    schema: Schema
    records: list[Record]
    publications: defaultdict[tuple[str, str], list[Publication]] = field(
        default_factory=lambda: defaultdict(list)
    )
    organisations: dict[str, Organisation] = field(default_factory=dict)
    stables: defaultdict[View, list[Stable]] = field(default_factory=lambda: defaultdict(list))
    crossings: defaultdict[Link, list[Crossing]] = field(default_factory=lambda: defaultdict(list))
    calms: list[int] = field(default_factory=list)
    _owed: list[Publication] = field(default_factory=list)
    _matching: dict[Meaning, tuple[list[Publication], int]] = field(default_factory=dict)

    def organisation(self, name: str) -> Organisation:
        found = self.organisations.get(name)
        if found is None:
            found = self.organisations[name] = Organisation(name, self.publications)
        return found

    def publish(self, publication: Publication) -> None:
        self.publications[publication.source, publication.id].append(publication)
        self.organisation(publication.source).own.append(publication)
        if publication.is_owed:
            self._owed.append(publication)

    def published(self, source: str, id: str) -> Sequence[Publication]:
        return self.publications.get((source, id), ())

    def incarnation(self, source: str, id: str) -> int:
        """Of the producer when it published the event."""
        published = self.published(source, id)
        return published[-1].joined if published else self.organisation(source).incarnation

    def matching(self, meaning: Meaning) -> list[Publication]:
        """The events that a subscription of this meaning matches, in publication order."""
        found, looked = self._matching.get(meaning) or ([], 0)
        if looked < len(self._owed):
            found += [each for each in self._owed[looked:] if meaning.matches(each.event)]
            self._matching[meaning] = found, len(self._owed)
        return found

    def restore(self, number: int, record: Record) -> None:
        """Obligations that rested on what the organisation knew rest on it no longer."""
        name, since = record["org"], record["since"]
        self.organisation(name).restore(number, record)
        for (consumer, _, producer, _), stables in self.stables.items():
            if consumer == name:
                stables[:] = [each for each in stables if each.t <= since]
                for stable in stables:
                    stable.until_t = min(stable.until_t, since)
            if producer == name:
                for stable in stables:
                    stable.end(number)

    def start_anew(self, number: int, name: str, epoch: int) -> None:
        """A restored producer: who believes to be stable in an epoch before this one is not."""
        self.organisation(name).start_anew(epoch)
        for stables in self._stables_at(name):
            for stable in stables:
                if stable.epoch < epoch:
                    stable.end(number)

    def host(self, number: int, record: Record) -> None:
        """A producer hosts other classes: views may lack those that went, or have come back."""
        producer, hosted = self.organisation(record["org"]), frozenset(record["classes"])
        come = frozenset() if producer.hosted is None else hosted - producer.hosted
        producer.host(number, hosted)
        for stables in self._stables_at(producer.name):
            for stable in list(stables):
                lasting = (stable.classes & hosted) - come
                if lasting != stable.classes:
                    if lasting:
                        stables.append(replace(stable, classes=lasting))
                    stable.classes -= lasting
                    stable.end(number)

    def _stables_at(self, name: str) -> list[list[Stable]]:
        return [each for (_, _, producer, _), each in self.stables.items() if producer == name]

    def last_calm_before(self, number: int) -> int:
        """The record of the last calm moment before this one, or 0."""
        place = bisect_left(self.calms, number)
        return self.calms[place - 1] if place else 0
