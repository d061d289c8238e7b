"""Traffic: the SOAP messages that came and went, only counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

RECEIVED: Final = "received"
SENT: Final = "sent"


class Kind(NamedTuple):
    port: str
    operation: str
    direction: str
    """Of the call: the answer goes the other way."""
    outcome: str


@dataclass(slots=True, eq=False)
class Traffic:
    messages: Counter[Kind] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0

    def count(
        self,
        port: str,
        operation: str,
        direction: str,
        outcome: str,
        bytes_in: int,
        bytes_out: int,
    ) -> None:
        """One call and its answer."""
        self.messages[Kind(port.lower(), operation, direction, outcome)] += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
