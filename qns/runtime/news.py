"""News: who waits for deliveries of a subscription is woken when there are some."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Waiter:
    """Waits for deliveries of one subscription; those from its beginning on are noticed."""

    _waiters: dict[str, set[asyncio.Event]]
    _subscription: str
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __enter__(self) -> Waiter:
        self._waiters.setdefault(self._subscription, set()).add(self._news)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._waiters[self._subscription]
        others.discard(self._news)
        if not others:
            del self._waiters[self._subscription]

    async def wait(self, timeout_s: float) -> bool:
        """Whether there is news, or may be."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return False
        self._news.clear()
        return True
