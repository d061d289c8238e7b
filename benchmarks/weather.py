"""A workload with much containment: weather subscriptions with coarse thresholds and one equality.

An example is "hotter than 30 degrees in this town, with an accuracy of at least 0.8". People choose
round numbers and the same places, so many subscriptions contain others and some are equal. With
many subscriptions the merge set is a few per cent of them. Every choice is seeded.
"""

from __future__ import annotations

import random

from benchmarks.workload import Zipf
from qns.cbr.domains import DECIMAL, QUALITY
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet

CLASSES = ["Station", "Buoy", "Airport", "Satellite"]
THRESHOLDS = {  # lowest, step, count; lower ones are more popular
    "Temperature": (-10, 5, 11),
    "Wind": (20, 10, 12),
    "Rain": (5, 5, 20),
    "Pressure": (960, 5, 16),
}
PLACES = 2_000
PLACED = 0.98  # the share that names a place; the others contain many of them
DIMENSIONS = ["accuracy", "currency"]
ORGANISATIONS = [f"Agency{number}" for number in range(5)]

_CLASS, _PLACE = Zipf(len(CLASSES)), Zipf(PLACES)
_STEP = {name: Zipf(count) for name, (_, _, count) in THRESHOLDS.items()}


def subscription(rng: random.Random) -> Subscription:
    path = CLASSES[_CLASS.draw(rng)]
    constraints: dict[str, ValueSet] = {}
    if rng.random() < PLACED:
        constraints[f"{path}.Place"] = Strings.of([f"Place{_PLACE.draw(rng)}"])
    for name in rng.sample(list(THRESHOLDS), rng.randint(2, 3)):
        lowest, step, _ = THRESHOLDS[name]
        threshold = int(DECIMAL.key(float(lowest + step * _STEP[name].draw(rng))))
        below = name == "Pressure"  # a storm has low pressure and high values of the rest
        span = (DECIMAL.lo, threshold) if below else (threshold, DECIMAL.hi)
        constraints[f"{path}.{name}"] = Intervals.of([span])
    if rng.random() < 0.4:
        name = rng.choice(list(THRESHOLDS))
        least = int(QUALITY.key(rng.randint(10, 19) / 20))
        region = Region.of(Intervals.of([(least, QUALITY.hi)]))
        constraints[f"{path}.{name}.{rng.choice(DIMENSIONS)}"] = region
    sources = frozenset(rng.sample(ORGANISATIONS, 2)) if rng.random() < 0.3 else None
    return Subscription(frozenset((path,)), sources, constraints, path, True)


def subscriptions(n: int, seed: int = 1) -> dict[int, Subscription]:
    rng = random.Random(seed)
    return {number: subscription(rng) for number in range(n)}
