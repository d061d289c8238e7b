"""Dead letters: the notifications that their receivers rejected for good, as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from qns.d2q.event_json import write_event_json
from qns.d2q.schema import Schema
from qns.edl.custody import Custody
from qns.peer.event_log import EventLog
from qns.peer.tables import DeadLetterRow


class DeadLetter(NamedTuple):
    number: int
    """The number by which operators name the letter."""
    at: float
    """When the receiver rejected it."""
    receiver: str
    source: str
    event: str
    data_class: str
    reason: str


def dead_letters(custody: Custody, log: EventLog, receiver: str | None) -> Iterator[DeadLetter]:
    """Yields the letters of one receiver, or of all if it is None, oldest first."""
    for number in sorted(custody.dead_letters):
        row = custody.dead_letters[number]
        if receiver is None or row.receiver == receiver:
            yield _letter(row, log)


def dead_letter(custody: Custody, log: EventLog, number: int) -> DeadLetter:
    """Returns one letter; raises NotAllowed if there is none of this number."""
    return _letter(custody.dead_letter(number), log)


def content_of(letter: DeadLetter, log: EventLog, schema: Schema) -> dict[str, Any]:
    """Returns the event of a letter as a JSON object."""
    return write_event_json(log[letter.source, letter.event].event, schema)


def _letter(row: DeadLetterRow, log: EventLog) -> DeadLetter:
    data_class = log[row.source, row.event].event.data_class
    return DeadLetter(row.id, row.at, row.receiver, row.source, row.event, data_class, row.reason)
