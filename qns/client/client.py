"""Client: a peer's port for its own users, from any Python program.

from qns.client import Client

with Client("http://127.0.0.1:8701/", "maria") as client:
    client.subscribe("Enterprise/Holder where Name.accuracy <= medium", id="bad-names")
    with client.deliveries("bad-names") as deliveries:
        for delivered in deliveries:
            print(delivered.fields)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from threading import Event as Flag
from time import monotonic
from typing import Any, Self, TypeVar

from qns.cbr.event import Event
from qns.client.address import Address
from qns.client.calls import Call, delivered, new_id, schema_of
from qns.client.connections import Connections
from qns.client.delivered import Delivered
from qns.client.deliveries import DeliveryStream
from qns.client.patience import Patience
from qns.client.publication import publication
from qns.d2q.schema import Schema
from qns.errors import QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    ListSubscriptions,
    Ok,
    Pause,
    Published,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.soap.typed_event import TypedPublish

T = TypeVar("T", bound=Answer)


class Client:
    """One user of one peer. Threads may share it: each call has a connection of its own.

    What may be done twice without harm is repeated while the peer is away or busy, until
    `patience_s` is over: everything but unsubscribe, pause and resume, which are repeated only if
    the peer cannot have got them. Any other fault is raised as the QnsError that the peer tells.

    `schema` (a name, a file or a Schema) is needed to read or publish `Event` objects; fields and
    XML go without. `timeout_s` is how long the peer may take for one answer.
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
        self.address = Address.of(peer)
        self.owner = owner
        self.schema = schema_of(schema)
        self.token = token
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self._connections = Connections(self.address)
        self._closed = Flag()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is under way, in every thread: it raises PeerUnreachable there."""
        self._closed.set()
        self._connections.close()

    def sibling(self, *, patience_s: float) -> Client:
        """The same user at the same peer, to be closed on its own."""
        return Client(
            self.address.base,
            self.owner,
            schema=self.schema,
            token=self.token,
            timeout_s=self.timeout_s,
            patience_s=patience_s,
        )

    # --- subscriptions ----------------------------------------------------------------------------

    def subscribe(
        self, text: str, *, id: str = "", group: str = "", lifetime_s: float = inf
    ) -> Subscribed:
        """Subscribes, in any spelling of the language or D2Q XML.

        The answer comes at once; `pending` names the producers that do not know of it yet.
        Subscribing again with the same id changes nothing. Of a delivery `group` each event goes
        to one member. Without `renew` it ends after its lifetime.
        """
        request = Subscribe(self.owner, text, id or new_id(), group, lifetime_s)
        return self._ask(request, Subscribed)

    def unsubscribe(self, id: str) -> Unsubscribed:
        """Ends a subscription; `dropped` counts the deliveries that nobody acknowledged."""
        return self._ask(Unsubscribe(self.owner, id), Unsubscribed)

    def renew(self, id: str, *, lifetime_s: float = inf) -> Subscribed:
        """Lets it live so long from now."""
        return self._ask(Renew(self.owner, id, lifetime_s), Subscribed)

    def pause(self, id: str) -> None:
        """From now on events gather at the peer, until it is resumed."""
        self._ask(Pause(self.owner, id), Ok)

    def resume(self, id: str) -> None:
        self._ask(Resume(self.owner, id), Ok)

    def subscriptions(self) -> tuple[SubscriptionInfo, ...]:
        """The owner's subscriptions, with how many events wait at each."""
        return self._ask(ListSubscriptions(self.owner), Subscriptions).subscriptions

    # --- events -----------------------------------------------------------------------------------

    def publish(self, event: Mapping[str, Any] | Event) -> Published:
        """Publishes a quality change; when this returns, it is on the peer's disk.

        An event is a mapping as in a line of JSON, {"id", "class", "source", "data": {…},
        "quality": {…}, …}, or an `Event`. Publishing it again with the same id changes nothing,
        and is answered `again`.
        """
        return self._ask(publication(event, self.owner, self.schema), Published)

    def pull(
        self, id: str, *, after: int = 0, limit: int = 100, wait_s: float = 0.0
    ) -> list[Delivered]:
        """Deliveries beyond a number, oldest first. Changes nothing: `acknowledge` does.

        If there are none, the peer waits so long for one, at most 60 seconds.
        """
        answer = self._ask(Read(self.owner, id, after, limit), Deliveries, wait_s=wait_s)
        return delivered(answer, self.schema)

    def acknowledge(self, id: str, upto: int) -> None:
        """Up to this number the deliveries are yours for good; the peer forgets them."""
        self._ask(AcknowledgeDeliveries(self.owner, id, upto), Ok)

    def deliveries(self, id: str, *, after: int = 0, limit: int = 100) -> DeliveryStream:
        """The deliveries of a subscription, one by one, as long as you care to listen.

        See DeliveryStream for what is delivered once, and what again after a crash.
        """
        return DeliveryStream(self, id, after, limit)

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, request: Request | TypedPublish, kind: type[T], *, wait_s: float = 0.0) -> T:
        call = Call.of(request, wait_s=wait_s, token=self.token)
        patience = Patience(monotonic() + self.patience_s)
        while True:
            try:
                answer = self._try(call)
            except QnsError as problem:
                if self._closed.is_set() or not call.may_follow(problem):
                    raise
                pause_s = patience.next_pause_s(monotonic())
                if pause_s is None or self._closed.wait(pause_s):
                    raise
            else:
                assert isinstance(answer, kind)
                return answer

    def _try(self, call: Call) -> Answer:
        timeout_s = self.timeout_s + call.wait_s
        new = not call.is_repeatable
        reply = self._connections.post(call.body, call.headers, timeout_s, new=new)
        return call.answer(self.address, *reply)
