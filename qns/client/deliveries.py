"""Delivery stream: the deliveries of one subscription, in order, each once."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from qns.client.calls import LONGEST_WAIT_S
from qns.client.cursor import Cursor
from qns.client.delivered import Delivered
from qns.errors import DocumentError, QnsError

if TYPE_CHECKING:
    from qns.client.client import Client


class DeliveryStream:
    """Iterates over deliveries as they come; waits for the next one without end.

    You are done with a delivery when you ask for the next one, or leave the `with` block without an
    exception. What you are done with is acknowledged: at once if you are slow, many together if
    you are fast. The next stream, in this program or after a restart, begins after the last
    acknowledged number.

    So if your program dies after its work on a delivery and before the acknowledgement, that
    delivery comes again (and those of the last second, if you are fast). To have the effect of
    each event exactly once, commit `delivered.number` in the same transaction as your work, and
    give it as `after` when you start again: whatever you have committed is not handed out again.

    While the peer is away the stream waits for it, as long as the client's patience lasts; then it
    raises PeerUnreachable. A stream is for one thread, a subscription for one stream at a time.
    """

    def __init__(self, client: Client, id: str, after: int = 0, limit: int = 100) -> None:
        self.id = id
        self._client = client
        self._limit = limit
        self._cursor = Cursor.after(after, monotonic())

    @property
    def cursor(self) -> int:
        """The number of the last delivery that was handed out."""
        return self._cursor.handed

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivered:
        while True:
            if (found := self.take(LONGEST_WAIT_S)) is not None:
                return found

    def take(self, wait_s: float = 0.0) -> Delivered | None:
        """The next delivery, or None if none comes within so many seconds (at most 60)."""
        self._cursor.consume()
        if self._cursor.wants_check(monotonic()):
            self._check()
        if self._cursor.owes(monotonic()):
            self._acknowledge()
        found = self._cursor.take(monotonic())
        if found is None:
            after = self._cursor.consumed
            pulled = self._client.pull(self.id, after=after, limit=self._limit, wait_s=wait_s)
            self._cursor.pulled(pulled, monotonic())
            found = self._cursor.take(monotonic())
        return found

    def acknowledge(self) -> None:
        """You are done with what you got so far; when this returns, the peer knows."""
        self._cursor.consume()
        self._acknowledge()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.acknowledge()
            return
        with suppress(QnsError):  # the error that ends the block matters more
            self._acknowledge()

    def _check(self) -> None:
        known: dict[str, int] = {}
        with suppress(DocumentError):  # so many subscriptions that the list is too long to read
            known = {each.id: each.delivered for each in self._client.subscriptions()}
        self._cursor.check(self.id, known.get(self.id), monotonic())

    def _acknowledge(self) -> None:
        upto = self._cursor.consumed
        if upto > self._cursor.acknowledged:
            self._client.acknowledge(self.id, upto)
            self._cursor.was_acknowledged(upto, monotonic())
