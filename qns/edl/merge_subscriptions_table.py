"""Merge Subscriptions Table: the merge subscription as each producer sees it (thesis 5.4.4).

There is one view for each producer. `VIEW` is the state machine of a view: whether the producer is
known to have it, and whether a `ChangeSub` is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from qns.cbr.delta import NO_CHANGE, Delta, GrowingDelta
from qns.cbr.subscription import Subscription
from qns.peer.state_machine import TableKey
from qns.peer.tables import VIEWS, ViewRow
from qns.peer.turn import Turn

_MODULUS = 1 << 256


class Digest:
    """Digest of a set of texts: the sum of their hashes, which changes in O(1) per element."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._sum = 0
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self._sum = (self._sum + _hash(text)) % _MODULUS

    def remove(self, text: str) -> None:
        self._sum = (self._sum - _hash(text)) % _MODULUS

    def copy(self) -> Digest:
        twin = Digest()
        twin._sum = self._sum
        return twin

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest(), "big")


class ViewState(TableKey):
    UNKNOWN = "unknown"
    """It is not known which version the producer has: a hello has to find out."""
    UNKNOWN_SENDING = "unknown, sending"
    """As UNKNOWN, while a ChangeSub sent earlier is still under way."""
    STALE = "stale"
    """The producer does not have the newest version: a ChangeSub is due."""
    SENDING = "sending"
    """A ChangeSub is under way."""
    IN_FORCE = "in force"
    """The producer has the newest version."""


class ViewEvent(TableKey):
    CHANGED = "changed"
    """The view has a new version here."""
    FOUND_SAME = "found same"
    """The producer has reported the newest version."""
    FOUND_DIFFERENT = "found different"
    """The producer has reported another version or digest."""
    SENT = "sent"
    """A ChangeSub was sent."""
    CONFIRMED = "confirmed"
    """The producer has put the newest version in force."""
    OUTDATED = "outdated"
    """The producer has put a version in force that is not the newest any more."""
    FAILED = "failed"
    """The ChangeSub was not answered, or its delta did not fit what the producer has."""
    LOST = "lost"
    """The producer was restored from an older copy of its store."""


VIEW: dict[tuple[ViewState, ViewEvent], ViewState] = {
    (ViewState.UNKNOWN, ViewEvent.CHANGED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN, ViewEvent.FOUND_SAME): ViewState.IN_FORCE,
    (ViewState.UNKNOWN, ViewEvent.FOUND_DIFFERENT): ViewState.STALE,
    (ViewState.UNKNOWN, ViewEvent.CONFIRMED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN, ViewEvent.OUTDATED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN, ViewEvent.FAILED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN, ViewEvent.LOST): ViewState.UNKNOWN,
    (ViewState.UNKNOWN_SENDING, ViewEvent.CHANGED): ViewState.UNKNOWN_SENDING,
    (ViewState.UNKNOWN_SENDING, ViewEvent.FOUND_SAME): ViewState.IN_FORCE,
    (ViewState.UNKNOWN_SENDING, ViewEvent.FOUND_DIFFERENT): ViewState.SENDING,
    (ViewState.UNKNOWN_SENDING, ViewEvent.CONFIRMED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN_SENDING, ViewEvent.OUTDATED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN_SENDING, ViewEvent.FAILED): ViewState.UNKNOWN,
    (ViewState.UNKNOWN_SENDING, ViewEvent.LOST): ViewState.UNKNOWN_SENDING,
    (ViewState.STALE, ViewEvent.CHANGED): ViewState.STALE,
    (ViewState.STALE, ViewEvent.FOUND_SAME): ViewState.IN_FORCE,
    (ViewState.STALE, ViewEvent.FOUND_DIFFERENT): ViewState.STALE,
    (ViewState.STALE, ViewEvent.SENT): ViewState.SENDING,
    (ViewState.STALE, ViewEvent.CONFIRMED): ViewState.IN_FORCE,
    (ViewState.STALE, ViewEvent.OUTDATED): ViewState.STALE,
    (ViewState.STALE, ViewEvent.FAILED): ViewState.STALE,
    (ViewState.STALE, ViewEvent.LOST): ViewState.UNKNOWN,
    (ViewState.SENDING, ViewEvent.CHANGED): ViewState.SENDING,
    (ViewState.SENDING, ViewEvent.FOUND_SAME): ViewState.IN_FORCE,
    (ViewState.SENDING, ViewEvent.FOUND_DIFFERENT): ViewState.SENDING,
    (ViewState.SENDING, ViewEvent.CONFIRMED): ViewState.IN_FORCE,
    (ViewState.SENDING, ViewEvent.OUTDATED): ViewState.STALE,
    (ViewState.SENDING, ViewEvent.FAILED): ViewState.STALE,
    (ViewState.SENDING, ViewEvent.LOST): ViewState.UNKNOWN_SENDING,
    (ViewState.IN_FORCE, ViewEvent.CHANGED): ViewState.STALE,
    (ViewState.IN_FORCE, ViewEvent.FOUND_SAME): ViewState.IN_FORCE,
    (ViewState.IN_FORCE, ViewEvent.FOUND_DIFFERENT): ViewState.STALE,
    (ViewState.IN_FORCE, ViewEvent.CONFIRMED): ViewState.IN_FORCE,
    (ViewState.IN_FORCE, ViewEvent.OUTDATED): ViewState.STALE,
    (ViewState.IN_FORCE, ViewEvent.FAILED): ViewState.STALE,
    (ViewState.IN_FORCE, ViewEvent.LOST): ViewState.UNKNOWN,
}


