"""Reconfiguration: a peer follows a newer federation document while it runs.

Organisations join, leave, start or stop hosting a class; merge views are re-routed and nothing that
is owed is lost (docs/decisions.md, Delivery).
"""

from __future__ import annotations

from typing import Protocol

from qns.edl.consumer import Consumer
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.producer import Producer
from qns.errors import Busy, FederationError
from qns.event_log import EventLog
from qns.federation.changes import check_follows
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.subscriptions import LocalSubscription
from qns.tables import DOCUMENT, DocumentRow, IdentityRow
from qns.turn import Turn


class Peer(Protocol):
    """What is reconfigured: `qns.peer.Peer`."""

    federation: Federation

    @property
    def me(self) -> str: ...
    @property
    def is_member(self) -> bool: ...
    @property
    def identity(self) -> IdentityRow: ...
    @property
    def log(self) -> EventLog: ...
    @property
    def iil(self) -> InternalInterfaceLayer: ...
    @property
    def edl(self) -> ExternalDiffusionLayer: ...
    @property
    def consumer(self) -> Consumer: ...
    @property
    def producer(self) -> Producer: ...
    def become(self, turn: Turn, identity: IdentityRow) -> None: ...
    def end(self, turn: Turn, subscription: LocalSubscription, why: str) -> int: ...
    def wait_for(
        self, turn: Turn, subscription: LocalSubscription, producer: str, *, late: bool
    ) -> None: ...


def install(peer: Peer, turn: Turn, xml: bytes) -> None:
    """Puts a newer document in force; an older one, or the same, changes nothing."""
    if xml == peer.edl.document_xml:
        return
    new, old = read_federation(xml), peer.federation
    if new.version < old.version:
        return
    if new.version == old.version:
        raise FederationError(
            f"another document of version {new.version} is in force",
            remedy="give the change the next version",
        )
    if (new.name, new.schema) != (old.name, old.schema):
        raise FederationError(
            f"version {new.version} is of another federation or schema",
            remedy="change organisations and hosting only; a new schema is a new federation",
        )
    check_follows(old, new)
    joined = new[peer.me].joined if peer.me in new else peer.identity.joined
    returns = joined != peer.identity.joined
    if returns and not peer.producer.is_drained(new):
        peer.edl.postponed = new.version
        raise Busy(f"{peer.me} still owes events of its former membership")
    if returns or peer.me not in new:
        for subscription in peer.iil.table:
            peer.end(turn, subscription, "left")
    peer.federation = peer.consumer.federation = new
    peer.edl.document_xml = xml
    turn.delete(DOCUMENT, old.version)
    turn.put(DOCUMENT, DocumentRow(new.version, xml))
    if peer.me in new and peer.me in old and new[peer.me].hosts != old[peer.me].hosts:
        peer.log.expire(turn, peer.me, old[peer.me].hosts - new[peer.me].hosts)
        turn.record("host", classes=sorted(new[peer.me].hosts))
    if returns:
        _return(peer, turn, joined)
    elif not peer.is_member:
        peer.consumer.leave(turn)
    follow(peer, turn, old)


def _return(peer: Peer, turn: Turn, joined: int) -> None:
    """This organisation comes back as a new incarnation: it starts afresh."""
    peer.become(turn, peer.identity._replace(joined=joined))
    peer.producer.start_afresh(turn, joined)
    peer.consumer.start_afresh(turn, joined)
    peer.log.expire(turn, peer.me, peer.federation.schema.classes)


def follow(peer: Peer, turn: Turn, old: Federation) -> None:
    """Re-routes the merge views to who hosts what from now on."""
    new, merger = peer.federation, peer.consumer.merger
    changed = [
        name
        for name, organisation in new.organisations.items()
        if organisation != old.organisations.get(name)
    ]
    for name in list(merger.views):
        if name not in new or new[name].joined != old[name].joined or not peer.is_member:
            merger.drop(turn, name)
            peer.consumer.confirmed.pop(name, None)
    merger.follow(turn, peer.me, new)
    peer.producer.follow(turn, new)
    peer.consumer.follow(turn, old)
    peer.edl.membership.forget(name for name in old.organisations if name not in new)
    for name in old.organisations:
        if name not in merger.views and name != peer.me:
            for row in peer.iil.stability.forget_producer(turn, name):
                held = peer.iil.table[row.subscription]
                peer.iil.catch_up(turn, held, name, late=bool(row.late))
        if name not in new:
            peer.edl.forwarder.drop_all(turn, name)
    for link in peer.edl.forwarder.links.values():
        link.wants_hello &= link.other in merger.views
    for name in merger.views:
        if not merger.views[name].asked:
            peer.consumer.ask(name)
        if name in changed:
            for subscription in peer.iil.table:
                peer.wait_for(turn, subscription, name, late=False)
