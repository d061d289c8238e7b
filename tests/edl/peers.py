"""Small worlds of whole peers, and words put into a peer's ear by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Envelope, Notification, Reply, Request
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.gateway import Gateway
from qns.iil.requests import Deliveries, InstallDocument, Publish, Read, Subscribe
from qns.inputs import Effects, Received
from qns.peer import Peer
from qns.recovery import Settings
from qns.simulation.world import TUNING, World
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore

OWNER = "user"


def federation(*names: str, capability: int = 4) -> Federation:
    hosts = dict.fromkeys(names, ("Report", "Report/Wind"))
    return Federation.of("weather", WEATHER, hosts, capability)


def world_of(*names: str, capability: int = 4, **tuning: Any) -> World:
    """A world in which everybody is up and has said hello."""
    world = World(1, federation(*names, capability=capability), replace(TUNING, **tuning))
    world.start()
    world.run_for(1.0)
    return world


def peer_of(world: World, name: str) -> Peer:
    gateway = world.nodes[name].gateway
    assert gateway is not None
    return gateway.peer


def subscribe(world: World, name: str, id: str = "s", text: str = "Report") -> None:
    world.do(name, Subscribe(OWNER, text, id=id))


def publish(world: World, name: str, *ids: str, available: object = 0) -> None:
    reader = EventReader(WEATHER)
    for id in ids:
        fields = {"id": id, "class": "Report", "source": name, "available": available}
        world.do(name, Publish(reader.from_fields(fields)))


def delivered(world: World, name: str, id: str = "s") -> list[str]:
    """The events in the subscription's queue, oldest first."""
    answer = world.do(name, Read(OWNER, id, limit=1_000_000))
    assert isinstance(answer, Deliveries)
    return [each.event for each in answer.deliveries]


def install(world: World, document: Federation, *names: str) -> None:
    """The document comes into force: told to these, who tell the others."""
    before, world.federation = world.federation, document
    for name in before.organisations.keys() - document.organisations.keys():
        world.note(name, "leave", joined=before[name].joined)
    for name, each in document.organisations.items():
        if name not in before or before[name].joined != each.joined:
            world.note(name, "join", joined=each.joined)
    for name in names:
        world.do(name, InstallDocument(write_federation(document)))


def cut(world: World, one: str, other: str) -> None:
    world.network.cut(one, other)
    world.network.cut(other, one)


def tell(peer: Peer, sender: str, body: Request | Reply, now: float, **head: Any) -> Effects:
    """The peer receives a request, as if from the sender; what its turn brings about."""
    head = {"document": peer.federation.version, "reachability": (), **head}
    envelope = Envelope(sender, head["document"], head["reachability"], body)
    _, effects = peer.turn([Received(envelope)], now)
    return effects


def say(world: World, sender: str, to: str, body: Request | Reply, **head: Any) -> None:
    """A request that wandered through the network, or that the sender made up."""
    document = head.get("document", world.federation.version)
    envelope = Envelope(sender, document, head.get("reachability", ()), body)
    world._arrive(world.nodes[to], Received(envelope), None)


def notification(
    source: str, id: str, entry: Entry, *, path: tuple[str, ...] = (), joined: int = 1
) -> Notification:
    """What the source would have sent, had it published a report with this id."""
    fields = {"id": id, "class": "Report", "source": source}
    xml = write_event(EventReader(WEATHER).from_fields(fields), WEATHER)
    return Notification(source, joined, 1, 1, id, xml, 0.0, entry, path or (source,))


def lone_gateway(document: Federation, name: str = "P") -> Gateway:
    return Gateway.open(
        Settings(name, TUNING, DictionaryIndex),
        MemoryStore(),
        MemoryLineage(),
        document=write_federation(document),
        nonce="1",
        now=0.0,
    )
