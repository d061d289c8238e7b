"""World: the state of a federation that follows from the records read so far."""

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
    """A `stable` record: a producer's view covers a subscription, for events of some classes."""

    number: int
    t: float
    classes: frozenset[str]
    until_number: float = inf
    """It is valid for events published before this record, …"""
    until_t: float = inf
    """… and up to this time."""

    def end(self, number: int) -> None:
        """Ends its validity with a record."""
        self.until_number = min(self.until_number, number)


class Crossing(NamedTuple):
    """A `cross` record: an event got a number in a stream."""

    number: int
    """The number of the record."""
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
    """Organisations, publications, views and streams."""

    schema: Schema
    records: list[Record]
    publications: defaultdict[tuple[str, str], list[Publication]] = field(
        default_factory=lambda: defaultdict(list)
    )
    organisations: dict[str, Organisation] = field(default_factory=dict)
    stables: defaultdict[View, list[Stable]] = field(default_factory=lambda: defaultdict(list))
    crossings: defaultdict[Link, list[Crossing]] = field(default_factory=lambda: defaultdict(list))
    calms: list[int] = field(default_factory=list)
    """The numbers of the `calm` records."""
    _owed: list[Publication] = field(default_factory=list)
    """The publications that can be owed to subscribers."""
    _matching: dict[Meaning, tuple[list[Publication], int]] = field(default_factory=dict)
    """Meaning -> the matching ones of `_owed`, and how many of `_owed` have been compared."""

    def organisation(self, name: str) -> Organisation:
        """Returns the organisation, which is created when its name is first used."""
        found = self.organisations.get(name)
        if found is None:
            found = self.organisations[name] = Organisation(name, self.publications)
        return found

    def publish(self, publication: Publication) -> None:
        self.publications[publication.source, publication.id].append(publication)
        self.organisation(publication.source).published.append(publication)
        if publication.is_owed:
            self._owed.append(publication)

    def published(self, source: str, id: str) -> Sequence[Publication]:
        return self.publications.get((source, id), ())

    def incarnation(self, source: str, id: str) -> int:
        """Returns the producer's incarnation when it published the event."""
        published = self.published(source, id)
        return (
            published[-1].incarnation if published else self.organisation(source).last_incarnation
        )

    def matching(self, meaning: Meaning) -> list[Publication]:
        """Returns the events that a subscription of this meaning matches, in publication order."""
        found, compared = self._matching.get(meaning) or ([], 0)
        if compared < len(self._owed):
            found += [each for each in self._owed[compared:] if meaning.matches(each.event)]
            self._matching[meaning] = found, len(self._owed)
        return found

    def restore(self, number: int, record: Record) -> None:
        """Restores the organisation and ends the views that it has sent since its backup.

        At others, a view is ended that a late member has sent since: until the organisation has
        fetched the newer document, it does not know that member.
        """
        name, since = record["org"], record["since"]
        self.organisation(name).restore(number, record)
        for (consumer, _, producer, _), stables in self.stables.items():
            if producer == name and self._is_late_member(consumer):
                for stable in stables:
                    if stable.t > since:
                        stable.end(number)
            if consumer == name:
                stables[:] = [each for each in stables if each.t <= since]
                for stable in stables:
                    stable.until_t = min(stable.until_t, since)

    def _is_late_member(self, name: str) -> bool:
        """True if the organisation joined after the beginning of the history."""
        came = self.organisation(name).came
        return came > 0 and self.records[came - 1]["t"] > self.records[0]["t"]

    def host(self, number: int, record: Record) -> None:
        """Ends the views of a producer for classes that it has ceased or begun to host."""
        producer, hosted = self.organisation(record["org"]), frozenset(record["classes"])
        begun = frozenset() if producer.hosted is None else hosted - producer.hosted
        producer.host(number, hosted)
        for (_, _, name, _), stables in self.stables.items():
            if name == producer.name:
                _end_views(number, stables, hosted - begun)

    def change_rights(self, number: int, record: Record) -> None:
        """Ends the views of a consumer for classes that it may not read of the producer any more,
        or may read from now on: these are sent again."""
        producer, consumer = self.organisation(record["org"]), record["to"]
        before, readable = producer.readable(consumer), frozenset(record["classes"])
        begun = frozenset() if before is None else readable - before
        producer.change_rights(number, consumer, readable)
        for (reader, _, name, _), stables in self.stables.items():
            if (reader, name) == (consumer, producer.name):
                _end_views(number, stables, readable - begun)

    def last_calm_before(self, number: int) -> int:
        """Returns the number of the last `calm` before this record, or 0."""
        place = bisect_left(self.calms, number)
        return self.calms[place - 1] if place else 0


def _end_views(number: int, stables: list[Stable], lasting: frozenset[str]) -> None:
    """Ends the views with a record, except for the classes that last."""
    for stable in list(stables):
        kept = stable.classes & lasting
        if kept != stable.classes:
            if kept:
                stables.append(replace(stable, classes=kept))
            stable.classes -= kept
            stable.end(number)
