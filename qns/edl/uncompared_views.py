"""Uncompared views: the consumers whose view this producer may have forgotten.

A store can go back in time unnoticed, and with it the views that consumers have sent since. So
after every start a consumer gets every event until a hello shows that both have the same view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from qns.edl.outbound_stream import OutboundStream
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class UncomparedViews:
    _until: dict[str, float] = field(default_factory=dict)
    """Consumer -> the time from which on its stored view counts all the same."""
    _trusted_at: float = -inf
    """When the views of consumers that were silent since the start are trusted."""

    def __contains__(self, consumer: str) -> bool:
        return consumer in self._until

    def __len__(self) -> int:
        return len(self._until)

    def start(self, trusted_at: float) -> None:
        """Notes a start; consumers that stay silent are trusted from that time on."""
        self._trusted_at = trusted_at

    def doubt(self, consumer: str, now: float, *, is_lost: bool = False) -> None:
        """Adds a consumer; after a restore its view `is_lost` until it is compared."""
        if is_lost or now < self._trusted_at:
            self._until[consumer] = inf if is_lost else self._trusted_at

    def lose_all(self, turn: Turn, streams: Mapping[str, OutboundStream]) -> None:
        """Adds every consumer until its view is compared, because this peer went back in time."""
        for consumer, stream in streams.items():
            stream.lose_view(turn)
            self.doubt(consumer, turn.now, is_lost=True)

    def remove(self, consumer: str) -> None:
        self._until.pop(consumer, None)

    def at(self, now: float) -> set[str]:
        """Returns the consumers that get every event now."""
        return {name for name, until in self._until.items() if until > now}
