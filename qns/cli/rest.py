"""Rest: whether anything is still under way between peers, as their stores tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from qns.federation.document import Federation
from qns.ports import Store
from qns.tables import CONSUMERS, CUSTODY, DOCUMENT, EARLY, VIEWS, WAITING


def unrest(
    federation: Federation, stores: Mapping[str, Store], absent: Collection[str] = ()
) -> str | None:
    """Something that is still to be done, in words; None at rest.

    What waits for an absent organisation does not count.
    """
    for name in federation.organisations:
        if name not in stores and name not in absent:
            return f"the store of {name} is not here"
    return next(
        (
            reason
            for name, store in stores.items()
            if name not in absent
            for reason in _open_business(name, store, federation, stores, absent)
        ),
        None,
    )


def _open_business(
    me: str,
    store: Store,
    federation: Federation,
    stores: Mapping[str, Store],
    absent: Collection[str],
) -> Iterator[str]:
    if all(row.version != federation.version for row in store.rows(DOCUMENT)):
        yield f"{me} has not heard of version {federation.version} of the federation document"
    for stream in store.rows(CONSUMERS):
        if stream.acknowledged < stream.number and stream.consumer not in absent:
            yield f"{me} owes {stream.consumer} events from {stream.acknowledged + 1} on"
    for parcel in store.rows(CUSTODY):
        if parcel.receiver not in absent:
            yield f"{me} has event {parcel.event} in custody for {parcel.receiver}"
    for early in store.rows(EARLY):
        if early.producer not in absent:
            yield f"{me} holds back number {early.number} of {early.producer}"
    for waiting in store.rows(WAITING):
        if waiting.producer not in absent:
            yield f"subscription {waiting.subscription} of {me} waits for {waiting.producer}"
    for view in store.rows(VIEWS):
        if view.producer not in absent and view.version != _held(stores[view.producer], me):
            yield f"{view.producer} does not know the newest merge subscription of {me}"


def _held(store: Store, consumer: str) -> int:
    """Which version of the consumer's view this producer has."""
    return next((row.version for row in store.rows(CONSUMERS) if row.consumer == consumer), 0)
