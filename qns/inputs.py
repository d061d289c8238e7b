"""What goes into a peer, and what comes out of a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from qns.edl.layer import Send
from qns.edl.messages import Envelope
from qns.errors import QnsError
from qns.iil.requests import Answer, Request
from qns.turn import Record


class Received(NamedTuple):
    """A request of another peer; its answer is an envelope."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one of our requests, or None if there was none in time."""

    number: int
    envelope: Envelope | None


Input = Request | Received | Answered

Output = Answer | Envelope | QnsError | None
Outputs = list[Output]


@dataclass(slots=True)
class Effects:
    """What a turn tells the world, once its transaction is committed."""

    answers: Outputs
    """One for each input; an error means that the input changed nothing."""
    sends: list[Send]
    records: list[Record]
    wake_at: float
    """When the peer wants a turn even if nothing comes in."""
