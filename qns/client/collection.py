"""Collection: the events of a class as DACE sees them, a collection that others fill too.

    with Collection(client, "Enterprise/Holder where Name.accuracy <= medium") as holders:
        holders.contains(print)
        holders.add({"id": "e1", "class": "Enterprise/Holder", …})

(Eugster, Guerraoui, Sventek: Distributed Asynchronous Collections; semantics §3.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from math import inf
from threading import Thread, current_thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

from qns.cbr.event import Event
from qns.client.calls import LONGEST_WAIT_S
from qns.client.client import Client
from qns.client.delivered import Delivered
from qns.client.deliveries import DeliveryStream
from qns.client.scope import LIFETIME_S, NOTICE_S, Lease, Scope
from qns.errors import QnsError
from qns.iil.requests import Published

Callback = Callable[[Delivered], object]


class Collection:
    """The events of one class, narrowed by `from …` and `where …` if wanted.

    `contains`, `remove`, `get` and iteration are about exactly that class; `contains_all` is
    about the classes below it too. All of them concern what is published from then on, and besides
    what was published before and is still available (Δ of semantics §8): like any late
    subscriber, a collection is owed that as well.

    Each of them is a subscription of its own, which ends when the `with` block is left, or a day
    after the program has died. Use `Client.subscribe` and `Client.deliveries` for one that
    outlives the program.
    """

    def __init__(self, client: Client, of: str) -> None:
        self.scope = Scope(of)
        self._client = client
        self._listeners: list[_Listener] = []
        self._own: DeliveryStream | None = None
        self._lease = Lease()

    def add(self, event: Mapping[str, Any] | Event) -> Published:
        """Publishes an event."""
        self._check()
        return self._client.publish(event)

    def get(self, timeout_s: float | None = None) -> Delivered | None:
        """The next event, which is then gone for this collection object; others still get it.

        Waits for one; None if none comes in time. What is published before the first `get` and is
        not available any longer is not there.
        """
        until = inf if timeout_s is None else monotonic() + timeout_s
        while True:
            self._check()
            stream = self._stream()
            found = stream.take(min(NOTICE_S, max(0.0, until - monotonic())))
            if found is not None:  # the peer hears of it with a later one, or never if none comes
                return found
            if monotonic() >= until:
                return None

    def __iter__(self) -> Iterator[Delivered]:
        """What `get` would return, again and again, without end."""
        while True:
            if (found := self.get()) is not None:
                yield found

    def contains(self, callback: Callback) -> str:
        """Calls back for each event of exactly this class; the id of the subscription.

        Callbacks run in a thread, one event after another, each once. If one raises an error, its
        thread ends, and the next use of the collection, or leaving its block, raises the error.
        """
        return self._listen(self.scope.exactly, callback)

    def contains_all(self, callback: Callback) -> str:
        """As `contains`, for the classes below this one too."""
        return self._listen(self.scope.with_all_below, callback)

    def remove(self, callback: Callback, *, group: str = "") -> str:
        """As `contains`, but of all who remove from this collection one gets each event.

        These are all in the organisation whose collections are described by the same text, or
        who name the same `group`. Who dies with an event loses it to another member, when its lease
        at the peer has lapsed: a callback that had finished by then happens twice.
        """
        return self._listen(self.scope.exactly, callback, group or self.scope.group)

    def close(self) -> None:
        """Ends all subscriptions of this collection; a callback under way is finished first."""
        listeners, self._listeners = self._listeners, []
        own, self._own = self._own, None
        for listener in listeners:
            listener.stop()
        with ExitStack() as ending:  # from the last to the first, each whatever the others do
            for listener in listeners:
                ending.callback(listener.check)
                ending.callback(listener.leave, self._client)
            if own is not None:
                ending.callback(self._client.unsubscribe, own.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        with suppress(Exception):  # the error that ends the block matters more
            self.close()

    def _stream(self) -> DeliveryStream:
        if self._own is None:
            made = self._client.subscribe(self.scope.exactly, lifetime_s=LIFETIME_S)
            self._own = self._client.deliveries(made.id)
        elif self._lease.is_due:
            self._client.renew(self._own.id, lifetime_s=LIFETIME_S)
            self._lease.was_renewed()
        return self._own

    def _listen(self, text: str, callback: Callback, group: str = "") -> str:
        self._check()
        made = self._client.subscribe(text, group=group, lifetime_s=LIFETIME_S)
        self._listeners.append(_Listener(self._client, made.id, callback))
        return made.id

    def _check(self) -> None:
        for listener in self._listeners:
            listener.check()


class _Listener:
    """One callback: its subscription, and the thread that calls it."""

    def __init__(self, client: Client, id: str, callback: Callback) -> None:
        self.id = id
        self.done = 0
        """The last number whose callback has returned."""
        self.error: Exception | None = None
        self._callback = callback
        self._client = client.sibling(patience_s=inf)
        self._is_stopped = False
        self._thread = Thread(target=self._run, name=f"qns {id}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self._is_stopped = True
        self._client.close()

    def leave(self, client: Client) -> None:
        """Acknowledges what is done, so that no member of a group does it again."""
        if self._thread is not current_thread():
            self._thread.join()
        if self.done:
            client.acknowledge(self.id, self.done)
        client.unsubscribe(self.id)

    def _run(self) -> None:
        try:
            self._call_back()
        except QnsError as problem:
            if not self._is_stopped:
                self.error = problem
        except Exception as problem:  # whatever the callback raises, for whoever made it
            self.error = problem

    def _call_back(self) -> None:
        stream = self._client.deliveries(self.id)
        lease = Lease()
        while not self._is_stopped:
            found = stream.take(LONGEST_WAIT_S)
            if found is not None:
                self._callback(found)
                self.done = found.number
            if lease.is_due:
                self._client.renew(self.id, lifetime_s=LIFETIME_S)
                lease.was_renewed()
