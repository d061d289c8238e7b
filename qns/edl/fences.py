"""Fences: where the epochs of a producer begin in one numbered stream.

An entry of an older epoch is valid only below the first number of every later epoch. Of two fences
the one of the later epoch decides alone if it begins no later, so the other one is dropped. What is
kept is a staircase: later epochs begin at larger numbers. Fences that begin at the same number are
kept (`append`) where one end must show the other which epochs it knows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator

from qns.edl.messages import Fence


class Fences:
    def __init__(self, fences: Iterable[Fence] = ()) -> None:
        self._fences: list[Fence] = []
        for fence in sorted(fences):
            self.add(fence)

    def __iter__(self) -> Iterator[Fence]:
        return iter(self._fences)

    def __len__(self) -> int:
        return len(self._fences)

    @property
    def newest(self) -> Fence | None:
        return self._fences[-1] if self._fences else None

    def after(self, epoch: int) -> list[Fence]:
        """Returns the fences of epochs later than this one, oldest first."""
        return self._fences[self._place(epoch) :]

    def first_after(self, epoch: int) -> int | None:
        """Returns the number from which on entries of this epoch are not valid; None if all are."""
        place = self._place(epoch)
        return self._fences[place].first if place < len(self._fences) else None

    def append(self, fence: Fence) -> None:
        """Adds the fence of an epoch that is later than all others, and keeps those that begin at
        the same number."""
        self._fences.append(fence)

    def add(self, fence: Fence) -> list[Fence] | None:
        """Adds a fence; returns those that it replaces, or None if a later one decides already."""
        first = self.first_after(fence.epoch - 1)
        if first is not None and first <= fence.first:
            return None
        start = end = self._place(fence.epoch)
        while start and self._fences[start - 1].first >= fence.first:
            start -= 1
        replaced = self._fences[start:end]
        self._fences[start:end] = [fence]
        return replaced

    def remove_all(self, fences: Container[Fence]) -> list[Fence]:
        """Removes these fences; returns those of them that were present."""
        gone = [fence for fence in self._fences if fence in fences]
        if gone:
            self._fences = [fence for fence in self._fences if fence not in fences]
        return gone

    def _place(self, epoch: int) -> int:
        """Returns the place of the first fence of a later epoch."""
        return bisect_right(self._fences, epoch, key=lambda each: each.epoch)
