"""Inputs: what goes into a peer, and what comes out of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from qns.edl.messages import Envelope
from qns.edl.requests import Send
from qns.errors import QnsError
from qns.iil.requests import Answer, Request
from qns.peer.outcomes import Outcomes
from qns.peer.turn import Record


class Received(NamedTuple):
    """A request of another peer; its answer is an envelope."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request of this peer, or None if it was not answered in time."""

    number: int
    envelope: Envelope | None
    problem: str = ""
    """Why there is no answer, for operators."""

    @classmethod
    def of(cls, number: int, answer: Envelope | str) -> Answered:
        """Takes the answer, or the problem that prevented one."""
        if isinstance(answer, str):
            return cls(number, None, answer)
        return cls(number, answer)


Input = Request | Received | Answered

Output = Answer | Envelope | QnsError | None
Outputs = list[Output]


@dataclass(slots=True)
class Effects:
    """What a turn makes visible, once its transaction is committed."""

    answers: Outputs
    """One for each input. An error means that the input has changed nothing."""
    sends: list[Send]
    """Requests to other peers."""
    records: list[Record]
    """Records for the history."""
    outcomes: Outcomes
    wake_at: float
    """When the peer needs a turn even if there is no input."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Member -> the seconds that its requests have taken, if there is a stopwatch."""
