"""Whereabouts: what this peer knows of one event, on its way to consumers, users and receivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.outbound_stream import OutboundStream
from qns.federation.source_warnings import denial
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.local_subscription_table import LocalSubscription
from qns.peer.event_log import EventKey, LoggedEvent
from qns.peer.tables import DeliveryRow


class Fact(NamedTuple):
    """One thing that the peer knows of an event."""

    kind: str
    """The kind in one or two words, for programs."""
    words: str
    organisation: str = ""
    """The consumer or receiver that it concerns; empty if it concerns none."""
    number: int | None = None
    at: float | None = None


def facts_of_event(
    edl: ExternalDiffusionLayer, key: EventKey, logged: LoggedEvent | None, to: str
) -> Iterator[Fact]:
    """Yields what concerns this peer itself: publication, custody, early arrival, dead letters.

    With `to`, only the dead letters of that receiver are included.
    """
    source, event = key
    if logged is not None and source == edl.me:
        published_us = logged.event.published_us
        at = None if published_us is None else published_us / 1_000_000
        yield Fact("published", f"{source} published it", at=at)
    for parcel in edl.forwarder.custody.parcels.values():
        if parcel.event == key:
            receiver = parcel.entry.receiver
            words = f"this peer has it in custody for {receiver}, as number {parcel.entry.number}"
            yield Fact("custody", words, receiver, parcel.entry.number)
    for letter in edl.forwarder.custody.dead_letters.values():
        receiver = letter.receiver
        if (letter.source, letter.event) == key and to in ("", receiver):
            words = f"{receiver} rejected it for good: {letter.reason} (dead letter {letter.id})"
            yield Fact("dead letter", words, receiver, letter.id, letter.at)
    for (producer, _), stream in edl.consumer.streams.items():
        for row in stream.early.values() if producer == source else ():
            if row.event == event:
                missing = f"numbers {stream.last + 1} to {stream.gap} of {source} are missing"
                words = f"it arrived early as number {row.number} and is held back: {missing}"
                yield Fact("early", words, number=row.number)


def facts_of_consumer(
    edl: ExternalDiffusionLayer, key: EventKey, logged: LoggedEvent | None, consumer: str
) -> Iterator[Fact]:
    """Yields what the producer knows of the event on its way to one consumer."""
    stream = edl.producer.streams.get(consumer)
    if stream is None:
        yield Fact("no stream", f"there is no stream to {consumer}: it is not a member", consumer)
        return
    number = stream.owed.number_of(key[1])
    if number is not None:
        yield _of_number(edl, stream, consumer, number)
    elif any(
        (letter.receiver, letter.source, letter.event) == (consumer, *key)
        for letter in edl.forwarder.custody.dead_letters.values()
    ):
        return  # `facts_of_event` has the dead letter
    elif logged is not None and not edl.producer.readers.may_read(
        consumer, logged.event.data_class
    ):
        version = edl.consumer.federation.version
        words = denial(consumer, logged.event.data_class, key[0], version)
        yield Fact("not allowed", words, consumer)
    elif logged is not None and consumer in edl.producer.table.matcher.interested(logged.event):
        words = (
            f"the view of {consumer} matches it, but it has no number in the stream to {consumer}: "
            "it was published before that view came, or was dropped as a declared loss"
        )
        yield Fact("not sent", words, consumer)
    elif logged is not None:
        yield Fact("not wanted", f"the view of {consumer} does not match it", consumer)


def _of_number(
    edl: ExternalDiffusionLayer, stream: OutboundStream, consumer: str, number: int
) -> Fact:
    if number <= stream.acknowledged:
        words = f"{consumer} has acknowledged it as number {number}"
        return Fact("acknowledged", words, consumer, number)
    words = f"it is owed to {consumer} as number {number} and is not acknowledged"
    link = edl.forwarder.links.get(consumer)
    if link is not None and link.problem:
        words += f"; the last call failed: {link.problem}"
    return Fact("owed", words, consumer, number)


def facts_of_subscription(
    iil: InternalInterfaceLayer, key: EventKey, subscription: LocalSubscription
) -> Iterator[Fact]:
    """Yields where the event is in the queue of a subscription, or of its delivery group."""
    members = iil.table.members(subscription.group) if subscription.group else [subscription]
    for member in members:
        row = iil.dispatcher.find(member.id, key)
        if row is None:
            continue
        who = f"to {member.id} of the group {member.group}, " if member is not subscription else ""
        if isinstance(row, DeliveryRow):
            words = f"delivered {who}as number {row.number}; the user has not acknowledged it"
            at = row.delivered_at or None
            yield Fact("delivered", words, number=row.number, at=at)
        elif row.held:
            words = f"it waits: {member.id} is pending at {key[0]} until the backlog is complete"
            yield Fact("pending", words)
        else:
            words = f"it waits, because {member.id} is paused (qns resume {member.id} delivers it)"
            yield Fact("paused", words)
