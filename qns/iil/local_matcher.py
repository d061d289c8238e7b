"""Local Matcher: which users does an event concern? (thesis 5.4.4)"""

from __future__ import annotations

from qns.cbr.event import Event
from qns.iil.subscriptions import LocalSubscriptionTable


class LocalMatcher:
    def __init__(self, table: LocalSubscriptionTable) -> None:
        self._table = table

    def match(self, event: Event) -> list[str]:
        """The ids of the subscriptions that it matches, in order of arrival."""
        return sorted(self._table.index.match(event), key=lambda id: self._table[id].created)
