"""Sequencer: handles the requests of one member one after the other.

A peer of QNS has one request under way to each other peer. A member that opens many connections
therefore delays others by at most one of its requests at a time. What waits is dropped when its
client disconnects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Begin = Callable[[Callable[[], None]], None]
"""Begins to handle a request; calls its argument when the request is answered."""


@dataclass(slots=True, eq=False)
class Sequencer:
    _waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """Member with a request that is being handled -> those that wait for their turn."""

    def run(self, member: str, begin: Begin) -> asyncio.Future[None] | None:
        """Begins at once if no request of the member is handled.

        Otherwise returns a future that is done when its turn has come. A request whose future is
        cancelled never begins.
        """
        waiting = self._waiting.get(member)
        if waiting is None:
            self._waiting[member] = deque()
            begin(lambda: self._next(member))
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn.add_done_callback(
            lambda turn: None if turn.cancelled() else begin(lambda: self._next(member))
        )
        waiting.append(turn)
        return turn

    def _next(self, member: str) -> None:
        """Lets the request that waits longest begin, after the event loop has served others."""
        waiting = self._waiting[member]
        while waiting:
            turn = waiting.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                return
        del self._waiting[member]
