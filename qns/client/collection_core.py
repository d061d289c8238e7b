"""Collection core: the events of a class as a collection, as coroutines over any transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from math import inf
from time import monotonic
from typing import Any

from qns.cbr.event import Event
from qns.client.core import ClientCore
from qns.client.delivered import Delivered
from qns.client.scope import LIFETIME_S, NOTICE_S, Lease, Scope
from qns.client.stream_core import StreamCore
from qns.iil.requests import Published

Callback = Callable[[Delivered], object]


class Listener(ABC):
    """Calls a callback for each delivery of one subscription, in a thread or a task."""

    def __init__(self, client: ClientCore, id: str, callback: Callback) -> None:
        self.id = id
        self._callback = callback
        self._client = client.sibling(patience_s=inf)
        self._stream = StreamCore(self._client, id)
        self._lease = Lease()
        self._done = 0
        """The number of the last delivery whose callback has returned."""

    @abstractmethod
    def check(self) -> None:
        """Raises the error that has ended the listener, if any."""

    @abstractmethod
    def stop(self) -> None:
        """Requests the end. A callback that is running is finished first."""

    @abstractmethod
    async def wait(self) -> None:
        """Waits for the end, unless it is called from the listener's own callback."""

    async def leave(self, client: ClientCore) -> None:
        """Acknowledges what is done, so that no other member of a group repeats it."""
        await self.wait()
        if self._done:
            await client.acknowledge(self.id, self._done)
        await client.unsubscribe(self.id)

    async def renew_if_due(self) -> None:
        if self._lease.is_due:
            await self._client.renew(self.id, lifetime_s=LIFETIME_S)
            self._lease.was_renewed()


class CollectionCore:
    """The events of one class. `Collection` documents the methods."""

    def __init__(
        self,
        client: ClientCore,
        of: str,
        new_listener: Callable[[ClientCore, str, Callback], Listener],
    ) -> None:
        self._scope = Scope(of)
        self._client = client
        self._new_listener = new_listener
        self._listeners: list[Listener] = []
        self._own: StreamCore | None = None
        self._lease = Lease()

    async def add(self, event: Mapping[str, Any] | Event) -> Published:
        """See `Collection.add`."""
        self._check()
        return await self._client.publish(event)

    async def get(self, timeout_s: float | None = None) -> Delivered | None:
        """See `Collection.get`."""
        until = inf if timeout_s is None else monotonic() + timeout_s
        while True:
            self._check()
            stream = await self._stream()
            found = await stream.take(min(NOTICE_S, max(0.0, until - monotonic())))
            if found is not None:  # it is acknowledged with a later one, or never
                return found
            if monotonic() >= until:
                return None

    async def contains(self, callback: Callback) -> str:
        """See `Collection.contains`."""
        return await self._listen(self._scope.exactly, callback)

    async def contains_all(self, callback: Callback) -> str:
        """See `Collection.contains_all`."""
        return await self._listen(self._scope.with_all_below, callback)

    async def remove(self, callback: Callback, *, group: str = "") -> str:
        """See `Collection.remove`."""
        return await self._listen(self._scope.exactly, callback, group or self._scope.group)

    async def close(self) -> None:
        """See `Collection.close`."""
        listeners, self._listeners = self._listeners, []
        own, self._own = self._own, None
        for listener in listeners:
            listener.stop()
        async with AsyncExitStack() as ending:  # each step runs even if another one fails
            for listener in listeners:
                ending.callback(listener.check)
                ending.push_async_callback(listener.leave, self._client)
            if own is not None:
                ending.push_async_callback(self._client.unsubscribe, own.id)

    async def leave(self, kind: type[BaseException] | None) -> None:
        """Ends a `with` block."""
        if kind is None:
            await self.close()
            return
        with suppress(Exception):  # the exception that ends the block matters more
            await self.close()

    async def _stream(self) -> StreamCore:
        if self._own is None:
            made = await self._client.subscribe(self._scope.exactly, lifetime_s=LIFETIME_S)
            self._own = StreamCore(self._client, made.id)
        elif self._lease.is_due:
            await self._client.renew(self._own.id, lifetime_s=LIFETIME_S)
            self._lease.was_renewed()
        return self._own

    async def _listen(self, text: str, callback: Callback, group: str = "") -> str:
        self._check()
        made = await self._client.subscribe(text, group=group, lifetime_s=LIFETIME_S)
        self._listeners.append(self._new_listener(self._client, made.id, callback))
        return made.id

    def _check(self) -> None:
        for listener in self._listeners:
            listener.check()
