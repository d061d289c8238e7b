"""Plan: the scenarios of one run and the queries of each.

It validates the parameters before anything is started. Equal plans are the same run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Final

from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.errors import ValueRefused
from qns.pipeline.merging.beyond_job import MOST_ARRIVALS, beyond_job
from qns.pipeline.merging.merge_frame import merged, split
from qns.pipeline.notifications.notification_job import (
    check_fan_outs,
    check_publications,
    notification_job,
)
from qns.pipeline.spark.calls import calls
from qns.pipeline.spark.queries import Query
from qns.pipeline.workload.scenario import HARD, MAPPINGS, Scenario, Workload, hosts_of

MOST_SEEDS: Final = 1_000
MOST_SCENARIOS: Final = 10_000
MOST_VARIED: Final = 10_000
"""The most subscriptions of an organisation in the sensitivity table, which has many scenarios."""
FIRST_POINT: Final = 100
"""The first point of a curve with a single number of subscriptions."""

VARIATIONS: Final[Mapping[str, tuple[float, ...]]] = {
    "constrained": (0.25, 0.75, 1.0),
    "quality_constrained": (0.0, 0.5),
    "zipf": (0.0, 0.5, 1.5),
    "class_zipf": (1.0,),
    "equality": (0.0, 0.75),
    "between": (0.0, 0.75),
    "sources_given": (0.0, 0.5, 1.0),
    "most_sources": (1, 6),
    "only": (0.5,),
    "values": (100, 1_000),
    "quality_values": (3, 100),
    "least_constraints": (0, 2),
    "mildest_first": (True,),
}
"""The sensitivity table: the other values of each parameter, one at a time."""


@dataclass(frozen=True)
class Plan:
    schema: Schema = WEATHER
    organisations: tuple[int, ...] = (10,)
    subscriptions: tuple[int, ...] = (100, 1_000, 10_000)
    """The numbers of subscriptions of each organisation; points between them are added."""
    seeds: int = 5
    mappings: tuple[str, ...] = MAPPINGS
    churns: tuple[float, ...] = (0.0,)
    workload: Workload = field(default_factory=Workload)
    publications: tuple[int, ...] = (100, 1_000, 10_000)
    """Empty for no notifications."""
    fan_outs: tuple[int, ...] = ()
    """The fan-outs of diffusion trees; empty for none."""
    exact_merging: bool = False
    sensitivity: bool = False
    hard: bool = False
    """True if the hard workload is also computed."""

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueRefused(f"{self.seeds:,} seeds", remedy=f"from 1 to {MOST_SEEDS:,}")
        if self.publications:
            check_publications(self.publications)
        elif self.fan_outs:
            raise ValueRefused("trees without publications", remedy="give numbers of publications")
        check_fan_outs(self.fan_outs)
        for name in ("organisations", "mappings", "churns"):
            if not getattr(self, name):
                raise ValueRefused(f"no {name}", remedy="give at least one")
        lists = (self.organisations, self.mappings, self.churns)
        many = prod(map(len, lists)) * self.seeds  # checked first, because making them is slow
        if many > MOST_SCENARIOS:
            raise ValueRefused(f"{many:,} scenarios", remedy=f"at most {MOST_SCENARIOS:,}")
        assert self.scenarios  # making them validates the other parameters

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        return tuple(scenario for scenario, _ in self._parts)

    @property
    def groups(self) -> dict[str, list[Query]]:
        """Scenario id -> its queries."""
        groups: dict[str, list[Query]] = {}
        for scenario, queries in self._parts:
            groups.setdefault(scenario.id, []).extend(queries)
        return groups

    def described(self) -> dict[str, object]:
        """Returns the plan as plain values; the schema by its name, scenarios by their ids."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["schema"] = self.schema.name
        plain["workload"] = asdict(self.workload)
        return {
            **{name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()},
            "scenarios": [scenario.id for scenario in self.scenarios],
        }

    @cached_property
    def _parts(self) -> list[tuple[Scenario, list[Query]]]:
        parts: dict[str, tuple[Scenario, list[Query]]] = {}
        for scenario, query in self._all_parts():
            parts.setdefault(scenario.id, (scenario, []))[1].append(query)
        return list(parts.values())

    def _all_parts(self) -> Iterator[tuple[Scenario, Query]]:
        for scenario in self._main(self.workload, points_between(self.subscriptions)):
            yield scenario, _merging(scenario)
            if self.publications and not scenario.churn:
                yield scenario, self._notifying(scenario)
            if self.exact_merging:
                yield scenario, _exactly(scenario)
        if self.hard and self.workload != HARD:
            for scenario in self._main(HARD, points_between(self.subscriptions)):
                yield scenario, _merging(scenario)
        if self.sensitivity:
            for workload in variations(self.workload):
                for scenario in self._main(workload, (self._sensitive_size,)):
                    if self._is_typical(scenario):
                        yield scenario, _merging(scenario)

    def _main(self, workload: Workload, points: tuple[int, ...]) -> Iterator[Scenario]:
        for organisations in self.organisations:
            for mapping in self.mappings:
                hosts = hosts_of(self.schema, organisations, mapping)
                for churn in self.churns:
                    for seed in range(self.seeds):
                        yield Scenario(self.schema, hosts, mapping, seed, points, churn, workload)

    @property
    def _sensitive_size(self) -> int:
        points = points_between(self.subscriptions)
        return max((each for each in points if each <= MOST_VARIED), default=points[0])

    def _is_typical(self, scenario: Scenario) -> bool:
        """True for the first mapping, the first number of organisations and the first churn."""
        return (scenario.mapping, len(scenario.hosts), scenario.churn) == (
            self.mappings[0],
            self.organisations[0],
            self.churns[0],
        )

    def _notifying(self, scenario: Scenario) -> Query:
        work = 200.0 * len(scenario.hosts) + 5.0 * self.publications[-1] * (1 + len(self.fan_outs))
        return calls(
            f"notifications, {_label(scenario)}",
            notification_job,
            [(scenario, self.publications, self.fan_outs)],
            work,
        )


