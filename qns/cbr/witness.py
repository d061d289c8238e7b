"""Witness: an event that shows why one subscription does not contain another (semantics §5).

The witness matches the subscription that is not contained and does not match the other one. Where
possible, it differs in only one point from an event that matches both. It is checked before it is
returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from qns.cbr.domains import DATA_DOMAINS, MAX_STRING_LENGTH, Key
from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet

SCOPE: Final = "scope"
SOURCES: Final = "sources"

_Values = TypeVar("_Values", Intervals, Strings, Region)
_Pair = tuple[Key, int | None]  # a value, and the previous one if it is needed
_NO_STRING = Strings.of(())
_NO_KEY = Intervals(())
_ENDS_OF_DOMAINS = {
    end for domain in DATA_DOMAINS.values() if domain.hi > 1 for end in (domain.lo, domain.hi)
}


class Witness(NamedTuple):
    reason: str
    """The reason in words, with the two names that were given."""
    attribute: str
    """The attribute in which they differ, or `scope`, or `sources`."""
    event: Event


def witness(
    container: Subscription, contained: Subscription, names: tuple[str, str] = ("A", "B")
) -> Witness | None:
    """Returns an event that matches `contained` and not `container`, or None.

    The reason calls the two by `names`.
    """
    a, b = container, contained
    name_a, name_b = names
    if missing := b.scope - a.scope:
        path = b.data_class if b.data_class in missing else min(missing)
        reason = f"{name_b} accepts events of {path}, {name_a} does not"
        return _checked(a, b, reason, SCOPE, _event(a, b, path=path))
    if a.sources is not None:
        if b.sources is None:
            reason = (
                f"{name_b} accepts events from everyone, {name_a} only from {_some_of(a.sources)}"
            )
            return _checked(a, b, reason, SOURCES, _event(a, b, source=_stranger(a.sources)))
        if strangers := b.sources - a.sources:
            reason = f"{name_b} accepts events from {_some_of(strangers)}, {name_a} does not"
            return _checked(a, b, reason, SOURCES, _event(a, b, source=min(strangers)))
    for attribute, wider in a.constraints.items():
        narrower = b.constraints.get(attribute)
        if narrower is None:
            reason = f"{name_a} asks for {attribute}, {name_b} does not"
            return _checked(a, b, reason, attribute, _event(a, b))
        pair = _outside(narrower, wider)
        if pair is not None:
            reason = f"{name_b} accepts values of {attribute} that {name_a} does not"
            if isinstance(wider, Region) and wider.new.holds(pair[0]):  # so the change differs
                reason = f"{name_b} accepts changes of {attribute} that {name_a} does not"
                if pair[1] is None:
                    reason = f"{name_b} accepts {attribute} without a previous value, {name_a} not"
            return _checked(a, b, reason, attribute, _event(a, b, {attribute: pair}))
    return None


def _checked(
    a: Subscription, b: Subscription, reason: str, attribute: str, event: Event
) -> Witness:
    assert b.matches(event), f"{event} does not match B"
    assert not a.matches(event), f"{event} matches A"
    return Witness(reason, attribute, event)


def _event(
    a: Subscription,
    b: Subscription,
    chosen: Mapping[str, _Pair] | None = None,
    *,
    path: str = "",
    source: str = "",
) -> Event:
    """Returns an event that matches B. Values that are not chosen match A too, if possible."""
    if not path:
        path = b.data_class if b.data_class in b.scope else min(b.scope)
    if not source:
        both = b.sources & a.sources if a.sources and b.sources else b.sources or a.sources
        source = min(both or b.sources or ("Anyone",))
    values: dict[str, Key] = {}
    previous: dict[str, int] = {}
    for attribute, wanted in b.constraints.items():
        pair = (chosen or {}).get(attribute) or _inside(wanted, a.constraints.get(attribute))
        values[attribute] = pair[0]
        if pair[1] is not None:
            previous[attribute] = pair[1]
    return Event("witness", path, source, values, previous)


def _outside(narrower: ValueSet, wider: ValueSet) -> _Pair | None:
    """Returns a value of `narrower` that `wider` lacks, with the previous value if it is needed."""
    if isinstance(narrower, Intervals) and isinstance(wider, Intervals):
        key = _plainest(narrower, wider)
        return None if key is None else (key, None)
    if isinstance(narrower, Strings) and isinstance(wider, Strings):
        text = narrower.outside(wider)
        return None if text is None else (text, None)
    if isinstance(narrower, Region) and isinstance(wider, Region):
        if narrower.previous is None and wider.previous is None:
            return _outside(narrower.new, wider.new)
        return narrower.outside(wider)
    return _inside(narrower, None)  # sets of different types have nothing in common


def _inside(values: ValueSet, preferred: ValueSet | None) -> _Pair:
    """Returns a value of the set, a preferred one if possible."""
    pair: _Pair | None
    if isinstance(values, Strings):
        if isinstance(preferred, Strings):
            both = values.intersect(preferred)
            if both.characters + both.terms < MAX_STRING_LENGTH:  # all patterns of both fit
                values = _unless_empty(both, values)
        pair = _outside(values, _NO_STRING)
    elif isinstance(values, Intervals):
        if isinstance(preferred, Intervals):
            values = _unless_empty(values.intersect(preferred), values)
        pair = _outside(values, _NO_KEY)
    else:
        if isinstance(preferred, Region):
            values = _unless_empty(values.intersect(preferred), values)
        pair = _outside(values, Region(_NO_KEY))
    assert pair is not None, "an empty set is refused at subscription time"
    return pair


def _unless_empty(values: _Values, otherwise: _Values) -> _Values:
    return otherwise if values.is_empty else values


def _plainest(narrower: Intervals, wider: Intervals) -> int | None:
    """Returns the key of `narrower` that `wider` lacks and that looks plainest when it is written.

    The candidates are zero, the ends of `narrower` and the keys next to `wider`. If none of them is
    such a key, there is none, and the result is None.
    """
    candidates = [0, *(end for span in narrower.spans for end in span)]
    candidates += [beyond for lo, hi in wider.spans for beyond in (lo - 1, hi + 1)]
    fitting = [key for key in candidates if narrower.holds(key) and not wider.holds(key)]
    return min(fitting, key=_strangeness, default=None)


def _strangeness(key: int) -> tuple[bool, int, int]:
    """Returns a sort key: domain ends come last, keys with few significant digits first."""
    size = abs(key)
    digits = min(len(str(size).rstrip("0")), len(str(max(size - 1, 0)).rstrip("0")))
    return key in _ENDS_OF_DOMAINS, digits, size


def _stranger(known: frozenset[str]) -> str:
    number = 1
    while (name := f"Elsewhere{number if number > 1 else ''}") in known:
        number += 1
    return name


def _some_of(names: frozenset[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
