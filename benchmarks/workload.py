"""The matching workload: 20 classes, 6 properties, 4 dimensions, Zipf, selectivity about 0.1 %.

Two properties are categorical, one is like a fiscal code, three are numeric; 10 organisations
publish. An event carries its six properties and one to four new quality values; a subscription
constrains two to five attributes. Every choice is seeded.
"""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate
from typing import Any

from qns.cbr.domains import DECIMAL, QUALITY
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import DIMENSIONS, Schema

CLASSES = [f"Class{number:02}" for number in range(20)]
CATEGORICAL = {"Kind": 20, "Region": 100}
CODES = 20_000
NUMERIC = ["Amount", "Weight", "Ratio"]
PROPERTIES = [*CATEGORICAL, "Code", *NUMERIC]
SOURCES = [f"Org{number}" for number in range(10)]
EXPONENT = 1.1

SCHEMA = Schema(
    "matching-workload",
    {
        name: {
            **dict.fromkeys([*CATEGORICAL, "Code"], "string"),
            **dict.fromkeys(NUMERIC, "decimal"),
        }
        for name in CLASSES
    },
)


class Zipf:
    """Draws ranks 0 … n−1; rank r has the weight (r + 1)^−EXPONENT."""

    def __init__(self, n: int) -> None:
        self._sums = list(accumulate((rank + 1) ** -EXPONENT for rank in range(n)))

    def draw(self, rng: random.Random) -> int:
        return bisect(self._sums, rng.random() * self._sums[-1])


_CLASS, _CODE = Zipf(len(CLASSES)), Zipf(CODES)
_CATEGORY = {name: Zipf(n) for name, n in CATEGORICAL.items()}


def subscription(rng: random.Random) -> Subscription:
    path = CLASSES[_CLASS.draw(rng)]
    constraints: dict[str, ValueSet] = {}
    if rng.random() < 0.3:
        constraints[f"{path}.Code"] = Strings.of([f"CODE{_CODE.draw(rng):06}"])
    for name, zipf in _CATEGORY.items():
        if rng.random() < 0.4:
            constraints[f"{path}.{name}"] = Strings.of([f"{name}{zipf.draw(rng)}"])
    wanted = rng.randint(2, 5)
    while len(constraints) < wanted:
        if rng.random() < 0.6:
            constraints[f"{path}.{rng.choice(NUMERIC)}"] = _range(rng)
        else:
            name = f"{path}.{rng.choice(PROPERTIES)}.{rng.choice(DIMENSIONS)}"
            threshold = QUALITY.key(round(rng.random(), 2))
            span = (0, threshold) if rng.random() < 0.7 else (threshold, QUALITY.hi)
            constraints[name] = Region.of(Intervals.of([span]))  # type: ignore[arg-type]
    sources = frozenset(rng.sample(SOURCES, rng.randint(1, 4))) if rng.random() < 0.3 else None
    return Subscription(frozenset((path,)), sources, constraints, path, True)


def _range(rng: random.Random) -> Intervals:
    a, b = (int(DECIMAL.key(round(rng.uniform(0, 1000), 1))) for _ in range(2))
    match rng.randint(0, 2):
        case 0:
            return Intervals.of([(DECIMAL.lo, a)])
        case 1:
            return Intervals.of([(a, DECIMAL.hi)])
    return Intervals.of([(min(a, b), max(a, b))])


def subscriptions(n: int, seed: int = 1) -> dict[int, Subscription]:
    rng = random.Random(seed)
    return {number: subscription(rng) for number in range(n)}


def event(rng: random.Random, id: int) -> dict[str, Any]:
    path = CLASSES[_CLASS.draw(rng)]
    data: dict[str, Any] = {name: f"{name}{zipf.draw(rng)}" for name, zipf in _CATEGORY.items()}
    data["Code"] = f"CODE{_CODE.draw(rng):06}"
    data |= {name: round(rng.uniform(0, 1000), 1) for name in NUMERIC}
    quality = {
        f"{rng.choice(PROPERTIES)}.{rng.choice(DIMENSIONS)}": round(rng.random(), 2)
        for _ in range(rng.randint(1, 4))
    }
    return {
        "id": str(id),
        "class": path,
        "source": rng.choice(SOURCES),
        "data": data,
        "quality": quality,
    }


def events(n: int, seed: int = 2) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [event(rng, id) for id in range(n)]
