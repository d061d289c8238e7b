"""Notification job: counts deliveries to users and messages between peers (figure 5.10).

All subscriptions arrive before the first event is published. The External Merge Tables are built
from the same merge sets and views as the peers', and every event is matched against the table and
against each user: an organisation gets it if and only if one of its users does.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Final

import pyarrow as pa

from qns.cbr.covering import CoveringOrder
from qns.cbr.subscription import Subscription
from qns.errors import ValueRefused
from qns.federation.document import MAX_CAPABILITY
from qns.pipeline.cost import Meter, cost_row
from qns.pipeline.notifications.diffusion import Diffusion, external_rows
from qns.pipeline.notifications.tallies import Tallies
from qns.pipeline.tables import COST, Tables
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario

SUBSCRIPTIONS: Final = 100
"""The number of subscriptions of each organisation in figure 5.10."""
MOST_PUBLICATIONS: Final = 10**8


def notification_job(
    scenario: Scenario,
    publications: tuple[int, ...],
    fan_outs: tuple[int, ...] = (),
    subscriptions: int = SUBSCRIPTIONS,
) -> Tables:
    """Counts after each of these numbers of publications; `fan_outs` are those of TREES."""
    check_publications(publications)
    check_fan_outs(fan_outs)
    meter = Meter()
    common = scenario.columns()
    generator = Generator(scenario)
    diffusion = subscribed(scenario, generator, subscriptions)
    tallies = Tallies(common, scenario.schema, diffusion, fan_outs)
    events = generator.events(publications[-1])
    cost = []
    for count in publications:
        while batch := list(islice(events, min(8_192, count - tallies.published))):
            tallies.publish(batch)
        tallies.mark(subscriptions)
        columns = {**common, "organisation": ""}
        cost.append(cost_row(columns, "notifications", count, meter))
    return {**tallies.tables(), "cost": pa.Table.from_pylist(cost, COST)}


def subscribed(scenario: Scenario, generator: Generator, subscriptions: int) -> Diffusion:
    """The federation after the arrival of this number of subscriptions of each organisation."""
    if subscriptions < 1:
        raise ValueRefused(f"{subscriptions} subscriptions", remedy="give 1 or more")
    diffusion = Diffusion(scenario.organisations)
    for name in scenario.organisations:
        order: CoveringOrder[str] = CoveringOrder()
        live: dict[str, Subscription] = {}
        for operation in generator.operations(name, subscriptions):
            if operation.subscription is None:
                order.unsubscribe(operation.id)
                del live[operation.id]
            else:
                order.subscribe(operation.id, operation.subscription)
                live[operation.id] = operation.subscription
        diffusion.add_users(name, live.values())
        rows = external_rows(order.merge_set, name, scenario.hosts)
        diffusion.add_rows(name, rows.items())
    return diffusion


def check_publications(publications: tuple[int, ...]) -> None:
    if not publications or not 1 <= min(publications) <= max(publications) <= MOST_PUBLICATIONS:
        raise ValueRefused(
            "the numbers of publications are out of range",
            remedy=f"give one or more, from 1 to {MOST_PUBLICATIONS:,}",
        )
    if any(later <= earlier for earlier, later in pairwise(publications)):
        raise ValueRefused(
            "the numbers of publications do not rise", remedy="each larger than the one before"
        )


def check_fan_outs(fan_outs: tuple[int, ...]) -> None:
    for fan_out in fan_outs:
        if not 0 <= fan_out <= MAX_CAPABILITY:
            raise ValueRefused(
                f"the fan-out {fan_out}", remedy=f"from 1 to {MAX_CAPABILITY}, or 0 for no tree"
            )
