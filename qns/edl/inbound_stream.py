"""Inbound stream: how far this consumer has come in the numbered stream of one producer.

The producer numbers the events for each consumer densely, so a gap is visible. A number at or below
`last` is a duplicate. A number beyond the next one is early and held back. Fences decide which
numbers of older epochs are valid (docs/decisions.md, Delivery).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from qns.edl.accepted_events import AcceptedEvents
from qns.edl.fences import Fences
from qns.edl.messages import Entry, Fence, Standing
from qns.edl.validation import MOST_FENCES
from qns.peer.outcomes import IncidentKind
from qns.peer.tables import EARLY, INBOUND, INBOUND_FENCES, EarlyRow, InboundFenceRow, InboundRow
from qns.peer.turn import Turn


class Place(Enum):
    """Where an entry stands in its stream."""

    NEXT = "next"
    EARLY = "early"
    DUPLICATE = "duplicate"
    OBSOLETE = "obsolete"
    """The entry belongs to an epoch that the restored producer does not remember."""
    UNKNOWN = "unknown"
    """The entry belongs to an epoch whose fences are not all known here."""


class NewEpoch(NamedTuple):
    """A later epoch of the producer, which this consumer has just learned of."""

    first: int | None
    """Where the first of the new epochs begins, if that is known."""
    sets_back: bool
    """True if numbers that this consumer has accepted or holds back are not valid any more."""
    cut_off: list[EarlyRow]
    """The early entries that are not valid any more."""
    before: Standing
    """The standing before; if the epoch sets the stream back, it proves what was forgotten."""


@dataclass(slots=True, eq=False)
class InboundStream:
    producer: str
    producer_incarnation: int
    consumer_incarnation: int
    consumer_epoch: int
    epoch: int = 0
    """The newest epoch of the producer whose fences are all known here."""
    last: int = 0
    """The last number that was accepted, together with all numbers before it."""
    reached: int = 0
    """The last number that was accepted before a fence set the stream back, if the numbers since
    `last` may be sent again; otherwise `last`."""
    accepted: AcceptedEvents = field(init=False)
    fences: Fences = field(default_factory=Fences)
    """The fences that set this stream back, the newest one, and others that are still needed."""
    harmless: set[Fence] = field(default_factory=set)
    """Those of `fences` that did not set this stream back, and that the producer remembers."""
    early: dict[int, EarlyRow] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.accepted = AcceptedEvents(self.producer, self.producer_incarnation)

    @property
    def standing(self) -> Standing:
        return Standing(
            self.producer_incarnation,
            self.consumer_incarnation,
            self.consumer_epoch,
            self.epoch,
            self.last,
            tuple(self.fences),
        )

    @property
    def gap(self) -> int | None:
        """The last of the numbers that are missing before an early one."""
        return min(self.early) - 1 if self.early else None

    def place(self, epoch: int, number: int) -> Place:
        if epoch > self.epoch:
            return Place.UNKNOWN
        first = self.fences.first_after(epoch)
        if first is not None and number >= first:
            return Place.OBSOLETE
        if number <= self.last:
            return Place.DUPLICATE
        return Place.NEXT if number == self.last + 1 else Place.EARLY

    # --- epochs -----------------------------------------------------------------------------------

    def learn_from(self, turn: Turn, entry: Entry) -> NewEpoch | None:
        """Learns from an entry, if it has every fence that this consumer may not know."""
        if entry.confirmed > self.epoch:
            return None
        return self.learn(turn, entry.epoch, entry.fences, entry.confirmed)

    def learn(
        self, turn: Turn, epoch: int, fences: Collection[Fence], confirmed: int = 0
    ) -> NewEpoch | None:
        """Takes over the epoch and the fences of the producer; returns None if they are not new.

        The fences of epochs up to `confirmed` may be missing.
        """
        if epoch <= self.epoch:
            return None
        before = self.standing
        fresh = Fences(fences).after(self.epoch)
        forgotten = self._find_forgotten(fences, confirmed, fresh)
        if forgotten is not None:
            self._keep(turn, forgotten, fresh[0].first)
        self.epoch = epoch
        is_set_back, cut_off = False, list[EarlyRow]()
        highest = max(self.early, default=0)
        for fence in fresh:  # later ones begin at larger numbers
            obsolete = self._obsolete(fence) if fence.first <= highest else []
            sets_back = fence.first <= self.last or bool(obsolete)
            self._add_fence(turn, fence, sets_back, is_apart=forgotten is not None)
            if sets_back:
                self._report(turn, fence)
                self.last = max(0, min(self.last, fence.first - 1))
                cut_off += self._pop(turn, obsolete)
                is_set_back, highest = True, fence.first - 1
        self._drop_fences(turn)
        self.put(turn)
        return NewEpoch(fresh[0].first if fresh else None, is_set_back, cut_off, before)

    def _obsolete(self, fence: Fence) -> list[EarlyRow]:
        """Returns the early entries that are not valid any more because of this fence."""
        return [
            row
            for row in self.early.values()
            if row.epoch < fence.epoch and row.number >= fence.first
        ]

    def _report(self, turn: Turn, fence: Fence) -> None:
        """Records that the stream is set back, and tells the operator what that means."""
        fields: dict[str, object] = {
            "source": self.producer,
            "joined": self.producer_incarnation,
            "own": self.consumer_incarnation,
            "epoch": fence.epoch,
            "first": fence.first,
        }
        turn.record("rewind", **fields)
        kind = IncidentKind.FORGOTTEN if fence.first <= 1 else IncidentKind.REWIND
        turn.warn(kind, **fields)

    def recover_fence(self, row: InboundFenceRow) -> None:
        fence = Fence(row.epoch, row.first)
        self.fences.append(fence)
        if not row.sets_back:
            self.harmless.add(fence)

    def _add_fence(
        self, turn: Turn, fence: Fence, sets_back: bool, *, is_apart: bool = False
    ) -> None:
        """Adds a fence; `is_apart` says that it replaces none that begins at the same number."""
        if is_apart:
            self.fences.append(fence)
        else:
            replaced = self.fences.add(fence)
            if replaced is None:
                return
            for each in replaced:
                self._delete_fence(turn, each)
        if not sets_back:
            self.harmless.add(fence)
        row = InboundFenceRow(self.producer, self.producer_incarnation, *fence, int(sets_back))
        turn.put(INBOUND_FENCES, row)

    def _find_forgotten(
        self, fences: Collection[Fence], confirmed: int, fresh: list[Fence]
    ) -> Fence | None:
        """Returns the newest fence if the producer has forgotten its epoch, and may have used
        numbers again in an earlier epoch that this consumer has not seen."""
        newest = self.fences.newest
        if newest is None or not fresh or newest in fences:
            return None
        unseen = (each for each in fences if confirmed < each.epoch < newest.epoch)
        return newest if any(each.first < fresh[0].first for each in unseen) else None

    def _keep(self, turn: Turn, forgotten: Fence, first: int) -> None:
        """Keeps a forgotten fence for the standing, which tells the producer of the epoch. It moves
        to `first`, where a later epoch begins, if that is earlier."""
        self.harmless.discard(forgotten)
        self.fences.remove_all({forgotten})
        self._add_fence(turn, Fence(forgotten.epoch, min(first, forgotten.first)), sets_back=True)

    def _drop_fences(self, turn: Turn) -> None:
        """Drops harmless fences before the newest one, if all numbers before that have arrived:
        an entry of an older epoch is then a duplicate, or obsolete because of the newest one."""
        newest = self.fences.newest
        needless: set[Fence] = set()
        if newest is not None and newest.first <= self.last + 1:
            needless = self.harmless - {newest}
        if len(self.fences) - len(needless) > MOST_FENCES:  # no correct producer has as many
            needless.update(list(self.fences)[:-MOST_FENCES])
        for fence in self.fences.remove_all(needless):
            self._delete_fence(turn, fence)

    def _delete_fence(self, turn: Turn, fence: Fence) -> None:
        self.harmless.discard(fence)
        turn.delete(INBOUND_FENCES, self.producer, self.producer_incarnation, fence.epoch)

    # --- progress ---------------------------------------------------------------------------------

    @property
    def is_repeating(self) -> bool:
        """True if the next numbers were accepted before, and the producer may send them again."""
        return self.last < self.reached

    def was_accepted(self, number: int, position: tuple[int, int, int]) -> bool:
        """True if the number was accepted for the same event before the stream was set back.

        A producer that went back in time has the same events under the numbers that it remembers.
        Those that it publishes since belong to another epoch. Only an old event that it numbers
        anew for a late subscriber looks the same.
        """
        return number <= self.reached and self.accepted.has(position)

    def advance(
        self, turn: Turn, number: int, position: tuple[int, int, int], *, is_new: bool
    ) -> None:
        """Accepts the next number; the caller writes the row with `put`.

        A new event shows that this number, and all later ones, have another meaning than before the
        stream was set back.
        """
        self.last = number
        if is_new or number > self.reached:
            self.reached = number
        self.accepted.add(turn, position)

    def skip_to(self, turn: Turn, last: int) -> list[EarlyRow]:
        """Advances past a skip; returns the early entries that it passed."""
        self.last, self.reached = last, max(last, self.reached)
        self.put(turn)
        return self._pop(turn, [row for number, row in self.early.items() if number <= last])

    def record_taken(self, turn: Turn, epoch: int, number: int, event: str) -> None:
        # One record for each notification: `turn.record` would take twice as long.
        turn.records.append(
            {
                "do": "take",
                "source": self.producer,
                "joined": self.producer_incarnation,
                "epoch": epoch,
                "number": number,
                "event": event,
                "own": self.consumer_incarnation,
            }
        )

    def hold_back(self, turn: Turn, row: EarlyRow) -> None:
        self.early[row.number] = row
        turn.put(EARLY, row)

    def pop_next(self, turn: Turn) -> EarlyRow | None:
        """Removes and returns the early entry whose number is the next one."""
        row = self.early.get(self.last + 1)
        if row is not None:
            self._pop(turn, [row])
        return row

    def pop_all(self, turn: Turn) -> list[EarlyRow]:
        """Removes and returns every early entry."""
        return self._pop(turn, list(self.early.values()))

    def end(self, turn: Turn) -> list[EarlyRow]:
        """Removes the stream from the store; returns the early entries that were held back."""
        for fence in self.fences:
            turn.delete(INBOUND_FENCES, self.producer, self.producer_incarnation, fence.epoch)
        self.accepted.end(turn)
        turn.delete(INBOUND, self.producer, self.producer_incarnation)
        return self.pop_all(turn)

    def put(self, turn: Turn) -> None:
        """Writes the row, so that the stream is known even if nothing has arrived yet."""
        row = InboundRow(
            self.producer,
            self.producer_incarnation,
            self.epoch,
            self.last,
            self.reached,
            self.accepted.epoch,
            self.accepted.sequence,
        )
        turn.put(INBOUND, row)

    def _pop(self, turn: Turn, rows: list[EarlyRow]) -> list[EarlyRow]:
        for row in rows:
            del self.early[row.number]
            turn.delete(EARLY, self.producer, self.producer_incarnation, row.number)
        return rows
