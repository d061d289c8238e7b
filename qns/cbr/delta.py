"""Delta: the elements that a change adds to and removes from a set."""

from __future__ import annotations

from dataclasses import dataclass
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


NO_CHANGE: Final[Delta[Any]] = Delta()
