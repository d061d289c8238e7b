"""Local Matcher: which users does an event concern? (thesis 5.4.4)"""

from __future__ import annotations

from collections.abc import Sequence

from qns.cbr.event import Event
from qns.iil.subscriptions import LocalSubscriptionTable


class LocalMatcher:
    def __init__(self, table: LocalSubscriptionTable) -> None:
        self._table = table

    def match(self, event: Event) -> list[str]:
        """The ids of the subscriptions that it matches, in order of arrival."""
        return self._ordered(self._table.index.match(event))

    def match_all(self, events: Sequence[Event]) -> list[list[str]]:
        """The same for each of many, quicker."""
        return list(map(self._ordered, self._table.index.match_all(events)))

    def _ordered(self, ids: list[str]) -> list[str]:
        return sorted(ids, key=self._created) if len(ids) > 1 else ids

    def _created(self, id: str) -> int:
        return self._table[id].created
