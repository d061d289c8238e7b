"""Scenario: the inputs of the worked case (table 5.1, figure 5.5; semantics §10) and its model.

The model computes with the core what the peers of the demo should do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.index import DictionaryIndex
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.federation.mapping import SchemaMapping

SUBSCRIPTIONS: Final = {
    "S1": "⟨Enterprise/Holder, ⊥, ⊥⟩",
    "S2": "⟨Enterprise/Holder, ⊥, Name.Accuracy ≤ medium⟩",
    "S3": '⟨Enterprise/Holder, FiscalCode = "MCLMSM73H17H501F", Name.Accuracy ≤ medium⟩',
    "S4": "⟨Enterprise/Holder : {INPS, INAIL}, "
    'FiscalCode = "MCLMSM73H17H501F", Name.Accuracy ≤ medium⟩',
}

USERS: Final[Mapping[str, Mapping[str, str]]] = {
    "INPS": {"U11": "S1", "U12": "S2", "U13": "S3"},
    "INAIL": {"U21": "S3", "U22": "S4"},
    "CoC": {},
}

EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "e1",
        "class": "Enterprise/Holder",
        "source": "CoC",
        "data": {
            "Name": "M. Mecalla",
            "Address": "Via dei Gracchi 71, Roma",
            "FiscalCode": "MCLMSM73H17H501F",
        },
        "quality": {"Name.Accuracy": "low"},
    },
    {
        "id": "e2",
        "class": "Enterprise/Holder",
        "source": "CoC",
        "data": {
            "Name": "M. Scannapieco",
            "Address": "Via Mazzini 27, Pagani (SA)",
            "FiscalCode": "SCNMNC74S70G230T",
        },
        "quality": {"Name.Accuracy": "medium"},
    },
)

PRINTED_IN_THESIS: Final = {"e2": {"INPS": ["U11"]}}
"""Results that the thesis (5.4.2) prints differently (semantics §11)."""

NEWCOMER: Final = ("INPS", "U14", "S2")
LEAVER: Final = ("INPS", "U11")


class Organisation:
    """One organisation: its users, its merge subscription and its view for each producer."""

    def __init__(self, name: str, mapping: SchemaMapping) -> None:
        self.name = name
        self.users: DictionaryIndex[str] = DictionaryIndex()
        self.order: CoveringOrder[str] = CoveringOrder()
        self.views = {
            producer: ProducerView(producer, mapping.hosted_by(producer))
            for producer in mapping.organisations
            if producer != name
        }

    @property
    def merge_set(self) -> frozenset[Subscription]:
        return self.order.merge_set

    def subscribe(self, user: str, subscription: Subscription) -> dict[str, Delta[Subscription]]:
        """Returns the delta of each view that changes: producer -> delta."""
        self.users.insert(user, subscription)
        return self._changed_views(self.order.subscribe(user, subscription))

    def unsubscribe(self, user: str) -> dict[str, Delta[Subscription]]:
        self.users.delete(user)
        return self._changed_views(self.order.unsubscribe(user))

    def _changed_views(self, change: Delta[Subscription]) -> dict[str, Delta[Subscription]]:
        changes = {producer: view.update(change) for producer, view in self.views.items()}
        return {producer: delta for producer, delta in changes.items() if delta}


def external_merge_table(
    producer: str, organisations: Iterable[Organisation]
) -> dict[str, frozenset[Subscription]]:
    """Returns the External Merge Table of a producer: organisation -> its view."""
    return {
        other.name: other.views[producer].subscriptions
        for other in organisations
        if other.name != producer and other.views[producer].subscriptions
    }


def interested(table: Mapping[str, frozenset[Subscription]], event: Event) -> list[str]:
    """Returns the organisations to which the producer sends an event, as the External Matcher."""
    index = DictionaryIndex(
        {(name, number): each for name, view in table.items() for number, each in enumerate(view)}
    )
    found = {name for name, _ in index.match(event)}
    return [name for name in table if name in found]
