"""Pending work: what is still under way between peers, according to their stores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from qns.federation.document import Federation
from qns.peer.ports import Store
from qns.peer.tables import CONSUMERS, CUSTODY, DOCUMENT, EARLY, VIEWS, WAITING


def pending_work(
    federation: Federation, stores: Mapping[str, Store], absent: Collection[str] = ()
) -> str | None:
    """Describes one piece of work that is still to be done. Returns None if there is none.

    Work for an absent organisation does not count.
    """
    for name in federation.organisations:
        if name not in stores and name not in absent:
            return f"the store of {name} is missing"
    return next(
        (
            reason
            for name, store in stores.items()
            if name not in absent
            for reason in _pending_of(name, store, federation, stores, absent)
        ),
        None,
    )


def _pending_of(
    organisation: str,
    store: Store,
    federation: Federation,
    stores: Mapping[str, Store],
    absent: Collection[str],
) -> Iterator[str]:
    if all(row.version != federation.version for row in store.rows(DOCUMENT)):
        yield f"{organisation} does not have version {federation.version} of the document"
    for stream in store.rows(CONSUMERS):
        if stream.acknowledged < stream.number and stream.consumer not in absent:
            yield f"{organisation} owes {stream.consumer} events from {stream.acknowledged + 1}"
    for parcel in store.rows(CUSTODY):
        if parcel.receiver not in absent:
            yield f"{organisation} has event {parcel.event} in custody for {parcel.receiver}"
    for early in store.rows(EARLY):
        if early.producer not in absent:
            yield f"{organisation} holds back number {early.number} of {early.producer}"
    for waiting in store.rows(WAITING):
        if waiting.producer not in absent:
            yield (
                f"subscription {waiting.subscription} of {organisation} "
                f"is pending at {waiting.producer}"
            )
    for view in store.rows(VIEWS):
        if view.producer in absent:
            continue
        if view.version != _version_held(stores[view.producer], organisation):
            yield f"{view.producer} does not have the newest view of {organisation}"


def _version_held(store: Store, consumer: str) -> int:
    """Returns the version of the consumer's view that a producer has, or 0."""
    return next((row.version for row in store.rows(CONSUMERS) if row.consumer == consumer), 0)
