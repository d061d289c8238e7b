"""Exact merging: fewer elements than containment alone leaves, and never an approximate one.

Two elements of a merge set that are equal but for one attribute, or but for their sources, become
one, if the union is a value set (semantics §6). The originals are kept: when one of them leaves,
the elements that it shared attributes with are merged anew, so that leaving undoes a merger.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Final

from qns.cbr.covering import NO_CHANGE, CoveringOrder, Delta
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet

MAX_TERMS: Final = 1_000
"""A value set of more terms than this is not grown further."""

_Family = tuple[frozenset[str], tuple[str, ...]]  # only elements of one family can be merged


class ExactMerge:
    """The exactly merged set, fed with the changes of a merge set."""

    def __init__(self, merge_set: Iterable[Subscription] = ()) -> None:
        self._families: dict[_Family, set[Subscription]] = {}
        self._merged: dict[_Family, set[Subscription]] = {}
        # A union can cover elements of other families that none of its parts covers.
        self._order: CoveringOrder[Subscription] = CoveringOrder()
        self.update(Delta(added=frozenset(merge_set)))

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        return self._order.merge_set

    def update(self, change: Delta) -> Delta:
        touched = set()
        for element in change.removed:
            self._families[_family(element)].discard(element)
            touched.add(_family(element))
        for element in change.added:
            self._families.setdefault(_family(element), set()).add(element)
            touched.add(_family(element))
        gone: list[Subscription] = []
        new: list[Subscription] = []
        for family in touched:
            before = self._merged.pop(family, set())
            after = merge_exactly(self._families[family])
            gone += before - after
            new += after - before
            if after:
                self._merged[family] = after
            else:
                del self._families[family]
        delta = NO_CHANGE
        for element in new:
            delta = delta.then(self._order.subscribe(element, element))
        for element in gone:
            delta = delta.then(self._order.unsubscribe(element))
        return delta


def merge_exactly(family: Iterable[Subscription]) -> set[Subscription]:
    """Elements of the same scope and attributes, merged until no two can be."""
    elements = set(family)
    attributes = next((tuple(each.constraints) for each in elements), ())
    while True:
        size = len(elements)
        for attribute in attributes:
            elements = _merge_along(
                elements,
                lambda each, name=attribute: _all_but(each, name),  # type: ignore[misc]
                lambda a, b, name=attribute: _with_union(a, b, name),  # type: ignore[misc]
            )
        elements = _merge_along(elements, _all_but_sources, _with_both_sources)
        if len(elements) == size:
            return elements


def _merge_along(
    elements: set[Subscription],
    alike: Callable[[Subscription], Hashable],
    joined: Callable[[Subscription, Subscription], Subscription | None],
) -> set[Subscription]:
    groups: dict[Hashable, list[Subscription]] = {}
    for element in elements:
        groups.setdefault(alike(element), []).append(element)
    result: set[Subscription] = set()
    for group in groups.values():
        if len(group) == 1:
            result.add(group[0])
            continue
        kept: list[Subscription] = []
        for element in sorted(group, key=_stable_order):
            for place, other in enumerate(kept):
                union = joined(other, element)
                if union is not None:
                    kept[place] = union
                    break
            else:
                kept.append(element)
        result.update(kept)
    return result


def _family(element: Subscription) -> _Family:
    return element.scope, tuple(element.constraints)


def _all_but(element: Subscription, attribute: str) -> Hashable:
    return element.sources, tuple(
        values for name, values in element.constraints.items() if name != attribute
    )


def _all_but_sources(element: Subscription) -> Hashable:
    return tuple(element.constraints.values())


def _with_union(a: Subscription, b: Subscription, attribute: str) -> Subscription | None:
    union = _union(a.constraints[attribute], b.constraints[attribute])
    if union is None or union.terms > MAX_TERMS:
        return None
    return replace(a, constraints={**a.constraints, attribute: union}, text="")


def _with_both_sources(a: Subscription, b: Subscription) -> Subscription | None:
    if a.sources is None or b.sources is None:
        return a if a.sources is None else b
    return replace(a, sources=a.sources | b.sources, text="")


def _union(a: ValueSet, b: ValueSet) -> ValueSet | None:
    if isinstance(a, Intervals) and isinstance(b, Intervals):
        return a.union(b)
    if isinstance(a, Strings) and isinstance(b, Strings):
        return a.union(b)
    assert isinstance(a, Region)
    assert isinstance(b, Region)
    return a.union(b)


def _stable_order(element: Subscription) -> tuple[object, ...]:
    """So that the same elements merge in the same way whatever the order they came in."""
    return (
        sorted(element.sources or ()),
        [_stable_text(values) for values in element.constraints.values()],
    )


def _stable_text(values: ValueSet) -> str:
    if isinstance(values, Strings):
        listed = None if values.listed is None else sorted(values.listed)
        patterns = (values.prefix, values.suffix, sorted(values.fragments))
        return repr((listed, patterns, sorted(values.excluded)))
    return repr(values)
