"""Zone: a union of rectangles, with its coverage, its area, and the associativity of two zones.

It is the zone of interest of a broker, or the zone covered by a link (thesis 4.1.1, 4.1.2). An
R-tree finds the rectangles around a point; a plane sweep measures unions. This module needs the
extra `lab`. If numba is installed, it compiles the sweep; the answers are the same bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from qns.cbr.compilation import compiled
from qns.cbr.rectangles import Point, Rectangle, point_of
from qns.errors import DuplicateId, NameNotKnown, QnsError, ValueRefused, shorten

try:
    import numpy as np
    from numpy.typing import NDArray
    from rtree.index import Index, Property
except (ImportError, OSError) as missing:  # OSError: rtree is installed without its C library
    raise QnsError(
        f"zones need numpy and rtree: {missing}", remedy='pip install "qns[lab]"'
    ) from missing

MAX_DIMENSION: Final = 16  # so that every measure is a finite double with coordinates within ±2^53

# libspatialindex treats an inserted box whose sides add up to 2.2e-16 or less as a point. Boxes are
# widened by this much in the index, and the boxes that it finds are compared exactly.
_INDEX_MARGIN = 1e-15

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Boxes = Floats  # [box, _LO or _HI, axis]
Line = tuple[Floats, Integers, Floats]

_LO, _HI = 0, 1
"""The two corners of a box."""
_X, _Y = 0, 1
"""The axes of a 2-D box."""
_OURS, _OTHERS, _BOTH = 0, 1, 2
"""Whose boxes cover a node of the segment tree: the owners of marks, and the columns of lengths."""
_ROOT = 1
"""The root of the segment tree."""


class Zone:
    """Rectangles of one dimension, each with its own id. The zone is their union."""

    def __init__(self, dimension: int = 2) -> None:
        if not 1 <= dimension <= MAX_DIMENSION:
            raise ValueRefused(
                f"a zone cannot have {dimension} dimensions",
                remedy=f"use between 1 and {MAX_DIMENSION}",
            )
        self.dimension = dimension
        self._rectangles: dict[str, Rectangle] = {}
        self._numbers: dict[str, int] = {}  # the R-tree identifies rectangles by numbers
        self._ids: dict[int, str] = {}
        self._next_number = 0
        self._boxes: Boxes | None = None
        self._index = _index_of([], dimension)

    @classmethod
    def from_rectangles(
        cls, rectangles: Iterable[tuple[str, Rectangle]], *, dimension: int = 2
    ) -> Zone:
        """Returns a zone that is loaded in bulk, which is faster than single inserts."""
        zone = cls(dimension)
        entries = [
            (zone._admit(rectangle_id, one), _in_index(one.lo, one.hi), None)
            for rectangle_id, one in rectangles
        ]
        zone._index = _index_of(entries, dimension)
        return zone

    @property
    def rectangles(self) -> Mapping[str, Rectangle]:
        """The rectangles of the zone, as a view that follows later changes."""
        return MappingProxyType(self._rectangles)

    def __len__(self) -> int:
        return len(self._rectangles)

    def __contains__(self, rectangle_id: object) -> bool:
        return rectangle_id in self._rectangles

    def insert(self, rectangle_id: str, rectangle: Rectangle) -> None:
        number = self._admit(rectangle_id, rectangle)
        self._index.insert(number, _in_index(rectangle.lo, rectangle.hi))

    def _admit(self, rectangle_id: str, rectangle: Rectangle) -> int:
        """Registers a new rectangle everywhere but in the R-tree. Returns its number there."""
        if rectangle_id in self._rectangles:
            raise DuplicateId(
                f"rectangle {shorten(rectangle_id)} is in the zone already",
                remedy="delete it first, or choose another id",
            )
        self._check_dimension(rectangle.dimension, f"rectangle {shorten(rectangle_id)}")
        number = self._next_number
        self._next_number += 1
        self._rectangles[rectangle_id] = rectangle
        self._numbers[rectangle_id] = number
        self._ids[number] = rectangle_id
        self._boxes = None
        return number

    def delete(self, rectangle_id: str) -> None:
        if rectangle_id not in self._rectangles:
            raise NameNotKnown("rectangle", rectangle_id, self._rectangles)
        number = self._numbers.pop(rectangle_id)
        rectangle = self._rectangles.pop(rectangle_id)
        self._index.delete(number, _in_index(rectangle.lo, rectangle.hi))
        del self._ids[number]
        self._boxes = None

    def match(self, point: Point) -> list[str]:
        """Returns the sorted ids of the rectangles that hold the point. Boundaries count."""
        where = point_of(point)
        self._check_dimension(len(where), "point")
        around = self._around(where, where)
        return sorted(found for found in around if self._rectangles[found].holds(where))

    def covers(self, rectangle: Rectangle) -> bool:
        """True if every point of the rectangle is in the union (thesis 4.1.2: S ⊆ Z).

        The rectangle is cut along every side that crosses it, and its cells are counted, so no
        rounding takes part. A union of closed boxes is closed: if it holds all open cells, it also
        holds the cuts between them. An axis on which the rectangle has no length needs no cut.
        """
        self._check_dimension(rectangle.dimension, "rectangle")
        around = [self._rectangles[found] for found in self._around(rectangle.lo, rectangle.hi)]
        if any(one.contains(rectangle) for one in around):
            return True
        near = [one for one in around if one.meets(rectangle)]
        (target,) = _boxes_of([rectangle], self.dimension)
        boxes = _boxes_of(near, self.dimension).clip(target[0], target[1])
        ranks = []
        cells = 1
        for axis in np.flatnonzero(target[0] < target[1]):
            cuts = np.unique(np.concatenate((target[:, axis], boxes[:, :, axis].ravel())))
            ranks.append(np.searchsorted(cuts, boxes[:, :, axis]).astype(np.float64))
            cells *= len(cuts) - 1
        return bool(ranks) and _area(np.stack(ranks, axis=2)) == cells

    def area(self) -> float:
        """Returns the measure of the union: length in 1-D, area in 2-D, volume in 3-D."""
        return _area(self._all_boxes())

    def _around(self, lo: Point, hi: Point) -> Iterator[str]:
        """Yields the ids of all rectangles that meet [lo, hi], and of some that just miss it."""
        return (self._ids[number] for number in self._index.intersection(_in_index(lo, hi)))

    def _check_dimension(self, found: int, place: str) -> None:
        if found != self.dimension:
            raise ValueRefused(
                f"{found} dimensions where the zone has {self.dimension}",
                place=place,
                remedy=f"give {self.dimension} coordinates",
            )

    def _all_boxes(self) -> Boxes:
        if self._boxes is None:
            self._boxes = _boxes_of(self._rectangles.values(), self.dimension)
        return self._boxes


def associativity(zone: Zone, other: Zone) -> float:
    """Returns AS_Z(Z') = |Z ∩ Z'| / |Z| (thesis 4.2.2), from 0 to 1. It is exactly 1 if Z ⊆ Z'.

    A zone of measure 0 has associativity 0 with every zone, including itself. So has a zone whose
    measure is too small for a normal double (about 1e-300): when it is cut along the sides of the
    other zone, its parts are rounded to 0.
    """
    area, common = _areas(zone, other)
    return common / area if area > 0 else 0.0


def associativity_of(boxes: Boxes, others: Boxes) -> float:
    """Faster variant of `associativity` for 2-D zones as arrays. The last digits can differ.

    It sweeps only those parts of `others` that lie in the bounding box of `boxes`.
    """
    area, common = _measures_within(boxes, others)
    return common / area if area > 0 else 0.0


def broker_associativity(zone: Zone, neighbours: Iterable[Zone]) -> float:
    """Returns AS(B_i), the sum of the associativities with the neighbours (thesis 4.2.2)."""
    return math.fsum(associativity(zone, neighbour) for neighbour in neighbours)


def system_associativity(
    zones: Mapping[str, Zone], neighbours: Mapping[str, Iterable[str]]
) -> float:
    """Returns AS, the mean of AS(B_i) over all brokers (thesis 4.2.2), or 0 if there are none.

    `zones` names every broker. `neighbours` lists the far ends of each broker's links; it can omit
    brokers without links.
    """
    sums = []
    for broker, names in neighbours.items():
        ends = [broker, *names]
        for name in ends:
            if name not in zones:
                raise NameNotKnown("broker", name, zones, place=f"neighbours of {broker}")
        sums.append(broker_associativity(zones[broker], [zones[name] for name in ends[1:]]))
    return math.fsum(sums) / len(zones) if zones else 0.0


def _in_index(lo: Point, hi: Point) -> list[float]:
    """Returns the widened box for the R-tree. A 1-D box gets the second axis that it needs."""
    padding = [0.0] if len(lo) == 1 else []
    below = [value - _INDEX_MARGIN for value in lo]
    above = [value + _INDEX_MARGIN for value in hi]
    return below + padding + above + padding


def _index_of(entries: list[tuple[int, list[float], None]], dimension: int) -> Index:
    properties = Property(dimension=max(dimension, 2))
    # rtree does not accept an empty stream.
    return Index(iter(entries), properties=properties) if entries else Index(properties=properties)


def _boxes_of(rectangles: Iterable[Rectangle], dimension: int) -> Boxes:
    corners = [(one.lo, one.hi) for one in rectangles]
    return np.array(corners, dtype=np.float64).reshape(len(corners), 2, dimension)


def _area(boxes: Boxes) -> float:
    return _measures(boxes, np.ones(len(boxes), dtype=np.bool_))[0]


def _areas(zone: Zone, other: Zone) -> tuple[float, float]:
    """Returns |Z| and |Z ∩ Z'|, from one sweep.

    So rounding keeps |Z ∩ Z'| ≤ |Z|, and both are equal if Z ⊆ Z'.
    """
    zone._check_dimension(other.dimension, "the other zone")
    boxes = np.concatenate((zone._all_boxes(), other._all_boxes()))
    return _measures(boxes, np.arange(len(boxes)) < len(zone))


def _measures(boxes: Boxes, ours: Flags) -> tuple[float, float]:
    """Returns the measure of the union of the boxes `ours`, and of its part that others cover."""
    solid = (boxes[:, _LO] < boxes[:, _HI]).all(axis=1)
    boxes, ours = boxes[solid], ours[solid]
    if not ours.any():
        return 0.0, 0.0
    if boxes.shape[2] == 1:
        unit = np.broadcast_to(np.array([[[0.0], [1.0]]]), boxes.shape)
        boxes = np.concatenate((unit, boxes), axis=2)
    if boxes.shape[2] == 2:
        area, common = _sweep(boxes, ours)
        return float(area), float(common)
    area = common = 0.0
    for lo, hi in pairwise(np.unique(boxes[:, :, _X]).tolist()):
        here = (boxes[:, _LO, _X] <= lo) & (hi <= boxes[:, _HI, _X])
        slab_area, slab_common = _measures(boxes[here, :, 1:], ours[here])
        area += (hi - lo) * slab_area
        common += (hi - lo) * slab_common
    return area, common


@compiled
def overlapping(boxes: Boxes, zone: Boxes) -> Flags:
    """Marks the 2-D boxes that share more than a border with the zone."""
    found = np.zeros(len(boxes), dtype=np.bool_)
    for box in range(len(boxes)):
        left, low = boxes[box, _LO, _X], boxes[box, _LO, _Y]
        right, high = boxes[box, _HI, _X], boxes[box, _HI, _Y]
        for other in range(len(zone)):
            if (
                left < zone[other, _HI, _X]
                and zone[other, _LO, _X] < right
                and low < zone[other, _HI, _Y]
                and zone[other, _LO, _Y] < high
            ):
                found[box] = True
                break
    return found


@compiled
def _measures_within(boxes: Boxes, others: Boxes) -> tuple[float, float]:
    """Variant of `_measures` for 2-D boxes that clips `others` to the bounding box of `boxes`."""
    left, low, right, high = math.inf, math.inf, -math.inf, -math.inf
    both = np.empty((len(boxes) + len(others), 2, 2))
    count = 0
    for box in boxes:
        if box[_LO, _X] < box[_HI, _X] and box[_LO, _Y] < box[_HI, _Y]:
            both[count] = box
            count += 1
            left, low = min(left, box[_LO, _X]), min(low, box[_LO, _Y])
            right, high = max(right, box[_HI, _X]), max(high, box[_HI, _Y])
    ours = count
    for box in others:
        both[count, _LO, _X], both[count, _LO, _Y] = max(left, box[_LO, _X]), max(low, box[_LO, _Y])
        both[count, _HI, _X], both[count, _HI, _Y] = (
            min(right, box[_HI, _X]),
            min(high, box[_HI, _Y]),
        )
        if (
            both[count, _LO, _X] < both[count, _HI, _X]
            and both[count, _LO, _Y] < both[count, _HI, _Y]
        ):
            count += 1
    if count == ours:
        return 0.0, 0.0
    return _sweep(both[:count], np.arange(count) < ours)


@compiled
def _line(cuts: Floats) -> Line:
    """Returns a segment tree over the gaps between cuts: three arrays with a row for each node.

    The root is node 1. `whole` is the length of a node, computed as the sum of its halves, so that
    a length depends on what boxes span and not on which nodes have the marks. `marks` counts the
    boxes of either owner that span all of a node. `lengths` is how much of the node the first
    owner, the second owner, and both cover.
    """
    leaves = 1
    while leaves < len(cuts) - 1:
        leaves *= 2
    whole = np.zeros(2 * leaves)
    whole[leaves : leaves + len(cuts) - 1] = np.diff(cuts)
    level = leaves
    while level > 1:
        whole[level // 2 : level] = whole[level : 2 * level : 2] + whole[level + 1 : 2 * level : 2]
        level //= 2
    marks = np.zeros((2 * leaves, 2), dtype=np.int64)
    return whole, marks, np.zeros((4 * leaves, 3))  # leaves have halves as well, of length 0


@compiled
def _measure_node(node: int, line: Line) -> None:
    whole, marks, lengths = line
    left, right = 2 * node, 2 * node + 1
    for owner in (_OURS, _OTHERS):
        if marks[node, owner] > 0:
            lengths[node, owner] = whole[node]
        else:
            lengths[node, owner] = lengths[left, owner] + lengths[right, owner]
    if marks[node, _OURS] > 0:
        lengths[node, _BOTH] = lengths[node, _OTHERS]
    elif marks[node, _OTHERS] > 0:
        lengths[node, _BOTH] = lengths[node, _OURS]
    else:
        lengths[node, _BOTH] = lengths[left, _BOTH] + lengths[right, _BOTH]


@compiled
def _sweep(boxes: Boxes, ours: Flags) -> tuple[float, float]:
    """Measures 2-D boxes with a line that passes over them, from side to side.

    Side 2i opens box i and side 2i + 1 closes it. Marking a span bottom-up touches at most two
    nodes per level, and two more have to be measured again above its ends.
    """
    sides = np.ascontiguousarray(boxes[:, :, _X]).ravel()
    heights = np.ascontiguousarray(boxes[:, :, _Y]).ravel()
    order = np.argsort(sides, kind="mergesort")  # stable
    cuts = np.unique(heights)
    ranks = np.searchsorted(cuts, heights)
    line = _line(cuts)
    whole, marks, lengths = line
    leaves = len(whole) >> 1
    area = common = 0.0
    for place in range(len(order)):
        side = order[place]
        box = side >> 1
        owner = _OURS if ours[box] else _OTHERS
        change = 1 - 2 * (side & 1)
        left, right = leaves + ranks[2 * box], leaves + ranks[2 * box + 1]
        above_left, above_right = left, right - 1
        while above_left > 0:
            if left < right and left & 1:
                marks[left, owner] += change
                _measure_node(left, line)
                left += 1
            if left < right and right & 1:
                right -= 1
                marks[right, owner] += change
                _measure_node(right, line)
            left, right = left >> 1, right >> 1
            _measure_node(above_left, line)
            if above_right != above_left:
                _measure_node(above_right, line)
            above_left, above_right = above_left >> 1, above_right >> 1
        if place + 1 < len(order):
            step = sides[order[place + 1]] - sides[side]
            area += step * lengths[_ROOT, _OURS]
            common += step * lengths[_ROOT, _BOTH]
    return area, common
