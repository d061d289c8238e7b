"""Interests: the zones of interest of the other brokers, as one broker has them, in arrays.

They hold the same rectangles as its routing table. A link's zone is the union of the zones of the
brokers behind it, so rectangles stay in place when links change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Boxes, Integers, associativity_of, overlapping


class Interests:
    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._boxes: Boxes = np.empty((16, 2, 2))
        self._homes: Integers = np.empty(16, dtype=np.int64)
        self._zones: dict[int, Boxes] = {}

    def add(self, id: str, rectangle: Rectangle, home: int) -> None:
        row = len(self._ids)
        if row == len(self._boxes):
            self._boxes = np.concatenate((self._boxes, np.empty_like(self._boxes)))
            self._homes = np.concatenate((self._homes, np.empty_like(self._homes)))
        self._boxes[row] = rectangle.lo, rectangle.hi
        self._homes[row] = home
        self._rows[id] = row
        self._ids.append(id)
        self._zones.pop(home, None)

    def remove(self, id: str) -> None:
        """Moves the last row to the place of the removed one."""
        row = self._rows.pop(id)
        last_id = self._ids.pop()
        last = len(self._ids)
        self._zones.pop(int(self._homes[row]), None)
        if row != last:
            self._boxes[row] = self._boxes[last]
            self._homes[row] = self._homes[last]
            self._ids[row] = last_id
            self._rows[last_id] = row

    def of(self, home: int) -> Boxes:
        """Z of that broker. A returned array never changes."""
        zone = self._zones.get(home)
        if zone is None:
            count = len(self._ids)
            zone = self._zones[home] = self._boxes[:count][self._homes[:count] == home]
        return zone

    def behind(
        self, zone: Boxes, links: Iterable[int], towards: Mapping[int, int]
    ) -> dict[int, float]:
        """Link l -> AS_zone(Z_l): the share of the zone that brokers behind the link want, too."""
        shares = dict.fromkeys(links, 0.0)
        count = len(self._ids)
        near = overlapping(self._boxes[:count], zone)
        boxes, homes = self._boxes[:count][near], self._homes[:count][near]
        if len(homes):
            link_of = np.array([towards[home] for home in homes.tolist()])
            for link in shares:
                shares[link] = associativity_of(zone, boxes[link_of == link])
        return shares


def boxes_of(rectangles: Iterable[Rectangle]) -> Boxes:
    corners = [(each.lo, each.hi) for each in rectangles]
    return np.array(corners, dtype=np.float64).reshape(-1, 2, 2)


def weight(zone: Boxes, other: Boxes) -> float:
    """w of a link between two brokers: the sum of both associativities (4.3.1)."""
    return associativity_of(zone, other) + associativity_of(other, zone)
