"""Subscription: ⟨δ[:S], exprD, exprQ⟩ in normal form, with matching and containment.

There is one value set for each attribute. Attributes are flat qualified names:
`Enterprise/Holder.Name` for data, `Enterprise/Holder.Name.accuracy` for quality. The scope is the
set of classes whose events can match, so this module needs no schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.errors import Unsatisfiable

ValueSet = Intervals | Strings | Region


@dataclass(frozen=True, slots=True, eq=False)
class Subscription:
    """The normal form. Two subscriptions that accept the same events are equal.

    `data_class` and `only` say how the scope is written, and `text` is the subscription as its
    author wrote it. None of these takes part in comparisons.
    """

    scope: frozenset[str]
    sources: frozenset[str] | None
    constraints: Mapping[str, ValueSet]
    data_class: str
    only: bool = False
    text: str = ""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.constraints.items()))
        for attribute, values in ordered.items():
            if values.is_empty:
                raise Unsatisfiable(attribute)
        object.__setattr__(self, "constraints", MappingProxyType(ordered))
        object.__setattr__(self, "_hash", hash((self.scope, self.sources, tuple(ordered.items()))))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Subscription)
            and self._hash == other._hash
            and self.scope == other.scope
            and self.sources == other.sources
            and self.constraints == other.constraints
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return (
            Subscription,
            (
                self.scope,
                self.sources,
                dict(self.constraints),
                self.data_class,
                self.only,
                self.text,
            ),
        )

    def matches(self, event: Event) -> bool:
        """True if the event matches. A constraint on an absent attribute fails (semantics §4)."""
        if event.data_class not in self.scope:
            return False
        if self.sources is not None and event.source not in self.sources:
            return False
        return self.failing_attribute(event) is None

    def failing_attribute(self, event: Event) -> str | None:
        """Returns the first attribute whose constraint the event does not satisfy, or None."""
        values, previous = event.values, event.previous
        for attribute, wanted in self.constraints.items():
            key = values.get(attribute)
            if key is None:
                return attribute
            if isinstance(wanted, Region):
                if not wanted.holds(key, previous.get(attribute)):
                    return attribute
            elif not wanted.holds(key):
                return attribute
        return None

    def contains(self, other: Subscription) -> bool:
        """True if every event that matches `other` matches this subscription (semantics §5)."""
        return (
            other.scope <= self.scope
            and self.accepts_sources_of(other)
            and self.constraints_contain(other)
        )

    def accepts_sources_of(self, other: Subscription) -> bool:
        """True if this subscription accepts every source that the other one accepts."""
        return self.sources is None or (other.sources is not None and other.sources <= self.sources)

    def constraints_contain(self, other: Subscription) -> bool:
        """True if every value that satisfies the constraints of `other` satisfies these."""
        theirs = other.constraints
        for attribute, values in self.constraints.items():
            narrower = theirs.get(attribute)
            if narrower is None or not values.contains(narrower):
                return False
        return True

    def projected(self, producer: str, hosted: Iterable[str]) -> Subscription | None:
        """Returns the subscription as the producer sees it (semantics §6), or None.

        It has no sources and only the classes that the producer hosts.
        """
        if self.sources is not None and producer not in self.sources:
            return None
        scope = self.scope.intersection(hosted)
        if not scope:
            return None
        return replace(self, scope=scope, sources=None, text="")
