"""Why: explains why a user was notified of an event or not, or where the event is on its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import read_event
from qns.d2q.explanation import Condition, explain
from qns.d2q.printing import write_readable
from qns.edl.layer import ExternalDiffusionLayer
from qns.errors import NameNotKnown, ValueRefused
from qns.federation.document import Federation
from qns.federation.source_warnings import source_warnings
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.local_subscription_table import LocalSubscription
from qns.peer.event_log import EventKey, EventLog
from qns.peer.whereabouts import Fact, facts_of_consumer, facts_of_event, facts_of_subscription

MOST_ELEMENTS: Final = 5
"""The most elements of a consumer's view that are explained."""
_MOST_COMPARED: Final = 1_000


class Question(NamedTuple):
    """What an operator asks."""

    event: str
    source: str = ""
    """Which organisation's event is meant; empty if only one with this id is here."""
    subscription: str = ""
    to: str = ""
    """A consumer, if the producer is asked."""
    given: dict[str, Any] | str | None = None
    """The event, as a JSON object or as XML, for a peer that does not have it any more."""


class Explained(NamedTuple):
    """A subscription or an element of a view, with the conditions that decide."""

    text: str
    matches: bool
    conditions: tuple[Condition, ...]


class Why(NamedTuple):
    organisation: str
    source: str
    event: str
    data_class: str
    """The class of the event; empty if the event is not here."""
    is_here: bool
    """True if this peer has the event."""
    verdict: str
    """One of `delivered`, `on its way`, `rejected`, `not allowed`, `does not match`, `matches`,
    `not wanted` and `unknown`."""
    explained: tuple[Explained, ...]
    facts: tuple[Fact, ...]


def why(
    iil: InternalInterfaceLayer,
    edl: ExternalDiffusionLayer,
    log: EventLog,
    federation: Federation,
    question: Question,
) -> Why:
    """Answers from the present state of the peer; the history may know more."""
    given = _given(question, federation)
    key = _key(question, given, log, federation, edl.me)
    logged = log.get(key)
    event = logged.event if logged is not None else given
    facts = list(facts_of_event(edl, key, logged, question.to))
    explained: list[Explained] = []
    if question.subscription:
        subscription = _subscription(iil, question.subscription)
        facts += facts_of_subscription(iil, key, subscription)
        if event is not None:
            explained.append(_explained(subscription, event, federation))
    if question.to:
        facts += facts_of_consumer(edl, key, logged, question.to)
        if event is not None:
            explained += _explained_views(edl, event, federation, question.to)
    elif not question.subscription and key[0] == edl.me:
        for consumer in sorted(edl.producer.streams):
            facts += facts_of_consumer(edl, key, logged, consumer)
    if logged is None:
        facts.append(_absence(edl, key))
    elif question.subscription and logged.taken and not facts and explained[0].matches:
        facts.append(_past(question.subscription))
    if question.subscription:
        facts += _warnings(subscription, event, key[0], edl)
    verdict = _verdict(question, explained, facts)
    data_class = "" if event is None else event.data_class
    return Why(
        edl.me, *key, data_class, logged is not None, verdict, tuple(explained), tuple(facts)
    )


def _given(question: Question, federation: Federation) -> Event | None:
    """Returns the event that the operator has given; raises QnsError if it is invalid."""
    if question.given is None:
        return None
    if isinstance(question.given, str):
        event = read_event(question.given.encode(), federation.schema)
    else:
        event = EventReader(federation.schema).from_fields(question.given)
    if event.id != question.event:
        raise ValueRefused(
            f"the file has event {event.id}, not {question.event}", remedy="give the right file"
        )
    return event


