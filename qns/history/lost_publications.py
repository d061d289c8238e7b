"""Lost publications: events that were notified, but whose publication is in no record.

The records of a real peer are in its store. If its store is restored from a backup or lost, the
records since the backup are gone, and with them the publications that others have received. The
judge accepts such an event only if it belongs to that gap: the consumer took it in an epoch from
that of the backup on and before that of the restore, under a number beyond all that the remaining
records of the producer have given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from qns.history.records import Record
from qns.history.world import Link, World


class _Gap(NamedTuple):
    """What a restore of a producer has made its store forget."""

    first_epoch: int
    """The epoch of the last start that its records still have."""
    end_epoch: int
    """The epoch that it began as restored."""
    last_numbers: dict[Link, int]
    """Stream -> the last number that its records still have."""


@dataclass(slots=True)
class LostPublications:
    world: World
    _epochs: dict[str, int] = field(default_factory=dict)
    """Organisation -> the epoch of its last start."""
    _gaps: dict[str, list[_Gap]] = field(default_factory=dict)
    _taken: dict[tuple[str, str, str], Record] = field(default_factory=dict)
    """Consumer, source, event -> the record with which the consumer last took it."""
    _unpublished: dict[int, Record | None] = field(default_factory=dict)
    """Notification without a publication -> the record with which its event was taken."""

    def start(self, record: Record) -> None:
        name, epoch = record["org"], record["epoch"]
        if record["restored"]:
            last = {
                link: max(each.place for each in crossings)
                for link, crossings in self.world.crossings.items()
                if link[0] == name and crossings
            }
            gap = _Gap(self._epochs.get(name, 0), epoch, last)
            self._gaps.setdefault(name, []).append(gap)
        self._epochs[name] = epoch

    def take(self, record: Record) -> None:
        self._taken[record["org"], record["source"], record["event"]] = record

    def notify(self, number: int, record: Record) -> None:
        """Notes a notification of an event whose publication is not known."""
        key = record["org"], record["source"], record["event"]
        self._unpublished[number] = self._taken.get(key)

    def is_unpublished(self, number: int) -> bool:
        """True if this notification came before any publication of its event."""
        return number in self._unpublished

    def conclude(self, broken: Callable[[int], None]) -> int:
        """Calls back for each notification that no gap explains; returns how many events one does.

        This waits for the end of the history: the clocks of peers differ, and a consumer may learn
        of the restore late.
        """
        lost: set[tuple[str, str]] = set()
        for number, taken in self._unpublished.items():
            if taken is not None and self._is_explained(taken):
                lost.add((taken["source"], taken["event"]))
            else:
                broken(number)
        return len(lost)

    def _is_explained(self, taken: Record) -> bool:
        source = taken["source"]
        link = source, taken["joined"], taken["org"], taken["own"]
        return any(
            gap.first_epoch <= taken["epoch"] < gap.end_epoch
            and taken["number"] > gap.last_numbers.get(link, 0)
            for gap in self._gaps.get(source, ())
        )
