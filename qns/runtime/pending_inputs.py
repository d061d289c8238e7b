"""Pending inputs: how the answers to inputs are passed on, and which inputs need room."""

from __future__ import annotations

import asyncio
from typing import Final

from qns.edl.messages import ChangeSub, Notify
from qns.errors import QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    DropDeadLetter,
    ListSubscriptions,
    Pause,
    PullDeliveries,
    Renew,
    Resume,
    Unsubscribe,
)
from qns.peer.inputs import Answered, Input, Output, Received
from qns.peer.turn_queue import OnAnswer, PendingInput
from qns.runtime.logs import log_exception

_SMALL: Final = (
    AcknowledgeDeliveries,
    DropDeadLetter,
    PullDeliveries,
    ListSubscriptions,
    Unsubscribe,
    Renew,
    Pause,
    Resume,
    Answered,
)
"""Inputs that free room on the disk, or need almost none."""


def resolver(answer: asyncio.Future[Output]) -> OnAnswer:
    """Returns a callback that resolves the future, unless its caller has given up."""

    def on_answer(output: Output | Exception) -> None:
        if answer.done():
            return
        if isinstance(output, Exception) and not isinstance(output, QnsError):
            answer.set_exception(output)
        else:
            answer.set_result(output)

    return on_answer


def needs_room(input: Input) -> bool:
    """True if the input needs room on the disk."""
    if isinstance(input, Received):
        return isinstance(input.envelope.body, Notify | ChangeSub)
    return not isinstance(input, _SMALL)


def resolve(pending: PendingInput, output: Output | Exception) -> None:
    """Passes the answer to whoever waits for it."""
    if pending.on_answer is None:
        return
    try:
        pending.on_answer(output)
    except Exception:  # a failing callback must not stop the peer
        log_exception("an answer was not passed on")
