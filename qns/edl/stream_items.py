"""Stream items: numbers of an outbound stream as they are sent, as notifications or as skips."""

from __future__ import annotations

from qns.edl.forwarder import notification_of
from qns.edl.messages import Item, Skip
from qns.edl.outbound_stream import OutboundStream
from qns.peer.event_log import EventLog


def stream_items(
    stream: OutboundStream,
    first: int,
    last: int,
    log: EventLog,
    now: float,
    incarnation: int,
    epoch: int,
    most_bytes: int,
) -> list[Item]:
    """Returns these numbers as notifications, or as skips where the event is gone.

    Only the first of them are returned if all are too large for one call.
    """
    me, items, room = stream.producer, list[Item](), most_bytes
    rows = {row.number: row for row in stream.owed.between(first, last)}
    for number in range(first, last + 1):
        row = rows.get(number)
        entry = stream.entry(number, epoch)
        if row is not None:
            logged = log[me, row.event]
            room -= len(logged.xml)
            if items and room < 0:
                break
            items.append(notification_of(logged, now, entry, (me,)))
        elif items and isinstance(items[-1], Skip):
            skip = items[-1]
            items[-1] = Skip(me, incarnation, skip.first, number, skip.reason)
        else:
            reason = stream.withheld.get(number, "no longer kept")
            items.append(Skip(me, incarnation, entry, number, reason))
    return items
