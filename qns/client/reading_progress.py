"""Reading progress: which deliveries of a subscription are returned, consumed and acknowledged.

It has no clock and no network; the time is a parameter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.client.delivered import Delivered
from qns.iil.cursor import Cursor, CursorAhead

ACKNOWLEDGE_EVERY_S: Final = 1.0
"""A fast reader acknowledges several deliveries together, this often."""
FRESH_S: Final = 5.0
"""Deliveries that were pulled longer ago are pulled again: another group member may have them."""
CHECK_EVERY_S: Final = 60.0


_NOTHING: Final = Cursor(0)


@dataclass(slots=True)
class ReadingProgress:
    """How far one delivery stream has come."""

    returned: Cursor = _NOTHING
    """The last delivery that the caller got."""
    consumed: Cursor = _NOTHING
    """The last delivery that the caller has finished."""
    acknowledged: int = 0
    acknowledged_at: float = 0.0
    pulled_at: float = 0.0
    checked_at: float = -inf
    _waiting: deque[Delivered] = field(default_factory=deque)

    @classmethod
    def after(cls, cursor: Cursor, now: float) -> ReadingProgress:
        """Starts after a delivery that the caller has committed, acknowledged or not."""
        return cls(cursor, cursor, acknowledged=0, acknowledged_at=now)

    def pulled(self, delivered: Iterable[Delivered], now: float) -> None:
        """Adds deliveries from the peer."""
        self._waiting.extend(delivered)
        self.pulled_at = now

    def take(self, now: float) -> Delivered | None:
        """Returns the next pulled delivery, or None if the peer has to be asked."""
        if self._waiting and now - self.pulled_at > FRESH_S:
            self._waiting.clear()
        if not self._waiting:
            return None
        taken = self._waiting.popleft()
        self.returned = Cursor(taken.number, taken.series)
        return taken

    def consume(self) -> None:
        """Marks everything that was returned as finished by the caller."""
        self.consumed = self.returned

    def skip(self, last: Cursor) -> None:
        """Continues after numbers that the peer has dropped."""
        self.returned = self.consumed = last

    def wants_acknowledgement(self, now: float) -> bool:
        """True if consumed deliveries should be acknowledged now."""
        if self.consumed.number <= self.acknowledged:
            return False
        return not self._waiting or now - self.acknowledged_at > ACKNOWLEDGE_EVERY_S

    def wants_check(self, now: float) -> bool:
        """True if the cursor should be compared with the peer's count of deliveries.

        A cursor that is ahead of the peer would skip the peer's next deliveries. If it has a
        number series, the peer compares it with every request.
        """
        is_due = now - self.checked_at > CHECK_EVERY_S
        return (
            is_due and self.consumed.number > 0 and not self.consumed.series and not self._waiting
        )

    def check(self, id: str, delivered: int | None, now: float) -> None:
        """Raises CursorAhead if the peer has counted fewer deliveries; None if it has no count."""
        self.checked_at = now
        if delivered is not None and delivered < self.consumed.number:
            raise CursorAhead.of(id, self.consumed.number, delivered)

    def was_acknowledged(self, upto: int, now: float) -> None:
        """Records that the peer has the acknowledgement."""
        self.acknowledged, self.acknowledged_at = upto, now
