"""Beyond job: the savings of exact merging on top of containment, for one organisation.

It runs the production classes one change after the other, so it suits thousands of subscriptions
and not millions. A union of many intervals is one row, so rows alone would overstate the savings of
exact merging. Therefore terms and bytes of D2Q XML are counted, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

import pyarrow as pa

from qns.cbr.covering import CoveringOrder
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.pipeline.cost import Meter, cost_row
from qns.pipeline.tables import BEYOND, COST, Tables
from qns.pipeline.workload.generator import Generator, Operation
from qns.pipeline.workload.scenario import Hosts, Scenario

MOST_ARRIVALS: Final = 2_000
"""Later checkpoints are omitted, because exact merging starts again with each change of a view."""


def beyond_job(scenario: Scenario, organisation: str) -> Tables:
    """Returns the organisation's rows of BEYOND and of COST."""
    arrivals = max((each for each in scenario.checkpoints if each <= MOST_ARRIVALS), default=0)
    operations = Generator(scenario).operations(organisation, arrivals)
    return count_beyond(scenario, organisation, operations)


class CountedWorkload(Protocol):
    """The part of a generated or a real workload that is needed to count one organisation."""

    @property
    def schema(self) -> Schema: ...

    @property
    def hosts(self) -> Hosts: ...

    @property
    def checkpoints(self) -> tuple[int, ...]: ...

    def columns(self) -> dict[str, Any]: ...


def count_beyond(
    workload: CountedWorkload, organisation: str, operations: Iterable[Operation]
) -> Tables:
    """Counts at each checkpoint; after the last operation the counts stay as they are."""
    common = {**workload.columns(), "organisation": organisation}
    views = _Views(workload.schema, workload.hosts, organisation)
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    meter = Meter()
    waiting = [each for each in workload.checkpoints if each <= MOST_ARRIVALS]

    def mark() -> None:
        arrived = waiting.pop(0)
        cost.append(cost_row(common, "beyond", arrived, meter))
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
    """The views of one organisation at each producer, with and without exact merging."""

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
        """Returns a row for each producer."""
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
        """The subscriptions that mapping alone would store at the producer."""
        every = (one.projected(self.view.producer, self.view.hosted) for one in live)
        return [one for one in every if one is not None]


def _sizes(name: str, some: Iterable[Subscription], schema: Schema) -> dict[str, int]:
    rows = terms = size = 0
    for one in some:
        rows += 1
        terms += sum(values.terms for values in one.constraints.values())
        size += len(write_subscription(one, schema))
    return {f"rows_{name}": rows, f"terms_{name}": terms, f"bytes_{name}": size}
