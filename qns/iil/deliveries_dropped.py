"""Deliveries dropped: the error that declares to a reader what an operator's limit has dropped."""

from __future__ import annotations

from typing import NamedTuple, Self

from qns.errors import NotAllowed
from qns.iil.cursor import Cursor


class Dropped(NamedTuple):
    """Deliveries that the operator's limit on queues dropped before they were read."""

    first: int
    """The number of the first one."""
    last: int
    """The number of the last one."""


class DeliveriesDropped(NotAllowed):
    """Deliveries were dropped before they were read: the operator's limit on queues was reached.

    A pull is rejected with this error until it asks for deliveries after the dropped ones, or they
    are acknowledged. So a reader cannot miss them by accident.
    """

    id: str = ""
    """The id of the subscription."""
    dropped: tuple[Dropped, ...] = ()
    """The numbers that were dropped, as ranges."""
    series: str = ""
    """The number series of the last one."""

    @classmethod
    def of(cls, id: str, dropped: tuple[Dropped, ...], series: str = "") -> Self:
        """Returns the error for these numbers of a subscription."""
        numbers = ", ".join(
            f"{each.first} to {each.last}" if each.last > each.first else f"{each.first}"
            for each in dropped
        )
        error = cls(
            f"deliveries {numbers} of subscription {id} were dropped: they were not read, and the "
            "operator's limit was reached",
            remedy=f"acknowledge {dropped[-1].last}, or pull after it",
        )
        error.id, error.dropped, error.series = id, dropped, series
        return error

    @property
    def last(self) -> int:
        """The last number that was dropped."""
        return self.dropped[-1].last

    @property
    def cursor(self) -> str:
        """The place after everything that was dropped. Pass it as `after`."""
        return str(Cursor(self.last, self.series))
