"""External Merge Table: the merge subscriptions of the consumers, as they told them (5.4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.merger import Digest
from qns.edl.messages import ChangeSub
from qns.tables import EXTERNAL, ExternalRow
from qns.turn import Turn


@dataclass(slots=True, eq=False)
class ExternalMergeTable:
    schema: Schema
    matcher: ExternalMatcher
    views: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    """Consumer -> the elements of its merge subscription, by their text."""
    digests: dict[str, Digest] = field(default_factory=dict)

    def recover(self, row: ExternalRow) -> None:
        subscription = read_subscription(row.element, self.schema)
        self._add(row.consumer, row.element, subscription)

    def view(self, consumer: str) -> Mapping[str, Subscription]:
        return self.views.get(consumer, {})

    def digest(self, consumer: str) -> str:
        return str(self.digests.get(consumer, Digest()))

    def apply(self, turn: Turn, consumer: str, change: ChangeSub) -> list[Subscription] | None:
        """The elements that came in; None, and nothing changed, if the change does not fit."""
        known = self.view(consumer)
        removed: Iterable[str]
        if change.base is None:
            removed = known.keys() - set(change.added)
        else:
            removed = set(change.removed)
            if not removed <= known.keys():
                return None
        fresh = {
            text: read_subscription(text, self.schema) for text in change.added if text not in known
        }
        after = self.digests.get(consumer, Digest()).copy()
        for text in removed:
            after.remove(text)
        for text in fresh:
            after.add(text)
        if str(after) != change.digest:
            return None
        for text in removed:
            self._remove(turn, consumer, text)
        for text, subscription in fresh.items():
            self._add(consumer, text, subscription)
            turn.put(EXTERNAL, ExternalRow(consumer, text))
        return list(fresh.values())

    def forget(self, turn: Turn, consumer: str) -> None:
        for text in list(self.view(consumer)):
            self._remove(turn, consumer, text)

    def _add(self, consumer: str, text: str, subscription: Subscription) -> None:
        self.views.setdefault(consumer, {})[text] = subscription
        self.digests.setdefault(consumer, Digest()).add(text)
        self.matcher.insert(consumer, text, subscription)

    def _remove(self, turn: Turn, consumer: str, text: str) -> None:
        del self.views[consumer][text]
        self.digests[consumer].remove(text)
        self.matcher.delete(consumer, text)
        turn.delete(EXTERNAL, consumer, text)
