"""What a peer sends to another peer, and what it makes of the answer."""

from __future__ import annotations

from typing import Final

from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Envelope,
    Fault,
    FetchDocument,
    Gossip,
    Hello,
    Item,
    Notification,
    Notified,
    Notify,
    Pull,
)
from qns.errors import QnsError
from qns.soap.codec import Element
from qns.soap.envelope import FAULT, open_envelope, read_fault, write_envelope
from qns.soap.hardening import PEER, parse_hostile
from qns.soap.operations import BUSY, EXCHANGES, FAULTS, Exchange, FaultDetail, Message
from qns.soap.parts import PartedChange, ViewPart
from qns.soap.plain import read_plain
from qns.soap.validation import validate

_OPERATIONS: Final[dict[type, Exchange]] = {
    Notify: EXCHANGES["notify"],
    ChangeSub: EXCHANGES["changeSub"],
    PartedChange: EXCHANGES["changeSub"],
    ViewPart: EXCHANGES["viewPart"],
    Hello: EXCHANGES["hello"],
    Pull: EXCHANGES["pullGap"],
    Acknowledge: EXCHANGES["acknowledgeStream"],
    Gossip: EXCHANGES["gossip"],
    FetchDocument: EXCHANGES["fetchDocument"],
}


def write_call(envelope: Envelope, message_id: str = "") -> tuple[bytes, str]:
    """The body of the HTTP request, and its SOAPAction."""
    exchange = _OPERATIONS[type(envelope.body)]
    content = exchange.request.write(envelope)
    return write_envelope(content, message_id=message_id), f'"{exchange.name}"'


def read_reply(sent: Envelope, status: int, body: bytes) -> Envelope | None:
    """The answer to what was sent; None if it is none that can be used."""
    reply = _OPERATIONS[type(sent.body)].reply
    plain = read_plain(body, PEER, {reply.name: reply}) if status == 200 else None
    try:
        envelope = _read(reply, status, body) if plain is None else plain.value
    except QnsError:
        return None
    if isinstance(sent.body, Notify) and envelope and isinstance(envelope.body, Notified):
        return _in_order_sent(sent.body.items, envelope, envelope.body)
    return envelope


def _read(reply: Message, status: int, body: bytes) -> Envelope | None:
    content = open_envelope(parse_hostile(body, PEER)).content
    if content.tag == FAULT:
        return _read_fault(content)
    if status != 200 or content.tag != reply.tag:
        return None
    validate(content)
    envelope: Envelope = reply.read(content)
    return envelope


def _read_fault(element: Element) -> Envelope | None:
    typed = read_fault(element)
    fault = None if typed is None else FAULTS.get(typed.tag)
    if typed is None or fault is None:
        return None
    validate(typed)
    detail: FaultDetail = fault.read(typed)
    if detail.origin is None:  # not the word of a peer: of its process, or of something between
        return None
    return Envelope(*detail.origin, Fault(detail.problem, permanent=fault is not BUSY))


def _in_order_sent(items: tuple[Item, ...], envelope: Envelope, body: Notified) -> Envelope | None:
    """The outcomes came for all notifications first, then for the skips."""
    if len(items) != len(body.outcomes):
        return None
    places = sorted(range(len(items)), key=lambda at: not isinstance(items[at], Notification))
    outcomes = dict(zip(places, body.outcomes, strict=True))
    in_order = tuple(outcomes[at] for at in range(len(items)))
    return Envelope(
        envelope.sender,
        envelope.document,
        envelope.reachability,
        Notified(in_order, body.standing),
    )
