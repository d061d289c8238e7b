"""QNS itself as a strategy: production peers, one organisation per broker, on the lab's network.

Each peer sends its merge subscription to all others (changeSub, thesis 5.4.2) and sends an event to
the organisations that want it: directly, or along a diffusion tree in which no peer sends it to
more others than its fan-out. The peers run in `qns.simulation`, where inputs within 2 ms share a
turn. Gossip is switched off, because its cost depends on time and not on load.
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
from qns.lab.simulated.network import Network
from qns.lab.simulated.space import CLASS, SCHEMA, broker, event_of, organisation, subscription_text
from qns.lab.simulated.system import Delivery, Publication
from qns.simulation import network as simulated
from qns.simulation.rest import unrest
from qns.simulation.world import TIMEOUT_S, TUNING, World

DIRECT: Final = MAX_CAPABILITY
"""The fan-out with which every receiver gets an event directly from its producer."""
_USER: Final = "user"
_TUNING: Final = replace(TUNING, gossip_every_s=inf)


@dataclass(slots=True, eq=False)
class _Wires(simulated.Network):
    """Requests and answers take the latency of the lab's network and never fail."""

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
        """Event -> broker -> the number of others to which it sent the event."""
        self._reached: dict[str, set[int]] = {}
        self._read = 0
        """The number of history records that were read."""
        # An answer or a delayed acknowledgement is never under way longer than this.
        self._quiet_s = 2 * network.diameter_ms / 1000 + 2 * _TUNING.acknowledge_after_s
        self.world.start()
        self.calm()

    # --- actions of users -------------------------------------------------------------------------

    def subscribe(self, broker: int, id: str, rectangle: Rectangle) -> None:
        request = Subscribe(_USER, subscription_text(rectangle), id=id)
        self.world.do(organisation(broker), request)

    def unsubscribe(self, broker: int, id: str) -> None:
        self.world.do(organisation(broker), Unsubscribe(_USER, id))

    def publish(self, event: Publication) -> None:
        self._reached.setdefault(event.id, set()).add(event.publisher)
        self.world.do(organisation(event.publisher), Publish(event_of(*event)))

    def settle(self) -> None:
        """Runs until no peer has sent anything for so long that nothing can be under way."""
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

    # --- observations -----------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.world.now * 1000

    @property
    def table_sizes(self) -> list[int]:
        """The number of users' subscriptions and of rows in the External Merge Table."""
        sizes = []
        for node in self.world.nodes.values():
            assert node.gateway is not None
            status = node.gateway.status
            sizes.append(status.subscriptions + status.external_elements)
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
    """The name of a message as the thesis writes it: changeSub, notify."""
    name = type(body).__name__
    return name[0].lower() + name[1:]
