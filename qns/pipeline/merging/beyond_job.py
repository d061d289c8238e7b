"""Beyond job: what exact merging saves on top of containment, for one organisation.

Runs the production classes one change after the other, so it is for thousands of subscriptions and
not for millions. Rows alone would flatter exact merging, because a union of many intervals is one
row: terms and bytes of D2Q XML are counted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from qns.cbr.covering import CoveringOrder
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.pipeline.merging.merge_job import Tables, columns_of, cost_row
from qns.pipeline.replay.real_workload import RealWorkload
from qns.pipeline.tables import BEYOND, COST
from qns.pipeline.workload.generator import Generator, Operation
from qns.pipeline.workload.scenario import Hosts, Scenario

MOST_ARRIVALS: Final = 2_000
"""Checkpoints beyond this are left out: exact merging starts anew with each change of a view."""


def beyond_job(scenario: Scenario, organisation: str) -> Tables:
    checkpoints = _within_reach(scenario.checkpoints)
    arrivals = checkpoints[-1] if checkpoints else 0
    operations = Generator(scenario).operations(organisation, arrivals)
    views = _Views(scenario.schema, scenario.hosts, organisation)
    return _counted(columns_of(scenario), organisation, views, operations, checkpoints)


def replay_beyond_job(workload: RealWorkload, organisation: str) -> Tables:
    """The same of what really happened; who had fewer subscriptions has what it had."""
    checkpoints = _within_reach(workload.checkpoints)
    operations = workload.operations(organisation)
    views = _Views(workload.schema, workload.hosts, organisation)
    return _counted(workload.columns(), organisation, views, operations, checkpoints)


def _within_reach(checkpoints: Iterable[int]) -> tuple[int, ...]:
    return tuple(each for each in checkpoints if each <= MOST_ARRIVALS)


def _counted(
    columns: dict[str, Any],
    organisation: str,
    views: _Views,
    operations: Iterable[Operation],
    checkpoints: Sequence[int],
) -> Tables:
    common = {**columns, "organisation": organisation}
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    started = perf_counter()
    waiting = list(checkpoints)

    def mark() -> None:
        arrived = waiting.pop(0)
        cost.append(cost_row(common, "beyond", arrived, perf_counter() - started))
        rows.extend({**common, "arrived": arrived, **counts} for counts in views.counts())

    for operation in operations:
        while waiting and operation.arrived > waiting[0]:
            mark()
        if not waiting:
            break
        views.take(operation)
    while waiting:
        mark()
    return {
        "beyond": pa.Table.from_pylist(rows, BEYOND),
        "cost": pa.Table.from_pylist(cost, COST),
    }


class _Views:
    """What each producer is told of one organisation, with and without exact merging."""

    def __init__(self, schema: Schema, hosts: Hosts, organisation: str) -> None:
        self._schema = schema
        self._order: CoveringOrder[str] = CoveringOrder()
        self._live: dict[str, Subscription] = {}
        self._producers = {
            name: _Producer(name, hosted) for name, hosted in hosts.items() if name != organisation
        }

    def take(self, operation: Operation) -> None:
        if operation.subscription is not None:
            self._live[operation.id] = operation.subscription
            delta = self._order.subscribe(operation.id, operation.subscription)
        else:
            del self._live[operation.id]
            delta = self._order.unsubscribe(operation.id)
        if not delta:
            return
        for producer in self._producers.values():
            change = producer.view.update(delta)
            if change:
                producer.messages_both += 1
                producer.messages_exact += bool(producer.exact.update(change))

    def counts(self) -> list[dict[str, Any]]:
        """A row for each producer."""
        return [
            {
                "producer": name,
                **_sizes("mapping", producer.concerned(self._live.values()), self._schema),
                **_sizes("both", producer.view.subscriptions, self._schema),
                **_sizes("exact", producer.exact.subscriptions, self._schema),
                "messages_both": producer.messages_both,
                "messages_exact": producer.messages_exact,
            }
            for name, producer in self._producers.items()
        ]


class _Producer:
    def __init__(self, name: str, hosted: Iterable[str]) -> None:
        self.view = ProducerView(name, hosted)
        self.exact = ExactMerge()
        self.messages_both = self.messages_exact = 0

    def concerned(self, live: Iterable[Subscription]) -> list[Subscription]:
        """Those that mapping alone would store there."""
        every = (one.projected(self.view.producer, self.view.hosted) for one in live)
        return [one for one in every if one is not None]


def _sizes(name: str, some: Iterable[Subscription], schema: Schema) -> dict[str, int]:
    rows = terms = size = 0
    for one in some:
        rows += 1
        terms += sum(values.terms for values in one.constraints.values())
        size += len(write_subscription(one, schema))
    return {f"rows_{name}": rows, f"terms_{name}": terms, f"bytes_{name}": size}
