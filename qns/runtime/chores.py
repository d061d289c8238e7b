"""Chores: work on the store that must not run beside a turn or a commit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

from qns.errors import Busy
from qns.peer.gateway import Gateway

Chore = Callable[[Gateway], None]


class _Waiting(NamedTuple):
    chore: Chore
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class Chores:
    _waiting: deque[_Waiting] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, chore: Chore) -> asyncio.Future[None]:
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(chore, done))
        return done

    async def run_next(self, gateway: Gateway, thread: Executor) -> None:
        """Runs one chore in the thread; its caller gets its error."""
        chore, done = self._waiting.popleft()
        if done.done():
            return  # the caller has given up
        try:
            await asyncio.get_running_loop().run_in_executor(thread, chore, gateway)
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)

    def refuse_all(self) -> None:
        """Answers the chores that still wait when the peer has stopped."""
        while self._waiting:
            _, done = self._waiting.popleft()
            if not done.done():
                done.set_exception(Busy("the peer is stopping", remedy="try again later"))
