"""Scenario: one workload as one value that can be sent to executors.

It has the organisations with the classes that they host, how subscriptions are drawn, their number
and the seed. Equal scenarios give byte-identical results on any computer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.errors import NameNotKnown, ValueRefused
from qns.federation.shipped import WEATHER_PARTIAL

FEWEST_ORGANISATIONS: Final = 2
MOST_ORGANISATIONS: Final = 500
MOST_SUBSCRIPTIONS: Final = 10**8
"""The most subscriptions of one organisation. With churn, a task needs 40 bytes for each."""
MOST_VALUES: Final = 10_000
MAPPINGS: Final = ("partial", "full")

Hosts = Mapping[str, tuple[str, ...]]
"""Organisation -> the classes it hosts."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How subscriptions are drawn. There are no data of real users, so each default is the simplest
    choice, and the sensitivity table shows the effect of others."""

    constrained: float = 0.5
    """Probability of a constraint on a data property of the class or of an enclosing class."""
    quality_constrained: float = 0.25
    """Probability of a constraint on each dimension of the class's own properties."""
    zipf: float = 1.0
    """Exponent of the popularity of an attribute's values; 0 makes all equally popular."""
    class_zipf: float = 0.0
    """Exponent of the popularity of classes, in the order of the schema."""
    equality: float = 0.25
    """Share of equalities among constraints on numbers, dates and qualities. By default the four
    kinds =, ≤, ≥ and between are equally frequent. Strings and booleans have only =."""
    between: float = 0.25
    """Share of intervals among these constraints."""
    sources_given: float = 0.2
    """Share of subscriptions that name their sources."""
    most_sources: int = 3
    """The number of sources is uniform from 1 to this; the subscriber's own is excluded."""
    only: float = 0.0
    """Share of subscriptions without quality constraints that exclude the classes below theirs."""
    values: int = 10
    """The number of values of an attribute; booleans have two."""
    quality_values: int = 9
    """The number of thresholds of a dimension: from 0.1 to 0.9, including those of the labels."""
    least_constraints: int = 1
    """A subscription without constraints would contain all others and end the experiment."""
    mildest_first: bool = False
    """True if low thresholds are the popular ones; otherwise popularity has no order."""

    def __post_init__(self) -> None:
        for name in ("constrained", "quality_constrained", "equality", "between", "only"):
            _check_share(name, getattr(self, name))
        _check_share("sources_given", self.sources_given)
        if self.equality + self.between > 1:
            raise ValueRefused(
                f"equality {self.equality:g} and between {self.between:g} are more than all",
                remedy="together at most 1",
            )
        for name in ("zipf", "class_zipf"):
            if not 0 <= getattr(self, name) <= 10:
                raise ValueRefused(f"{name} is {getattr(self, name):g}", remedy="from 0 to 10")
        for name, least, most in (
            ("values", 2, MOST_VALUES),
            ("quality_values", 2, MOST_VALUES),
            ("most_sources", 1, MOST_ORGANISATIONS),
            ("least_constraints", 0, 8),
        ):
            if not least <= getattr(self, name) <= most:
                raise ValueRefused(
                    f"{name} is {getattr(self, name):,}", remedy=f"from {least:,} to {most:,}"
                )


