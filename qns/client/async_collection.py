"""AsyncCollection: `Collection` for programs that run an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from inspect import isawaitable
from typing import Self

from qns.client.async_client import AsyncClient
from qns.client.calls import LONGEST_WAIT_S
from qns.client.collection_core import Callback, CollectionCore, Listener
from qns.client.core import ClientCore
from qns.client.delivered import Delivered


class AsyncCollection(CollectionCore):
    """The events of one class; `Collection` documents the methods.

    A callback may be a coroutine function; then it is awaited.
    """

    def __init__(self, client: AsyncClient, of: str) -> None:
        super().__init__(client, of, _TaskListener)

    async def __aiter__(self) -> AsyncIterator[Delivered]:
        while True:
            if (found := await self.get()) is not None:
                yield found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.leave(kind)


class _TaskListener(Listener):
    """Calls back in a task."""

    def __init__(self, client: ClientCore, id: str, callback: Callback) -> None:
        super().__init__(client, id, callback)
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"qns {id}")

    def check(self) -> None:
        if self._task.done() and (error := self._task.exception()) is not None:
            raise error

    def stop(self) -> None:
        self._stopping.set()

    async def wait(self) -> None:
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await self._call_back(stopped)
        finally:
            stopped.cancel()
            await self._client.close()

    async def _call_back(self, stopped: asyncio.Task[bool]) -> None:
        while not stopped.done():
            taking = asyncio.create_task(self._stream.take(LONGEST_WAIT_S))
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
                self._done = found.number
            await self.renew_if_due()
