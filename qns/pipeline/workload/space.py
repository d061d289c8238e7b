"""Space: the attributes and scopes of generated workloads, as small numbers and as real values.

Each attribute has a grid of ascending values. The attributes of a class are numbered along its
lineage, outermost first, then the dimensions of its own properties, so an attribute has the same
number in every class that inherits it. Scopes are numbered, too: each class with the classes below
it, and each class alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final

from qns.cbr.domains import BOOLEAN, DATE, DATETIME, INTEGER, QUALITY, STRING, Domain, Key
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import Attribute, Schema
from qns.pipeline.workload.scenario import Scenario, Workload

RANGE: Final = -1
"""In place of a pinned rank, this marks an interval."""

_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute with its grid of values."""

    name: str
    domain: Domain
    keys: tuple[Key, ...]
    number: int
    """Its place in the whole schema, which selects the popularity of its values."""

    @property
    def is_ordered(self) -> bool:
        """True if constraints can be thresholds."""
        return self.domain.ordered and self.domain is not BOOLEAN

    def value_set(self, low: int, high: int) -> ValueSet:
        """The values from rank to rank; a rank outside of the grid means no bound."""
        if self.domain is STRING:
            assert low == high, "strings have only equalities"
            return Strings.of([str(self.keys[low])])
        lowest = self.keys[low] if low >= 0 else self.domain.lo
        highest = self.keys[high] if high < len(self.keys) else self.domain.hi
        assert isinstance(lowest, int)
        assert isinstance(highest, int)
        interval = Intervals(((lowest, highest),))
        return Region.of(interval) if self.domain is QUALITY else interval


def scopes_of(schema: Schema) -> tuple[frozenset[str], ...]:
    """Every scope that a subscription can have; a class without subclasses has only one."""
    found: dict[frozenset[str], None] = {}
    for path in schema.classes:
        found.setdefault(schema.scope(path))
        found.setdefault(schema.scope(path, only=True))
    return tuple(found)


@dataclass(frozen=True)
class Space:
    schema: Schema
    organisations: tuple[str, ...]
    workload: Workload

    @classmethod
    def of(cls, scenario: Scenario) -> Space:
        return cls(scenario.schema, scenario.organisations, scenario.workload)

    @cached_property
    def axes(self) -> tuple[tuple[Axis, ...], ...]:
        """For each class, in the order of the schema: the attributes of its subscriptions."""
        every: dict[str, Axis] = {}
        by_class = []
        for path in self.schema.classes:
            axes = []
            for attribute in self.schema.attributes(path):
                if attribute.name not in every:
                    every[attribute.name] = self._axis(attribute, len(every))
                axes.append(every[attribute.name])
            by_class.append(tuple(axes))
        return tuple(by_class)

    @cached_property
    def data_axes(self) -> tuple[int, ...]:
        """For each class: the number of its data attributes, which come first."""
        return tuple(
            sum(len(self.schema.properties[owner]) for owner in self.schema.lineage(path))
            for path in self.schema.classes
        )

    @cached_property
    def scopes(self) -> tuple[frozenset[str], ...]:
        """Every scope that a subscription can have."""
        return scopes_of(self.schema)

    @cached_property
    def scope_numbers(self) -> tuple[tuple[int, int], ...]:
        """For each class: the number of its scope with the classes below, and of its own."""
        numbers = {scope: number for number, scope in enumerate(self.scopes)}
        return tuple(
            (numbers[self.schema.scope(path)], numbers[self.schema.scope(path, only=True)])
            for path in self.schema.classes
        )

    def subscription(
        self,
        class_number: int,
        only: bool,
        sources: frozenset[str] | None,
        constraints: list[tuple[int, int, int]],
    ) -> Subscription:
        """A Subscription; constraints are (attribute of the class, lowest rank, highest rank)."""
        path = self.schema.classes[class_number]
        axes = self.axes[class_number]
        return Subscription(
            self.schema.scope(path, only),
            sources,
            {axes[axis].name: axes[axis].value_set(low, high) for axis, low, high in constraints},
            path,
            only,
        )

    def _axis(self, attribute: Attribute, number: int) -> Axis:
        domain = attribute.domain
        if domain is QUALITY:
            steps = self.workload.quality_values + 1
            grid: list[object] = [step / steps for step in range(1, steps)]
        elif domain is BOOLEAN:
            grid = [False, True]
        else:
            grid = [
                _value(domain, attribute.prop.name, rank) for rank in range(self.workload.values)
            ]
        return Axis(attribute.name, domain, tuple(domain.key(value) for value in grid), number)


def _value(domain: Domain, name: str, rank: int) -> str | int | float | date | datetime:
    if domain is STRING:
        return f"{name} {rank + 1:04}"
    if domain is INTEGER:
        return 10 * (rank + 1)
    if domain is DATE:
        return (_FIRST_DAY + timedelta(days=rank)).date()
    if domain is DATETIME:
        return _FIRST_DAY + timedelta(hours=rank)
    return (rank + 1) / 2
