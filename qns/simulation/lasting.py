"""Lasting partitions: broken links that stay when all other faults are healed.

What is owed must then reach every organisation to which a way over working links leads, without
any healing. Judged are the pairs of `working_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import permutations
from random import Random

from qns.edl.messages import Notify, entry_of
from qns.errors import QnsError
from qns.federation.acceptance import may_accept
from qns.federation.document import Federation
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.users import Users
from qns.simulation.world import World

Pairs = frozenset[tuple[str, str]]


def draw_lasting(seed: int, names: list[str]) -> list[Action]:
    """Draws broken links that stay, and events that are published when other faults are over."""
    chance = Random(f"lasting {seed}")  # noqa: S311
    if len(names) < 3 or chance.random() > 0.4:
        return []
    pairs = _broken(chance, names)
    if not pairs:
        return []
    fields: dict[str, object] = {"pairs": " ".join(f"{a}>{b}" for a, b in pairs)}
    at = chance.uniform(2.0, CHAOS_S) if chance.random() < 0.5 else CHAOS_S - 0.1
    users = Users(chance, names, prefix="l")
    return [
        Action(at, "sever", "", fields),
        *users.publications(CHAOS_S + 0.1, CHAOS_S + 5.0, 10),
    ]


def _broken(chance: Random, names: list[str]) -> list[tuple[str, str]]:
    """Draws the broken directions of single links, of all links of one peer but one, or of any."""
    kind = chance.choice(("single", "single", "all but one", "any"))
    if kind == "any":
        return [pair for pair in permutations(names, 2) if chance.random() < 0.2]
    if kind == "single":
        links = [tuple(chance.sample(names, 2)) for _ in range(chance.choice((1, 1, 2, 4)))]
    else:
        one, _, *others = chance.sample(names, len(names))
        links = [(one, other) for other in others]
    both = chance.random() < 0.5
    return [pair for a, b in links for pair in ((a, b), (b, a))[: 2 if both else 1]]


def working_pairs(world: World) -> Pairs:
    """Returns the pairs of present members between which a way over working links leads.

    A link works if both directions do, because every message is a request with an answer. Only
    members whose federation document can become the newest one are counted.
    """
    present = _with_newest_document(world)
    found: set[tuple[str, str]] = set()
    for start in present:
        reached, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            for name in present:
                if name not in reached and not _is_broken(world, here, name):
                    reached.add(name)
                    waiting.append(name)
        found.update((start, name) for name in reached - {start})
    return frozenset(found)


def _with_newest_document(world: World) -> list[str]:
    """Returns the present members that have the newest document, or can get it over working links.

    A peer does not accept every document from an organisation that its own document does not name.
    """
    newest = world.federation
    documents = {
        name: gateway.status.federation
        for name in newest.organisations
        if name not in world.absent | world.liars
        and (gateway := world.nodes[name].gateway) is not None
    }
    informed = [name for name, document in documents.items() if document.version == newest.version]
    for giver in informed:  # which grows meanwhile
        for name, document in documents.items():
            if name not in informed and not _is_broken(world, giver, name):
                with suppress(QnsError):
                    may_accept(newest, document, giver, now=world.now)
                    if not _waits_for_absent(world, name, document):
                        informed.append(name)
    return [name for name in documents if name in informed]


def _waits_for_absent(world: World, name: str, document: Federation) -> bool:
    """True if an organisation that joins again owes events to one that is away.

    It puts the document in force when everything of its former membership is acknowledged.
    """
    gateway = world.nodes[name].gateway
    assert gateway is not None
    return not _has_joined(world, name, document) and any(
        stream.lag_events and stream.consumer in world.absent
        for stream in gateway.status.outbound()
    )


def keeping_out(world: World, names: Iterable[str]) -> list[str]:
    """Returns the liars that never acknowledge what one of these members owes to them, which joins
    again only after that. The remedy of its operator is that the others remove such a member."""
    found = set()
    for name in names:
        gateway = world.nodes[name].gateway
        if gateway is not None and name in world.federation:
            owed = {each.consumer for each in gateway.status.outbound() if each.lag_events}
            if owed <= world.liars and not _has_joined(world, name, gateway.status.federation):
                found |= owed & world.federation.organisations.keys()
    return sorted(found)


def _has_joined(world: World, name: str, document: Federation) -> bool:
    """True if the document has the member in the incarnation of the newest one."""
    former = document.organisations.get(name)
    return former is not None and former.incarnation == world.federation[name].incarnation


def _is_broken(world: World, one: str, other: str) -> bool:
    blocked = world.network.blocked
    return (one, other) in blocked or (other, one) in blocked


def still_owed(world: World, pairs: Pairs) -> list[str]:
    """Returns what producers still owe to consumers to which a way leads, in words."""
    return [
        f"Rest: {name} owes {stream.consumer} events from {stream.acknowledged + 1} on, though a "
        "way over working links leads there and back."
        for name, node in world.nodes.items()
        if node.gateway is not None
        for stream in node.gateway.status.outbound()
        if (name, stream.consumer) in pairs and stream.lag_events
    ]


def needless_notifications(world: World, pairs: Pairs, since: int) -> list[str]:
    """Returns events in the traffic from this message on, sent though they were acknowledged.

    A forwarder that keeps a promise may try a broken link; this is not counted. An event that got a
    number meanwhile is owed: a view was widened.
    """
    began = world.traffic[since][0] if since < len(world.traffic) else world.now
    numbered = {
        (record["org"], record["to"], record["event"])
        for record in world.history
        if record["do"] == "cross" and record["t"] >= began
    }
    return [
        f"Quiet: {sender} sent {to} an event of {item.source} for {entry_of(item).receiver}, "
        "though nothing was owed any more."
        for _, sender, to, body in world.traffic[since:]
        if isinstance(body, Notify) and not _is_broken(world, sender, to)
        for item in body.items
        if (item.source, entry_of(item).receiver) in pairs
        and (item.source, entry_of(item).receiver, getattr(item, "event", "")) not in numbered
    ]
