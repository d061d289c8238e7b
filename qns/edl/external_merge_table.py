"""External Merge Table: the views that consumers have sent to this producer (thesis 5.4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.cbr.subscription import Subscription
from qns.d2q.normal_form import in_grown_schema
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub
from qns.edl.view_reader import SLICE_CHARACTERS, ViewReader
from qns.errors import LimitExceeded
from qns.peer.ports import Store
from qns.peer.tables import EXTERNAL, ExternalRow
from qns.peer.turn import Turn

_CHARACTERS_PER_DELETION: Final = 50
"""An element that leaves the index takes about as long as reading so many characters."""


@dataclass(slots=True, eq=False)
class ExternalMergeTable:
    schema: Schema
    matcher: ExternalMatcher
    most_elements: float = inf
    """The limit of elements of one view."""
    most_terms: float = inf
    """The limit of terms of all elements of one view together."""
    slice_characters: int = SLICE_CHARACTERS
    """About as many characters of elements are read, or leave the index, in one turn."""
    views: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    """Consumer -> the elements of its view, by their text."""
    digests: dict[str, Digest] = field(default_factory=dict)
    terms: Counter[str] = field(default_factory=Counter)
    """Consumer -> the terms of the elements of its view."""
    reader: ViewReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = ViewReader(self.schema, self.matcher, self.slice_characters)

    def recover_from(self, store: Store) -> None:
        for row in store.rows(EXTERNAL):
            self.recover(row)

    def recover(self, row: ExternalRow) -> None:
        subscription = read_subscription(row.element, self.schema)
        self._add(row.consumer, row.element, subscription)
        self.digests.setdefault(row.consumer, Digest()).add(row.element)

    def apply_schema(self, schema: Schema) -> None:
        """Extends the scope of elements to classes that the schema has below theirs now."""
        self.schema = schema
        self.reader.apply_schema(schema)
        for consumer, elements in self.views.items():
            for text, subscription in list(elements.items()):
                grown = in_grown_schema(subscription, schema)
                if grown is not subscription:
                    elements[text] = grown
                    self.matcher.delete(consumer, text, subscription)
                    self.matcher.insert(consumer, text, grown)

    def view(self, consumer: str) -> Mapping[str, Subscription]:
        return self.views.get(consumer, {})

    def digest(self, consumer: str) -> str:
        return str(self.digests.get(consumer, Digest()))

    def apply(self, turn: Turn, consumer: str, change: ChangeSub) -> list[Subscription] | None:
        """Applies the change and returns the elements that are new.

        Returns None and changes nothing if the change does not fit what is here. Raises Busy if the
        elements are so many that the next turns go on reading them.
        """
        known = self.view(consumer)
        removed: Set[str]
        if change.base is None:
            removed = known.keys() - set(change.added)
        else:
            removed = set(change.removed)
            if not removed <= known.keys():
                return None
        new = [text for text in change.added if text not in known]
        size = len(known) - len(removed) + len(new)
        if size > self.most_elements:
            raise LimitExceeded(
                f"the view of {consumer} has {size:,} elements, and the limit most_view_elements "
                f"is {self.most_elements:,}",
                remedy="end subscriptions, or subscribe to whole classes; or let the operator of "
                "the producer raise the limit",
            )
        fresh = self.reader.read(turn, consumer, new)
        self._check_terms(consumer, removed, fresh)
        after = self.digests.get(consumer, Digest()).copy()
        for text in removed:
            after.remove(text)
        for text in fresh:
            after.add(text)
        if str(after) != change.digest:
            self.matcher.drop(consumer, fresh)
            return None
        self.digests[consumer] = after
        for text in removed:
            self._remove(turn, consumer, text)
        for text, subscription in fresh.items():
            self._add(consumer, text, subscription)
            turn.put(EXTERNAL, ExternalRow(consumer, text))
        return list(fresh.values())

    def _check_terms(
        self, consumer: str, removed: Iterable[str], fresh: Mapping[str, Subscription]
    ) -> None:
        terms = self.terms[consumer] + sum(map(_terms_of, fresh.values()))
        if terms > self.most_terms:
            known = self.view(consumer)
            terms -= sum(_terms_of(known[text]) for text in removed)
        if terms > self.most_terms:
            self.matcher.drop(consumer, fresh)
            raise LimitExceeded(
                f"the elements of the view of {consumer} have {terms:,} terms together, and the "
                f"limit most_view_terms is {self.most_terms:,}",
                remedy="end subscriptions with many terms, or subscribe to whole classes; or let "
                "the operator of the producer raise the limit",
            )

    def forget(self, turn: Turn, consumer: str) -> None:
        """Removes the view of a consumer."""
        self.reader.forget(consumer)
        for text in list(self.view(consumer)):
            self._remove(turn, consumer, text)
        self.digests.pop(consumer, None)

    @property
    def has_work(self) -> bool:
        """True if the next turns have to go on with a large view."""
        return self.reader.is_reading or self.matcher.has_waste

    def next_due(self) -> float:
        return 0.0 if self.matcher.has_waste else self.reader.next_due()

    def go_on(self, turn: Turn) -> str | None:
        """Works on large views for a moment; returns a consumer whose view can take effect now."""
        self.matcher.clean(max(1, self.slice_characters // _CHARACTERS_PER_DELETION))
        return self.reader.go_on(turn)

    def _add(self, consumer: str, text: str, subscription: Subscription) -> None:
        self.views.setdefault(consumer, {})[text] = subscription
        self.terms[consumer] += _terms_of(subscription)
        self.matcher.insert(consumer, text, subscription)

    def _remove(self, turn: Turn, consumer: str, text: str) -> None:
        subscription = self.views[consumer].pop(text)
        self.terms[consumer] -= _terms_of(subscription)
        self.matcher.delete(consumer, text, subscription)
        turn.delete(EXTERNAL, consumer, text)


def _terms_of(subscription: Subscription) -> int:
    """Returns how many terms a subscription has; one without constraints counts as one."""
    return sum((values.terms for values in subscription.constraints.values()), 1)
