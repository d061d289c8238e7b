"""AsyncDeliveryStream: `DeliveryStream` for programs that run an event loop."""

from __future__ import annotations

from typing import Self

from qns.client.delivered import Delivered
from qns.client.stream_core import StreamCore


class AsyncDeliveryStream(StreamCore):
    """Iterates over the deliveries of one subscription; `DeliveryStream` has the guarantees."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        return await self.next()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.leave(kind)
