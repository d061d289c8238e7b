"""Waiting: an input with whoever waits for its answer; the turns that are committed together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from qns.edl.messages import ChangeSub, Notify
from qns.errors import QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Pause,
    Read,
    Renew,
    Resume,
    Unsubscribe,
)
from qns.inputs import Answered, Effects, Input, Output, Received
from qns.tables import Transaction

_SMALL: Final = (
    *(AcknowledgeDeliveries, Read, ListSubscriptions, Unsubscribe, Renew, Pause, Resume),
    Answered,
)
"""What frees room on the disk, or needs next to none."""


@dataclass(slots=True, eq=False)
class Waiting:
    input: Input
    answer: asyncio.Future[Output] | None

    def resolve(self, output: Output) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(output)

    def fail(self, error: Exception) -> None:
        if self.answer is None or self.answer.done():
            return
        if isinstance(error, QnsError):
            self.answer.set_result(error)
        else:
            self.answer.set_exception(error)


@dataclass(slots=True, eq=False)
class Group:
    """Turns that have happened in memory and go to the disk together."""

    transaction: Transaction = field(default_factory=Transaction)
    turns: list[tuple[list[Waiting], Effects, float]] = field(default_factory=list)
    """Each with its inputs, what it tells, and its time."""

    @property
    def inputs(self) -> list[Waiting]:
        return [each for batch, _, _ in self.turns for each in batch]


def needs_room(input: Input) -> bool:
    """Whether it takes more of the disk."""
    if isinstance(input, Received):
        return isinstance(input.envelope.body, Notify | ChangeSub)
    return not isinstance(input, _SMALL)
