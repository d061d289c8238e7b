"""Collection: the events of a class as a collection that many programs fill and read.

    with Collection(client, "Enterprise/Holder where Name.accuracy <= medium") as holders:
        holders.contains(print)
        holders.add({"id": "e1", "class": "Enterprise/Holder", …})

This is the view of DACE (Eugster, Guerraoui, Sventek: Distributed Asynchronous Collections;
semantics §3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Thread, current_thread
from typing import Any, Self

from qns.cbr.event import Event
from qns.client.calls import LONGEST_WAIT_S
from qns.client.client import Client
from qns.client.collection_core import Callback, CollectionCore, Listener
from qns.client.core import ClientCore, run_blocking
from qns.client.delivered import Delivered
from qns.errors import QnsError
from qns.iil.requests import Published


class Collection:
    """The events of one class, narrowed by `from …` and `where …` if wanted.

    `contains`, `remove`, `get` and iteration concern exactly that class; `contains_all` also
    concerns the classes below it. Like every late subscriber, each of them gets the events that are
    published from then on, and the earlier ones that are still available (Δ of semantics §8).

    Each of them is a subscription of its own. It ends when the `with` block is left, or a day after
    the program has died. Use `Client.subscribe` and `Client.deliveries` for a subscription that
    outlives the program.
    """

    def __init__(self, client: Client, of: str) -> None:
        self._core = CollectionCore(client._core, of, _ThreadListener)

    def add(self, event: Mapping[str, Any] | Event) -> Published:
        """Publishes an event."""
        return run_blocking(self._core.add(event))

    def get(self, timeout_s: float | None = None) -> Delivered | None:
        """Returns the next event and removes it from this object; other programs still get it.

        Waits for an event; returns None if none comes in time. The first `get` subscribes, so
        earlier events are returned only if they are still available.
        """
        return run_blocking(self._core.get(timeout_s))

    def __iter__(self) -> Iterator[Delivered]:
        """Iterates over the results of `get`, without end."""
        while True:
            if (found := self.get()) is not None:
                yield found

    def contains(self, callback: Callback) -> str:
        """Calls back for each event of exactly this class. Returns the id of the subscription.

        Callbacks run in a thread, one event after another, each once. If a callback raises an
        error, its thread ends, and the error is raised at the next use of the collection or when
        its block is left.
        """
        return run_blocking(self._core.contains(callback))

    def contains_all(self, callback: Callback) -> str:
        """Calls back like `contains`, also for the classes below this one."""
        return run_blocking(self._core.contains_all(callback))

    def remove(self, callback: Callback, *, group: str = "") -> str:
        """Calls back like `contains`, but each event goes to one member of a delivery group.

        The members are all callers in the organisation with the same text, or with the same
        `group`. If a member dies with an event, another member gets the event when the lease at the
        peer has ended. If the callback had already finished by then, it happens twice.
        """
        return run_blocking(self._core.remove(callback, group=group))

    def close(self) -> None:
        """Ends all subscriptions of this collection. Running callbacks are finished first."""
        run_blocking(self._core.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        run_blocking(self._core.leave(kind))


class _ThreadListener(Listener):
    """Calls back in a thread."""

    def __init__(self, client: ClientCore, id: str, callback: Callback) -> None:
        super().__init__(client, id, callback)
        self._error: Exception | None = None
        self._is_stopped = False
        self._thread = Thread(target=self._run, name=f"qns {id}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._is_stopped = True
        run_blocking(self._client.close())

    async def wait(self) -> None:
        if self._thread is not current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._call_back()
        except QnsError as problem:
            if not self._is_stopped:
                self._error = problem
        except Exception as problem:  # the callback's error is raised where the collection is used
            self._error = problem

    def _call_back(self) -> None:
        while not self._is_stopped:
            found = run_blocking(self._stream.take(LONGEST_WAIT_S))
            if found is not None:
                self._callback(found)
                self._done = found.number
            run_blocking(self.renew_if_due())
