"""Comparison: the strategies of table 2.1 on one workload, and CBR against locality (fig. 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Final

import numpy as np

from qns.cbr.rectangles import Point, Rectangle
from qns.errors import ValueRefused
from qns.lab.experiments.judged import BrokenRun, check_history
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.measure import (
    Demand,
    Diffusion,
    Integers,
    Run,
    diffuse,
    ideal_hops,
    tree_hops,
)
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.space import rounded, rounded_rectangle
from qns.lab.simulated.system import Publication, System
from qns.lab.simulated.workload import Shape, Workload
from qns.lab.strategies.catalogue import STRATEGIES, MakeRun, Setting
from qns.lab.strategies.cbr import CbrBroker

LOCALITIES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
GROUPS: Final = 4
_RUN: Final = 500
_RUN_EVENTS: Final = 20
"""How many subscriptions and publications are also run and judged at each point of fig. 4.2."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy of table 2.1, with means over its run."""

    strategy: str
    messages_per_subscription: float
    messages_per_notification: float
    """All messages that a notification causes, including acknowledgements."""
    hops_per_notification: float
    ideal_hops: float
    pure_forwarders: float
    mean_table: float
    max_table: int
    last_subscriber_ms: float
    """The mean over notifications that another broker wants."""
    sent: Mapping[str, int]
    """Messages by kind, without those before the first subscription."""
    judged_events: int
    judged_notifications: int


@dataclass(frozen=True, slots=True)
class LocalityRow:
    """One point of fig. 4.2: mean hops per notification."""

    seed: int
    locality: float
    cbr: float
    flooding: float
    ideal: float
    judged_events: int
    """The number of events in the part that was run."""
    judged_notifications: int


def compare(
    setting: Setting,
    subscriptions: int,
    publications: int,
    *,
    shape: Shape | None = None,
    strategies: Mapping[str, MakeRun] = STRATEGIES,
) -> list[StrategyRow]:
    """Table 2.1: runs all subscriptions, one after the other, and then the publications."""
    draw = Workload(shape or Shape(), setting.random("workload"), [list(range(setting.brokers))])
    asked, published = _drawn(draw, subscriptions, publications)
    events = [
        Publication(f"e{number}", point, broker) for number, (broker, point) in enumerate(published)
    ]
    rows = []
    for name, make in strategies.items():
        run = make(setting)
        rows.append(strategy_row(name, run, asked, events))
        check_history(run, f"{name}, seed {setting.seed}")
    return rows


def strategy_row(
    name: str, run: Run, asked: Iterable[tuple[int, Rectangle]], events: Iterable[Publication]
) -> StrategyRow:
    before = Counter(run.sent)
    subscriptions = 0
    for number, (broker, rectangle) in enumerate(asked):
        run.subscribe(broker, f"s{number}", rectangle)
        run.settle()
        subscriptions += 1
    messages = run.sent.total() - before.total()
    sizes = run.table_sizes
    seen = [diffuse(run, event) for event in events]
    return StrategyRow(
        name,
        messages / max(1, subscriptions),
        _mean(seen, "messages"),
        _mean(seen, "hops"),
        _mean(seen, "ideal"),
        _mean(seen, "pure_forwarders"),
        fmean(sizes),
        max(sizes),
        _mean(seen, "last_ms"),
        dict(run.sent - before),
        len(seen),
        len(run.deliveries),
    )


def _drawn(
    draw: Workload, subscriptions: int, publications: int
) -> tuple[list[tuple[int, Rectangle]], list[tuple[int, Point]]]:
    """Draws subscriptions and then publications, with rounded coordinates."""
    asked = [draw.subscription() for _ in range(subscriptions)]
    published = [draw.publication() for _ in range(publications)]
    return (
        [(broker, rounded_rectangle(rectangle)) for broker, rectangle in asked],
        [(broker, rounded(point)) for broker, point in published],
    )


