"""Delivery waiters: pulls that wait until their subscription has new deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class DeliveryWaiter:
    """Waits for deliveries of one subscription that are made after the `with` block began."""

    _waiters: dict[str, set[asyncio.Event]]
    _subscription: str
    _delivered: asyncio.Event = field(default_factory=asyncio.Event)

    def __enter__(self) -> DeliveryWaiter:
        self._waiters.setdefault(self._subscription, set()).add(self._delivered)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._waiters[self._subscription]
        others.discard(self._delivered)
        if not others:
            del self._waiters[self._subscription]

    async def wait(self, timeout_s: float) -> bool:
        """Returns True if there may be new deliveries, False after the timeout."""
        try:
            await asyncio.wait_for(self._delivered.wait(), timeout_s)
        except TimeoutError:
            return False
        self._delivered.clear()
        return True


@dataclass(slots=True, eq=False)
class DeliveryWaiters:
    """All pulls that wait, by subscription."""

    _waiters: dict[str, set[asyncio.Event]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self._waiters.values()))

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def of(self, subscription: str) -> DeliveryWaiter:
        """Returns a context manager that waits for deliveries of a subscription."""
        return DeliveryWaiter(self._waiters, subscription)

    def notify(self, subscriptions: Iterable[str]) -> None:
        """Wakes the pulls of subscriptions that have a new delivery or have ended."""
        for subscription in subscriptions:
            for event in self._waiters.get(subscription, ()):
                event.set()

    def wake_all(self) -> None:
        """Ends the waiting of every pull, because the process stops."""
        self.notify(self._waiters)
