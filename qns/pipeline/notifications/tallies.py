"""Tallies: counts of published notifications, for the tables NOTIFICATIONS and TREES."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qns.cbr.event import Event
from qns.d2q.event_xml import write_event
from qns.d2q.schema import Schema
from qns.pipeline.notifications.diffusion import Audience, Diffusion
from qns.pipeline.notifications.multicast import Sizes, shape_of
from qns.pipeline.tables import NOTIFICATIONS, TREES

BATCH: Final = 1_024
"""The number of events that are matched at a time."""
_PUBLISHED_US: Final = 1_700_000_000_123_456
"""A publication time for events without one, with as many digits as a real one."""


class Tallies:
    """Counts of all publications so far, and the rows that were made from them."""

    def __init__(
        self,
        common: Mapping[str, object],
        schema: Schema,
        diffusion: Diffusion,
        fan_outs: Iterable[int],
    ) -> None:
        self.published = 0
        self._common = common
        self._schema = schema
        self._diffusion = diffusion
        many = len(diffusion.names)
        self._sums = {
            name: np.zeros(many, np.int64)
            for name in ("delivered", "delivered_remote", "sent", "bytes_trivial", "bytes_sent")
        }
        self._sizes = Sizes(diffusion.names)
        self._sequences = np.zeros(many, np.int64)
        self._numbers = np.zeros((many, many), np.int64)  # last number, by producer and consumer
        self._multicasts = 0
        self._trees = [_TreeTally(fan_out, many) for fan_out in fan_outs]
        self._rows: dict[str, list[dict[str, object]]] = {"notifications": [], "trees": []}

    def publish(self, events: Sequence[Event]) -> None:
        """Counts the events as published, one after the other."""
        for start in range(0, len(events), BATCH):
            batch = events[start : start + BATCH]
            self._count(batch, self._diffusion.audience(batch))
        self.published += len(events)

    def _count(self, events: Sequence[Event], audience: Audience) -> None:
        publishers = np.array([self._diffusion.numbers[event.source] for event in events])
        texts = [self._written(event) for event in events]
        sizes = np.array(list(map(len, texts)))
        delivered = audience.users.sum(axis=1)
        remote = delivered - audience.users[np.arange(len(events)), publishers]
        sent = audience.interested.sum(axis=1)
        for name, counts in (
            ("delivered", delivered),
            ("delivered_remote", remote),
            ("sent", sent),
            ("bytes_trivial", sizes * remote),
            ("bytes_sent", sizes * sent),
        ):
            np.add.at(self._sums[name], publishers, counts)
        if self._trees:
            for nth, event in enumerate(events):
                self._multicast(event, texts[nth], np.flatnonzero(audience.interested[nth]))

    def _multicast(self, event: Event, xml: bytes, receivers: Any) -> None:
        publisher = self._diffusion.numbers[event.source]
        self._sequences[publisher] += 1
        if not len(receivers):
            return
        self._multicasts += 1
        self._numbers[publisher, receivers] += 1
        numbers = self._numbers[publisher, receivers]
        head = self._sizes.head(event, xml, int(self._sequences[publisher]))
        for tree in self._trees:
            shape = shape_of(len(receivers), tree.fan_out)
            size = self._sizes.total(head, shape, publisher, receivers, numbers)
            tree.sent += len(receivers)
            tree.bytes += size
            tree.depth_sum += shape.depth_sum
            tree.most_children = max(tree.most_children, shape.most_children)
            tree.most_depth = max(tree.most_depth, shape.most_depth)
            carriers = np.append(receivers, publisher)[shape.parents]
            tree.connected[carriers, receivers] = True

    def _written(self, event: Event) -> bytes:
        if event.published_us is None:
            event = event._replace(published_us=_PUBLISHED_US)
        return write_event(event, self._schema)

    def mark(self, subscriptions: int) -> None:
        """Makes rows of the current counts."""
        common = {
            **self._common,
            "subscriptions": subscriptions,
            "published": self.published,
        }
        for number, name in enumerate(self._diffusion.names):
            counts = {column: int(sums[number]) for column, sums in self._sums.items()}
            self._rows["notifications"].append({**common, "publisher": name, **counts})
        for tree in self._trees:
            row = {**common, **tree.counts(), "multicasts": self._multicasts}
            self._rows["trees"].append(row)

    def tables(self) -> dict[str, pa.Table]:
        return {
            "notifications": pa.Table.from_pylist(self._rows["notifications"], NOTIFICATIONS),
            "trees": pa.Table.from_pylist(self._rows["trees"], TREES),
        }


class _TreeTally:
    def __init__(self, fan_out: int, organisations: int) -> None:
        self.fan_out = fan_out
        self.sent = 0
        self.bytes = 0
        self.depth_sum = 0
        self.most_children = 0
        self.most_depth = 0
        self.connected = np.zeros((organisations, organisations), np.bool_)
        """[sender, receiver]: True if anything was sent."""

    def counts(self) -> dict[str, int]:
        connections = self.connected.sum(axis=1)
        return {
            "fan_out": self.fan_out,
            "sent": self.sent,
            "bytes": self.bytes,
            "most_children": self.most_children,
            "depth_sum": self.depth_sum,
            "most_depth": self.most_depth,
            "connections_sum": int(connections.sum()),
            "most_connections": int(connections.max()),
        }
