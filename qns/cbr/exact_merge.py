"""Exact merging: reduces a merge set further than containment does, without approximation.

Two elements that differ only in one attribute, or only in their sources, become one if the union is
a value set (semantics §6). The original elements are kept: when one of them leaves, the elements
with the same scope and attributes are merged again without it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import NO_CHANGE, Delta
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet

MAX_TERMS: Final = 1_000
MAX_SOURCES: Final = 1_000
MAX_CHARACTERS: Final = 20_000
"""Limits of a merged element, so that it can be written and read again."""

_NEIGHBOURS = 32  # how many others are tried with a set if a union may fail

_Family = tuple[frozenset[str], tuple[str, ...]]  # only elements of one family can be merged


class ExactMerge:
    """Holds the exactly merged set, and updates it with the changes of a merge set."""

    def __init__(self, merge_set: Iterable[Subscription] = ()) -> None:
        self._families: dict[_Family, set[Subscription]] = {}
        self._merged: dict[_Family, set[Subscription]] = {}
        # A union can cover elements of other families that none of its parts covers.
        self._order: CoveringOrder[Subscription] = CoveringOrder()
        self.update(Delta(added=frozenset(merge_set)))

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        return self._order.merge_set

    def update(self, change: Delta[Subscription]) -> Delta[Subscription]:
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
    """Merges elements of the same scope and attributes until no two can be merged."""
    elements = set(family)
    attributes = next((tuple(each.constraints) for each in elements), ())
    while True:
        size = len(elements)
        for attribute in attributes:
            elements = set(_merged_along(elements, attribute))
        elements = set(_merged_sources(elements))
        if len(elements) == size:
            return elements


def _merged_along(elements: set[Subscription], attribute: str) -> Iterator[Subscription]:
    for group in _alike(elements, lambda each: _all_but(each, attribute)):
        if len(group) == 1:
            yield group[0]
            continue

        def grown(values: ValueSet, like: Subscription = group[0]) -> Subscription:
            return replace(like, constraints={**like.constraints, attribute: values}, text="")

        known = {each.constraints[attribute]: each for each in group}
        for union in _unions(sorted(known, key=_stable_text), lambda values: _fits(grown(values))):
            yield known.get(union) or grown(union)


def _merged_sources(elements: set[Subscription]) -> Iterator[Subscription]:
    for group in _alike(elements, lambda each: tuple(each.constraints.values())):
        given = [each.sources for each in group if each.sources is not None]
        # A union along an attribute may accept all sources and so cover the others.
        sources = frozenset[str]().union(*given) if len(given) == len(group) else None
        together = replace(group[0], sources=sources, text="")
        if len(group) > 1 and _fits(together):
            yield together
        else:
            yield from group


def _unions(values: list[ValueSet], fits: Callable[[ValueSet], bool]) -> Iterator[ValueSet]:
    """Yields value sets with the same union, fewer if possible. Each merged one fits."""
    intervals = [each for each in values if isinstance(each, Intervals)]
    thresholds = [each.new for each in values if isinstance(each, Region) and not each.previous]
    lists = [each for each in values if isinstance(each, Strings) and each.listed is not None]
    rest = [
        each
        for each in values
        if (isinstance(each, Region) and each.previous)
        or (isinstance(each, Strings) and each.listed is None)
    ]
    kept: list[ValueSet] = []
    kept += _joined(intervals, _all_intervals, fits)
    kept += _joined(thresholds, lambda some: Region.of(_all_intervals(some)), fits)
    kept += _joined(lists, _all_listed, fits)
    for each in rest:
        for place in range(max(0, len(kept) - _NEIGHBOURS), len(kept)):
            union = _union(kept[place], each)
            if union is not None and fits(union):
                kept[place] = union
                break
        else:
            kept.append(each)
    yield from kept


_Part = TypeVar("_Part", Intervals, Strings)


def _joined(
    parts: list[_Part],
    join: Callable[[list[_Part]], ValueSet],
    fits: Callable[[ValueSet], bool],
) -> list[ValueSet]:
    """Returns the union of all parts if it fits, otherwise the unions of both halves."""
    if not parts:
        return []
    union = join(parts)
    if len(parts) == 1 or fits(union):
        return [union]
    half = len(parts) // 2
    return _joined(parts[:half], join, fits) + _joined(parts[half:], join, fits)


def _all_intervals(parts: list[Intervals]) -> Intervals:
    return Intervals.of(span for part in parts for span in part.spans)


def _all_listed(parts: list[Strings]) -> Strings:
    return Strings.of(text for part in parts for text in part.listed or ())


def _union(a: ValueSet, b: ValueSet) -> ValueSet | None:
    if isinstance(a, Region) and isinstance(b, Region):
        return a.union(b)
    assert isinstance(a, Strings)
    assert isinstance(b, Strings)
    return a.union(b)


def _fits(element: Subscription) -> bool:
    sources = element.sources or ()
    sets = element.constraints.values()
    texts = sum(values.characters for values in sets if isinstance(values, Strings))
    return (
        sum(values.terms for values in sets) <= MAX_TERMS
        and len(sources) <= MAX_SOURCES
        and texts + sum(map(len, sources)) <= MAX_CHARACTERS
    )


def _alike(
    elements: set[Subscription], kind: Callable[[Subscription], Hashable]
) -> Iterable[list[Subscription]]:
    groups: dict[Hashable, list[Subscription]] = {}
    # A family can have two wordings: `only X`, and `X` where X has no class below.
    for element in sorted(elements, key=lambda each: (each.data_class, each.only)):
        groups.setdefault(kind(element), []).append(element)
    return groups.values()


def _family(element: Subscription) -> _Family:
    return element.scope, tuple(element.constraints)


def _all_but(element: Subscription, attribute: str) -> Hashable:
    return element.sources, tuple(
        values for name, values in element.constraints.items() if name != attribute
    )


def _stable_text(values: ValueSet) -> tuple[int, str]:
    """Returns a sort key that is the same in every run."""
    if isinstance(values, Strings):
        listed = None if values.listed is None else sorted(values.listed)
        patterns = (values.prefix, values.suffix, sorted(values.fragments))
        return 0, repr((listed, patterns, sorted(values.excluded)))
    spans = values.spans if isinstance(values, Intervals) else values.new.spans
    return spans[0][0], repr(values)
