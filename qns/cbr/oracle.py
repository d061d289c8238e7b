"""The oracle: the same answers as the fast paths, in the most obvious way there is.

Every fast path is compared with it; it is also what to read first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription


def match(subscriptions: Mapping[str, Subscription], event: Event) -> list[str]:
    """The ids of all subscriptions that the event matches, sorted (semantics §4)."""
    return sorted(id for id, subscription in subscriptions.items() if subscription.matches(event))


def merge_set(subscriptions: Iterable[Subscription]) -> set[Subscription]:
    """The maximal elements under containment, one of each equivalence class (semantics §6)."""
    distinct = set(subscriptions)
    return {
        candidate
        for candidate in distinct
        if not any(other != candidate and other.contains(candidate) for other in distinct)
    }


def producer_view(
    subscriptions: Iterable[Subscription], producer: str, hosted: Iterable[str]
) -> set[Subscription]:
    """The merge subscription as a producer sees it (semantics §6)."""
    classes = frozenset(hosted)
    projected = (s.projected(producer, classes) for s in merge_set(subscriptions))
    return merge_set(s for s in projected if s is not None)
