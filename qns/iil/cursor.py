"""Cursor: the last delivery that a reader has read, as a value and as a text that readers store.

15@9f86d081884c7d65    delivery 15 of that number series
15                     delivery 15, without a check (older peers give no series)
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from qns.errors import NotAllowed, ValueRefused, show

_TEXT: Final = re.compile(r"([0-9]{1,19})(?:@([0-9a-zA-Z]{1,40}))?", re.ASCII)


class Cursor(NamedTuple):
    """A delivery of one subscription, by its number and its number series."""

    number: int
    series: str = ""
    """Empty if it is not known; then the peer cannot check the number."""

    @classmethod
    def of(cls, after: int | str) -> Cursor:
        """Reads what a program passes as `after`; raises ValueRefused for any other text."""
        if isinstance(after, int):
            return cls(after)
        found = _TEXT.fullmatch(after) if isinstance(after, str) else None
        if found is None:
            raise ValueRefused(
                f"{show(after)} is no cursor",
                remedy="pass the cursor or the number of a delivery, or 0",
            )
        return cls(int(found[1]), found[2] or "")

    def __str__(self) -> str:
        return f"{self.number}@{self.series}" if self.series else str(self.number)


class CursorAhead(NotAllowed):
    """The cursor names a delivery that the peer has not made, or not any more.

    The peer was restored from an old backup, or its files were put back to an older state. It has
    used numbers again since, so a reader that continued after its cursor would skip deliveries.
    """

    id: str = ""
    """The id of the subscription."""
    number: int = 0
    """The number of the cursor."""
    delivered: int = 0
    """How many deliveries the peer has made."""

    @classmethod
    def of(cls, id: str, number: int, delivered: int) -> Self:
        """Returns the error for a cursor at this number of a subscription."""
        other = ", which is another delivery now" if delivered >= number else ""
        error = cls(
            f"subscription {id} has had {delivered} deliveries, the cursor is at {number}{other}: "
            "the peer was put back to an older state, or it is the cursor of another subscription",
            remedy="start again with after=0; some events may come a second time",
        )
        error.id, error.number, error.delivered = id, number, delivered
        return error
