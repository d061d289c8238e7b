"""Small simulated worlds of whole peers, and messages that a test makes by hand."""

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
from qns.iil.requests import Deliveries, InstallDocument, Publish, PullDeliveries, Subscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Effects, Received
from qns.peer.peer import Peer
from qns.peer.recovery import Settings
from qns.simulation.stub_seals import with_stub_seals
from qns.simulation.world import TUNING, World
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore

OWNER = "user"


def federation(*names: str, capability: int = 4) -> Federation:
    hosts = dict.fromkeys(names, ("Report", "Report/Wind"))
    return Federation.of("weather", WEATHER, hosts, capability)


def world_of(*names: str, capability: int = 4, sealed: bool = False, **tuning: Any) -> World:
    """Returns a world in which every peer has started and exchanged hellos."""
    document = federation(*names, capability=capability)
    document = with_stub_seals(document) if sealed else document
    world = World(1, document, replace(TUNING, **tuning))
    world.start()
    world.run_for(1.0)
    return world


def peer_of(world: World, name: str) -> Peer:
    gateway = world.nodes[name].gateway
    assert gateway is not None
    return gateway.peer


def subscribe(world: World, name: str, id: str = "s", text: str = "Report") -> None:
    world.do(name, Subscribe(OWNER, text, id=id))


def publish(
    world: World, name: str, *ids: str, available: object = 0, data_class: str = "Report"
) -> None:
    reader = EventReader(WEATHER)
    for id in ids:
        fields = {"id": id, "class": data_class, "source": name, "available": available}
        world.do(name, Publish(reader.from_fields(fields)))


def delivered(world: World, name: str, id: str = "s") -> list[str]:
    """Returns the ids of the events in the queue of a subscription, oldest first."""
    answer = world.do(name, PullDeliveries(OWNER, id, limit=1_000_000))
    assert isinstance(answer, Deliveries)
    return [each.event for each in answer.deliveries]


def install(world: World, document: Federation, *names: str) -> None:
    """Installs a new federation document at these peers; the others fetch it from them."""
    before, world.federation = world.federation, document
    for name in before.organisations.keys() - document.organisations.keys():
        world.note(name, "leave", joined=before[name].incarnation)
    for name, each in document.organisations.items():
        if name not in before or before[name].incarnation != each.incarnation:
            world.note(name, "join", joined=each.incarnation)
    for name in names:
        world.do(name, InstallDocument(write_federation(document)))


def cut(world: World, one: str, other: str) -> None:
    """Cuts the network between two peers in both directions."""
    world.network.cut(one, other)
    world.network.cut(other, one)


def deliver_request(
    peer: Peer, sender: str, body: Request | Reply, now: float, **head: Any
) -> Effects:
    """Runs one turn of a peer with a request of the sender; returns its effects."""
    head = {"document": peer.federation.version, "reachability": (), **head}
    envelope = Envelope(sender, head["document"], head["reachability"], body)
    _, effects = peer.turn([Received(envelope)], now)
    return effects


def send(world: World, sender: str, to: str, body: Request | Reply, **head: Any) -> None:
    """Puts a delayed or forged request into the inbox of a peer."""
    document = head.get("document", world.federation.version)
    envelope = Envelope(sender, document, head.get("reachability", ()), body)
    world.arrive(world.nodes[to], Received(envelope), None)


def notification(
    source: str, id: str, entry: Entry, *, path: tuple[str, ...] = (), incarnation: int = 1
) -> Notification:
    """Returns the notification of a report with this id, as its source would send it."""
    fields = {"id": id, "class": "Report", "source": source}
    xml = write_event(EventReader(WEATHER).from_fields(fields), WEATHER)
    return Notification(source, incarnation, 1, 1, id, xml, 0.0, entry, path or (source,))


def lone_gateway(document: Federation, name: str = "P") -> Gateway:
    """Returns a gateway outside any simulated world, so that a test makes all its inputs."""
    return Gateway.open(
        Settings(name, TUNING, DictionaryIndex),
        MemoryStore(),
        MemoryLineage(),
        document=write_federation(document),
        nonce="1",
        now=0.0,
    )


def world_with_custody() -> World:
    """Returns a world in which the forwarder F has custody of an event for Z, which is down."""
    world = world_of("P", "F", "Z", capability=1)
    for name in ("F", "Z"):
        subscribe(world, name)
    world.run_for(2.0)
    world.kill("Z")
    publish(world, "P", "e1")
    world.run_for(0.5)
    return world
