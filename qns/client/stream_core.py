"""Stream core: reads the deliveries of one subscription, as coroutines over any transport."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic

from qns.client.calls import LONGEST_WAIT_S
from qns.client.core import ClientCore
from qns.client.delivered import Delivered
from qns.client.reading_progress import ReadingProgress
from qns.errors import DocumentError, QnsError
from qns.iil.cursor import Cursor
from qns.iil.deliveries_dropped import DeliveriesDropped


class StreamCore:
    """Pulls, returns and acknowledges deliveries in order."""

    def __init__(self, client: ClientCore, id: str, after: int | str = 0, limit: int = 100) -> None:
        self.id = id
        self._client = client
        self._limit = limit
        self._progress = ReadingProgress.after(Cursor.of(after), monotonic())

    @property
    def cursor(self) -> str:
        """The cursor of the last delivery that was returned."""
        return str(self._progress.returned)

    async def take(self, wait_s: float = 0.0) -> Delivered | None:
        """Returns the next delivery, or None if none comes within `wait_s` (at most 60).

        Raises DeliveriesDropped once for numbers that were dropped; then it continues after them.
        """
        self._progress.consume()
        if self._progress.wants_check(monotonic()):
            await self._check()
        if self._progress.wants_acknowledgement(monotonic()):
            await self._acknowledge()
        found = self._progress.take(monotonic())
        if found is None:
            try:
                pulled = await self._client.pull(
                    self.id, after=str(self._progress.consumed), limit=self._limit, wait_s=wait_s
                )
            except DeliveriesDropped as declared:
                self._progress.skip(Cursor(declared.last, declared.series))
                with suppress(QnsError):  # acknowledged with a later delivery; the loss comes first
                    await self._acknowledge()
                raise
            self._progress.pulled(pulled, monotonic())
            found = self._progress.take(monotonic())
        return found

    async def next(self) -> Delivered:
        """Returns the next delivery. Waits for it without end."""
        while True:
            if (found := await self.take(LONGEST_WAIT_S)) is not None:
                return found

    async def acknowledge(self) -> None:
        """Acknowledges all deliveries that were returned so far."""
        self._progress.consume()
        await self._acknowledge()

    async def leave(self, kind: type[BaseException] | None) -> None:
        """Ends a `with` block. After an exception the last delivery is not acknowledged."""
        if kind is None:
            await self.acknowledge()
            return
        with suppress(QnsError):  # the exception that ends the block matters more
            await self._acknowledge()

    async def _check(self) -> None:
        """Compares the cursor with the number of deliveries that the peer has counted."""
        counted: dict[str, int] = {}
        with suppress(DocumentError):  # the list of subscriptions is too long to be read
            counted = {each.id: each.delivered for each in await self._client.subscriptions()}
        self._progress.check(self.id, counted.get(self.id), monotonic())

    async def _acknowledge(self) -> None:
        upto = self._progress.consumed
        if upto.number > self._progress.acknowledged:
            await self._client.acknowledge(self.id, str(upto))
            self._progress.was_acknowledged(upto.number, monotonic())
