"""Waiting: an input with whoever waits for its answer; the turns that are committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
from qns.runtime.logs import tell_exception
from qns.tables import Transaction

_SMALL: Final = (
    *(AcknowledgeDeliveries, Read, ListSubscriptions, Unsubscribe, Renew, Pause, Resume),
    Answered,
)
"""What frees room on the disk, or needs next to none."""


Then = Callable[[Output | Exception], None]
"""Is told the answer, or the error that prevented one."""


def told_to(answer: asyncio.Future[Output]) -> Then:
    """For who awaits it; who gave up waiting hears nothing."""

    def then(output: Output | Exception) -> None:
        if answer.done():
            return
        if isinstance(output, Exception) and not isinstance(output, QnsError):
            answer.set_exception(output)
        else:
            answer.set_result(output)

    return then


class Waiting(NamedTuple):
    input: Input
    then: Then | None

    def resolve(self, output: Output | Exception) -> None:
        if self.then is None:
            return
        try:
            self.then(output)
        except Exception:  # whoever waited cannot stop the peer
            tell_exception("an answer was not passed on")


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
