"""AsyncCollection: the same as Collection, for programs that run an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from inspect import isawaitable
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, Self

from qns.cbr.event import Event
from qns.client.async_client import AsyncClient, AsyncDeliveryStream
from qns.client.calls import LONGEST_WAIT_S
from qns.client.delivered import Delivered
from qns.client.scope import LIFETIME_S, NOTICE_S, Lease, Scope
from qns.iil.requests import Published

AsyncCallback = Callable[[Delivered], object]
"""A function, or a coroutine function, which is awaited."""


class AsyncCollection:
    """The events of one class. `Collection` tells what the methods do."""

    def __init__(self, client: AsyncClient, of: str) -> None:
        self.scope = Scope(of)
        self._client = client
        self._listeners: list[_Listener] = []
        self._own: AsyncDeliveryStream | None = None
        self._lease = Lease()

    async def add(self, event: Mapping[str, Any] | Event) -> Published:
        self._check()
        return await self._client.publish(event)

    async def get(self, timeout_s: float | None = None) -> Delivered | None:
        until = inf if timeout_s is None else monotonic() + timeout_s
        while True:
            self._check()
            stream = await self._stream()
            found = await stream.take(min(NOTICE_S, max(0.0, until - monotonic())))
            if found is not None:
                return found
            if monotonic() >= until:
                return None

    async def __aiter__(self) -> AsyncIterator[Delivered]:
        while True:
            if (found := await self.get()) is not None:
                yield found

    async def contains(self, callback: AsyncCallback) -> str:
        return await self._listen(self.scope.exactly, callback)

    async def contains_all(self, callback: AsyncCallback) -> str:
        return await self._listen(self.scope.with_all_below, callback)

    async def remove(self, callback: AsyncCallback, *, group: str = "") -> str:
        return await self._listen(self.scope.exactly, callback, group or self.scope.group)

    async def close(self) -> None:
        listeners, self._listeners = self._listeners, []
        own, self._own = self._own, None
        for listener in listeners:
            listener.stopping.set()
        async with AsyncExitStack() as ending:  # each, whatever the others do
            for listener in listeners:
                ending.callback(listener.check)
                ending.push_async_callback(listener.leave, self._client)
            if own is not None:
                ending.push_async_callback(self._client.unsubscribe, own.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
            return
        with suppress(Exception):  # the error that ends the block matters more
            await self.close()

    async def _stream(self) -> AsyncDeliveryStream:
        if self._own is None:
            made = await self._client.subscribe(self.scope.exactly, lifetime_s=LIFETIME_S)
            self._own = self._client.deliveries(made.id)
        elif self._lease.is_due:
            await self._client.renew(self._own.id, lifetime_s=LIFETIME_S)
            self._lease.was_renewed()
        return self._own

    async def _listen(self, text: str, callback: AsyncCallback, group: str = "") -> str:
        self._check()
        made = await self._client.subscribe(text, group=group, lifetime_s=LIFETIME_S)
        self._listeners.append(_Listener(self._client, made.id, callback))
        return made.id

    def _check(self) -> None:
        for listener in self._listeners:
            listener.check()


class _Listener:
    """One callback: its subscription, and the task that calls it."""

    def __init__(self, client: AsyncClient, id: str, callback: AsyncCallback) -> None:
        self.id = id
        self.done = 0
        """The last number whose callback has returned."""
        self.stopping = asyncio.Event()
        self._callback = callback
        self._client = client.sibling(patience_s=inf)
        self._task = asyncio.create_task(self._run(), name=f"qns {id}")

    def check(self) -> None:
        if self._task.done() and (error := self._task.exception()) is not None:
            raise error

    async def leave(self, client: AsyncClient) -> None:
        """Acknowledges what is done, so that no member of a group does it again."""
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task])
        if self.done:
            await client.acknowledge(self.id, self.done)
        await client.unsubscribe(self.id)

    async def _run(self) -> None:
        stopped = asyncio.create_task(self.stopping.wait())
        try:
            await self._call_back(stopped)
        finally:
            stopped.cancel()
            await self._client.close()

    async def _call_back(self, stopped: asyncio.Task[bool]) -> None:
        stream = self._client.deliveries(self.id)
        lease = Lease()
        while not stopped.done():
            taking = asyncio.create_task(stream.take(LONGEST_WAIT_S))
            await asyncio.wait({taking, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                with suppress(asyncio.CancelledError):
                    await taking
                return
            if (found := taking.result()) is not None:
                result = self._callback(found)
                if isawaitable(result):
                    await result
                self.done = found.number
            if lease.is_due:
                await self._client.renew(self.id, lifetime_s=LIFETIME_S)
                lease.was_renewed()
