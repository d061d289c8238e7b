"""Merger: the organisation's merge subscription, and its Merge Subscriptions Table.

The table has one view for each producer (thesis 5.4.4, semantics §6). A change of the users'
subscriptions usually changes no view; when it does, the producer is told the difference, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from qns.cbr.covering import NO_CHANGE, CoveringOrder, Delta
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.federation.document import Federation
from qns.tables import VIEWS, ViewRow
from qns.turn import Turn

_MODULUS = 1 << 256


class Digest:
    """Of a set of texts: the sum of their hashes, so that one element comes and goes in O(1)."""

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


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two versions of a view, in the texts that travel."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def then(self, later: Difference) -> Difference:
        return Difference(
            (self.added - later.removed) | (later.added - self.removed),
            (self.removed - later.added) | (later.removed - self.added),
        )


_NONE = Difference()


class Change(NamedTuple):
    """A `ChangeSub`, but for who tells whom."""

    base: int | None
    version: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    digest: str


@dataclass(slots=True, eq=False)
class View:
    """One producer's view: what it should know, and what it is known to know."""

    projection: ProducerView
    texts: dict[Subscription, str]
    digest: Digest
    version: int
    unsent: Difference = _NONE
    """What has changed since the version that the producer is known to have."""
    sending: Difference | None = None
    """What is on its way in a ChangeSub; changes after that are in `unsent`."""
    base: int | None = None
    """The version that the producer is known to have; None: it must be told everything."""
    asked: bool = False
    """Whether the producer has said which version it has; nothing is sent before."""

    @property
    def is_told(self) -> bool:
        return self.base == self.version and self.sending is None


@dataclass(slots=True, eq=False)
class Merger:
    schema: Schema
    order: CoveringOrder[str] = field(default_factory=CoveringOrder)
    views: dict[str, View] = field(default_factory=dict)

    def subscribe(self, turn: Turn, id: str, subscription: Subscription) -> list[str]:
        """The producers whose view changes."""
        return self._update(turn, self.order.subscribe(id, subscription))

    def unsubscribe(self, turn: Turn, id: str) -> list[str]:
        """The producers whose view changes."""
        return self._update(turn, self.order.unsubscribe(id))

    def recover(self, rows: Iterable[ViewRow], federation: Federation) -> None:
        """The views of the subscriptions that were recovered before."""
        for row in rows:
            hosts = federation[row.producer].hosts
            self.views[row.producer] = self._view(row.producer, hosts, row.version)

    def follow(self, turn: Turn, me: str, federation: Federation) -> list[str]:
        """The producers whose view changes with the document in force."""
        members = federation.organisations if me in federation else {}
        changed = []
        for name, organisation in members.items():
            view = self.views.get(name)
            if name == me or (view is not None and view.projection.hosted == organisation.hosts):
                continue
            fresh = self._view(name, organisation.hosts, 0)
            if view is None:
                self.views[name] = fresh
                turn.put(VIEWS, ViewRow(name, 0))
                changed.append(name)
                continue
            before, after = frozenset(view.texts.values()), frozenset(fresh.texts.values())
            view.projection, view.texts, view.digest = fresh.projection, fresh.texts, fresh.digest
            if before != after:
                self._change(turn, view, Difference(after - before, before - after))
                changed.append(name)
        return changed

    def drop(self, turn: Turn, producer: str) -> None:
        """The producer left, or came back as another incarnation."""
        del self.views[producer]
        turn.delete(VIEWS, producer)

    def change_sub(self, producer: str) -> Change | None:
        """What the producer does not know yet, if there is anything."""
        view = self.views.get(producer)
        if view is None or not view.asked or view.sending is not None or view.is_told:
            return None
        if view.base is None:
            difference = Difference(added=frozenset(view.texts.values()))
        else:
            difference = view.unsent
        view.sending, view.unsent = difference, _NONE
        return Change(
            view.base,
            view.version,
            tuple(sorted(difference.added)),
            tuple(sorted(difference.removed)),
            str(view.digest),
        )

    def looks_like(self, producer: str, version: int, digest: str) -> bool:
        view = self.views[producer]
        return (version, digest) == (view.version, str(view.digest))

    def told(self, producer: str, version: int) -> bool:
        """The producer has this version; whether it is the newest."""
        view = self.views[producer]
        view.base, view.sending = version, None
        return view.is_told

    def failed(self, producer: str) -> None:
        """The call may or may not have reached the producer."""
        view = self.views.get(producer)
        if view is not None and view.sending is not None:
            view.unsent = view.sending.then(view.unsent)
            view.sending = None

    def compare(self, producer: str, version: int, digest: str) -> bool:
        """Whether the producer has the view as it should be; if not, it will be told."""
        view = self.views[producer]
        view.asked = True
        if version == view.version and digest == str(view.digest):
            view.base, view.sending, view.unsent = version, None, _NONE
            return True
        if view.sending is None and (view.base != version or version == view.version):
            view.base = None
        return False

    def tell_all(self, producer: str) -> None:
        """Whatever the producer has, it does not fit."""
        view = self.views[producer]
        view.base, view.sending, view.unsent = None, None, _NONE

    def _update(self, turn: Turn, change: Delta) -> list[str]:
        changed = []
        # Most producers see the same element; two may see it alike and yet worded differently.
        written: dict[tuple[Subscription, str, bool], str] = {}
        for producer, view in self.views.items():
            delta = view.projection.update(change) if change else NO_CHANGE
            if delta:
                removed = frozenset(view.texts.pop(each) for each in delta.removed)
                for each in delta.added:
                    key = (each, each.data_class, each.only)
                    if key not in written:
                        written[key] = self._text(each)
                    view.texts[each] = written[key]
                added = frozenset(view.texts[each] for each in delta.added)
                for text in removed:
                    view.digest.remove(text)
                for text in added:
                    view.digest.add(text)
                self._change(turn, view, Difference(added, removed))
                changed.append(producer)
        return changed

    def _change(self, turn: Turn, view: View, difference: Difference) -> None:
        view.version += 1
        view.unsent = view.unsent.then(difference)
        turn.put(VIEWS, ViewRow(view.projection.producer, view.version))

    def _view(self, producer: str, hosts: Iterable[str], version: int) -> View:
        projection = ProducerView(producer, hosts, self.order.merge_set)
        texts = {each: self._text(each) for each in projection.subscriptions}
        return View(projection, texts, Digest(texts.values()), version)

    def _text(self, element: Subscription) -> str:
        return write_subscription(element, self.schema).decode()