@dataclass(slots=True, eq=False)
class View:
    """The view for one producer, and what the producer is known to have of it."""

    producer: str
    texts: dict[Subscription, str]
    """The elements, with the D2Q XML in which they are sent."""
    digest: Digest
    version: int
    state: ViewState = ViewState.UNKNOWN
    base: int | None = None
    """The version that the producer is known to have; None: it has to be sent every element."""
    unsent: GrowingDelta[str] = field(default_factory=GrowingDelta)
    """What has changed since `base` and is in no ChangeSub under way."""
    sending: Delta[str] = NO_CHANGE
    """What the ChangeSub under way contains."""

    @property
    def is_sending(self) -> bool:
        return self.state in (ViewState.SENDING, ViewState.UNKNOWN_SENDING)

    def change(self, turn: Turn, delta: Delta[str]) -> None:
        """Begins a new version."""
        self.version += 1
        if self.base is not None or self.is_sending:  # otherwise every element is sent
            self.unsent.include(delta)
        self._happened(ViewEvent.CHANGED)
        self.put(turn)

    def put(self, turn: Turn) -> None:
        turn.put(VIEWS, ViewRow(self.producer, self.version))

    def start_sending(self) -> Delta[str]:
        """Returns what the next ChangeSub has to contain, and marks it as under way."""
        self._happened(ViewEvent.SENT)
        changed = self.unsent.taken()
        whole = self.base is None
        self.sending = Delta(added=frozenset(self.texts.values())) if whole else changed
        return self.sending

    def confirm(self, version: int) -> None:
        """Notes that the producer has this version in force."""
        self.base, self.sending = version, NO_CHANGE
        self._happened(ViewEvent.CONFIRMED if version == self.version else ViewEvent.OUTDATED)

    def fail(self) -> None:
        """Makes the delta of an unanswered ChangeSub due again, whether it arrived or not."""
        if self.is_sending:
            later = self.unsent.taken()
            self.unsent.include(self.sending.then(later))
            self.sending = NO_CHANGE
            self._happened(ViewEvent.FAILED)

    def send_all(self) -> None:
        """Makes a ChangeSub with every element due, because a delta does not fit."""
        self.base, self.sending = None, NO_CHANGE
        self.unsent.taken()
        self._happened(ViewEvent.FAILED)

    def matches(self, version: int, digest: str) -> bool:
        return (version, digest) == (self.version, str(self.digest))

    def compare(self, version: int, digest: str) -> bool:
        """True if the producer has the newest version; otherwise a ChangeSub becomes due."""
        if self.matches(version, digest):
            self.base, self.sending = version, NO_CHANGE
            self.unsent.taken()
            self._happened(ViewEvent.FOUND_SAME)
            return True
        if not self.is_sending and (self.base != version or version == self.version):
            self.base = None
        self._happened(ViewEvent.FOUND_DIFFERENT)
        return False

    def lose(self) -> None:
        """Forgets which version the producer has, because it was restored: a hello finds out."""
        self._happened(ViewEvent.LOST)

    def _happened(self, event: ViewEvent) -> None:
        self.state = VIEW[self.state, event]


@dataclass(slots=True, eq=False)
class MergeSubscriptionsTable:
    """The views of all producers."""

    views: dict[str, View] = field(default_factory=dict)
    """Producer -> its view."""

    def __contains__(self, producer: object) -> bool:
        return producer in self.views

    def __getitem__(self, producer: str) -> View:
        return self.views[producer]

    def __iter__(self) -> Iterator[str]:
        return iter(self.views)

    def __len__(self) -> int:
        return len(self.views)

    def get(self, producer: str) -> View | None:
        return self.views.get(producer)

    def add(self, turn: Turn, view: View) -> None:
        self.views[view.producer] = view
        view.put(turn)

    def recover(self, view: View) -> None:
        self.views[view.producer] = view

    def drop(self, turn: Turn, producer: str) -> None:
        """Removes the view of a producer that has left or has a new incarnation."""
        del self.views[producer]
        turn.delete(VIEWS, producer)
