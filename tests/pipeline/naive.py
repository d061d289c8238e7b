"""A naive count of messages and rows with the production classes, one step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qns.cbr.covering import CoveringOrder
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario


class Counted(NamedTuple):
    changes: int
    live: int
    messages_containment: int
    rows_containment: int
    by_producer: dict[str, tuple[int, int, int, int]]
    """Messages and rows by mapping alone, and messages and rows by both."""


def counted(scenario: Scenario, organisation: str) -> Iterator[tuple[int, Counted]]:
    order: CoveringOrder[str] = CoveringOrder()
    others = [name for name in scenario.organisations if name != organisation]
    views = {name: ProducerView(name, scenario.hosts[name]) for name in others}
    live: dict[str, Subscription] = {}
    changes = containment = 0
    messages = {name: [0, 0] for name in others}

    def concerns(one: Subscription, name: str) -> bool:
        return one.projected(name, scenario.hosts[name]) is not None

    def now() -> Counted:
        return Counted(
            changes,
            len(live),
            containment,
            len(order.merge_set),
            {
                name: (
                    messages[name][0],
                    sum(concerns(one, name) for one in live.values()),
                    messages[name][1],
                    len(views[name].subscriptions),
                )
                for name in others
            },
        )

    waiting = list(scenario.checkpoints)
    generator = Generator(scenario)
    for operation in generator.operations(organisation, scenario.subscriptions):
        if operation.subscription is not None and operation.arrived - 1 in waiting:
            yield operation.arrived - 1, now()
        changes += 1
        if operation.subscription is not None:
            one = live[operation.id] = operation.subscription
            delta = order.subscribe(operation.id, one)
        else:
            one = live.pop(operation.id)
            delta = order.unsubscribe(operation.id)
        containment += bool(delta)
        for name in others:
            messages[name][0] += concerns(one, name)
            messages[name][1] += bool(views[name].update(delta))
    yield scenario.subscriptions, now()
