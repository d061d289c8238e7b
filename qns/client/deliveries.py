"""Delivery stream: the deliveries of one subscription, in order, each once."""

from __future__ import annotations

from typing import Self

from qns.client.core import ClientCore, run_blocking
from qns.client.delivered import Delivered
from qns.client.stream_core import StreamCore


class DeliveryStream:
    """Iterates over the deliveries of one subscription and waits for the next one without end.

    A delivery is consumed when the next one is requested, or when the `with` block ends without an
    exception. Consumed deliveries are acknowledged: at once by a slow reader, several together by a
    fast one. The next stream, in this program or after a restart, begins after the last
    acknowledged number.

    So a delivery comes again if the program dies after its work and before the acknowledgement (for
    a fast reader, the deliveries of the last second). For effects exactly once, commit
    `delivered.cursor` in the same transaction as the work, and pass it as `after` at the next
    start. If the peer was put back to an older state meanwhile, the stream raises CursorAhead
    before it skips a delivery.

    If the operator of the peer has set a limit and deliveries were dropped before they were read,
    the stream raises DeliveriesDropped once, acknowledges their numbers and continues after them.

    While the peer is unreachable, the stream waits as long as the client's patience lasts; then it
    raises PeerUnreachable. A stream belongs to one thread, and a subscription to one stream at a
    time.
    """

    def __init__(self, client: ClientCore, id: str, after: int | str = 0, limit: int = 100) -> None:
        self._core = StreamCore(client, id, after, limit)

    @property
    def id(self) -> str:
        """The id of the subscription."""
        return self._core.id

    @property
    def cursor(self) -> str:
        """The cursor of the last delivery that was returned. Pass it as `after` at a restart."""
        return self._core.cursor

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivered:
        return run_blocking(self._core.next())

    def take(self, wait_s: float = 0.0) -> Delivered | None:
        """Returns the next delivery, or None if none comes within `wait_s` (at most 60).

        Raises DeliveriesDropped once for numbers that were dropped; then it continues after them.
        """
        return run_blocking(self._core.take(wait_s))

    def acknowledge(self) -> None:
        """Acknowledges all deliveries that were returned so far."""
        run_blocking(self._core.acknowledge())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        run_blocking(self._core.leave(kind))
