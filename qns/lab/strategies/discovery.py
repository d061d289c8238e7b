"""Discovery: finds the broker behind a link with the highest associativity (thesis 4.3.3).

A broker forwards DREQ over every link behind which a broker may offer more than itself, and returns
the best offer in DREP (converge-cast, figs 4.4 and 4.6). A time to live limits the hops of DREQ.
With a proximity bound, brokers that are too far away in the network make no offer (4.4.2).
Corrected as in semantics §11: a broker replies to its predecessor, with the best offer.
The requests and replies on a removed link are lost, and nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from qns.cbr.zones import Boxes, associativity_of
from qns.lab.simulated.system import System
from qns.lab.strategies.interests import Interests, weight

DiscoveryId = tuple[int, int]
"""The broker that started the discovery, and the number of its discovery."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A broker on the path of a request (an element of the hop sequence HS)."""

    broker: int
    weight: float
    """The weight of the link from the hop before."""
    distance_ms: float = 0.0
    """The latency from the first broker; measured only with a proximity bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """The last broker of the hops, with its associativity to the first one."""

    associativity: float
    zone: Boxes
    available: int
    """al: the number of further links that it may have."""
    hops: tuple[Hop, ...]

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts offers: by highest associativity, then fewest hops, then lowest number."""
        return -self.associativity, len(self.hops), self.hops[-1].broker


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """DREQ: asks the brokers behind a link for offers."""

    kind: ClassVar[str] = "discovery"
    id: DiscoveryId
    zone: Boxes
    """Z*: the zone of interest, including the new subscription."""
    hops: tuple[Hop, ...]
    ttl: int | None
    """The number of further links that it may pass; None means no limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """DREP: returns the best offer, or None if all brokers are too far away."""

    kind: ClassVar[str] = "discovery"
    id: DiscoveryId
    offer: Offer | None


class DiscoveringBroker(Protocol):
    """The interface of a broker that discoveries use."""

    number: int
    system: System
    links: dict[int, None]
    towards: dict[int, int]
    interests: Interests

    @property
    def zone(self) -> Boxes: ...

    @property
    def available(self) -> int: ...

    def weight_of_link(self, other: int) -> float: ...

    def offered(self, offer: Offer) -> None:
        """Receives the result of the broker's own discovery."""
        ...


@dataclass(slots=True)
class _Pending:
    asker: int
    own: Offer | None
    waiting: dict[int, None]
    offers: list[Offer] = field(default_factory=list)


class Discoveries:
    """All discoveries that a broker has started or takes part in."""

    def __init__(self, broker: DiscoveringBroker, ttl: int | None, bound_ms: float | None) -> None:
        self.broker = broker
        self.ttl = ttl
        self.bound_ms = bound_ms
        self.started: dict[DiscoveryId, int] = {}
        """This broker's own discoveries -> the link over which each was sent."""
        self.pending: dict[DiscoveryId, _Pending] = {}
        self._count = 0

    def start(self, link: int) -> None:
        if self.ttl == 0:
            return
        broker = self.broker
        self._count += 1
        id = (broker.number, self._count)
        self.started[id] = link
        ttl = None if self.ttl is None else self.ttl - 1
        hops = (Hop(broker.number, 0.0),)
        broker.system.send(broker.number, link, Request(id, broker.zone, hops, ttl))

    def on_request(self, sender: int, request: Request) -> None:
        broker = self.broker
        if sender not in broker.links:
            return  # the link is removed, and the asker does not wait any more
        if request.id in self.pending or broker.number in [hop.broker for hop in request.hops]:
            self._reply(sender, request.id, None)  # it came back, because the tree has changed
            return
        own = associativity_of(request.zone, broker.zone)
        hops = (*request.hops, self._own_hop(sender, request))
        promising = self._promising(sender, request, own)
        is_near = self.bound_ms is None or hops[-1].distance_ms <= self.bound_ms
        offer = Offer(own, broker.zone, broker.available, hops) if is_near else None
        if not promising:
            self._reply(sender, request.id, offer)
            return
        self.pending[request.id] = _Pending(sender, offer, dict.fromkeys(promising))
        ttl = None if request.ttl is None else request.ttl - 1
        for link in promising:
            onward = Request(request.id, request.zone, hops, ttl)
            broker.system.send(broker.number, link, onward)

    def _own_hop(self, sender: int, request: Request) -> Hop:
        broker = self.broker
        first = len(request.hops) == 1  # its updates may be delayed while the request is not
        weighs = weight(request.zone, broker.zone) if first else broker.weight_of_link(sender)
        if self.bound_ms is None:
            return Hop(broker.number, weighs)
        broker.system.sent["ping"] += 2  # request and answer
        distance_ms = broker.system.latency_ms(broker.number, request.id[0])
        return Hop(broker.number, weighs, distance_ms)

    def _promising(self, sender: int, request: Request, own: float) -> list[int]:
        """The links that satisfy the forwarding predicate."""
        broker = self.broker
        if request.ttl == 0 or own == 1:
            return []
        links = [link for link in broker.links if link != sender]
        shares = broker.interests.behind(request.zone, links, broker.towards)
        return [link for link in links if shares[link] > own]

    def on_reply(self, sender: int, reply: Reply) -> None:
        if self.started.get(reply.id) == sender:
            del self.started[reply.id]
            if reply.offer is not None:
                self.broker.offered(reply.offer)
            return
        pending = self.pending.get(reply.id)
        if pending is not None and sender in pending.waiting:
            if reply.offer is not None:
                pending.offers.append(reply.offer)
            self._answered(sender, reply.id, pending)

    def _answered(self, link: int, id: DiscoveryId, pending: _Pending) -> None:
        del pending.waiting[link]
        if not pending.waiting:
            del self.pending[id]
            offers = pending.offers if pending.own is None else [pending.own, *pending.offers]
            self._reply(pending.asker, id, best(offers))

    def _reply(self, asker: int, id: DiscoveryId, offer: Offer | None) -> None:
        self.broker.system.send(self.broker.number, asker, Reply(id, offer))

    def link_gone(self, link: int) -> None:
        self.started = {id: over for id, over in self.started.items() if over != link}
        for id, pending in list(self.pending.items()):
            if pending.asker == link:
                del self.pending[id]
            elif link in pending.waiting:
                self._answered(link, id, pending)


def best(offers: Iterable[Offer]) -> Offer | None:
    return min(offers, key=lambda offer: offer.rank, default=None)
