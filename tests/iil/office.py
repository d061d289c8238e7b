"""Office: one organisation's users and Quality Factory at their peer, in few words.

Without a network: the only organisation of its federation, on a simulated disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation
from qns.gateway import Gateway
from qns.history.judge import judge
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Pause,
    Publish,
    Published,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from qns.simulation.disks import MemoryDisk
from qns.simulation.node import Disk, KillPoint
from qns.simulation.world import TUNING, World
from qns.tables import COUNTERS, CounterRow
from qns.turn import Record
from tests.store.rows import content

ME = "Met01"
OWNER = "ann"
HOSTED = ("Report", "Report/Wind", "Report/Wind/Gust", "Report/Temperature")
ALONE = Federation.of("weather", WEATHER, {ME: HOSTED})
READER = EventReader(WEATHER)

DELIVERY_TABLES = ("events", "deliveries", "queued", "served", "waiting", "owed", "custody")
"""What must be empty once nothing is owed to anybody."""


class Office:
    def __init__(
        self,
        make_disk: Callable[[], Disk] = MemoryDisk,
        federation: Federation = ALONE,
        **tuning: Any,
    ) -> None:
        # Gossip would wake the peer now and then, and hide that it forgot to wake by itself.
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
        """How many events were dropped."""
        answer = self.do(Unsubscribe(OWNER, id))
        assert isinstance(answer, Unsubscribed)
        return answer.dropped

    def renew(self, id: str, lifetime_s: float = inf) -> float:
        """Until when it lives now."""
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
        """Numbers and events."""
        answer = self.do(Read(OWNER, id, after, limit))
        assert isinstance(answer, Deliveries)
        return [(each.number, each.event) for each in answer.deliveries]

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

    # --- the host ---------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.run_for(seconds)

    def crash(self, down_s: float = 0.0) -> None:
        """The process dies and starts again from its disk."""
        self.world.kill(ME)
        self.wait(down_s)
        self.world.start(ME)

    def crash_during(self, request: Request, at: KillPoint) -> None:
        """The process dies in the turn that handles the request, and starts again."""
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

    # --- what is left of it -----------------------------------------------------------------------

    def rows(self) -> dict[str, list[Any]]:
        """Every row of every table that has any."""
        return content(self.gateway.store)

    def left_over(self) -> dict[str, list[Any]]:
        """Rows of events that somebody may still get."""
        return {name: rows for name, rows in self.rows().items() if name in DELIVERY_TABLES}

    def counters(self, id: str) -> tuple[int, int]:
        """Delivered, dropped."""
        rows = {row.subscription: row for row in self.gateway.store.rows(COUNTERS)}
        row = rows.get(id, CounterRow(id, 0, 0))
        return row.delivered, row.dropped

    def notified(self, id: str) -> list[str]:
        """The events of which the subscription was ever notified, in order."""
        return [each["event"] for each in self.records("ntfy") if each["sub"] == id]

    def records(self, do: str) -> list[Record]:
        return [each for each in self.world.history if each["do"] == do]

    def violations(self) -> list[str]:
        """What the judge has to say when all is calm."""
        verdict = judge([*self.world.history, {"t": self.now, "do": "calm"}])
        return [each.explain() for each in verdict.violations]


def event(id: str, *, source: str = ME, **fields: Any) -> Any:
    given = {"id": id, "class": "Report", "source": source, "data": {"Region": "north"}}
    if "kind" in fields:
        given["class"] = fields.pop("kind")
    return READER.from_fields(given | fields)
