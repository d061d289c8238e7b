"""Bugs, each switched on by replacing one function of the production code.

The simulator must catch every one of them: a test of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from qns.cbr.covering import CoveringOrder, Delta
from qns.cbr.subscription import Subscription
from qns.edl.custody import Custody
from qns.edl.inbound import InboundStream, Place
from qns.edl.link import Parcel
from qns.edl.merger import Merger
from qns.gateway import Gateway
from qns.iil.subscriptions import LocalSubscription
from qns.inputs import Effects, Input
from qns.peer import Peer
from qns.turn import Turn


def acknowledge_before_commit() -> dict[tuple[type, str], Any]:
    """What a turn says leaves at once; its transaction is committed with the next turn."""
    open_transactions: dict[Gateway, Turn] = {}

    def run(gateway: Gateway, inputs: Sequence[Input], now: float) -> Effects:
        before = open_transactions.pop(gateway, None)
        if before is not None:
            gateway.store.commit(before.transaction)
        turn, effects = gateway.peer.turn(inputs, now)
        open_transactions[gateway] = turn
        return effects

    return {(Gateway, "run"): run}


def forward_from_memory() -> dict[tuple[type, str], Any]:
    """A forwarder keeps its promises in memory only."""

    def promise(custody: Custody, turn: Turn, parcel: Parcel) -> None:
        custody._keep(parcel, custody._number + 1)

    return {(Custody, "promise"): promise}


def no_epochs() -> dict[tuple[type, str], Any]:
    """A consumer does not mind which life of the producer a number comes from."""

    def learn(stream: InboundStream, turn: Turn, epoch: int, fences: Any) -> None:
        stream.epoch = max(stream.epoch, epoch)

    def place(stream: InboundStream, epoch: int, number: int) -> Place:
        if number <= stream.last:
            return Place.DUPLICATE
        return Place.NEXT if number == stream.last + 1 else Place.EARLY

    return {(InboundStream, "learn"): learn, (InboundStream, "place"): place}


def no_hello_at_restart() -> dict[tuple[type, str], Any]:
    original = Peer.start

    def start(peer: Peer, turn: Turn, *, restored: bool) -> None:
        original(peer, turn, restored=restored)
        if peer.identity.epoch > 1:
            for name, link in peer.edl.forwarder.links.items():
                link.wants_hello = False
                view = peer.consumer.merger.views.get(name)
                if view is not None:  # and takes for granted that the producer has the view
                    view.asked, view.base = True, view.version

    return {(Peer, "start"): start}


def no_hold_back() -> dict[tuple[type, str], Any]:
    """An early number is taken as it comes."""
    original = InboundStream.place

    def place(stream: InboundStream, epoch: int, number: int) -> Place:
        found = original(stream, epoch, number)
        return Place.NEXT if found is Place.EARLY else found

    return {(InboundStream, "place"): place}


def containment_ignores_sources() -> dict[tuple[type, str], Any]:
    def contains(self: Subscription, other: Subscription) -> bool:
        return other.scope <= self.scope and all(
            name in other.constraints and values.contains(other.constraints[name])  # type: ignore[arg-type]
            for name, values in self.constraints.items()
        )

    return {(Subscription, "contains"): contains}


def merger_forgets_uncovered() -> dict[tuple[type, str], Any]:
    """When a cover leaves, what it covered does not come back."""

    original_leave = CoveringOrder.unsubscribe

    def unsubscribe(order: CoveringOrder[Any], id: Any) -> Delta:
        delta = original_leave(order, id)
        return Delta(removed=delta.removed) if delta.removed else delta

    return {(CoveringOrder, "unsubscribe"): unsubscribe}


def unsubscribe_not_propagated() -> dict[tuple[type, str], Any]:
    def unsubscribe(merger: Merger, turn: Turn, id: str) -> list[str]:
        merger.order.unsubscribe(id)
        return []

    return {(Merger, "unsubscribe"): unsubscribe}


def late_subscriber_served_twice() -> dict[tuple[type, str], Any]:
    """A late subscriber gets the available events at once, and again when it is stable."""
    original = Peer.wait_for

    def wait_for(
        peer: Peer, turn: Turn, subscription: LocalSubscription, producer: str, *, late: bool
    ) -> None:
        if late:
            peer.iil.catch_up(turn, subscription, producer, late=True)
        original(peer, turn, subscription, producer, late=late)

    return {(Peer, "wait_for"): wait_for}


BUGS: dict[str, Callable[[], dict[tuple[type, str], Any]]] = {
    "acknowledge before commit": acknowledge_before_commit,
    "forward from memory": forward_from_memory,
    "no epochs": no_epochs,
    "no hello at restart": no_hello_at_restart,
    "no hold-back of early numbers": no_hold_back,
    "containment ignores sources": containment_ignores_sources,
    "merger forgets uncovered subscriptions": merger_forgets_uncovered,
    "unsubscribe not propagated": unsubscribe_not_propagated,
    "late subscriber served twice": late_subscriber_served_twice,
}


@contextmanager
def switched_on(bug: str) -> Iterator[None]:
    with ExitStack() as stack:
        for (owner, name), replacement in BUGS[bug]().items():
            stack.enter_context(patch.object(owner, name, replacement))
        yield
