"""Cursor: how far the deliveries of one subscription are read, consumed and acknowledged.

Knows no clock and no network: the streams of both clients are this, with a client around it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.client.delivered import Delivered
from qns.errors import QnsError

ACKNOWLEDGE_EVERY_S: Final = 1.0
"""Those who consume fast acknowledge many at a time, those who take their time each one."""
FRESH_S: Final = 5.0
"""What was pulled longer ago is asked for again: a lapsed lease may have passed it on."""
CHECK_EVERY_S: Final = 60.0


class CursorAhead(QnsError):
    """A cursor beyond all that the peer has delivered: the peer has lost part of its memory."""


@dataclass(slots=True)
class Cursor:
    handed: int = 0
    """The last number that the caller got."""
    consumed: int = 0
    """The last number with which the caller is done."""
    acknowledged: int = 0
    acknowledged_at: float = 0.0
    pulled_at: float = 0.0
    checked_at: float = -inf
    _waiting: deque[Delivered] = field(default_factory=deque)

    @classmethod
    def after(cls, number: int, now: float) -> Cursor:
        """The caller has committed up to this number; the peer need not know it yet."""
        return cls(number, number, acknowledged=0, acknowledged_at=now)

    def pulled(self, delivered: Iterable[Delivered], now: float) -> None:
        self._waiting.extend(delivered)
        self.pulled_at = now

    def take(self, now: float) -> Delivered | None:
        """The next one that was pulled; None if it is time to pull."""
        if self._waiting and now - self.pulled_at > FRESH_S:
            self._waiting.clear()
        if not self._waiting:
            return None
        taken = self._waiting.popleft()
        self.handed = taken.number
        return taken

    def consume(self) -> None:
        """The caller is done with what it got."""
        self.consumed = self.handed

    def owes(self, now: float) -> bool:
        """Whether it is time to acknowledge."""
        if self.consumed <= self.acknowledged:
            return False
        return not self._waiting or now - self.acknowledged_at > ACKNOWLEDGE_EVERY_S

    def wants_check(self, now: float) -> bool:
        """Whether to ask how far the peer is: deliveries below the cursor would be passed over."""
        is_due = now - self.checked_at > CHECK_EVERY_S
        return is_due and self.consumed > 0 and not self._waiting

    def check(self, id: str, delivered: int | None, now: float) -> None:
        """`delivered` is what the peer counts; it tells nothing of subscriptions that ended."""
        self.checked_at = now
        if delivered is not None and delivered < self.consumed:
            raise CursorAhead(
                f"subscription {id} has had {delivered} deliveries, the cursor is at "
                f"{self.consumed}: the peer was restored from an old backup",
                remedy="start again with after=0; some events may come a second time",
            )

    def was_acknowledged(self, upto: int, now: float) -> None:
        self.acknowledged, self.acknowledged_at = upto, now