def _key(
    question: Question, given: Event | None, log: EventLog, federation: Federation, me: str
) -> EventKey:
    """Returns source and id, with an empty source if it is not known.

    Raises an error if events of several sources have the id.
    """
    if question.source or given is not None:
        source = question.source or (given.source if given is not None else "")
        return source, question.event
    sources = {*federation.organisations, *log.sources()}
    found = sorted(source for source in sources if (source, question.event) in log)
    if len(found) == 1:
        return found[0], question.event
    if found:
        raise ValueRefused(
            f"{', '.join(found)} have all published an event {question.event}",
            remedy="say which one with --source NAME",
        )
    return me if question.to else "", question.event


def _subscription(iil: InternalInterfaceLayer, id: str) -> LocalSubscription:
    if iil.table.has_ended(id):
        raise NameNotKnown(
            "subscription",
            id,
            (),
            problem=f"subscription {id} has ended: nothing is owed to it",
        )
    return iil.table[id]


def _warnings(
    subscription: LocalSubscription,
    event: Event | None,
    source: str,
    edl: ExternalDiffusionLayer,
) -> Iterator[Fact]:
    """Yields why nothing of this source, or not this event, comes to the subscription."""
    asked = subscription.subscription
    if (
        not source
        or source == edl.me
        or (asked.sources is not None and source not in asked.sources)
    ):
        return
    scope = asked.scope if event is None else frozenset((event.data_class,))
    of_source = replace(asked, sources=frozenset((source,)), scope=scope)
    for words in source_warnings(of_source, edl.producer.readers.mapper, edl.me):
        yield Fact("warning", words, source)


def _explained(subscription: LocalSubscription, event: Event, federation: Federation) -> Explained:
    found = explain(subscription.subscription, event, federation.schema)
    return Explained(subscription.text, found.matches, found.conditions)


def _explained_views(
    edl: ExternalDiffusionLayer, event: Event, federation: Federation, consumer: str
) -> list[Explained]:
    """Explains an element of the consumer's view that matches, or those that nearly do."""
    schema, view = federation.schema, edl.producer.table.view(consumer)
    match = next((element for element in view.values() if element.matches(event)), None)
    # Explaining takes much longer than matching, and a view may have 100,000 elements.
    chosen = [match] if match is not None else islice(view.values(), _MOST_COMPARED)
    found = []
    for element in chosen:
        explanation = explain(element, event, schema)
        found.append((len(explanation.failing), element, explanation))
    # The elements that fail in the fewest conditions say most.
    return [
        Explained(write_readable(element, schema), explanation.matches, explanation.conditions)
        for _, element, explanation in nsmallest(MOST_ELEMENTS, found, key=itemgetter(0))
    ]


def _absence(edl: ExternalDiffusionLayer, key: EventKey) -> Fact:
    source, event = key
    if source == edl.me:
        words = (
            "this peer does not have the event: it was never published here, or every consumer and "
            "user has acknowledged it and its availability is over"
        )
    else:
        where = f"the peer of {source}" if source else "the peer of its source"
        words = (
            "this peer does not have the event: it has not arrived, no subscription here matched "
            "it, or all users have acknowledged it and its availability is over; ask at "
            f"{where} with qns why {event} --to {edl.me}"
        )
        if not source:
            words += (
                f"; if its source is {edl.me}, every consumer and user may have acknowledged it"
            )
    return Fact("absent", words)


def _past(subscription: str) -> Fact:
    words = (
        f"the event was offered to the users, and is not in the queue of {subscription}: it was "
        "acknowledged, or it came before the subscription; the history knows, if it is recorded"
    )
    return Fact("past", words)


def _verdict(question: Question, explained: list[Explained], facts: list[Fact]) -> str:
    kinds = {fact.kind for fact in facts}
    if "delivered" in kinds:
        return "delivered"
    if kinds & {"pending", "paused", "early", "owed"}:
        return "on its way"
    if "acknowledged" in kinds and question.to:
        return "delivered"
    if "dead letter" in kinds and question.to:
        return "rejected"
    if "not allowed" in kinds and question.to:
        return "not allowed"
    if explained:
        if any(each.matches for each in explained):
            return "matches"
        return "does not match"
    if "not wanted" in kinds:
        return "not wanted"
    return "unknown"
