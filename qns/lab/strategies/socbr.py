"""SOCBR: content-based routing whose brokers link to others with similar interests (thesis ch. 4).

When its zone of interest grows, a broker starts a discovery over each link behind which its
associativity has grown (triggering), selects the link to be replaced (tear-down selection) and
swaps the two (reconfiguration). `Options` make the variants: a time to live for discoveries, and
the proximity bound of pbSOCBR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Boxes
from qns.errors import ValueRefused
from qns.lab.simulated.system import Message, Publication, Strategy, System
from qns.lab.strategies.cbr import Announce, CbrBroker, Notify, Update, Withdraw
from qns.lab.strategies.discovery import Discoveries, Hop, Offer, Reply, Request
from qns.lab.strategies.interests import Interests, boxes_of, weight
from qns.lab.strategies.reconfiguration import (
    Ack,
    Close,
    Lock,
    Nack,
    Plan,
    Reconfigurations,
    Reroute,
    Unlock,
)


@dataclass(frozen=True, slots=True)
class Options:
    ttl: int | None = None
    """The most links that a discovery passes; None means no limit, 0 means CBR."""
    bound_ms: float | None = None
    """d_b of pbSOCBR: the largest latency to a new neighbour; None means plain SOCBR."""
    cuts_lightest: bool = False
    """With a bound: cuts the lightest link of the path, as without one, and not the farthest."""

    def __post_init__(self) -> None:
        if self.ttl is not None and self.ttl < 0:
            raise ValueRefused(f"a TTL of {self.ttl}", remedy="give 0 or more, or none")
        if self.bound_ms is not None and not self.bound_ms >= 0:
            raise ValueRefused(
                f"a proximity bound of {self.bound_ms:g} ms", remedy="give 0 or more, or none"
            )


def socbr(options: Options | None = None) -> Strategy:
    chosen = options or Options()
    return lambda system, number: SocbrBroker(system, number, chosen)


class Swap(NamedTuple):
    at_ms: float
    tear_up: tuple[int, int]
    tear_down: tuple[int, int]
    gain: float
    """The weight of the new link minus that of the old one.

    The associativity of the system grows by this gain divided by the number of brokers.
    """


class SocbrBroker(CbrBroker):
    def __init__(self, system: System, number: int, options: Options) -> None:
        super().__init__(system, number)
        self.options = options
        self.interests = Interests()
        self.discoveries = Discoveries(self, options.ttl, options.bound_ms)
        self.reconfigurations = Reconfigurations(self)
        self.seen: dict[int, int] = {}
        """Broker -> the number of its last update that arrived here."""
        self.swaps: list[Swap] = []
        """The swaps of this broker that were found worthwhile."""
        self.plans = 0
        """The number of swaps that this broker has planned."""
        self._zone: Boxes | None = None
        self._weights: dict[int, tuple[Boxes, Boxes, float]] = {}

    # --- the interface for discoveries and reconfigurations ---------------------------------------

    @property
    def zone(self) -> Boxes:
        """The zone of interest."""
        if self._zone is None:
            self._zone = boxes_of(self.announced.values())
        return self._zone

    @property
    def available(self) -> int:
        return self.reconfigurations.available

    def weight_of_link(self, other: int) -> float:
        ours, theirs = self.zone, self.interests.of(other)
        known = self._weights.get(other)
        if known is None or known[0] is not ours or known[1] is not theirs:
            known = self._weights[other] = ours, theirs, weight(ours, theirs)
        return known[2]

    def link_gone(self, link: int) -> None:
        self.discoveries.link_gone(link)

    # --- triggering (4.3.2) -----------------------------------------------------------------------

    def subscribe(self, id: str, rectangle: Rectangle) -> None:
        before = self.zone
        super().subscribe(id, rectangle)
        if id in self.announced:
            self._trigger(before)

    def _trigger(self, before: Boxes) -> None:
        """Starts a discovery over each link that satisfies the activation predicate."""
        shares = self.interests.behind(self.zone, self.links, self.towards)
        earlier = self.interests.behind(before, self.links, self.towards)
        for link, share in shares.items():
            if share > earlier[link]:
                self.discoveries.start(link)

    # --- tear-down selection (4.3.4) --------------------------------------------------------------

    def offered(self, offer: Offer) -> None:
        if len(offer.hops) <= 2:
            return  # the broker is a neighbour already
        cut = tear_down(
            offer.hops,
            self.available,
            offer.available,
            weight(self.zone, offer.zone),
            farthest=self.options.bound_ms is not None and not self.options.cuts_lightest,
        )
        if cut is not None:
            self.plans += 1
            path = tuple(hop.broker for hop in offer.hops)
            self.reconfigurations.start(Plan((self.number, self.plans), path, cut))

    def is_worthwhile(self, plan: Plan) -> bool:
        """Compares the weights again, with the zones that are known once the path is locked."""
        gain = self._weight_between(*plan.tear_up) - self._weight_between(*plan.tear_down)
        if gain <= 0:
            return False
        self.swaps.append(Swap(self.system.engine.now, plan.tear_up, plan.tear_down, gain))
        return True

    def _weight_between(self, one: int, other: int) -> float:
        zones = [
            self.zone if each == self.number else self.interests.of(each) for each in (one, other)
        ]
        return weight(*zones)

    # --- updates ----------------------------------------------------------------------------------

    def spread(self, message: Update, but: int | None = None) -> None:
        if message.home == self.number:
            self._zone = None
        self.reconfigurations.note(message)
        super().spread(message, but)

    def update(self, message: Update, sender: int) -> None:
        home = message.home
        last = self.seen.get(home, 0)
        if home == self.number or message.number <= last:
            return  # a swap may duplicate an update
        assert message.number == last + 1, "links preserve the order"
        self.seen[home] = message.number
        if isinstance(message, Announce):
            self.interests.add(message.id, message.rectangle, home)
        else:
            self.interests.remove(message.id)
        super().update(message, sender)

    # --- notifications ----------------------------------------------------------------------------

    def forward(self, link: int, event: Publication, homes: list[int]) -> None:
        message = Notify(event)
        if not self.reconfigurations.keeps(link, message, tuple(homes)):
            super().send(link, message)

    def scatter(self, event: Publication, homes: tuple[int, ...]) -> None:
        """Forwards the event to those of these brokers that have announced something here."""
        by_link: dict[int, list[int]] = {}
        for home in homes:
            if home in self.towards:
                by_link.setdefault(self.towards[home], []).append(home)
        for link, those in by_link.items():
            message = Reroute(event, tuple(those))
            if not self.reconfigurations.keeps(link, message, message.homes):
                super().send(link, message)

    def _rerouted(self, message: Reroute) -> None:
        event = message.event
        self.system.reach(event, self.number)
        if self.number in message.homes:
            self.system.deliver(event, self.local.match(event.point), self.number)
        self.scatter(event, tuple(home for home in message.homes if home != self.number))

    # --- messages ---------------------------------------------------------------------------------

    def send(self, link: int, message: Message) -> None:
        if isinstance(message, Announce | Withdraw | Notify | Reroute):
            homes = message.homes if isinstance(message, Reroute) else ()
            if self.reconfigurations.keeps(link, message, homes):
                return
        super().send(link, message)

    def receive(self, sender: int, message: object) -> None:
        if self.reconfigurations.holds(sender, message):
            return
        if isinstance(message, Request):
            self.discoveries.on_request(sender, message)
        elif isinstance(message, Reply):
            self.discoveries.on_reply(sender, message)
        elif isinstance(message, Lock | Ack | Nack | Close | Unlock):
            self.reconfigurations.receive(sender, message)
        else:
            assert sender in self.links, "no message is on a path when it is cut"
            if isinstance(message, Reroute):
                self._rerouted(message)
            else:
                super().receive(sender, message)


def tear_down(
    hops: Sequence[Hop], available: int, offered: int, new_weight: float, *, farthest: bool = False
) -> int | None:
    """Fig. 4.7: selects the link to remove, p of (B_p, B_p+1); None if the new one gains nothing.

    An end that has no link available must remove its own link of the path. Otherwise the lightest
    link is removed or, with a proximity bound, the farthest from the source of those lighter than
    the new one; the first of equals. The farther end of a link counts as its distance.
    """
    last = len(hops) - 2
    if available <= 0 and offered <= 0:
        return None
    if available <= 0:
        places = [0]
    elif offered <= 0:
        places = [last]
    else:
        places = list(range(last + 1))
    lighter = [place for place in places if hops[place + 1].weight < new_weight]
    if not lighter:
        return None
    if farthest:
        return max(lighter, key=lambda p: max(hop.distance_ms for hop in hops[p : p + 2]))
    return min(lighter, key=lambda place: hops[place + 1].weight)
