"""Rest: whether anything is still under way in a simulated world."""

from __future__ import annotations

from qns.edl.link import State
from qns.edl.messages import Gossip
from qns.peer import Peer
from qns.simulation.world import World


def unrest(world: World) -> str | None:
    """Something that is still to be done, in words; None at rest."""
    for node in world.nodes.values():
        if node.name in world.absent:
            continue
        if node.gateway is None:
            return f"{node.name} is down"
        if node.inbox:
            return f"{node.name} has not handled all that came in"
        peer = node.gateway.peer
        if peer.federation.version != world.federation.version and not world.absent:
            return f"{node.name} has not heard of the newest federation document"
        reason = _unrest_of(peer, world.absent)
        if reason is not None:
            return reason
    return None


def _unrest_of(peer: Peer, absent: set[str]) -> str | None:
    me = peer.me
    for link in peer.edl.forwarder.links.values():
        if link.other in absent:
            continue
        if link.state is State.RESTING:
            return f"{me} waits to try {link.other} again"
        if link.state is State.ASKING and not isinstance(link.request, Gossip):
            return f"{me} waits for an answer of {link.other}"
        if link.parcels or link.wants_hello or link.wants_document:
            return f"{me} has something to say to {link.other}"
        if link.pull_at is not None or link.acknowledge_at is not None:
            return f"{me} will ask or acknowledge {link.other}"
    for stream in peer.producer.streams.values():
        if stream.consumer not in absent and stream.acknowledged < stream.number:
            return f"{me} owes {stream.consumer} events from {stream.acknowledged + 1} on"
    for producer, view in peer.consumer.merger.views.items():
        if producer in absent:
            continue
        if not view.asked or not view.is_told:
            return f"{me} has not told {producer} its view"
        if peer.iil.stability.waits_for(producer):
            return f"{me} has subscriptions that are not stable at {producer}"
    for (producer, _), inbound in peer.consumer.streams.items():
        if inbound.early and producer not in absent:
            return f"{me} holds back early entries"
    for parcel in peer.edl.forwarder.custody.parcels.values():
        if parcel.entry.receiver not in absent:
            return f"{me} has events in custody for {parcel.entry.receiver}"
    return None
