"""Item checks: whether a notification or a skip may be accepted at all, before it is parsed.

A member can only bring what its producer has sealed, on the way that the producer has chosen, and
only for incarnations that the document has or had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qns.edl.inbound_stream import Place
from qns.edl.messages import Entry, Item, Outcome, Skip, entry_of
from qns.peer.turn import Turn

if TYPE_CHECKING:
    from qns.edl.consumer import Consumer

TAKEN: Final = Outcome(True)


def check_item(turn: Turn, consumer: Consumer, sender: str, item: Item) -> Outcome | None:
    """Returns the outcome of an item that cannot be accepted; None if it can."""
    entry = entry_of(item)
    rejection = _rejection(consumer, sender, item, entry)
    if rejection is not None:
        return rejection
    flaw = consumer.seals.flaw(turn.now, sender, item)
    return None if flaw is None else _unsealed(turn, consumer, sender, item, flaw)


def _rejection(consumer: Consumer, sender: str, item: Item, entry: Entry) -> Outcome | None:
    me, source = consumer.me, item.source
    if source not in consumer.federation and (
        (source, item.producer_incarnation) not in consumer.streams
    ):
        return Outcome(False, f"{me} does not know {source}", True)
    if consumer.is_to_come(source, item.producer_incarnation):
        return Outcome(False, f"{me} does not know this membership of {source}")
    if entry.receiver == me and entry.incarnation > consumer.incarnation:
        return Outcome(False, f"{me} has not joined again yet")
    if isinstance(item, Skip):
        # A skip comes through another peer only if the producer cannot bring it itself.
        is_relayed = entry.receiver != me or not consumer.forwarder.reachability.is_connected(
            source
        )
        if entry.receiver == source or (sender != source and not is_relayed):
            return Outcome(False, f"{sender} cannot skip events of {source}", True)
        return None
    if not item.path or (item.path[0], item.path[-1]) != (source, sender):
        return Outcome(False, f"{item.event} of {source} has not come this way", True)
    below = [name for child in entry.children for name in child.receivers()]
    if entry.receiver != me:
        below.append(entry.receiver)
    carried = {*item.path, me}
    if me in item.path or carried & set(below) or len(set(below)) < len(below):
        return Outcome(False, f"{item.event} of {source} goes in a circle", True)
    return None


def _unsealed(turn: Turn, consumer: Consumer, sender: str, item: Item, flaw: str) -> Outcome:
    """Refuses an item with a wrong seal, unless it is a duplicate, which changes nothing.

    The refusal is not final: the producer sends the event again under a new seal.
    """
    entry = entry_of(item)
    stream = consumer.streams.get((item.source, item.producer_incarnation))
    is_own = entry.receiver == consumer.me and not entry.children
    if stream and is_own and stream.place(entry.epoch, entry.number) is Place.DUPLICATE:
        return TAKEN
    consumer.seals.refuse(turn, sender, item.source, flaw)
    return Outcome(False, flaw)
