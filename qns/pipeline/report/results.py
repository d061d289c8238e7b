"""Results: sums of the tables of a run for its report, one value per seed.

A `Setting` has the parameters that all scenarios of one curve share. Mapping and seed are not part
of it, because a report shows the mappings side by side and averages over seeds. The setting with
the most subscriptions is the base of the report, to which the others are compared.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final

import pyarrow as pa

from qns.pipeline.tables import TABLES
from qns.pipeline.workload.scenario import HARD, MAPPINGS, Workload
from qns.report.statistics import Estimate, estimate

Counts = Mapping[str, float]
Seeds = Mapping[int, Counts]
"""Seed -> the counts."""
Sizes = Mapping[int, Seeds]
"""A number of subscriptions per organisation, or of publications -> the counts at that size."""
Described = Mapping[str, object]
"""`Scenario.described()`, or that of a real workload, which includes its `id`."""

PAPER_SUBSCRIPTIONS: Final = 100
"""The number of subscriptions of each organisation in figure 5.10."""
_LABELS: Final = ("scenario", "mapping", "organisations", "churn", "seed")
_AXES: Final = {
    "subscriptions": ("arrived", "producer"),
    "beyond": ("arrived",),
    "notifications": ("subscriptions", "published"),
    "trees": ("subscriptions", "published", "fan_out"),
    "cost": ("job", "arrived"),
}
_MAXIMA: Final = ("peak_bytes", "most_children", "most_depth", "most_connections")


@dataclass(frozen=True, slots=True)
class Setting:
    organisations: int
    churn: float
    workload: tuple[tuple[str, object], ...]
    """The sorted fields of the Workload; empty for a real workload."""

    @property
    def is_default(self) -> bool:
        return dict(self.workload) == asdict(Workload())

    @property
    def is_hard(self) -> bool:
        return dict(self.workload) == asdict(HARD)

    def differences(self, other: Setting) -> dict[str, tuple[object, object]]:
        """The different parameters: name -> value here, value in the other one."""
        here: dict[str, object] = dict(self.workload)
        there: dict[str, object] = dict(other.workload)
        here.update(organisations=self.organisations, churn=self.churn)
        there.update(organisations=other.organisations, churn=other.churn)
        return {
            name: (here.get(name), there.get(name))
            for name in sorted({*here, *there})
            if here.get(name) != there.get(name)
        }


class Results:
    """Every table of the run, by setting and mapping."""

    def __init__(self, tables: Mapping[str, pa.Table], scenarios: Sequence[Described]) -> None:
        self.scenarios = {scenario_id(each): each for each in scenarios}
        self._settings: dict[str, Setting] = {}
        self._counted: dict[str, dict[tuple[Setting, str], list[_Row]]] = {}
        for name in TABLES:
            found = tables.get(name)
            if found is not None and found.num_rows:
                self._counted[name] = self._gathered(name, found)
        order = list(self.scenarios)
        self.settings: tuple[Setting, ...] = tuple(
            dict.fromkeys(
                self._settings[each]
                for each in sorted(
                    self._settings,
                    key=lambda each: (order.index(each) if each in order else len(order), each),
                )
            )
        )
        names = {mapping for table in self._counted.values() for _, mapping in table}
        self.mappings: tuple[str, ...] = (
            *(each for each in MAPPINGS if each in names),
            *sorted(names - set(MAPPINGS)),
        )
        self.base: Setting | None = self._base()

    def has(self, table: str) -> bool:
        return table in self._counted

    def setting_of(self, table: str) -> Setting | None:
        """Returns the base setting if the table has it, otherwise the first one of the table."""
        known = {setting for setting, _ in self._counted.get(table, ())}
        if self.base in known:
            return self.base
        return next((each for each in self.settings if each in known), None)

    def sizes(self, table: str, setting: Setting | None, mapping: str) -> Sizes:
        """Sums over all organisations, for each number of subscriptions or publications."""
        axis = "published" if table == "notifications" else "arrived"
        return _by(axis, self._rows(table, setting, mapping))

    def by_mapping(self, table: str, setting: Setting | None) -> dict[str, Sizes]:
        """Mapping -> `sizes`, for the mappings that have any."""
        found = {mapping: self.sizes(table, setting, mapping) for mapping in self.mappings}
        return {mapping: sizes for mapping, sizes in found.items() if sizes}

    def producers(self, setting: Setting | None, mapping: str) -> dict[str, Sizes]:
        """Producer -> the size of its external merge table along the subscriptions."""
        apart: dict[str, list[_Row]] = defaultdict(list)
        for row in self._rows("subscriptions", setting, mapping):
            apart[str(row.at["producer"])].append(row)
        return {name: _by("arrived", apart[name]) for name in sorted(apart)}

    def trees(self, setting: Setting | None, mapping: str) -> dict[int, Sizes]:
        """Fan-out (0: no trees) -> the counts for each number of publications."""
        apart: dict[int, list[_Row]] = defaultdict(list)
        for row in self._rows("trees", setting, mapping):
            apart[int(row.at["fan_out"])].append(row)
        return {fan_out: _by("published", apart[fan_out]) for fan_out in sorted(apart)}

    def costs(self, setting: Setting | None, mapping: str) -> dict[str, Sizes]:
        """Job -> the seconds of all its tasks, and the largest peak memory of one."""
        apart: dict[str, list[_Row]] = defaultdict(list)
        for row in self._rows("cost", setting, mapping):
            apart[str(row.at["job"])].append(row)
        return {job: _by("arrived", apart[job]) for job in sorted(apart)}

    def subscriptions_of(self, table: str) -> int | None:
        """The number of subscriptions per organisation for figure 5.10: 100 if the run has it."""
        numbers = {
            int(row.at["subscriptions"])
            for rows in self._counted.get(table, {}).values()
            for row in rows
        }
        if PAPER_SUBSCRIPTIONS in numbers:
            return PAPER_SUBSCRIPTIONS
        return min(numbers, default=None)

    def hosts(self, setting: Setting | None, mapping: str) -> dict[str, tuple[str, ...]]:
        """Organisation -> the classes that it hosts; empty if unknown."""
        for number, scenario in self.scenarios.items():
            if self._settings.get(number) == setting and scenario.get("mapping") == mapping:
                hosts = scenario.get("hosts")
                if isinstance(hosts, Mapping):
                    return {str(name): tuple(map(str, of)) for name, of in hosts.items()}
        return {}

    def _rows(self, table: str, setting: Setting | None, mapping: str) -> list[_Row]:
        rows = self._counted.get(table, {}).get((setting, mapping), []) if setting else []
        if table in ("notifications", "trees"):
            chosen = self.subscriptions_of(table)
            return [row for row in rows if row.at["subscriptions"] == chosen]
        return rows

    def _gathered(self, name: str, table: pa.Table) -> dict[tuple[Setting, str], list[_Row]]:
        gathered: dict[tuple[Setting, str], list[_Row]] = defaultdict(list)
        first_in: dict[tuple[object, ...], str] = {}
        for row in _summed(name, table):
            setting = self._settings.setdefault(row.scenario, self._setting(row))
            # Two scenarios may differ only in their last checkpoint; equal rows count once.
            spot = (setting, row.mapping, row.seed, *sorted(row.at.items()))
            if first_in.setdefault(spot, row.scenario) == row.scenario:
                gathered[setting, row.mapping].append(row)
        return gathered

    def _setting(self, row: _Row) -> Setting:
        workload = self.scenarios.get(row.scenario, {}).get("workload")
        fields = workload if isinstance(workload, Mapping) else {}
        return Setting(
            row.organisations,
            row.churn,
            tuple(sorted((str(name), _plain(value)) for name, value in fields.items())),
        )

    def _base(self) -> Setting | None:
        """The largest setting; then the one closest to all others, with the least churn."""
        if not self.settings:
            return None
        largest: dict[Setting, int] = defaultdict(int)
        for table in ("subscriptions", "notifications", "trees", "beyond"):
            if largest:
                break
            for (setting, _), rows in self._counted.get(table, {}).items():
                axis = "arrived" if "arrived" in rows[0].at else "published"
                top = max(int(row.at[axis]) for row in rows)
                largest[setting] = max(largest[setting], top)

        def rank(setting: Setting) -> tuple[float, ...]:
            apart = sum(len(setting.differences(other)) for other in self.settings)
            return (-largest[setting], apart, setting.churn, setting.organisations)

        return min(self.settings, key=rank)


def scenario_id(described: Described) -> str:
    """The given id, or that which `Scenario.id` computes from the description."""
    given = described.get("id")
    if given is not None:
        return str(given)
    text = json.dumps(described, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def column(name: str) -> Callable[[Counts], float]:
    return lambda counts: counts[name]


def over_seeds(seeds: Seeds, value: Callable[[Counts], float]) -> Estimate:
    return estimate([value(seeds[seed]) for seed in sorted(seeds)])


def differences(first: Seeds, second: Seeds, value: Callable[[Counts], float]) -> Estimate | None:
    """second − first, seed by seed; None if no seed is in common."""
    common = sorted({*first} & {*second})
    if not common:
        return None
    return estimate([value(second[seed]) - value(first[seed]) for seed in common])


@dataclass(frozen=True, slots=True)
class _Row:
    scenario: str
    mapping: str
    organisations: int
    churn: float
    seed: int
    at: Mapping[str, str | int]
    counts: Counts


def _summed(name: str, table: pa.Table) -> Iterator[_Row]:
    axes = _AXES[name]
    counted = [each for each in TABLES[name].names if each not in {*_LABELS, *axes, "organisation"}]
    counted = [each for each in counted if each not in {"producer", "publisher"}]
    how = [(each, "max" if each in _MAXIMA else "sum") for each in counted]
    grouped = table.group_by([*_LABELS, *axes], use_threads=False).aggregate(how)
    order = [(each, "ascending") for each in ("mapping", "seed", "scenario", *axes)]
    for row in grouped.sort_by(order).to_pylist():
        yield _Row(
            **{each: row[each] for each in _LABELS},
            at={each: row[each] for each in axes},
            counts={column: row[f"{column}_{kind}"] for column, kind in how},
        )


def _by(axis: str, rows: Sequence[_Row]) -> dict[int, dict[int, dict[str, float]]]:
    """Sums the rows over all other axes."""
    added: dict[int, dict[int, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        counts = added[int(row.at[axis])].setdefault(row.seed, {})
        for name, count in row.counts.items():
            before = counts.get(name, 0)
            counts[name] = max(before, count) if name in _MAXIMA else before + count
    return {size: dict(sorted(added[size].items())) for size in sorted(added)}


def _plain(value: object) -> object:
    if isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
