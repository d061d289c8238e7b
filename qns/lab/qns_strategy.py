"""QNS itself as a strategy: production peers, one organisation per broker, on the lab's network.

Each peer tells its merge subscription to every other (changeSub, thesis 5.4.2) and sends an event
to the organisations that want it: straight to all of them, or along a diffusion tree in which
nobody sends it to more others than its fan-out. The peers run in `qns.simulation`, where what comes
in within 2 ms shares a turn; gossip, a cost of time and not of load, is switched off.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any, Final

from qns.cbr.rectangles import Rectangle
from qns.edl.messages import Notification, Notify
from qns.federation.document import MAX_CAPABILITY, Federation
from qns.history.records import Record
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.lab.network import Network
from qns.lab.space import CLASS, SCHEMA, broker, event_of, organisation, subscription_text
from qns.lab.system import Delivery, Publication
from qns.simulation import network as simulated
from qns.simulation.rest import unrest
from qns.simulation.world import TIMEOUT_S, TUNING, World

DIRECT: Final = MAX_CAPABILITY
"""A fan-out with which everybody is sent to directly."""
_USER: Final = "user"
_TUNING: Final = replace(TUNING, gossip_every_s=inf)


@dataclass(slots=True, eq=False)
class _Wires(simulated.Network):
    """Requests and answers take the lab network's latency, and never fail."""

    lab: Network = field(kw_only=True)
    hosts: list[int] = field(kw_only=True)

    def arrivals(self, sender: str, receiver: str, *, is_request: bool) -> list[float]:  # noqa: ARG002
        one, other = self.hosts[broker(sender)], self.hosts[broker(receiver)]
        return [float(self.lab.latency_ms[one, other]) / 1000]


class QnsRun:
    def __init__(
        self, network: Network, brokers: int, random: Random, fan_out: int = DIRECT
    ) -> None:
        assert 2 * network.diameter_ms < 1000 * TIMEOUT_S, "answers must come in time"
        self.hosts = random.sample(range(network.hosts), brokers)
        names = [organisation(each) for each in range(brokers)]
        federation = Federation.of("lab", SCHEMA, {name: [CLASS] for name in names}, fan_out)
        self.world = World(random.randrange(2**32), federation, _TUNING)
        self.world.network = _Wires(self.world.chance, lab=network, hosts=self.hosts)
        self.hops = 0
        self.sent: Counter[str] = Counter()
        self.deliveries: list[Delivery] = []
        self.served: dict[str, Counter[int]] = {}
        """Event -> to how many others each broker sent it."""
        self._reached: dict[str, set[int]] = {}
        self._read = 0
        """Records of the history that were looked at."""
        # Longer than an answer, or a gathered acknowledgement, can be under way.
        self._quiet_s = 2 * network.diameter_ms / 1000 + 2 * _TUNING.acknowledge_after_s
        self.world.start()
        self.calm()

    # --- what users do ----------------------------------------------------------------------------

    def subscribe(self, broker: int, id: str, rectangle: Rectangle) -> None:
        request = Subscribe(_USER, subscription_text(rectangle), id=id)
        self.world.do(organisation(broker), request)

    def unsubscribe(self, broker: int, id: str) -> None:
        self.world.do(organisation(broker), Unsubscribe(_USER, id))

    def publish(self, event: Publication) -> None:
        self._reached.setdefault(event.id, set()).add(event.publisher)
        self.world.do(organisation(event.publisher), Publish(event_of(*event)))

    def settle(self) -> None:
        """Until nobody has said anything for so long that nothing can be under way."""
        while True:
            self.world.run_for(self._quiet_s)
            if not self.world.traffic:
                break
            self._count()
        self._gather()

    def calm(self) -> None:
        self.settle()
        restless = unrest(self.world)
        assert restless is None, restless
        self.world.history.append({"t": self.world.now, "do": "calm"})

    # --- what there is to see ---------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.world.now * 1000

    @property
    def table_sizes(self) -> list[int]:
        """The users' subscriptions, and the External Merge Table."""
        sizes = []
        for node in self.world.nodes.values():
            assert node.gateway is not None
            peer = node.gateway.peer
            others = sum(map(len, peer.producer.table.views.values()))
            sizes.append(sum(1 for _ in peer.iil.table) + others)
        return sizes

    def reached(self, event: str) -> set[int]:
        return self._reached.get(event, set())

    def records(self) -> list[Record]:
        return list(self.world.history)

    def _count(self) -> None:
        for _, sender, to, body in self.world.traffic:
            self.sent[_kind(body)] += 1
            if isinstance(body, Notify):
                for item in body.items:
                    if isinstance(item, Notification):
                        self.hops += 1
                        self.served.setdefault(item.event, Counter())[broker(sender)] += 1
                        self._reached.setdefault(item.event, set()).add(broker(to))
        self.world.traffic.clear()

    def _gather(self) -> None:
        for record in self.world.history[self._read :]:
            if record["do"] == "ntfy":
                at_ms, where = record["t"] * 1000, broker(record["org"])
                self.deliveries.append(Delivery(record["event"], record["sub"], where, at_ms))
        self._read = len(self.world.history)


def _kind(body: Any) -> str:
    """In the thesis's spelling: changeSub, notify."""
    name = type(body).__name__
    return name[0].lower() + name[1:]
