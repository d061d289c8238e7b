"""Trusted: which findings count if some organisations lie or run twice.

The guarantees hold among the other organisations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from qns.history.verdict import Violation
from qns.simulation.world import World

_NAMES = ("org", "source", "to", "producer")
"""The fields of a record that name an organisation."""


def concerns(record: Mapping[str, Any], names: Collection[str]) -> bool:
    """True if one of these organisations made the record or is named in it."""
    return any(isinstance(record.get(field), str) and record[field] in names for field in _NAMES)


def among_others(violations: Iterable[Violation], names: Collection[str]) -> Iterator[Violation]:
    """Yields the violations that concern none of these organisations."""
    for each in violations:
        if not any(concerns(numbered.record, names) for numbered in each.records):
            yield each


def misled(world: World) -> set[str]:
    """Returns the organisations that began an epoch, perhaps because of what a liar claimed.

    Their subscriptions wait until views are compared, which no relay can do for them.
    """
    if not world.liars:
        return set()
    starts = (each for each in world.history if each["do"] == "start")
    return {each["org"] for each in starts if each["restored"]}
