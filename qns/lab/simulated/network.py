"""Network: hosts and the latency between any two of them, in milliseconds.

A flat network is a random connected graph. A transit-stub network has a few transit domains whose
routers are far apart, with stub domains of near hosts attached (the model of GT-ITM). Messages take
shortest paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from qns.errors import ValueRefused

FEWEST_HOSTS: Final = 2
MOST_HOSTS: Final = 5_000

# Smallest and largest latency of a link: inside a stub, to its transit router, between routers of
# one domain, between domains. They give diameters of about 200 ms with 100 hosts (thesis 4.5).
STUB_MS: Final = (2.0, 10.0)
ACCESS_MS: Final = (5.0, 20.0)
TRANSIT_MS: Final = (10.0, 30.0)
BETWEEN_MS: Final = (30.0, 60.0)
FLAT_MS: Final = (5.0, 50.0)

TRANSIT_DOMAINS: Final = 2
ROUTERS: Final = 3
"""Routers of each transit domain."""
STUB_HOSTS: Final = 8
"""Approximate number of hosts in a stub domain."""
FLAT_DEGREE: Final = 4.0


@dataclass(frozen=True, slots=True)
class Network:
    kind: str
    latency_ms: NDArray[np.float64]
    """[host, host]: the latency along the shortest path."""

    @property
    def hosts(self) -> int:
        return len(self.latency_ms)

    @property
    def diameter_ms(self) -> float:
        return float(self.latency_ms.max())


def flat(hosts: int, random: Random) -> Network:
    """Links every pair of hosts with the same probability, then joins unconnected parts."""
    _check(hosts)
    graph = nx.gnp_random_graph(hosts, min(1.0, FLAT_DEGREE / (hosts - 1)), seed=_seed(random))
    pieces = [sorted(piece) for piece in nx.connected_components(graph)]
    for piece, following in pairwise(pieces):
        graph.add_edge(random.choice(piece), random.choice(following))
    for one, other in sorted(graph.edges):
        graph.edges[one, other]["ms"] = random.uniform(*FLAT_MS)
    return Network("flat", _shortest(graph, list(range(hosts))))


def transit_stub(hosts: int, random: Random) -> Network:
    """Puts all hosts into stub domains; routers only pass messages on."""
    _check(hosts)
    graph: nx.Graph[object] = nx.Graph()
    routers = [
        [("router", domain, number) for number in range(ROUTERS)]
        for domain in range(TRANSIT_DOMAINS)
    ]
    for domain in routers:
        for one, other in pairwise(domain):
            graph.add_edge(one, other, ms=random.uniform(*TRANSIT_MS))
        graph.add_edge(domain[0], domain[-1], ms=random.uniform(*TRANSIT_MS))
    for one_domain, other_domain in pairwise(routers):
        graph.add_edge(
            random.choice(one_domain), random.choice(other_domain), ms=random.uniform(*BETWEEN_MS)
        )
    every_router = [router for domain in routers for router in domain]
    stubs = max(1, round(hosts / STUB_HOSTS))
    members: list[list[int]] = [[] for _ in range(stubs)]
    for host in range(hosts):
        members[host % stubs].append(host)
    for number, stub in enumerate(members):
        for place, host in enumerate(stub):
            if place:
                graph.add_edge(host, random.choice(stub[:place]), ms=random.uniform(*STUB_MS))
        # The transit network does not grow with the hosts. Further stubs are attached to stubs, so
        # that paths grow longer.
        above: object = every_router[number % len(every_router)]
        if number >= 2 * len(every_router):
            above = members[number - 2 * len(every_router)][0]
        graph.add_edge(stub[0], above, ms=random.uniform(*ACCESS_MS))
    return Network("transit-stub", _shortest(graph, list(range(hosts))))


def _shortest(graph: nx.Graph[object], hosts: list[int]) -> NDArray[np.float64]:
    latency = np.zeros((len(hosts), len(hosts)))
    for host in hosts:
        found = nx.single_source_dijkstra_path_length(graph, host, weight="ms")
        latency[host] = [found[other] for other in hosts]
    # Rounding may differ between the two directions.
    both: NDArray[np.float64] = (latency + latency.T) / 2
    return both


def _seed(random: Random) -> int:
    return random.randrange(2**32)


def _check(hosts: int) -> None:
    if not FEWEST_HOSTS <= hosts <= MOST_HOSTS:
        raise ValueRefused(
            f"a network of {hosts:,} hosts", remedy=f"from {FEWEST_HOSTS} to {MOST_HOSTS:,}"
        )
