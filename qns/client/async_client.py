"""AsyncClient: `Client` for programs that run an event loop.

from qns import AsyncClient

async with AsyncClient("http://127.0.0.1:8701/", "maria") as client:
    async with client.deliveries("bad-names") as deliveries:
        async for delivered in deliveries:
            print(delivered.fields)
"""

from __future__ import annotations

import asyncio
from typing import Self

import aiohttp

from qns.client.address import Address, PeerUnreachable
from qns.client.async_deliveries import AsyncDeliveryStream
from qns.client.calls import Call
from qns.client.core import ClientCore
from qns.d2q.schema import Schema
from qns.iil.requests import Answer
from qns.soap.retry_after import RETRY_AFTER


class AsyncClient(ClientCore):
    """One user of one peer, for any number of tasks. `Client` documents the methods."""

    def __init__(
        self,
        peer: str,
        owner: str,
        *,
        schema: Schema | str | None = None,
        token: str = "",
        timeout_s: float = 30.0,
        patience_s: float = 60.0,
    ) -> None:
        super().__init__(
            AiohttpTransport(Address.of(peer)),
            owner,
            schema=schema,
            token=token,
            timeout_s=timeout_s,
            patience_s=patience_s,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def deliveries(self, id: str, *, after: int | str = 0, limit: int = 100) -> AsyncDeliveryStream:
        """Returns an endless asynchronous iterator over the deliveries of a subscription."""
        return AsyncDeliveryStream(self, id, after, limit)


class AiohttpTransport:
    """A transport whose coroutines run in an event loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_closed = False
        self._session: aiohttp.ClientSession | None = None

    def another(self) -> AiohttpTransport:
        return AiohttpTransport(self.address)

    async def close(self) -> None:
        self.is_closed = True
        if self._session is not None:
            await self._session.close()

    async def exchange(self, call: Call, timeout_s: float) -> Answer:
        if self.is_closed:
            raise PeerUnreachable("this client is closed", remedy="make a new one")
        if self._session is None:  # made inside the event loop that uses it
            connector = aiohttp.TCPConnector(limit=0)  # a waiting pull holds its connection
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        try:
            async with self._session.post(
                self.address.url,
                data=call.body,
                headers=call.headers,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                allow_redirects=False,
            ) as response:
                body = await response.read()
        except aiohttp.ClientConnectorError as problem:
            raise self.address.unreachable(problem, may_be_done=False) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise self.address.unreachable(problem, may_be_done=True) from None
        retry_after = response.headers.get(RETRY_AFTER)
        return call.answer(self.address, response.status, response.content_type, body, retry_after)

    async def pause(self, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False  # if it was closed meanwhile, the next exchange says so
