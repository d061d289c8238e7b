"""Custody: the promises of the Forwarder to bring other producers' events further down the tree.

A promise is a row, made in the transaction that takes the event in and kept until the receiver has
taken it: a forwarder that crashes goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from qns.edl.link import Parcel
from qns.edl.messages import Entry, Fence
from qns.event_log import EventLog
from qns.tables import CUSTODY, DEAD_LETTERS, CustodyRow, DeadLetterRow
from qns.turn import Turn


@dataclass(slots=True, eq=False)
class Custody:
    log: EventLog
    parcels: dict[int, Parcel] = field(default_factory=dict)
    dead_letters: dict[int, DeadLetterRow] = field(default_factory=dict)
    _number: int = 0

    def __len__(self) -> int:
        return len(self.parcels)

    def recover(self, row: CustodyRow) -> Parcel:
        joined, path, entry = read_route(row.entry)
        parcel = Parcel((row.source, row.event), joined, entry, path, row.id)
        self._keep(parcel, row.id)
        return parcel

    def promise(self, turn: Turn, parcel: Parcel) -> None:
        self._keep(parcel, self._number + 1)
        self.put(turn, parcel)

    def put(self, turn: Turn, parcel: Parcel) -> None:
        assert parcel.custody is not None
        route = write_route(parcel)
        row = CustodyRow(parcel.custody, parcel.entry.receiver, *parcel.event, route)
        turn.put(CUSTODY, row)

    def fulfil(self, turn: Turn, parcel: Parcel) -> None:
        """The receiver has taken it, or nobody wants it any more."""
        if parcel.custody is not None and parcel.custody in self.parcels:
            del self.parcels[parcel.custody]
            turn.delete(CUSTODY, parcel.custody)
            self.log.release(parcel.event)

    def refuse(self, turn: Turn, parcel: Parcel, reason: str) -> None:
        """The receiver will never take it: an operator has to look at it."""
        number = self._number = self._number + 1
        letter = DeadLetterRow(
            number, turn.now, parcel.entry.receiver, *parcel.event, write_route(parcel), reason
        )
        self.dead_letters[number] = letter
        self.log.hold(parcel.event)
        turn.put(DEAD_LETTERS, letter)
        self.fulfil(turn, parcel)

    def bury(self, turn: Turn, number: int) -> Parcel:
        """Takes a dead letter out, to drop it or to send it once more."""
        letter = self.dead_letters.pop(number)
        turn.delete(DEAD_LETTERS, number)
        self.log.release((letter.source, letter.event))
        joined, path, entry = read_route(letter.entry)
        return Parcel((letter.source, letter.event), joined, entry, path, None)

    def recover_letter(self, row: DeadLetterRow) -> None:
        self.dead_letters[row.id] = row
        self._number = max(self._number, row.id)
        self.log.hold((row.source, row.event))

    def to(self, receiver: str) -> Iterator[Parcel]:
        return (each for each in list(self.parcels.values()) if each.entry.receiver == receiver)

    def _keep(self, parcel: Parcel, number: int) -> None:
        parcel.custody = number
        self._number = max(self._number, number)
        self.parcels[number] = parcel
        self.log.hold(parcel.event)


def write_route(parcel: Parcel) -> str:
    return json.dumps([parcel.joined, parcel.path, _fields(parcel.entry)], separators=(",", ":"))


def read_route(text: str) -> tuple[int, tuple[str, ...], Entry]:
    joined, path, fields = json.loads(text)
    return joined, tuple(path), _entry(fields)


def _fields(entry: Entry) -> list[Any]:
    return [
        entry.receiver,
        entry.joined,
        entry.epoch,
        entry.number,
        entry.confirmed,
        entry.fences,
        [_fields(child) for child in entry.children],
    ]


def _entry(fields: list[Any]) -> Entry:
    receiver, joined, epoch, number, confirmed, fences, children = fields
    return Entry(
        receiver,
        joined,
        epoch,
        number,
        confirmed,
        tuple(Fence(*each) for each in fences),
        tuple(map(_entry, children)),
    )
