"""Merger: keeps the organisation's merge subscription (thesis 5.4.4, semantics §6).

A change of the users' subscriptions usually changes no view. When it changes one, the Merger makes
the `ChangeSub` that sends the producer the delta. The Schema Mapper identifies the producers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from qns.cbr.delta import Delta
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.producer_views import Changes, ProducerViews
from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest, MergeSubscriptionsTable, View
from qns.edl.messages import ChangeSub
from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper
from qns.peer.ports import Store
from qns.peer.tables import VIEWS
from qns.peer.turn import Turn

_Written = dict[tuple[Subscription, str, bool], str]
"""The texts of the elements that one operation has written."""


@dataclass(slots=True, eq=False)
class Merger:
    me: str
    schema: Schema
    is_exact: bool = False
    """True if views are merged beyond containment."""
    views: ProducerViews[str] = field(default_factory=ProducerViews)
    table: MergeSubscriptionsTable = field(default_factory=MergeSubscriptionsTable)
    _exact: dict[str, ExactMerge] = field(default_factory=dict)
    """Producer -> its view merged beyond containment; empty unless `is_exact`."""

    @property
    def merge_set(self) -> frozenset[Subscription]:
        """The merge subscription of the organisation, whoever the producers are."""
        return self.views.merge_set

    def hosted(self, producer: str) -> frozenset[str]:
        """Returns the classes with which the view of the producer is made."""
        return self.views.hosted(producer)

    def recover_from(
        self,
        store: Store,
        federation: Federation,
        subscriptions: Iterable[tuple[str, Subscription]],
    ) -> None:
        """Recovers the views; `subscriptions` are those of the users, in order of arrival."""
        versions = {row.producer: row.version for row in store.rows(VIEWS)}
        producers = SchemaMapper(federation).producers(except_for=self.me)
        self.views.host({name: producers[name] for name in versions})
        self.views.subscribe_all(subscriptions)
        written: _Written = {}
        for producer, version in versions.items():
            self.table.recover(self._view(producer, version, written))

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Re-routes the views to the organisations that host the classes from now on.

        A view gets a new version if this organisation may read more of its producer, even if its
        elements stay the same: its subscriptions are stable when the producer knows that too.
        """
        has_rights = not (old.rights is None and new.rights is None)
        producers = SchemaMapper(new).producers(except_for=self.me)
        for name in list(self.table):
            if name not in producers or new[name].incarnation != old[name].incarnation:
                self.table.drop(turn, name)
                self._exact.pop(name, None)
        rehosted = [name for name in self.table if self.hosted(name) != producers[name]]
        gaining = {name for name in rehosted if not producers[name] <= self.hosted(name)}
        self.views.host(producers)
        written: _Written = {}
        for name in producers:
            if name not in self.table:
                self.table.add(turn, self._view(name, 0, written))
        for name in rehosted:
            gains = has_rights and name in gaining
            self._rehost(turn, self.table[name], written, gains=gains)

    def subscribe(self, turn: Turn, id: str, subscription: Subscription) -> None:
        self._update(turn, self.views.subscribe(id, subscription))

    def unsubscribe(self, turn: Turn, id: str) -> None:
        self._update(turn, self.views.unsubscribe(id))

    def change_sub(
        self, producer: str, producer_incarnation: int, consumer_incarnation: int, epoch: int
    ) -> ChangeSub:
        """Returns the `ChangeSub` for a stale view, and notes that this change is under way."""
        view = self.table[producer]
        delta = view.start_sending()
        return ChangeSub(
            producer_incarnation,
            consumer_incarnation,
            epoch,
            view.base,
            view.version,
            tuple(sorted(delta.added)),
            tuple(sorted(delta.removed)),
            str(view.digest),
        )

    def _update(self, turn: Turn, changes: Changes) -> None:
        written: _Written = {}
        for name, delta in changes.items():
            if self.is_exact:
                seen = Delta(*(self._as_seen(name, some) for some in (delta.added, delta.removed)))
                delta = self._exact[name].update(seen)
            self._change(turn, name, delta, written)

    def _change(
        self, turn: Turn, producer: str, delta: Delta[Subscription], written: _Written
    ) -> None:
        """Begins a new version of a view, unless nothing changes."""
        view = self.table[producer]
        left = {each: view.texts.pop(each) for each in delta.removed}
        same = self._same_at(producer, left, delta.added)
        for each in delta.added:
            view.texts[each] = left.pop(same[each]) if each in same else self._text(each, written)
        added = frozenset(view.texts[each] for each in delta.added if each not in same)
        removed = frozenset(left.values())
        for text in removed:
            view.digest.remove(text)
        for text in added:
            view.digest.add(text)
        if added or removed:
            view.change(turn, Delta(added, removed))

    def _same_at(
        self, producer: str, left: Iterable[Subscription], added: Iterable[Subscription]
    ) -> dict[Subscription, Subscription]:
        """Returns the new elements that are, to the producer, the same as one that leaves."""
        known = {tuple(each.constraints.items()): each for each in left}
        hosted = self.hosted(producer)
        found = {}
        for each in added if known else ():
            former = known.get(tuple(each.constraints.items()))
            if former is not None and former.scope & hosted == each.scope & hosted:
                found[each] = former
        return found

    def _rehost(self, turn: Turn, view: View, written: _Written, *, gains: bool) -> None:
        """Makes a view anew after the producer's classes have changed."""
        fresh = self._view(view.producer, 0, written)
        before, after = frozenset(view.texts.values()), frozenset(fresh.texts.values())
        view.texts, view.digest = fresh.texts, fresh.digest
        if before != after or (gains and after):
            view.change(turn, Delta(after - before, before - after))

    def _view(self, producer: str, version: int, written: _Written) -> View:
        elements: Iterable[Subscription] = self.views.elements(producer)
        if self.is_exact:
            exact = self._exact[producer] = ExactMerge(self._as_seen(producer, elements))
            elements = exact.subscriptions
        texts = {each: self._text(each, written) for each in elements}
        return View(producer, texts, Digest(texts.values()), version)

    def _as_seen(self, producer: str, elements: Iterable[Subscription]) -> frozenset[Subscription]:
        """Returns the elements of a view as the producer sees them."""
        hosted = self.hosted(producer)
        projected = (each.projected(producer, hosted) for each in elements)
        return frozenset(each for each in projected if each is not None)

    def _text(self, element: Subscription, written: _Written) -> str:
        """Returns an element as it travels: without sources, because the receiver is the source.

        Most producers see the same element; two may see it alike and yet worded differently.
        """
        key = (element, element.data_class, element.only)
        text = written.get(key)
        if text is None:
            travels = replace(element, sources=None, text="") if element.sources else element
            text = written[key] = write_subscription(travels, self.schema).decode()
        return text
