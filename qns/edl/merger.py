"""Merger: keeps the organisation's merge subscription (thesis 5.4.4, semantics §6).

A change of the users' subscriptions usually changes no view. When it changes one, the Merger makes
the `ChangeSub` that sends the producer the delta. The Schema Mapper identifies the producers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import Delta
from qns.cbr.subscription import Subscription
from qns.cbr.views import ExactProducerView, ProducerView
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest, MergeSubscriptionsTable, View
from qns.edl.messages import ChangeSub
from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper
from qns.peer.ports import Store
from qns.peer.tables import VIEWS
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Merger:
    me: str
    schema: Schema
    is_exact: bool = False
    """True if views are merged beyond containment."""
    order: CoveringOrder[str] = field(default_factory=CoveringOrder)
    table: MergeSubscriptionsTable = field(default_factory=MergeSubscriptionsTable)

    def recover_from(
        self,
        store: Store,
        federation: Federation,
        subscriptions: Iterable[tuple[str, Subscription]],
    ) -> None:
        """Recovers the views; `subscriptions` are those of the users, in order of arrival."""
        for id, subscription in subscriptions:
            self.order.subscribe(id, subscription)
        producers = SchemaMapper(federation).producers(except_for=self.me)
        for row in store.rows(VIEWS):
            hosts = producers[row.producer]
            self.table.recover(self._view(row.producer, hosts, row.version))

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
        for name, hosts in producers.items():
            view = self.table.get(name)
            if view is None:
                self.table.add(turn, self._view(name, hosts, 0))
            elif view.projection.hosted != hosts:
                gains = has_rights and not hosts <= view.projection.hosted
                self._rehost(turn, view, hosts, gains=gains)

    def subscribe(self, turn: Turn, id: str, subscription: Subscription) -> None:
        self._update(turn, self.order.subscribe(id, subscription))

    def unsubscribe(self, turn: Turn, id: str) -> None:
        self._update(turn, self.order.unsubscribe(id))

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

    def _update(self, turn: Turn, change: Delta[Subscription]) -> None:
        if not change:
            return
        # Most producers see the same element; two may see it alike and yet worded differently.
        written: dict[tuple[Subscription, str, bool], str] = {}
        for view in self.table.views.values():
            delta = view.projection.update(change)
            if not delta:
                continue
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
            view.change(turn, Delta(added, removed))

    def _rehost(self, turn: Turn, view: View, hosts: Iterable[str], *, gains: bool) -> None:
        fresh = self._view(view.projection.producer, hosts, 0)
        before, after = frozenset(view.texts.values()), frozenset(fresh.texts.values())
        view.projection, view.texts, view.digest = fresh.projection, fresh.texts, fresh.digest
        if before != after or (gains and after):
            view.change(turn, Delta(after - before, before - after))

    def _view(self, producer: str, hosts: Iterable[str], version: int) -> View:
        kind = ExactProducerView if self.is_exact else ProducerView
        projection = kind(producer, hosts, self.order.merge_set)
        texts = {each: self._text(each) for each in projection.subscriptions}
        return View(projection, texts, Digest(texts.values()), version)

    def _text(self, element: Subscription) -> str:
        return write_subscription(element, self.schema).decode()
