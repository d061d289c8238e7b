"""The oracle: computes the answers of the fast paths in the most obvious way.

Tests compare every fast path with it. Read it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription


def match(subscriptions: Mapping[str, Subscription], event: Event) -> list[str]:
    """Returns the ids of all subscriptions that the event matches, sorted (semantics §4)."""
    return sorted(id for id, subscription in subscriptions.items() if subscription.matches(event))


def merge_set(subscriptions: Iterable[Subscription]) -> set[Subscription]:
    """Returns the maximal elements, one of each equivalence class (semantics §6)."""
    distinct = set(subscriptions)
    return {
        candidate
        for candidate in distinct
        if not any(other != candidate and other.contains(candidate) for other in distinct)
    }


def producer_view(
    subscriptions: Iterable[Subscription], producer: str, hosted: Iterable[str]
) -> set[Subscription]:
    """Returns the merge subscription as a producer sees it (semantics §6)."""
    classes = frozenset(hosted)
    projected = (s.projected(producer, classes) for s in merge_set(subscriptions))
    return merge_set(s for s in projected if s is not None)
