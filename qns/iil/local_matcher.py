"""Local Matcher: finds the local subscriptions that an event matches (thesis 5.4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from qns.cbr.event import Event
from qns.iil.local_subscription_table import LocalSubscriptionTable


class LocalMatcher:
    def __init__(self, table: LocalSubscriptionTable) -> None:
        self._table = table

    def match(self, event: Event) -> list[str]:
        """Returns the ids of the matching subscriptions, in order of arrival."""
        return self._ordered(self._table.index.match(event))

    def match_all(self, events: Sequence[Event]) -> list[list[str]]:
        """Returns the result of `match` for each event; faster than one call for each."""
        return list(map(self._ordered, self._table.index.match_all(events)))

    def _ordered(self, ids: list[str]) -> list[str]:
        return sorted(ids, key=self._created) if len(ids) > 1 else ids

    def _created(self, id: str) -> int:
        return self._table[id].created
