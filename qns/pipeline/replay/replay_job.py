"""Replay jobs: the tables of a real workload, computed with the peers' classes.

Subscriptions and events keep their order: an event goes to the subscriptions of that moment.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pyarrow as pa

from qns.cbr.covering import CoveringOrder
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.pipeline.cost import Meter, cost_row
from qns.pipeline.merging.beyond_job import count_beyond
from qns.pipeline.notifications.diffusion import Diffusion
from qns.pipeline.notifications.notification_job import check_fan_outs
from qns.pipeline.notifications.tallies import Tallies
from qns.pipeline.replay.real_workload import RealWorkload, steps
from qns.pipeline.replay.workload_files import Change
from qns.pipeline.tables import COST, SUBSCRIPTIONS, Tables


def replay_merge_job(workload: RealWorkload, organisation: str) -> Tables:
    """`subscriptions` for one organisation; after its last change the counts stay as they are."""
    common = {**workload.columns(), "organisation": organisation}
    meter = Meter()
    pass_ = _MergePass(workload, organisation)
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []

    def mark(arrived: int) -> None:
        rows.extend({**common, "arrived": arrived, **counts} for counts in pass_.counts())
        cost.append(cost_row(common, "merge", arrived, meter))

    waiting = list(workload.checkpoints)
    for operation in workload.operations(organisation):
        while waiting and operation.arrived > waiting[0]:
            mark(waiting.pop(0))
        pass_.take(operation.id, operation.subscription)
    for arrived in waiting:
        mark(arrived)
    return {
        "subscriptions": pa.Table.from_pylist(rows, SUBSCRIPTIONS),
        "cost": pa.Table.from_pylist(cost, COST),
    }


def replay_beyond_job(workload: RealWorkload, organisation: str) -> Tables:
    """`beyond` for one organisation, as `beyond_job` computes it for a generated workload."""
    return count_beyond(workload, organisation, workload.operations(organisation))


def replay_notification_job(workload: RealWorkload, fan_outs: tuple[int, ...] = ()) -> Tables:
    """`notifications` and `trees`, counted after 1, 2, 5, 10, … publications and after all."""
    check_fan_outs(fan_outs)
    meter = Meter()
    common = workload.columns()
    federation = _Federation(workload)
    tallies = Tallies(common, workload.schema, federation.diffusion, fan_outs)
    subscriptions = max(workload.arrivals.values(), default=0)
    cost: list[dict[str, Any]] = []
    waiting = list(steps(len(workload.publications)))
    changes = deque(workload.changes)
    events: list[Event] = []
    for place, publication in enumerate(workload.publications, start=1):
        if changes and changes[0].at <= publication.at:
            tallies.publish(events)
            events = []
        while changes and changes[0].at <= publication.at:
            federation.take(changes.popleft())
        events.append(publication.event)
        if place == waiting[0]:
            tallies.publish(events)
            events = []
            tallies.mark(subscriptions)
            columns = {**common, "organisation": ""}
            cost.append(cost_row(columns, "notifications", waiting.pop(0), meter))
    return {**tallies.tables(), "cost": pa.Table.from_pylist(cost, COST)}


class _MergePass:
    """One organisation's merge subscription, its views, and the messages about them."""

    def __init__(self, workload: RealWorkload, organisation: str) -> None:
        self._hosts = {name: of for name, of in workload.hosts.items() if name != organisation}
        self._order: CoveringOrder[str] = CoveringOrder()
        self._views = {name: ProducerView(name, of) for name, of in self._hosts.items()}
        self._live: dict[str, Subscription] = {}
        self._changes = self._containment = 0
        self._mapping = dict.fromkeys(self._hosts, 0)
        self._both = dict.fromkeys(self._hosts, 0)
        self._rows = dict.fromkeys(self._hosts, 0)
        """The rows of mapping alone."""

    def take(self, id: str, subscription: Subscription | None) -> None:
        self._changes += 1
        if subscription is not None:
            one, sign = subscription, 1
            self._live[id] = one
            delta = self._order.subscribe(id, one)
        else:
            one, sign = self._live.pop(id), -1
            delta = self._order.unsubscribe(id)
        self._containment += bool(delta)
        for name, hosted in self._hosts.items():
            if one.projected(name, hosted) is not None:
                self._mapping[name] += 1
                self._rows[name] += sign
            if delta and self._views[name].update(delta):
                self._both[name] += 1

    def counts(self) -> list[dict[str, object]]:
        """Returns a row for each producer."""
        merged = len(self._order.merge_set)
        return [
            {
                "producer": name,
                "changes": self._changes,
                "live": len(self._live),
                "messages_mapping": self._mapping[name],
                "messages_containment": self._containment,
                "messages_both": self._both[name],
                "rows_mapping": self._rows[name],
                "rows_containment": merged,
                "rows_both": len(view.subscriptions),
            }
            for name, view in self._views.items()
        ]


class _Federation:
    """All users and External Merge Tables of a federation, kept up to date."""

    def __init__(self, workload: RealWorkload) -> None:
        self.diffusion = Diffusion(workload.organisations)
        self._orders: dict[str, CoveringOrder[str]] = {
            name: CoveringOrder() for name in workload.organisations
        }
        self._views = {
            name: [ProducerView(other, of) for other, of in workload.hosts.items() if other != name]
            for name in workload.organisations
        }
        self._users: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[str, str, Subscription], int] = {}

    def take(self, change: Change) -> None:
        consumer, id, subscription = change.organisation, change.id, change.subscription
        order = self._orders[consumer]
        if subscription is not None:
            (self._users[consumer, id],) = self.diffusion.add_users(consumer, [subscription])
            delta = order.subscribe(id, subscription)
        else:
            self.diffusion.remove_users([self._users.pop((consumer, id))])
            delta = order.unsubscribe(id)
        for view in self._views[consumer] if delta else ():
            change_there = view.update(delta)
            producer = view.producer
            gone = [self._rows.pop((consumer, producer, row)) for row in change_there.removed]
            self.diffusion.remove_rows(gone)
            for row in change_there.added:
                (handle,) = self.diffusion.add_rows(consumer, [(row, [producer])])
                self._rows[consumer, producer, row] = handle
