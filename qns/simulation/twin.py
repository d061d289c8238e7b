"""A twin: a copy of a host that runs beside it, with users of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from qns.iil.requests import Publish, Subscribe
from qns.peer.turn import Record
from qns.simulation.node import Node


@dataclass(slots=True, eq=False)
class Twin:
    """It is not at the endpoint of its organisation: it calls others, and none calls it."""

    node: Node
    since: float
    history: list[Record] = field(default_factory=list)
    """Its records, which are not in the history of the federation."""
    acknowledged: list[tuple[float, Publish | Subscribe]] = field(default_factory=list)
    """What it granted to its users, and when."""
    fenced_at: float = inf
    """When it gave way."""
    sent_after_fence: int = 0

    def note(self, now: float, records: Sequence[Record], sends: int) -> None:
        """Notes what left the twin with one commit."""
        self.history += [{"t": now, **each} for each in records]
        if self.has_given_way:
            self.fenced_at = min(self.fenced_at, now)
            self.sent_after_fence += sends

    @property
    def has_given_way(self) -> bool:
        return self.node.gateway is not None and self.node.gateway.status.is_fenced
