"""Producer view: the merge subscription as one producer sees it (semantics §6).

It receives the changes of an organisation's merge set and computes the changes of the view that the
producer needs. Usually there are none.
"""

from __future__ import annotations

from collections.abc import Iterable

from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import NO_CHANGE, Delta
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription


class ProducerView:
    def __init__(
        self, producer: str, hosted: Iterable[str], merge_set: Iterable[Subscription] = ()
    ) -> None:
        self.producer = producer
        self.hosted = frozenset(hosted)
        self._order: CoveringOrder[Subscription] = CoveringOrder()
        self.update(Delta(added=frozenset(merge_set)))

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        """The row of the producer's External Merge Table for this organisation."""
        return self._order.merge_set

    def update(self, change: Delta[Subscription]) -> Delta[Subscription]:
        """Applies a change of the merge set. Returns the resulting change of the view."""
        delta = NO_CHANGE
        # Additions come first, so that no covered element comes back in between. Their order is
        # fixed, because of elements that are equal in this view the first one's wording is kept.
        for element in sorted(change.added, key=lambda each: (each.data_class, each.only)):
            projected = element.projected(self.producer, self.hosted)
            if projected is not None:
                delta = delta.then(self._order.subscribe(element, projected))
        for element in change.removed:
            if element in self._order:
                delta = delta.then(self._order.unsubscribe(element))
        return delta


class ExactProducerView(ProducerView):
    """A view whose elements are also merged beyond containment, exactly (semantics §6).

    A change costs time in proportion to the elements with the same scope and attributes.
    """

    def __init__(
        self, producer: str, hosted: Iterable[str], merge_set: Iterable[Subscription] = ()
    ) -> None:
        self._exact = ExactMerge()
        super().__init__(producer, hosted, merge_set)

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        return self._exact.subscriptions

    def update(self, change: Delta[Subscription]) -> Delta[Subscription]:
        return self._exact.update(super().update(change))
