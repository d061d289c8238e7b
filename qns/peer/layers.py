"""Layers: what the two layers of a peer need from each other.

The Internal Interface Layer and the External Diffusion Layer do not import each other. The users'
side implements `DeliverySink`, which the diffusion side calls when something arrives. The diffusion
side implements `Interest`, which the users' side calls when subscriptions change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from qns.cbr.subscription import Subscription
from qns.peer.event_log import LoggedEvent
from qns.peer.turn import Turn


class ViewProgress(NamedTuple):
    """How far the view for one producer and the stream from it have come."""

    producer: str
    incarnation: int
    """The producer's incarnation."""
    epoch: int
    """The newest epoch of the producer that this peer knows."""
    hosted: frozenset[str]
    """The classes that the producer hosts."""
    version: int
    """The version that the view has here."""
    backlog_end: int | None
    """The number that completes the view's backlog; None if the view is not in force there."""
    last: int
    """The last number of the stream that this peer has accepted."""


class DeliverySink(Protocol):
    """What the External Diffusion Layer calls: implemented by the Internal Interface Layer."""

    def offer(self, turn: Turn, events: Sequence[LoggedEvent]) -> None:
        """Offers accepted events to the users, in the order of `events`."""

    def offer_again(self, turn: Turn, logged: LoggedEvent, offered_to: int) -> None:
        """Offers an event to the users who subscribed after the subscription `offered_to`."""

    def newest_subscription(self) -> int:
        """Returns the number of the newest subscription (`created`)."""

    def stream_advanced(
        self, turn: Turn, producer: str, last: int, view: ViewProgress | None
    ) -> None:
        """Ends the waiting of subscriptions whose backlog ends at `last` or before.

        `view` is None if the producer has left the federation.
        """

    def view_confirmed(self, turn: Turn, version: int, upto: int, view: ViewProgress) -> None:
        """Notes that the producer has this version in force, with a backlog up to number `upto`."""

    def view_unconfirmed(self, turn: Turn, view: ViewProgress) -> None:
        """Makes every subscription wait for the producer again: its view is not known any more."""

    def void_backlogs(self, turn: Turn, producer: str, first: int) -> bool:
        """Makes the subscriptions whose backlogs end with number `first` or a later one wait until
        the view is compared: the producer may have forgotten them. Returns True if there are any.
        """

    def has_pending(self, producer: str) -> bool:
        """True if a subscription is not stable yet at this producer."""


class Interest(Protocol):
    """What the Internal Interface Layer calls: implemented by the External Diffusion Layer."""

    def add_interest(self, turn: Turn, id: str, subscription: Subscription) -> None:
        """Adds a subscription to the merge subscription."""

    def remove_interest(self, turn: Turn, id: str) -> None:
        """Removes a subscription from the merge subscription."""

    def views(self) -> Iterable[ViewProgress]:
        """Yields the progress of the view for each producer."""
