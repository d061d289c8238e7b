"""Intake: notifications as nearly all of them come, a whole call at a time.

Straight from their producer, each the next of its stream, new here and for nobody further. What
`Consumer.accept` asks of each is asked once for all of them where that is the same, one row says
how far the stream has come, and they are matched together, with those of the next calls. The first
one that is otherwise, in whatever way, ends the run: `accept` sees to it and knows every case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qns.d2q.event_xml import read_event
from qns.edl.inbound import InboundStream
from qns.edl.messages import Item, Notification
from qns.errors import QnsError
from qns.event_log import KnownEvent
from qns.turn import Turn

if TYPE_CHECKING:
    from qns.edl.consumer import Consumer


def take_run(consumer: Consumer, turn: Turn, sender: str, items: Sequence[Item]) -> int:
    """Takes in the first items, as long as they are ordinary; how many."""
    stream = _stream(consumer, sender)
    taken = [] if stream is None else _added(consumer, turn, stream, items)
    if stream is None or not taken:
        return 0
    for known in taken:
        stream.last += 1
        stream.record_taken(turn, stream.epoch, stream.last, known.event.id)
    stream.keep(turn)
    consumer.watch_gap(turn, stream)
    consumer.inward.offer_later(taken)
    return len(taken)


def _stream(consumer: Consumer, sender: str) -> InboundStream | None:
    """The sender's own stream, if nothing about it asks for more than the next numbers."""
    federation = consumer.federation
    if sender == consumer.me or sender not in federation or consumer.me not in federation:
        return None
    stream = consumer.streams.get((sender, federation[sender].joined))
    if stream is None or stream.early or consumer.inward.waits_for(sender):
        return None
    return None if any(epoch > stream.epoch for epoch in stream.fences) else stream


def _added(
    consumer: Consumer, turn: Turn, stream: InboundStream, items: Sequence[Item]
) -> list[KnownEvent]:
    """The events of the first items that are ordinary; they are in the log now."""
    me, joined, log, schema = consumer.me, consumer.joined, consumer.log, consumer.schema
    producer, incarnation, epoch, last = stream.producer, stream.joined, stream.epoch, stream.last
    most, way = consumer.tuning.most_events, (stream.producer,)
    found: list[KnownEvent] = []
    for item in items:
        if type(item) is not Notification:
            break
        source, born, published_in, sequence, id, xml, remaining_s, entry, path = item
        receiver, own, given_in, number, _, _, children = entry
        last += 1
        if (
            source != producer
            or born != incarnation
            or path != way
            or receiver != me
            or own != joined
            or given_in != epoch
            or number != last
            or children
            or (source, id) in log
            or len(log) >= most
        ):
            break
        try:
            event = read_event(xml, schema)
        except QnsError:
            break
        if event.id != id or event.source != source:
            break
        position = (born, published_in, sequence)
        known = KnownEvent(event, xml, position, turn.now + remaining_s, taken=True)
        log.add(turn, known)
        found.append(known)
    return found
