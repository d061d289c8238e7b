"""Cover search: finds the elements of a set that contain, or are in, a subscription.

One subscription can contain another only if its attributes are among those of the other and each
value that it pins is pinned by the other as well. So elements are filed by scope, by attributes and
by pinned values, and only candidates with fitting ones are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TypeVar

from qns.cbr.domains import Key
from qns.cbr.intervals import Intervals
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet

Pins = tuple[tuple[str, Key], ...]
_K = TypeVar("_K")
_Drawer = dict[Subscription, None]  # a set that keeps insertion order


class CoverSearch:
    """A set of subscriptions. Usually none of them contains another."""

    def __init__(self) -> None:
        self._all: _Drawer = {}
        self._scopes: dict[frozenset[str], _Shapes] = {}
        self._by_pin: dict[tuple[str, Key], _Drawer] = {}
        self._by_attribute: dict[str, _Drawer] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._all)

    def add(self, subscription: Subscription) -> None:
        self._all[subscription] = None
        pins = pins_of(subscription)
        self._scopes.setdefault(subscription.scope, _Shapes()).add(subscription, pins)
        for pin in pins:
            self._by_pin.setdefault(pin, {})[subscription] = None
        for attribute in subscription.constraints:
            self._by_attribute.setdefault(attribute, {})[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        del self._all[subscription]
        pins = pins_of(subscription)
        shapes = self._scopes[subscription.scope]
        shapes.remove(subscription, pins)
        if not shapes.drawers:
            del self._scopes[subscription.scope]
        for pin in pins:
            _take_out(self._by_pin, pin, subscription)
        for attribute in subscription.constraints:
            _take_out(self._by_attribute, attribute, subscription)

    def any_cover(self, subscription: Subscription) -> Subscription | None:
        """Returns an element that contains the subscription, or None."""
        for candidate in self.possible_covers(subscription, frozenset.issuperset):
            if candidate.contains(subscription):
                return candidate
        return None

    def possible_covers(
        self,
        subscription: Subscription,
        may_contain: Callable[[frozenset[str], frozenset[str]], bool],
    ) -> Iterator[Subscription]:
        """Yields the elements that can contain the subscription, as far as the way they are filed
        tells; `may_contain` compares their scope with the scope of the subscription."""
        pins = dict(pins_of(subscription))
        for scope, shapes in self._scopes.items():
            if may_contain(scope, subscription.scope):
                yield from shapes.possible_covers(subscription, pins)

    def all_covered(self, subscription: Subscription) -> list[Subscription]:
        """Returns the elements that the subscription contains."""
        return [each for each in self.possibly_covered(subscription) if subscription.contains(each)]

    def possibly_covered(self, subscription: Subscription) -> Iterable[Subscription]:
        """Returns the elements that the subscription can contain."""
        drawers = [self._by_pin.get(pin, {}) for pin in pins_of(subscription)]
        drawers += [self._by_attribute.get(name, {}) for name in subscription.constraints]
        return min(drawers, key=len, default=self._all)


class _Shapes:
    """The elements of one scope: attributes -> pinned attributes -> pinned values -> elements."""

    def __init__(self) -> None:
        self.drawers: dict[tuple[str, ...], dict[tuple[str, ...], dict[Pins, _Drawer]]] = {}

    def add(self, subscription: Subscription, pins: Pins) -> None:
        by_pinned = self.drawers.setdefault(tuple(subscription.constraints), {})
        by_pins = by_pinned.setdefault(tuple(name for name, _ in pins), {})
        by_pins.setdefault(pins, {})[subscription] = None

    def remove(self, subscription: Subscription, pins: Pins) -> None:
        names = tuple(subscription.constraints)
        pinned = tuple(name for name, _ in pins)
        by_pinned = self.drawers[names]
        by_pins = by_pinned[pinned]
        _take_out(by_pins, pins, subscription)
        if not by_pins:
            del by_pinned[pinned]
        if not by_pinned:
            del self.drawers[names]

    def possible_covers(
        self, subscription: Subscription, pins: dict[str, Key]
    ) -> Iterator[Subscription]:
        for by_pinned in self._with_fewer_attributes(subscription):
            for pinned, by_pins in by_pinned.items():
                wanted = tuple((name, pins[name]) for name in pinned if name in pins)
                if len(wanted) == len(pinned):
                    yield from by_pins.get(wanted, ())

    def _with_fewer_attributes(
        self, subscription: Subscription
    ) -> Iterator[dict[tuple[str, ...], dict[Pins, _Drawer]]]:
        names = tuple(subscription.constraints)
        if len(names) < 16 and 2 ** len(names) < len(self.drawers):
            for size in range(len(names) + 1):
                for some in combinations(names, size):
                    if some in self.drawers:
                        yield self.drawers[some]
        else:
            among = set(names)
            for attributes, by_pinned in self.drawers.items():
                if among.issuperset(attributes):
                    yield by_pinned


def pins_of(subscription: Subscription) -> Pins:
    """Returns the attributes that the subscription pins to one value, in order of their names."""
    return tuple(
        (name, key)
        for name, values in subscription.constraints.items()
        if (key := _single_key(values)) is not None
    )


def _single_key(values: ValueSet) -> Key | None:
    if isinstance(values, Strings):
        if values.listed is not None and len(values.listed) == 1:
            return next(iter(values.listed))
        return None
    spans = values.spans if isinstance(values, Intervals) else values.new.spans
    return spans[0][0] if len(spans) == 1 and spans[0][0] == spans[0][1] else None


def _take_out(drawers: dict[_K, _Drawer], key: _K, subscription: Subscription) -> None:
    drawer = drawers[key]
    del drawer[subscription]
    if not drawer:
        del drawers[key]
