"""Generator: draws the subscriptions, unsubscriptions and events of a scenario.

Random numbers come in blocks of 8,192 rows. Each block has its own stream, keyed by seed, purpose,
organisation and number. So its contents do not depend on who draws it, or on other draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qns.cbr.compilation import compiled
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.pipeline.workload.scenario import Scenario
from qns.pipeline.workload.space import RANGE, Space

BLOCK: Final = 8_192
WORD: Final = 64

_SUBSCRIPTIONS, _CHURN, _EVENTS, _POPULARITY = range(4)  # the streams
_HEAD = 5  # uniforms for class, only, whether sources, how many, which attribute is forced
_PER_AXIS = 4  # constrained?, kind, value, second value

Floats = NDArray[np.float64]
NEVER: Final = np.iinfo(np.int64).max


class Block(NamedTuple):
    """Generated subscriptions as arrays; the constraints of row i are start[i] to start[i + 1]."""

    data_class: NDArray[np.int32]
    only: NDArray[np.bool_]
    scope: NDArray[np.int32]
    named: NDArray[np.bool_]
    """True if the subscription names its sources."""
    sources: NDArray[np.uint64]
    """A bit for each source; all bits if it names none."""
    start: NDArray[np.int32]
    axis: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    bound: NDArray[np.int64]
    """How narrow the interval is: (low + 1, values − high) in two lanes of 16 bits."""
    pin: NDArray[np.int32]
    """The rank of an equality; RANGE for an interval."""


class Operation(NamedTuple):
    arrived: int
    """The number of subscriptions of the organisation so far, including this one."""
    id: str
    subscription: Subscription | None
    """None for an unsubscription."""


def words(organisations: int) -> int:
    """The number of words for the bits of all organisations, of "everybody" and of ⊥."""
    return (organisations + 2 + WORD - 1) // WORD


class Generator:
    """Draws the workload of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.space = Space.of(scenario)
        self._numbers = {name: number for number, name in enumerate(scenario.organisations)}
        axes = self.space.axes
        self._most_axes = max(map(len, axes))
        shape = len(axes), self._most_axes
        self._counts = np.zeros(shape, np.int32)
        self._ordered = np.zeros(shape, np.bool_)
        self._popular = np.zeros(shape, np.int32)
        rows: dict[int, int] = {}
        most_values = max(len(axis.keys) for each in axes for axis in each)
        ranks: list[NDArray[np.int32]] = []
        for number, each in enumerate(axes):
            for place, axis in enumerate(each):
                self._counts[number, place] = len(axis.keys)
                self._ordered[number, place] = axis.is_ordered
                if axis.number not in rows:
                    rows[axis.number] = len(ranks)
                    ranks.append(self._ranks(axis.number, len(axis.keys), most_values))
                self._popular[number, place] = rows[axis.number]
        self._ranks_by_popularity = np.array(ranks)
        workload = scenario.workload
        sizes = sorted({len(axis.keys) for each in axes for axis in each})
        self._zipf = np.ones((len(sizes), most_values))
        for row, size in enumerate(sizes):
            self._zipf[row, :size] = _zipf(size, workload.zipf)
        self._zipf_of = np.searchsorted(sizes, self._counts).astype(np.int32)
        self._classes = _zipf(len(axes), workload.class_zipf)
        self._shares = np.array(
            [
                workload.constrained,
                workload.quality_constrained,
                workload.equality,
                workload.equality + workload.between,
                workload.sources_given,
                workload.only,
            ]
        )

    def _ranks(self, number: int, size: int, width: int) -> NDArray[np.int32]:
        """The ranks of an attribute's values, the most popular first."""
        ranks = np.zeros(width, np.int32)
        ranks[:size] = np.arange(size)
        if not self.scenario.workload.mildest_first:
            ranks[:size] = self._random(_POPULARITY, number, 0).permutation(size)
        return ranks

    def _random(self, stream: int, organisation: int, block: int) -> np.random.Generator:
        key = np.random.SeedSequence(self.scenario.seed, spawn_key=(stream, organisation, block))
        return np.random.Generator(np.random.Philox(key))

    def block(self, organisation: str, number: int, rows: int = BLOCK) -> Block:
        """The first rows of one block of an organisation's subscriptions."""
        own = self._numbers[organisation]
        space, workload = self.space, self.scenario.workload
        columns = _HEAD + workload.most_sources + _PER_AXIS * self._most_axes
        uniforms = self._random(_SUBSCRIPTIONS, own, number).random((BLOCK, columns))[:rows]
        return Block(
            *_drawn(
                uniforms,
                (self._classes, self._counts, self._ordered, self._popular, self._zipf_of),
                (self._zipf, self._ranks_by_popularity),
                np.array(list(map(len, space.axes)), np.int32),
                np.array(space.data_axes, np.int32),
                np.array(space.scope_numbers, np.int32),
                self._shares,
                (workload.most_sources, workload.least_constraints),
                (own, len(self._numbers), words(len(self._numbers))),
            )
        )

    def victims(self, organisation: str, arrivals: int) -> NDArray[np.int64]:
        """The number of the subscription that is removed after each arrival, or −1 for none."""
        own, churn = self._numbers[organisation], self.scenario.churn
        if not churn:
            return np.full(arrivals, -1, np.int64)
        uniforms = np.concatenate(
            [
                self._random(_CHURN, own, number).random((BLOCK, 2))
                for number in range((arrivals + BLOCK - 1) // BLOCK)
            ]
        )
        victims: NDArray[np.int64] = _victims(uniforms[:arrivals], churn)
        return victims

    def operations(self, organisation: str, arrivals: int) -> Iterator[Operation]:
        """Yields the arrivals of that many subscriptions, and the unsubscriptions between them."""
        victims = self.victims(organisation, arrivals)
        for number in range(0, arrivals, BLOCK):
            block = self.block(organisation, number // BLOCK, min(BLOCK, arrivals - number))
            for row in range(len(block.scope)):
                at = number + row
                yield Operation(at + 1, f"{organisation}-{at + 1}", self.real(block, row))
                if victims[at] >= 0:
                    yield Operation(at + 1, f"{organisation}-{victims[at] + 1}", None)

    def real(self, block: Block, row: int) -> Subscription:
        """The row of a block as a Subscription."""
        sources = None
        if block.named[row]:
            bits = int.from_bytes(block.sources[row].astype("<u8").tobytes(), "little")
            sources = frozenset(name for name, bit in self._numbers.items() if bits >> bit & 1)
        constraints = [
            (int(block.axis[place]), int(block.low[place]), int(block.high[place]))
            for place in range(block.start[row], block.start[row + 1])
        ]
        return self.space.subscription(
            int(block.data_class[row]), bool(block.only[row]), sources, constraints
        )

    def events(self, count: int) -> Iterator[Event]:
        """Yields events with uniform class, publisher (among the hosts of the class) and values."""
        for start in range(0, count, BLOCK):
            yield from self.events_of(start // BLOCK, min(BLOCK, count - start))

    def events_of(self, block: int, rows: int) -> Iterator[Event]:
        """Yields the first events of one block."""
        schema, hosts = self.scenario.schema, self.scenario.hosts
        hosted = [
            (number, [name for name in hosts if path in hosts[name]])
            for number, path in enumerate(schema.classes)
        ]
        hosted = [(number, names) for number, names in hosted if names]
        uniforms = self._random(_EVENTS, 0, block).random((BLOCK, 2 + self._most_axes))
        for row in range(rows):
            one = uniforms[row]
            number, names = hosted[int(one[0] * len(hosted))]
            values = {
                axis.name: axis.keys[int(one[2 + place] * len(axis.keys))]
                for place, axis in enumerate(self.space.axes[number])
            }
            source = names[int(one[1] * len(names))]
            yield Event(f"e{block * BLOCK + row + 1}", schema.classes[number], source, values)


def _zipf(size: int, exponent: float) -> Floats:
    """The cumulative popularity of the first, the first two, … of `size` values."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    cumulated: Floats = np.cumsum(weights / weights.sum())
    cumulated[-1] = 1.0
    return cumulated


@compiled
def _place(cumulated: Any, size: Any, uniform: Any) -> Any:
    """The first place whose cumulative popularity is above the uniform number."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulated[middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _victims(uniforms: Any, churn: Any) -> Any:
    victims = np.full(len(uniforms), -1, np.int64)
    live = np.empty(len(uniforms), np.int64)
    alive = 0
    for at in range(len(uniforms)):
        live[alive] = at
        alive += 1
        if uniforms[at, 0] < churn:
            place = int(uniforms[at, 1] * alive)
            victims[at] = live[place]
            alive -= 1
            live[place] = live[alive]
    return victims


@compiled
def _drawn(
    uniforms: Any,
    by_axis: Any,
    popularity: Any,
    axes_of: Any,
    data_axes_of: Any,
    scopes: Any,
    shares: Any,
    bounds: Any,
    place: Any,
) -> Any:
    """The arrays of a block, from its uniforms; see `Block`."""
    classes, counts, ordered, popular, zipf_of = by_axis
    zipf, ranks = popularity
    most_sources, least = bounds
    own, organisations, width = place
    rows = len(uniforms)
    most_axes = counts.shape[1]
    data_class = np.empty(rows, np.int32)
    only = np.zeros(rows, np.bool_)
    scope = np.empty(rows, np.int32)
    named = np.zeros(rows, np.bool_)
    sources = np.full((rows, width), ~np.uint64(0), np.uint64)
    start = np.zeros(rows + 1, np.int32)
    axis = np.empty(rows * most_axes, np.int32)
    low = np.empty(rows * most_axes, np.int32)
    high = np.empty(rows * most_axes, np.int32)
    bound = np.empty(rows * most_axes, np.int64)
    pin = np.empty(rows * most_axes, np.int32)
    chosen = np.empty(most_axes, np.bool_)
    filled = 0
    first = _HEAD + most_sources
    for row in range(rows):
        one = uniforms[row]
        kind = _place(classes, len(classes), one[0])
        data_class[row] = kind
        axes, data = axes_of[kind], data_axes_of[kind]
        number = 0
        for each in range(axes):
            chosen[each] = one[first + _PER_AXIS * each] < shares[0 if each < data else 1]
            number += chosen[each]
        each = int(one[4] * axes)
        while number < least and number < axes:
            number += not chosen[each]
            chosen[each] = True
            each = (each + 1) % axes
        alone = one[1] < shares[5]
        for each in range(axes):
            if not chosen[each]:
                continue
            alone = alone or each >= data
            at = first + _PER_AXIS * each
            size, row_of = counts[kind, each], zipf_of[kind, each]
            popular_ranks = ranks[popular[kind, each]]
            value = popular_ranks[_place(zipf[row_of], size, one[at + 2])]
            lowest, highest = value, value
            if ordered[kind, each] and one[at + 1] >= shares[2]:
                if one[at + 1] < shares[3]:
                    other = popular_ranks[_place(zipf[row_of], size, one[at + 3])]
                    lowest, highest = min(value, other), max(value, other)
                elif one[at + 3] < 0.5:
                    lowest = -1
                else:
                    highest = size
            axis[filled] = each
            low[filled], high[filled] = lowest, highest
            bound[filled] = (lowest + 1) << 16 | (size - highest)
            pin[filled] = lowest if lowest == highest else RANGE
            filled += 1
        only[row] = alone
        scope[row] = scopes[kind, 1 if alone else 0]
        if one[2] < shares[4]:
            named[row] = True
            for word in range(width):
                sources[row, word] = 0
            others = organisations - 1
            many = min(1 + int(one[3] * most_sources), others)
            for nth in range(many):  # Floyd's algorithm draws distinct ones
                last = others - many + nth
                drawn = int(one[_HEAD + nth] * (last + 1))
                for _ in range(2):
                    bit = drawn + (drawn >= own)
                    mask = np.uint64(1) << np.uint64(bit % WORD)
                    if not sources[row, bit // WORD] & mask:
                        sources[row, bit // WORD] |= mask
                        break
                    drawn = last
        start[row + 1] = filled
    return (
        data_class,
        only,
        scope,
        named,
        sources,
        start,
        axis[:filled].copy(),
        low[:filled].copy(),
        high[:filled].copy(),
        bound[:filled].copy(),
        pin[:filled].copy(),
    )