def points_between(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers, and 1, 2 and 5 times each power of ten between the first and the last.

    A single number gets points from 100 on.
    """
    if not numbers or min(numbers) < 1:
        raise ValueRefused("no subscriptions", remedy="give one or more numbers from 1 on")
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ValueRefused(
            "the numbers of subscriptions do not rise", remedy="each larger than the one before"
        )
    least = numbers[0] if len(numbers) > 1 else min(FIRST_POINT, numbers[0])
    steps = (first * 10**power for power in range(20) for first in (1, 2, 5))
    return tuple(sorted({*numbers, *(each for each in steps if least <= each < numbers[-1])}))


def variations(workload: Workload) -> Iterator[Workload]:
    """Yields the workload with one parameter changed, for each value of VARIATIONS."""
    for name, values in VARIATIONS.items():
        for value in values:
            if value == getattr(workload, name):
                continue
            try:
                yield replace(workload, **{name: value})  # type: ignore[arg-type]
            except ValueRefused:  # equality and between together are at most 1
                continue


def _merging(scenario: Scenario) -> Query:
    many = len(scenario.hosts)
    work = many * scenario.subscriptions * (1 + many / 50)
    return Query(f"merging, {_label(scenario)}", partial(merged, scenario), split, work)


def _exactly(scenario: Scenario) -> Query:
    work = 50.0 * min(scenario.subscriptions, MOST_ARRIVALS) * len(scenario.hosts)
    jobs = [(scenario, organisation) for organisation in scenario.organisations]
    return calls(f"exact merging, {_label(scenario)}", beyond_job, jobs, work)


def _label(scenario: Scenario) -> str:
    return (
        f"{scenario.mapping} mapping, {len(scenario.hosts)} organisations × "
        f"{scenario.subscriptions:,} subscriptions, seed {scenario.seed}"
    )
