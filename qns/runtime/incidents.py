"""Incidents: what an operator should hear of, found in the records of committed turns."""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import Final

from qns.peer import Peer
from qns.runtime.logs import tell
from qns.turn import Record

_WORDS: Final = {
    "skip": "a producer cannot send events any more",
    "drop": "the retention limit dropped an event that was owed",
    "rewind": "a producer was put back from an older copy",
    "lapse": "a member of a delivery group let its lease lapse",
}
_NOT_TOLD: Final = {"do", "t", "org"}


class Incidents:
    def __init__(self) -> None:
        self._last_letter = 0

    def watch(self, peer: Peer, records: list[Record], _: float) -> None:
        for record in records:
            words = _WORDS.get(record["do"])
            if words is not None:
                fields = {name: record[name] for name in record.keys() - _NOT_TOLD}
                tell(logging.WARNING, words, **fields)
        self._letters(peer)

    def _letters(self, peer: Peer) -> None:
        """Of the dead letters those that are new; they are numbered as they come."""
        letters = peer.edl.forwarder.custody.dead_letters
        last = next(reversed(letters), 0)
        if last <= self._last_letter:
            return
        new = list(takewhile(lambda number: number > self._last_letter, reversed(letters)))
        self._last_letter = last
        for number in reversed(new):
            letter = letters[number]
            tell(
                logging.WARNING,
                "a receiver will never take a notification: a dead letter",
                number=number,
                to=letter.receiver,
                source=letter.source,
                event=letter.event,
                reason=letter.reason,
            )
