"""Owed events: what the streams to all consumers together owe."""

from __future__ import annotations

from collections.abc import Mapping

from qns.edl.outbound_stream import OutboundStream
from qns.federation.document import Federation
from qns.peer.row_view import RowView
from qns.peer.tables import OWED
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
