"""Reconfiguration: puts a newer federation document in force while the peer runs.

Organisations join, leave, and start or stop hosting a class. Merge views are re-routed, and nothing
that is owed is lost (docs/decisions.md, Delivery).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qns.edl.owed_events import is_drained
from qns.errors import Busy
from qns.federation.acceptance import OPERATOR, may_accept
from qns.federation.document_xml import read_federation
from qns.peer.outcomes import DocumentChange
from qns.peer.tables import DOCUMENT, DocumentRow
from qns.peer.turn import Turn

if TYPE_CHECKING:
    from qns.peer.peer import Peer


def install_document(peer: Peer, turn: Turn, xml: bytes, sender: str = OPERATOR) -> None:
    """Puts a newer document in force; an older one, or the same, changes nothing."""
    if xml == peer.edl.dialogue.document_xml:
        return
    new, old = read_federation(xml), peer.federation
    if new.version < old.version or new == old:
        return
    may_accept(new, old, sender, now=turn.now, anchor=peer.anchor)
    me = peer.me
    incarnation = new[me].incarnation if me in new else peer.identity.incarnation
    returns = incarnation != peer.identity.incarnation
    if returns and not is_drained(peer.edl.producer.streams, new):
        peer.edl.dialogue.postponed_document = new.version
        raise Busy(
            f"{me} still owes events of its former membership",
            remedy="if a member never takes them, the others remove it from the document",
        )
    if returns or me not in new:
        peer.iil.end_all(turn, "left", interest=peer.edl)
    peer.edl.dialogue.document_xml = xml
    turn.delete(DOCUMENT, old.version)
    turn.put(DOCUMENT, DocumentRow(new.version, xml))
    if me in new and me in old and new[me].hosts != old[me].hosts:
        peer.log.expire(turn, me, old[me].hosts - new[me].hosts)
        turn.record("host", classes=sorted(new[me].hosts))
    if returns:
        peer.identity.begin_incarnation(turn, incarnation)
        peer.edl.begin_incarnation(turn, incarnation)
        peer.log.expire(turn, me, new.schema.classes)
    elif me not in new:
        peer.edl.consumer.leave(turn)
    peer.apply_document(turn, old, new)
    change = DocumentChange(old.version, new.version, tuple(sorted(new.organisations)))
    turn.outcomes.documents.append(change)
