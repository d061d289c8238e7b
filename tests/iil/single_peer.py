"""Single peer: the only organisation of its federation, on a simulated disk without a network.

`SinglePeer` has a short method for every request of users and of the Quality Factory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation
from qns.history.judge import judge
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Pause,
    Publish,
    Published,
    PullDeliveries,
    Renew,
    Request,
    Resume,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from qns.peer.gateway import Gateway
from qns.peer.tables import COUNTERS, CounterRow
from qns.peer.turn import Record
from qns.simulation.disks import MemoryDisk
from qns.simulation.node import Disk, KillPoint
from qns.simulation.world import TUNING, World
from tests.store.rows import content

ME = "Met01"
OWNER = "ann"
HOSTED = ("Report", "Report/Wind", "Report/Wind/Gust", "Report/Temperature")
ALONE = Federation.of("weather", WEATHER, {ME: HOSTED})
READER = EventReader(WEATHER)

DELIVERY_TABLES = (
    "events",
    "deliveries",
    "queued",
    "dropped",
    "served",
    "waiting",
    "owed",
    "custody",
)
"""Tables that must be empty when no event is owed."""


class SinglePeer:
    def __init__(
        self,
        make_disk: Callable[[], Disk] = MemoryDisk,
        federation: Federation = ALONE,
        **tuning: Any,
    ) -> None:
        # Gossip would wake the peer and hide a missing wake-up time.
        tuning = {"gossip_every_s": inf, "bytes_per_call": 1_000_000} | tuning
        self.world = World(0, federation, replace(TUNING, **tuning), make_disk)
        self.world.start()

    # --- requests ---------------------------------------------------------------------------------

    def do(self, request: Request) -> Answer:
        return self.world.do(ME, request)

    def subscribe(
        self,
        id: str,
        text: str = "Report",
        *,
        owner: str = OWNER,
        group: str = "",
        lifetime_s: float = inf,
    ) -> Subscribed:
        answer = self.do(Subscribe(owner, text, id, group, lifetime_s))
        assert isinstance(answer, Subscribed)
        return answer

    def unsubscribe(self, id: str) -> int:
        """Returns how many events were dropped."""
        answer = self.do(Unsubscribe(OWNER, id))
        assert isinstance(answer, Unsubscribed)
        return answer.dropped

    def renew(self, id: str, lifetime_s: float = inf) -> float:
        """Returns when the subscription expires now."""
        answer = self.do(Renew(OWNER, id, lifetime_s))
        assert isinstance(answer, Subscribed)
        return answer.expires_at

    def pause(self, *ids: str) -> None:
        for id in ids:
            self.do(Pause(OWNER, id))

    def resume(self, *ids: str) -> None:
        for id in ids:
            self.do(Resume(OWNER, id))

    def read(self, id: str, after: int = 0, limit: int = 10_000) -> list[tuple[int, str]]:
        """Returns the numbers and events of the deliveries, after those that were dropped."""
        try:
            answer = self.do(PullDeliveries(OWNER, id, after, limit))
        except DeliveriesDropped as declared:
            return self.read(id, declared.last, limit)
        assert isinstance(answer, Deliveries)
        return [(each.number, each.event) for each in answer.deliveries]

    def dropped(self, id: str, after: int = 0) -> list[tuple[int, int]]:
        """Returns the ranges of numbers that a pull declares as dropped."""
        try:
            self.do(PullDeliveries(OWNER, id, after))
        except DeliveriesDropped as declared:
            return [(each.first, each.last) for each in declared.dropped]
        return []

    def events(self, id: str) -> list[str]:
        return [event for _, event in self.read(id)]

    def acknowledge(self, id: str, upto: int) -> None:
        self.do(AcknowledgeDeliveries(OWNER, id, upto))

    def acknowledge_all(self, *ids: str) -> None:
        for id in ids:
            self.acknowledge(id, max((number for number, _ in self.read(id)), default=0))

    def publish(self, *ids: str, **fields: Any) -> None:
        for id in ids:
            answer = self.do(Publish(event(id, **fields)))
            assert answer == Published(id, ())

    # --- the process ------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.run_for(seconds)

    def crash(self, down_s: float = 0.0) -> None:
        """Crashes the process and starts it again from its disk."""
        self.world.kill(ME)
        self.wait(down_s)
        self.world.start(ME)

    def crash_during(self, request: Request, at: KillPoint) -> None:
        """Crashes the process in the turn that handles the request, and starts it again."""
        self.world.ask(ME, request)
        self.world.kill(ME, at)
        self.wait(0.01)
        assert self.world.nodes[ME].gateway is None
        self.world.start(ME)

    @property
    def gateway(self) -> Gateway:
        gateway = self.world.nodes[ME].gateway
        assert gateway is not None
        return gateway

    def close(self) -> None:
        for node in self.world.nodes.values():
            node.disk.discard()

    # --- rows and records -------------------------------------------------------------------------

    def rows(self) -> dict[str, list[Any]]:
        """Returns the rows of every table that is not empty."""
        return content(self.gateway.store)

    def left_over(self) -> dict[str, list[Any]]:
        """Returns the rows of events and deliveries that the peer still keeps."""
        return {name: rows for name, rows in self.rows().items() if name in DELIVERY_TABLES}

    def counters(self, id: str) -> tuple[int, int]:
        """Returns the numbers of delivered and dropped events."""
        rows = {row.subscription: row for row in self.gateway.store.rows(COUNTERS)}
        row = rows.get(id, CounterRow(id, 0, 0))
        return row.delivered, row.dropped

    def notified(self, id: str) -> list[str]:
        """Returns every event of which the subscription was notified, in order."""
        return [each["event"] for each in self.records("ntfy") if each["sub"] == id]

    def records(self, do: str) -> list[Record]:
        return [each for each in self.world.history if each["do"] == do]

    def violations(self) -> list[str]:
        """Returns the violations that the judge finds in the history."""
        verdict = judge([*self.world.history, {"t": self.now, "do": "calm"}])
        return [each.explain() for each in verdict.violations]


def event(id: str, *, source: str = ME, **fields: Any) -> Any:
    given = {"id": id, "class": "Report", "source": source, "data": {"Region": "north"}}
    if "kind" in fields:
        given["class"] = fields.pop("kind")
    return READER.from_fields(given | fields)
