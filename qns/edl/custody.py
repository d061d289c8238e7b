"""Custody: the durable promises of the Forwarder to bring events further down the tree.

A promise is a row. It is written in the transaction that accepts the event and deleted when the
receiver has accepted the event, so that a forwarder goes on after a crash.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from qns.edl.link import Parcel
from qns.edl.messages import Entry, Fence
from qns.errors import NotAllowed
from qns.peer.event_log import EventLog
from qns.peer.outcomes import IncidentKind, Rejection
from qns.peer.ports import Store
from qns.peer.tables import CUSTODY, DEAD_LETTERS, CustodyRow, DeadLetterRow
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Custody:
    log: EventLog
    most_dead_letters: float = inf
    """The limit of dead letters with events of one source for one receiver."""
    parcels: dict[int, Parcel] = field(default_factory=dict)
    """Promises that are not fulfilled yet, by id."""
    dead_letters: dict[int, DeadLetterRow] = field(default_factory=dict)
    _letters: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(source, receiver) -> the number of dead letters."""
    _number: int = 0
    """The last id; promises and dead letters share the ids."""

    def __len__(self) -> int:
        return len(self.parcels)

    def recover_from(self, store: Store) -> Iterator[Parcel]:
        """Recovers promises and dead letters; yields the parcels that have to be sent."""
        for letter in store.rows(DEAD_LETTERS):
            self.recover_letter(letter)
        for row in store.rows(CUSTODY):
            yield self.recover(row)

    def recover(self, row: CustodyRow) -> Parcel:
        parcel = _read_parcel(row)
        self._keep(parcel, row.id)
        return parcel

    def recover_letter(self, row: DeadLetterRow) -> None:
        self._keep_letter(row)
        self._number = max(self._number, row.id)

    def promise(self, turn: Turn, parcel: Parcel) -> None:
        self._keep(parcel, self._number + 1)
        self.put(turn, parcel)

    def put(self, turn: Turn, parcel: Parcel) -> None:
        """Writes the row of a promise."""
        assert parcel.custody is not None
        route = write_route(parcel)
        row = CustodyRow(parcel.custody, parcel.entry.receiver, *parcel.event, route)
        turn.put(CUSTODY, row)

    def fulfil(self, turn: Turn, parcel: Parcel) -> None:
        """Ends a promise: the receiver has the event, or nothing is owed to it any more."""
        if parcel.custody is not None and parcel.custody in self.parcels:
            del self.parcels[parcel.custody]
            turn.delete(CUSTODY, parcel.custody)
            self.log.release(parcel.event)

    # --- dead letters -----------------------------------------------------------------------------

    def reject(self, turn: Turn, parcel: Parcel, reason: str) -> None:
        """Makes a dead letter of a parcel that its receiver will never accept.

        If there are too many dead letters of its source and its receiver, the event is given up as
        a declared loss: one of the two does something wrong, and others must not pay for it.
        """
        source, receiver = parcel.event[0], parcel.entry.receiver
        if self._letters[source, receiver] >= self.most_dead_letters:
            discard(turn, parcel)
        else:
            number = self._number = self._number + 1
            route = write_route(parcel)
            letter = DeadLetterRow(number, turn.now, receiver, *parcel.event, route, reason)
            self._keep_letter(letter)
            turn.put(DEAD_LETTERS, letter)
            turn.outcomes.rejections.append(rejection_of(letter))
        self.fulfil(turn, parcel)

    def dead_letter(self, number: int) -> DeadLetterRow:
        """Returns a dead letter; raises NotAllowed if there is none of this number."""
        letter = self.dead_letters.get(number)
        if letter is None:
            raise NotAllowed(
                f"there is no dead letter {number}", remedy="see qns peer dead-letters list"
            )
        return letter

    def take_dead_letter(self, turn: Turn, number: int) -> Parcel:
        """Removes a dead letter and returns its parcel."""
        letter = self.dead_letters.pop(number)
        self._letters[letter.source, letter.receiver] -= 1
        turn.delete(DEAD_LETTERS, number)
        self.log.release((letter.source, letter.event))
        return _read_parcel(letter)

    def _keep_letter(self, letter: DeadLetterRow) -> None:
        self.dead_letters[letter.id] = letter
        self._letters[letter.source, letter.receiver] += 1
        self.log.hold((letter.source, letter.event))

    def _keep(self, parcel: Parcel, number: int) -> None:
        parcel.custody = number
        self._number = max(self._number, number)
        self.parcels[number] = parcel
        self.log.hold(parcel.event)


def discard(turn: Turn, parcel: Parcel) -> None:
    """Declares that this peer gives up an event that its receiver rejects."""
    source, event = parcel.event
    entry = parcel.entry
    turn.report(
        IncidentKind.DISCARD,
        to=entry.receiver,
        joined=entry.incarnation,
        source=source,
        event=event,
    )


def rejection_of(letter: DeadLetterRow) -> Rejection:
    return Rejection(letter.id, letter.receiver, letter.source, letter.event, letter.reason)


# --- routes ---------------------------------------------------------------------------------------


def write_route(parcel: Parcel) -> str:
    """Writes incarnation, path, entry and seal of a parcel as JSON.

    The fields of seals are left out if there is no seal, as releases before them wrote it.
    """
    fields = [parcel.producer_incarnation, parcel.path, _entry_fields(parcel.entry)]
    if parcel.seal:
        fields.append(_text(parcel.seal))
    return json.dumps(fields, separators=(",", ":"))


def read_route(text: str) -> tuple[int, tuple[str, ...], Entry, bytes]:
    """Returns the incarnation of the producer, the path, the entry and the seal."""
    incarnation, path, fields, *seal = json.loads(text)
    return incarnation, tuple(path), _read_entry(fields), b"".join(map(a2b_base64, seal))


def _read_parcel(row: CustodyRow | DeadLetterRow) -> Parcel:
    incarnation, path, entry, seal = read_route(row.entry)
    return Parcel((row.source, row.event), incarnation, entry, path, None, seal)


def _entry_fields(entry: Entry) -> list[Any]:
    *fields, children, carriers, proof = entry
    below = [_entry_fields(child) for child in children]
    return [*fields, below, carriers, _text(proof)] if proof else [*fields, below]


def _read_entry(fields: list[Any]) -> Entry:
    receiver, incarnation, epoch, number, confirmed, fences, children, *proved = fields
    carriers, proof = proved or ((), "")
    return Entry(
        receiver,
        incarnation,
        epoch,
        number,
        confirmed,
        tuple(Fence(*each) for each in fences),
        tuple(map(_read_entry, children)),
        tuple(carriers),
        a2b_base64(proof),
    )


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
