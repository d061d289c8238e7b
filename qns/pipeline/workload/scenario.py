"""Scenario: one workload to be computed, all of it in one value that executors can be sent.

Who takes part and hosts what, how subscriptions are drawn, how many, and from which seed. Two
scenarios that are equal give the same results, down to the last byte, wherever they are computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Final

from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.errors import NameNotKnown, ValueRefused
from qns.federation.shipped import WEATHER_PARTIAL

FEWEST_ORGANISATIONS: Final = 2
MOST_ORGANISATIONS: Final = 500
MOST_SUBSCRIPTIONS: Final = 10**8
"""Of one organisation: all of them are in the memory of one executor."""
MOST_VALUES: Final = 10_000
MAPPINGS: Final = ("partial", "full")

Hosts = Mapping[str, tuple[str, ...]]
"""Organisation -> the classes it hosts."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How subscriptions are drawn. Nothing here is known of real users: each default is the
    plainest choice, and the sensitivity table shows what another one does."""

    constrained: float = 0.5
    """The chance that a data property of the class or of one that encloses it is constrained."""
    quality_constrained: float = 0.25
    """The same for each dimension of the class's own properties: one of the four on average."""
    zipf: float = 1.0
    """The exponent with which the values of an attribute are popular; 0: all alike."""
    class_zipf: float = 0.0
    """The same for the classes, in the order of the schema."""
    equality: float = 0.25
    """Of the constraints on numbers, dates and qualities: how many ask for one value. The four
    kinds =, ≤, ≥ and between are equally frequent. Strings and booleans know only =."""
    between: float = 0.25
    sources_given: float = 0.2
    """How many subscriptions name their sources."""
    most_sources: int = 3
    """From 1 to so many, all numbers alike; any organisations but the subscriber's own."""
    only: float = 0.0
    """How many of those without quality constraints leave out the classes below theirs."""
    values: int = 10
    """How many different values an attribute has; booleans two. About as many as a dimension."""
    quality_values: int = 9
    """Thresholds from 0.1 to 0.9, the labels' numbers among them."""
    least_constraints: int = 1
    """A subscription to everything would contain all others and end the experiment."""
    mildest_first: bool = False
    """Whether the popular thresholds are the low ones; otherwise popularity follows no order."""

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
    """What the mapping is called in reports."""
    seed: int
    checkpoints: tuple[int, ...]
    """How many subscriptions of each organisation have arrived when it is counted; rising."""
    churn: float = 0.0
    """The chance that an arrival is followed by an unsubscription of somebody, all alike."""
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
        """Of each organisation, in all."""
        return self.checkpoints[-1]

    def described(self) -> dict[str, object]:
        """All of it in plain values, for people and for `id`."""
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

    @property
    def id(self) -> str:
        """A name that is the same for equal scenarios only."""
        text = json.dumps(self.described(), ensure_ascii=False, sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]


def hosts_of(schema: Schema, organisations: int, mapping: str) -> Hosts:
    """`full`: everybody hosts everything. `partial`: as the ten of semantics §12, over and over.

    In another schema everybody hosts the classes at the top, and each class below them is hosted by
    every other organisation, those of one class starting one further on than those of the last.
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
"""Equalities only, among many values, sources always given: little contains anything."""
