"""Owed events: what the streams to all consumers together owe."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from qns.edl.messages import Fence
from qns.edl.outbound_stream import OutboundStream
from qns.federation.document import Federation
from qns.peer.event_log import EventLog
from qns.peer.ports import Store
from qns.peer.row_view import RowView
from qns.peer.tables import CONSUMERS, FENCES, OWED
from qns.peer.turn import Turn


def forget_event(
    turn: Turn, streams: Mapping[str, OutboundStream], view: RowView, event: str
) -> None:
    """Removes an event that has left the log from every stream."""
    for stream in streams.values():
        stream.owed.remove_event(turn, event)
    if any(stream.owed.has_rows_on_disk for stream in streams.values()):
        for row in view.find(OWED, "event", event):
            streams[row.consumer].owed.remove(turn, row)


def count_owed(streams: Mapping[str, OutboundStream], view: RowView, event: str) -> int:
    """Returns the number of consumers that have not acknowledged an event."""
    rows = view.find(OWED, "event", event)
    return sum(row.number > streams[row.consumer].acknowledged for row in rows)


def is_drained(streams: Mapping[str, OutboundStream], federation: Federation) -> bool:
    """True if nothing is owed to the members, in the incarnations that they have."""
    return not any(
        each.owes
        for name, each in streams.items()
        if name in federation and federation[name].incarnation == each.consumer_incarnation
    )


def recover_streams(
    producer: str,
    store: Store,
    log: EventLog,
    view: RowView | None = None,
    most_in_memory: float = inf,
) -> dict[str, OutboundStream]:
    """Returns the streams as the store has them, by consumer."""
    streams = {
        row.consumer: OutboundStream.from_row(producer, row, view, most_in_memory)
        for row in store.rows(CONSUMERS)
    }
    for fence in sorted(store.rows(FENCES)):
        streams[fence.consumer].fences.append(Fence(fence.epoch, fence.first))
    for owed in store.rows(OWED):
        streams[owed.consumer].recover(owed, log)
    return streams
