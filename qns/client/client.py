"""Client: a user's access to the peer of its organisation, for programs with threads.

from qns import Client

with Client("http://127.0.0.1:8701/", "maria") as client:
    client.subscribe("Enterprise/Holder where Name.accuracy <= medium", id="bad-names")
    with client.deliveries("bad-names") as deliveries:
        for delivered in deliveries:
            print(delivered.fields)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Self

from qns.cbr.event import Event
from qns.client.address import Address
from qns.client.blocking import BlockingTransport
from qns.client.core import ClientCore, run_blocking
from qns.client.delivered import Delivered
from qns.client.deliveries import DeliveryStream
from qns.d2q.schema import Schema
from qns.iil.requests import Published, Subscribed, SubscriptionInfo, Unsubscribed


class Client:
    """One user of one peer. Threads may share a client: each call has a connection of its own.

    While the peer is unreachable or busy, idempotent requests are repeated until `patience_s` is
    over. Only unsubscribe, pause and resume are not idempotent: they are repeated only if the peer
    cannot have received them. Every other fault is raised at once as the QnsError that the peer
    reports.

    `schema` (a name, a file or a Schema) is needed only to read or publish `Event` objects.
    `timeout_s` is how long the peer may take for one answer.
    """

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
        self._core = ClientCore(
            BlockingTransport(Address.of(peer)),
            owner,
            schema=schema,
            token=token,
            timeout_s=timeout_s,
            patience_s=patience_s,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. Calls under way in other threads raise PeerUnreachable."""
        run_blocking(self._core.close())

    @property
    def owner(self) -> str:
        """The user whose subscriptions these are."""
        return self._core.owner

    @property
    def patience_s(self) -> float:
        """How long a request is repeated while the peer is unreachable or busy."""
        return self._core.patience_s

    @patience_s.setter
    def patience_s(self, seconds: float) -> None:
        self._core.patience_s = seconds

    # --- subscriptions ----------------------------------------------------------------------------

    def subscribe(
        self, text: str, *, id: str = "", group: str = "", lifetime_s: float = inf
    ) -> Subscribed:
        """Subscribes. `text` is in any notation of the language, or D2Q XML.

        The answer comes at once; `pending` names the producers at which the subscription is not
        stable yet. Subscribing again with the same id changes nothing. Each event goes to one
        member of a delivery `group`. The subscription ends after its lifetime unless it is renewed.
        """
        return run_blocking(self._core.subscribe(text, id=id, group=group, lifetime_s=lifetime_s))

    def unsubscribe(self, id: str) -> Unsubscribed:
        """Ends a subscription. `dropped` counts the deliveries that were not acknowledged."""
        return run_blocking(self._core.unsubscribe(id))

    def renew(self, id: str, *, lifetime_s: float = inf) -> Subscribed:
        """Sets the lifetime of a subscription, counted from now."""
        return run_blocking(self._core.renew(id, lifetime_s=lifetime_s))

    def pause(self, id: str) -> None:
        """Holds the events of a subscription back at the peer until it is resumed."""
        run_blocking(self._core.pause(id))

    def resume(self, id: str) -> None:
        """Ends a pause. The events that were held back are delivered."""
        run_blocking(self._core.resume(id))

    def subscriptions(self) -> tuple[SubscriptionInfo, ...]:
        """Returns the owner's subscriptions, each with the number of events that wait for it."""
        return run_blocking(self._core.subscriptions())

    # --- events -----------------------------------------------------------------------------------

    def publish(self, event: Mapping[str, Any] | Event) -> Published:
        """Publishes an event. When this returns, the event is on the peer's disk.

        An event is an `Event` or a mapping as in a line of JSON: {"id", "class", "source",
        "data": {…}, "quality": {…}, …}. Publishing again with the same id changes nothing; the
        answer then has `again` set.
        """
        return run_blocking(self._core.publish(event))

    def pull(
        self, id: str, *, after: int | str = 0, limit: int = 100, wait_s: float = 0.0
    ) -> list[Delivered]:
        """Returns the deliveries after a cursor, oldest first. Does not acknowledge them.

        `after` is the `cursor` of the last delivery that was read, or only its number. With the
        cursor, CursorAhead is raised if the peer was put back to an older state.

        If there are none, the peer waits for one up to `wait_s` seconds, at most 60. There may be
        fewer than `limit` although more wait: one answer has about half a MiB of events.
        """
        return run_blocking(self._core.pull(id, after=after, limit=limit, wait_s=wait_s))

    def acknowledge(self, id: str, upto: int | str) -> None:
        """Acknowledges the deliveries up to a cursor or a number. The peer deletes them."""
        run_blocking(self._core.acknowledge(id, upto))

    def deliveries(self, id: str, *, after: int | str = 0, limit: int = 100) -> DeliveryStream:
        """Returns an endless iterator over the deliveries of a subscription.

        `DeliveryStream` describes which deliveries come again after a crash.
        """
        return DeliveryStream(self._core, id, after, limit)
