"""Producer view: the merge subscription as one producer sees it (semantics §6).

Fed with the changes of an organisation's merge set, it tells which changes the producer has to
hear of: usually none.
"""

from __future__ import annotations

from collections.abc import Iterable

from qns.cbr.covering import NO_CHANGE, CoveringOrder, Delta
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

    def update(self, change: Delta) -> Delta:
        """The change of the view that a change of the merge set brings about."""
        delta = NO_CHANGE
        # Newcomers first: what they cover then leaves without others coming back in between.
        # In a fixed order, because of elements that look alike here the first one's wording stays.
        for element in sorted(change.added, key=lambda each: (each.data_class, each.only)):
            projected = element.projected(self.producer, self.hosted)
            if projected is not None:
                delta = delta.then(self._order.subscribe(element, projected))
        for element in change.removed:
            if element in self._order:
                delta = delta.then(self._order.unsubscribe(element))
        return delta