def _mean(seen: Iterable[Diffusion], field: str) -> float:
    values = [value for each in seen if (value := getattr(each, field)) is not None]
    return fmean(values) if values else 0.0


def locality(
    brokers: int,
    subscriptions: int,
    publications: int,
    *,
    seeds: Iterable[int],
    localities: Iterable[float] = LOCALITIES,
    fan_out: int = 10,
    shape: Shape | None = None,
) -> list[LocalityRow]:
    """Fig. 4.2: computes the hops of all publications at once (`measure.py`)."""
    shape = shape or Shape()
    rows = []
    localities = list(localities)
    for seed in seeds:
        for degree in localities:
            setting = Setting(brokers, seed, fan_out)
            overlay, groups = grouped_tree(brokers, fan_out, setting.random("overlay"))
            drawn = Shape(shape.cells, shape.zipf, shape.longest, degree)
            draw = Workload(drawn, setting.random("workload"), groups)
            asked, published = _drawn(draw, subscriptions, publications)
            judged = _check_counting(setting, overlay, asked[:_RUN], published[:_RUN_EVENTS])
            hops, ideal = _counted(overlay, asked, published)
            means = float(hops.mean()), brokers - 1.0, float(ideal.mean())
            rows.append(LocalityRow(seed, degree, *means, *judged))
    return rows


def _counted(
    overlay: Overlay,
    asked: Iterable[tuple[int, Rectangle]],
    published: Sequence[tuple[int, Point]],
) -> tuple[Integers, Integers]:
    """The hops and the ideal hops of each publication."""
    publishers = np.array([broker for broker, _ in published])
    demand = Demand(overlay.brokers, asked)
    wanted = demand.wanted(np.array([point for _, point in published]))
    return tree_hops(overlay, wanted, publishers), ideal_hops(wanted, publishers)


def _check_counting(
    setting: Setting,
    overlay: Overlay,
    asked: Sequence[tuple[int, Rectangle]],
    published: Sequence[tuple[int, Point]],
) -> tuple[int, int]:
    """Runs CBR brokers on this tree and raises BrokenRun unless they make the computed hops.

    Returns the number of events and of notifications.
    """
    name = f"CBR on a tree of groups, seed {setting.seed}"
    run = RecordedRun(System(setting.network(), overlay, CbrBroker, setting.random("hosts")))
    for number, (broker, rectangle) in enumerate(asked):
        run.subscribe(broker, f"s{number}", rectangle)
    run.settle()
    counted, _ = _counted(overlay, asked, published)
    for number, (broker, point) in enumerate(published):
        made = diffuse(run, Publication(f"e{number}", point, broker)).hops
        if made != counted[number]:
            raise BrokenRun.of(name, f"{made} hops were made, {counted[number]} were computed")
    check_history(run, name)
    return run.published, len(run.deliveries)


def grouped_tree(
    brokers: int, fan_out: int, random: Random, groups: int = GROUPS
) -> tuple[Overlay, list[list[int]]]:
    """Returns a random tree in which each group of brokers is connected, and the groups."""
    if brokers < groups or fan_out < 2:
        raise ValueRefused(
            f"{groups} groups of {brokers} brokers with fan-out {fan_out}",
            remedy="give at least one broker for each group, and fan-out 2",
        )
    overlay = Overlay(brokers, fan_out)
    starts = [brokers * group // groups for group in range(groups + 1)]
    parts = [list(range(*ends)) for ends in pairwise(starts)]
    for part in parts:
        for broker in part[1:]:
            _join(overlay, broker, range(part[0], broker), random)
    for part in parts[1:]:
        able = [each for each in part if overlay.available(each)]
        _join(overlay, random.choice(able), range(part[0]), random)
    return overlay, parts


def _join(overlay: Overlay, broker: int, others: Iterable[int], random: Random) -> None:
    overlay.link(broker, random.choice([each for each in others if overlay.available(each)]))
