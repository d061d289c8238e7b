"""Blocking transport: calls over kept-alive connections, for any number of threads."""

from __future__ import annotations

from threading import Event as Flag

from qns.client.address import Address
from qns.client.calls import Call
from qns.client.connections import Connections
from qns.iil.requests import Answer


class BlockingTransport:
    """A transport whose coroutines block the calling thread and never suspend."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connections = Connections(address)
        self._closed = Flag()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def another(self) -> BlockingTransport:
        return BlockingTransport(self.address)

    async def close(self) -> None:
        """Ends calls and pauses that are under way in any thread."""
        self._closed.set()
        self._connections.close()

    async def exchange(self, call: Call, timeout_s: float) -> Answer:
        new = not call.is_repeatable
        reply = self._connections.post(call.body, call.headers, timeout_s, new=new)
        return call.answer(self.address, *reply)

    async def pause(self, seconds: float) -> bool:
        return self._closed.wait(seconds)
