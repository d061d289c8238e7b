"""Ledger: what users asked and were answered, what they read, and what the world did to the peers.

The ledger is written by the simulated users and by the world. It takes nothing from the records of
the peers, so that these records can be compared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from math import inf
from typing import Any, Final, NamedTuple

from qns.d2q.event_json import write_event_json
from qns.d2q.schema import Schema
from qns.errors import Busy, QnsError
from qns.federation.document import Federation
from qns.history.meaning import Meaning, PlainEvent, meaning_of, plain_event
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    Pause,
    Publish,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.peer.tuning import Tuning
from qns.simulation.documents import Documents
from qns.simulation.ledger_entries import Call, DeclaredLoss, Key, Publication, Read, Restore

_LARGEST_STEP_S: Final = 60.0
_STEP_LASTS_S: Final = 600.0
_ROUNDING_S: Final = 1e-6


class ClockBounds(NamedTuple):
    """By how much the time of a process is ahead at least and at most, from a moment on."""

    since: float
    least_s: float
    most_s: float


@dataclass(slots=True, eq=False)
class Ledger:
    tuning: Tuning
    """The limits that operators set, and the duration of leases in delivery groups."""
    publications: dict[Key, Publication] = field(default_factory=dict)
    repeats: defaultdict[Key, list[Publication]] = field(default_factory=lambda: defaultdict(list))
    """Publication -> the same event, which its factory published once more after a setback."""
    starts: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    subscriptions: dict[Key, Call] = field(default_factory=dict)
    leases: defaultdict[Key, list[Call]] = field(default_factory=lambda: defaultdict(list))
    """Subscription -> the requests that set its lifetime, the first one included."""
    changes: defaultdict[tuple[type, Key], list[Call]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Kind of request, subscription -> the unsubscriptions, pauses, resumes, acknowledgements."""
    reads: defaultdict[Key, list[Read]] = field(default_factory=lambda: defaultdict(list))
    declared: defaultdict[Key, list[DeclaredLoss]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Subscription -> the losses that pulls have declared."""
    restores: defaultdict[str, list[Restore]] = field(default_factory=lambda: defaultdict(list))
    moves: defaultdict[str, list[tuple[float, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Organisation -> when it joined ("join") and left ("leave")."""
    hostings: defaultdict[str, list[tuple[float, frozenset[str]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Organisation -> the classes that the newest document says it hosts, and since when."""
    twins: dict[str, float] = field(default_factory=dict)
    """Organisation -> since when a copy of its peer runs beside it."""
    schemas: list[tuple[float, Schema]] = field(default_factory=list)
    documents: Documents = field(default_factory=Documents)
    calms: list[float] = field(default_factory=list)
    duplicates: list[float] = field(default_factory=list)
    """When the second copies of requests arrived, in any order."""
    slow: set[str] = field(default_factory=set)
    """Organisations whose commits took time."""
    _clocks: defaultdict[str, list[ClockBounds]] = field(default_factory=lambda: defaultdict(list))
    """Organisation -> what is known of the time of its process, from each change on."""
    _steps: dict[str, float] = field(default_factory=dict)
    """Organisation -> when its clock made a large step forward that its process does not follow."""
    _matches: dict[tuple[str, Key], set[bool]] = field(default_factory=dict)
    _plain: dict[Key, list[PlainEvent | None]] = field(default_factory=dict)
    """Publication -> the event as read with each schema; None if the schema lacks its class."""

    # --- users ------------------------------------------------------------------------------------

    def ask(self, now: float, org: str, request: Request) -> Call | None:
        """Notes that a user begins to ask for something; returns what `grant` needs later."""
        match request:
            case Publish(event):
                schema = self.schemas[-1][1]
                found = Publication(
                    org,
                    request,
                    now,
                    fields=write_event_json(event, schema),
                    available_s=event.available_s,
                )
                if (org, event.id) in self.publications:
                    self.repeats[org, event.id].append(found)
                else:
                    self.publications[org, event.id] = found
                return found
            case Subscribe(id=id):
                call = self.subscriptions[org, id] = Call(org, request, now)
                self.leases[org, id].append(call)
                return call
            case Renew(id=id):
                call = Call(org, request, now)
                self.leases[org, id].append(call)
                return call
            case Unsubscribe(id=id) | Pause(id=id) | Resume(id=id) | AcknowledgeDeliveries(id=id):
                call = Call(org, request, now)
                self.changes[type(request), (org, id)].append(call)
                return call
        return None

    def grant(self, now: float, call: Call, answer: object) -> None:
        """Notes an answer that left a peer; errors grant nothing."""
        if call.is_granted or isinstance(answer, Busy):
            return
        if isinstance(answer, QnsError):
            call.refused_at = now
        else:
            call.answered_at, call.answer = now, answer

    def read(self, asked_at: float, now: float, key: Key, answer: object) -> None:
        """Notes what a user learned from a pull."""
        if isinstance(answer, DeliveriesDropped):
            self.declared[key] += [
                DeclaredLoss(now, each.first, each.last) for each in answer.dropped
            ]
        elif isinstance(answer, Deliveries):
            self.reads[key] += [
                Read(asked_at, now, each.number, each.source, each.event)
                for each in answer.deliveries
            ]

    # --- the world --------------------------------------------------------------------------------

    def restored(self, now: float, org: str, since: float) -> None:
        self.restores[org].append(Restore(now, since))

    def process_started(self, now: float, org: str, ahead_s: float) -> None:
        """Notes that a process takes the clock of its host as it is."""
        self.starts[org].append(now)
        self._forget_later_bounds(now, org)
        self._clocks[org].append(ClockBounds(now, ahead_s, ahead_s))

    def clock_set(self, now: float, org: str, ahead_s: float) -> None:
        """Notes that the clock of a host was set.

        A process follows a step back slowly. It follows a small step forward at once, and a large
        one only if it lasts.
        """
        stepped_at = self._forget_later_bounds(now, org)
        if not self._clocks[org]:
            return
        _, least_s, most_s = self._clocks[org][-1]
        if ahead_s > most_s + _LARGEST_STEP_S + _ROUNDING_S:
            self._steps[org] = now if stepped_at is None else stepped_at
            believed_at = max(now, self._steps[org] + _STEP_LASTS_S - 1.0)
            self._clocks[org].append(ClockBounds(believed_at, least_s, ahead_s))
            return
        is_followed = ahead_s < least_s + _LARGEST_STEP_S - _ROUNDING_S
        self._clocks[org].append(
            ClockBounds(now, ahead_s if is_followed else least_s, max(most_s, ahead_s))
        )

    def _forget_later_bounds(self, now: float, org: str) -> float | None:
        """Forgets when a large step would be believed; returns when it was made, if it was."""
        self._clocks[org] = [each for each in self._clocks[org] if each.since <= now]
        return self._steps.pop(org, None)

    def document_changed(self, now: float, federation: Federation) -> None:
        """Notes the newest federation document, which the peers learn at different times."""
        self.documents.add(now, federation)
        if not self.schemas or self.schemas[-1][1] != federation.schema:
            self.schemas.append((now, federation.schema))
        for name, each in federation.organisations.items():
            before = self.hostings[name]
            if not before or before[-1][1] != each.hosts:
                before.append((now, frozenset(each.hosts)))

    # --- what follows -----------------------------------------------------------------------------

    def is_undone(self, call: Call) -> bool:
        """True if the peer was put back to a time before it granted the request."""
        return call.answered_at < inf and self.undid(call.org, call.answered_at)

    def undid(self, org: str, when: float, until: float = inf) -> bool:
        """True if the peer was put back by `until` to a state without what it did at `when`.

        A second setback, to a state of a later time than the first, brings that back.
        """
        setbacks = [each for each in self.restores[org] if when <= each.at <= until]
        if not setbacks:
            return False
        last = max(setbacks, key=lambda each: each.at)
        return last.since < when or self.undid(org, when, last.since)

    def once_undid(self, org: str, when: float, until: float) -> bool:
        """True if the peer was put back by `until` to a state without what it did at `when`, also
        if a second setback has brought that back."""
        return any(each.since < when <= each.at <= until for each in self.restores[org])

    def restored_after(self, org: str, at: float, until: float = inf) -> bool:
        return any(at < each.at <= until for each in self.restores[org])

    def may_be_split(self, org: str, at: float) -> bool:
        """True if a twin may have taken what was sent to the organisation at this time, or what it
        wanted then: before the first calm after the start of the twin."""
        since = self.twins.get(org, inf)
        return since < inf and at < min((each for each in self.calms if each > since), default=inf)

    def moved_after(self, org: str, at: float, until: float = inf) -> bool:
        return any(at < each <= until for each, _ in self.moves[org])

    def may_move_after(self, org: str, at: float) -> bool:
        """True if the organisation joined or left after this time, or its peer may have learned
        only then that it did."""
        return self.moved_after(org, self._last_calm(at))

    def has_left(self, org: str, until: float) -> bool:
        """True if the organisation has ever left the federation, even if it came back."""
        return any(at <= until and kind == "leave" for at, kind in self.moves[org])

    def is_member(self, org: str, at: float) -> bool:
        """True if the newest document of that time names the organisation."""
        kinds = [kind for when, kind in self.moves[org] if when <= at]
        return not kinds or kinds[-1] != "leave"

    def unsettled(self, org: str, since: float, until: float) -> bool:
        """True if the world changed something in this time that views of this organisation, or at
        this organisation, depend on."""
        return (
            self.restored_after(org, since, until)
            or self.moved_after(org, since, until)
            or any(since < at <= until for at, _ in self.hostings[org])
            or any(since < at <= until for at, _ in self.schemas)
        )

    def always_hosts(self, org: str, data_class: str) -> bool:
        """True if every document says that the organisation hosts the class.

        An event is not available any more when its producer, perhaps late, learns that it does not.
        """
        return all(data_class in hosts for _, hosts in self.hostings[org])

    def all_publications(self) -> Iterator[Publication]:
        """Yields every publication, also those that are repeated after a setback."""
        yield from self.publications.values()
        for repeats in self.repeats.values():
            yield from repeats

    def may_be_dropped(self, producer: str, until: float = inf) -> bool:
        """True if the producer may have owed more events than the operator's limit allows."""
        limit = self.tuning.most_owed
        return limit < inf and limit < sum(
            each.org == producer and each.asked_at <= until for each in self.all_publications()
        )

    def latest_clock(self, org: str, until: float) -> float:
        """Returns the latest time that the clock of the organisation has shown."""
        clocks = [each for each in self._clocks[org] if each.since <= until]
        ends = [each.since for each in clocks[1:]] + [until]
        return max(
            (end + each.most_s for end, each in zip(ends, clocks, strict=True)), default=-inf
        )

    def earliest_clock(self, org: str, at: float) -> float:
        """Returns the earliest time that the clock has shown from this moment on."""
        before = [each.least_s for each in self._clocks[org] if each.since <= at][-1:]
        later = [each.since + each.least_s for each in self._clocks[org] if each.since > at]
        return min((*(at + least_s for least_s in before), *later), default=at)

    def may_have_ended(self, key: Key, until: float) -> bool:
        """True if a user ended the subscription, its lifetime may be over, or its organisation
        left."""
        first = self.subscriptions.get(key)
        if first is None:
            return False
        org, _ = key
        return (
            any(
                each.asked_at <= until and each.ended_at >= first.asked_at
                for each in self.changes[Unsubscribe, key]
            )
            or self.may_have_expired(key, until)
            or any(
                self._last_calm(first.asked_at) < at <= until and kind == "leave"
                for at, kind in self.moves[org]
            )  # also before: its peer may learn later that it has left and come back
            or not self.is_member(org, first.asked_at)
            or self._forgot_that_it_left(org)
        )

    def _last_calm(self, until: float) -> float:
        """Returns the last time by then when every peer had the newest document."""
        return max((each for each in self.calms if each <= until), default=0.0)

    def _forgot_that_it_left(self, org: str) -> bool:
        """True if its peer was put back to before it left, and acts by its earlier membership."""
        left = [at for at, kind in self.moves[org] if kind == "leave"]
        return any(each.since < at < each.at for at in left for each in self.restores[org])

    def may_have_expired(self, key: Key, until: float) -> bool:
        org, _ = key
        latest = self.latest_clock(org, until)
        return any(
            self.earliest_clock(org, each.asked_at) + _lifetime_s(each) <= latest
            for each in self._leases_in_force(key, until)
        )

    def _leases_in_force(self, key: Key, until: float) -> Iterable[Call]:
        """Returns the requests of which one decides when the subscription ends."""
        calls = [each for each in self.leases[key] if each.asked_at <= until]
        if self.restores[key[0]]:
            return calls
        granted = [each for each in calls if each.answered_at <= until]
        if granted:
            newest = max(granted, key=lambda each: each.asked_at)
            calls = [each for each in calls if each.answered_at >= newest.asked_at]
        return calls

    def mean_the_same(self, one: str, other: str) -> bool:
        """True if two texts of a subscription mean the same under one of the schemas."""
        return one == other or any(
            (meaning := _meaning(schema, one)) is not None
            and (written := _meaning(schema, other)) is not None
            and astuple(meaning) == astuple(written)
            for _, schema in self.schemas
        )

    def matches(self, subscription: Call, publication: Publication) -> set[bool]:
        """Returns whether the event matches, under each schema that peers may have read it with."""
        request = subscription.request
        assert isinstance(request, Subscribe)
        event = publication.org, str(publication.fields["id"])
        key = request.text, event
        found = self._matches.get(key)
        if found is None:
            schemas = [schema for _, schema in self.schemas]
            if event not in self._plain:
                self._plain[event] = [_plain(schema, publication.fields) for schema in schemas]
            meanings = [_meaning(schema, request.text) for schema in schemas]
            found = self._matches[key] = {
                plain is not None and meaning is not None and meaning.matches(plain)
                for meaning, plain in zip(meanings, self._plain[event], strict=True)
            }
        return found


def _plain(schema: Schema, fields: dict[str, Any]) -> PlainEvent | None:
    try:
        return plain_event(schema, fields)
    except QnsError:  # this schema does not have the class yet
        return None


def _meaning(schema: Schema, text: str) -> Meaning | None:
    try:
        return meaning_of(schema, text)
    except QnsError:  # this schema does not have the class yet
        return None


def _lifetime_s(call: Call) -> float:
    request = call.request
    assert isinstance(request, Subscribe | Renew)
    return request.lifetime_s