@dataclass(frozen=True, slots=True)
class Scenario:
    schema: Schema
    hosts: Hosts
    mapping: str
    """The name of the mapping in reports."""
    seed: int
    checkpoints: tuple[int, ...]
    """The numbers of subscriptions of each organisation at which counts are taken; ascending."""
    churn: float = 0.0
    """Probability that an arrival is followed by the removal of a random live subscription."""
    workload: Workload = field(default_factory=Workload)

    def __post_init__(self) -> None:
        if not FEWEST_ORGANISATIONS <= len(self.hosts) <= MOST_ORGANISATIONS:
            raise ValueRefused(
                f"{len(self.hosts):,} organisations",
                remedy=f"from {FEWEST_ORGANISATIONS} to {MOST_ORGANISATIONS}",
            )
        for name, classes in self.hosts.items():
            for path in classes:
                if path not in self.schema.classes:
                    raise NameNotKnown("class", path, self.schema.classes, place=f"hosts of {name}")
        if not 0 <= self.churn < 1:
            raise ValueRefused(f"churn {self.churn:g}", remedy="from 0 to below 1")
        if self.seed < 0:
            raise ValueRefused(f"seed {self.seed}", remedy="give 0 or more")
        if not self.checkpoints or min(self.checkpoints) < 1:
            raise ValueRefused("no subscriptions", remedy="give at least one number from 1 on")
        if max(self.checkpoints) > MOST_SUBSCRIPTIONS:
            raise ValueRefused(
                f"{max(self.checkpoints):,} subscriptions of one organisation",
                remedy=f"at most {MOST_SUBSCRIPTIONS:,}: spread them over more organisations",
            )
        if any(later <= earlier for earlier, later in pairwise(self.checkpoints)):
            raise ValueRefused(
                "the numbers of subscriptions do not rise", remedy="each larger than the one before"
            )

    @property
    def organisations(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    @property
    def subscriptions(self) -> int:
        """The total number of subscriptions of each organisation."""
        return self.checkpoints[-1]

    def described(self) -> dict[str, object]:
        """The whole scenario in plain values, for reports and for `id`."""
        properties = self.schema.properties
        return {
            "schema": {
                path: {each.name: each.domain.name for each in properties[path]}
                for path in self.schema.classes
            },
            "hosts": {name: list(classes) for name, classes in self.hosts.items()},
            "mapping": self.mapping,
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            "churn": self.churn,
            "workload": asdict(self.workload),
        }

    def columns(self) -> dict[str, Any]:
        """The columns that every row of every table has."""
        return {
            "scenario": self.id,
            "mapping": self.mapping,
            "organisations": len(self.organisations),
            "churn": self.churn,
            "seed": self.seed,
        }

    @property
    def id(self) -> str:
        """A digest that is the same only for equal scenarios."""
        text = json.dumps(self.described(), ensure_ascii=False, sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]


def hosts_of(schema: Schema, organisations: int, mapping: str) -> Hosts:
    """The hosts of a mapping with this number of organisations.

    `full`: every organisation hosts every class. `partial`: the ten of semantics §12, repeated. In
    another schema every organisation hosts the top classes, and every second one hosts each class
    below them, shifted by one from class to class.
    """
    if mapping not in MAPPINGS:
        raise NameNotKnown("mapping", mapping, MAPPINGS)
    if not FEWEST_ORGANISATIONS <= organisations <= MOST_ORGANISATIONS:
        raise ValueRefused(
            f"{organisations:,} organisations",
            remedy=f"from {FEWEST_ORGANISATIONS} to {MOST_ORGANISATIONS}",
        )
    names = [_name(schema, number) for number in range(1, organisations + 1)]
    if mapping == "full":
        return dict.fromkeys(names, schema.classes)
    if schema == WEATHER:
        ten = list(WEATHER_PARTIAL.hosts.values())
        return {
            name: tuple(path for path in schema.classes if path in ten[nth % len(ten)])
            for nth, name in enumerate(names)
        }
    return {
        name: tuple(
            path
            for offset, path in enumerate(schema.classes)
            if "/" not in path or (nth + offset) % 2
        )
        for nth, name in enumerate(names)
    }


def _name(schema: Schema, number: int) -> str:
    return f"Met{number:02}" if schema == WEATHER else f"Org{number:02}"


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueRefused(f"{name} is {share:g}", remedy="from 0 to 1")


HARD: Final = Workload(equality=1.0, between=0.0, sources_given=1.0, values=1_000)
"""Only equalities among many values, with sources: few subscriptions contain others."""
