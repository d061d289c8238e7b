"""Sent: a message with events, as it left its sender."""

from __future__ import annotations

from typing import NamedTuple

from qns.edl.messages import Envelope, GapPulled, Item, Notify


class Sent(NamedTuple):
    """A message with events, a request or an answer."""

    t: float
    sender: str
    to: str
    document: int
    """The version that was in force at its sender."""
    items: tuple[Item, ...]


def add_sent(sent: list[Sent], t: float, to: str, envelope: Envelope) -> None:
    """Adds the message if it has events."""
    if isinstance(envelope.body, Notify | GapPulled):
        sent.append(Sent(t, envelope.sender, to, envelope.document, envelope.body.items))
