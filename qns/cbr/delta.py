"""Delta: the elements that a change adds to and removes from a set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """A change of a set; it is false if nothing changes. No element is both added and removed."""

    added: frozenset[T] = frozenset()
    removed: frozenset[T] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def then(self, later: Delta[T]) -> Delta[T]:
        """Returns both changes as one. An element that is added and then removed cancels out."""
        return Delta(
            (self.added - later.removed) | (later.added - self.removed),
            (self.removed - later.added) | (later.removed - self.added),
        )


@dataclass(slots=True)
class GrowingDelta(Generic[T]):
    """The sum of many changes of a set; a further change costs time in proportion to its size."""

    added: set[T] = field(default_factory=set)
    removed: set[T] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def include(self, later: Delta[T]) -> None:
        """Adds a later change, as `Delta.then` does."""
        added, removed = later.added - self.removed, later.removed - self.added
        self.added -= later.removed
        self.removed -= later.added
        self.added |= added
        self.removed |= removed

    def taken(self) -> Delta[T]:
        """Returns the sum and begins anew."""
        found = Delta(frozenset(self.added), frozenset(self.removed))
        self.added, self.removed = set(), set()
        return found


NO_CHANGE: Final[Delta[Any]] = Delta()
