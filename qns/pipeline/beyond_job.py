"""Beyond job: what exact merging saves on top of containment, for one organisation.

Runs the production classes one change after the other, so it is for thousands of subscriptions and
not for millions. Rows alone would flatter exact merging, because a union of many intervals is one
row: terms and bytes of D2Q XML are counted too.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from qns.cbr.covering import CoveringOrder
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import write_subscription
from qns.pipeline.generator import Generator
from qns.pipeline.merge_job import Tables, columns_of, cost_row
from qns.pipeline.scenario import Scenario
from qns.pipeline.tables import BEYOND, COST

MOST_ARRIVALS: Final = 2_000
"""Checkpoints beyond this are left out: exact merging starts anew with each change of a view."""


class _Producer:
    """What one producer is told, with and without exact merging."""

    def __init__(self, name: str, hosted: Iterable[str]) -> None:
        self.view = ProducerView(name, hosted)
        self.exact = ExactMerge()
        self.messages_both = self.messages_exact = 0


def beyond_job(scenario: Scenario, organisation: str) -> Tables:
    checkpoints = {each for each in scenario.checkpoints if each <= MOST_ARRIVALS}
    common = {**columns_of(scenario), "organisation": organisation}
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    started = perf_counter()
    order: CoveringOrder[str] = CoveringOrder()
    producers = {
        name: _Producer(name, scenario.hosts[name])
        for name in scenario.organisations
        if name != organisation
    }
    live: dict[str, Subscription] = {}
    operations = list(Generator(scenario).operations(organisation, max(checkpoints, default=0)))
    for nth, operation in enumerate(operations):
        if operation.subscription is not None:
            live[operation.id] = operation.subscription
            delta = order.subscribe(operation.id, operation.subscription)
        else:
            del live[operation.id]
            delta = order.unsubscribe(operation.id)
        if delta:
            for producer in producers.values():
                change = producer.view.update(delta)
                producer.messages_both += bool(change)
                producer.messages_exact += bool(change) and bool(producer.exact.update(change))
        is_last = nth + 1 == len(operations) or operations[nth + 1].arrived > operation.arrived
        if is_last and operation.arrived in checkpoints:
            cost.append(cost_row(common, "beyond", operation.arrived, perf_counter() - started))
            for name, producer in producers.items():
                rows.append(
                    {
                        **common,
                        "producer": name,
                        "arrived": operation.arrived,
                        **_sizes("mapping", _projected(live, name, scenario), scenario.schema),
                        **_sizes("both", producer.view.subscriptions, scenario.schema),
                        **_sizes("exact", producer.exact.subscriptions, scenario.schema),
                        "messages_both": producer.messages_both,
                        "messages_exact": producer.messages_exact,
                    }
                )
    return {
        "beyond": pa.Table.from_pylist(rows, BEYOND),
        "cost": pa.Table.from_pylist(cost, COST),
    }


def _projected(
    live: dict[str, Subscription], producer: str, scenario: Scenario
) -> list[Subscription]:
    hosted = scenario.hosts[producer]
    every = (one.projected(producer, hosted) for one in live.values())
    return [one for one in every if one is not None]


def _sizes(name: str, some: Iterable[Subscription], schema: Schema) -> dict[str, int]:
    rows = terms = size = 0
    for one in some:
        rows += 1
        terms += sum(values.terms for values in one.constraints.values())
        size += len(write_subscription(one, schema))
    return {f"rows_{name}": rows, f"terms_{name}": terms, f"bytes_{name}": size}
