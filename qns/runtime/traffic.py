"""Traffic: counts the SOAP messages that a peer receives and sends."""

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
    """The direction of the call; the answer has the other direction."""
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
        """Counts one call with its answer."""
        self.messages[Kind(port.lower(), operation, direction, outcome)] += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
