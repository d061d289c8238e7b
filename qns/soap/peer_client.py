"""The client side of the port Peer: writes requests to other peers and reads their replies."""

from __future__ import annotations

from collections.abc import Callable
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
    OfferDocument,
    PullGap,
    RelayAcknowledgement,
)
from qns.errors import QnsError, shorten
from qns.soap.codec import Element
from qns.soap.envelope import FAULT, open_envelope, read_fault, write_envelope
from qns.soap.hardening import PEER, parse_hostile
from qns.soap.operations import (
    BUSY,
    FAULTS,
    INVALID,
    OPERATION_CODECS,
    FaultDetail,
    Message,
    OperationCodec,
)
from qns.soap.parts import PartedChange, ViewPart
from qns.soap.plain import read_plain
from qns.soap.validation import validate

_OPERATIONS: Final[dict[type, OperationCodec]] = {
    Notify: OPERATION_CODECS["notify"],
    ChangeSub: OPERATION_CODECS["changeSub"],
    PartedChange: OPERATION_CODECS["changeSub"],
    ViewPart: OPERATION_CODECS["viewPart"],
    Hello: OPERATION_CODECS["hello"],
    PullGap: OPERATION_CODECS["pullGap"],
    Acknowledge: OPERATION_CODECS["acknowledgeStream"],
    RelayAcknowledgement: OPERATION_CODECS["relayAcknowledgement"],
    Gossip: OPERATION_CODECS["gossip"],
    FetchDocument: OPERATION_CODECS["fetchDocument"],
    OfferDocument: OPERATION_CODECS["offerDocument"],
}
UNUSABLE: Final = "the answer is not that of a peer of QNS"
_NOT_KNOWN: Final = Fault("this version does not relay acknowledgements", permanent=True)
"""The answer of version 0.2.0 to `relayAcknowledgement`."""


def write_call(
    envelope: Envelope, message_id: str = "", signed: Callable[[str, str], bytes] | None = None
) -> tuple[bytes, str]:
    """Returns the body of the HTTP request and its SOAPAction.

    `signed` makes a signed envelope of the content and the message id.
    """
    codec = _OPERATIONS[type(envelope.body)]
    content = codec.request.write(envelope)
    if signed is not None:
        return signed(content, message_id), f'"{codec.name}"'
    return write_envelope(content, message_id=message_id), f'"{codec.name}"'


def read_reply(sent: Envelope, status: int, body: bytes, to: str = "") -> Envelope | str:
    """Returns the reply of the peer `to` to a request, or in words why there is none."""
    reply = _OPERATIONS[type(sent.body)].reply
    plain = read_plain(body, PEER, {reply.name: reply}) if status == 200 else None
    try:
        envelope = _read(reply, status, body) if plain is None else plain.value
        if isinstance(envelope, str) and isinstance(sent.body, RelayAcknowledgement):
            return Envelope(to, 0, (), _NOT_KNOWN) if _is_invalid(body) else envelope
    except QnsError:
        return UNUSABLE
    if isinstance(envelope, str) or not isinstance(sent.body, Notify):
        return envelope
    if isinstance(envelope.body, Notified):
        return _in_order_sent(sent.body.items, envelope, envelope.body) or UNUSABLE
    return envelope


def _read(reply: Message, status: int, body: bytes) -> Envelope | str:
    content = open_envelope(parse_hostile(body, PEER)).content
    if content.tag == FAULT:
        return _read_fault(content)
    if status != 200 or content.tag != reply.tag:
        return UNUSABLE
    validate(content)
    envelope: Envelope = reply.read(content)
    return envelope


def _read_fault(element: Element) -> Envelope | str:
    typed = read_fault(element)
    fault = None if typed is None else FAULTS.get(typed.tag)
    if typed is None or fault is None:
        return UNUSABLE
    validate(typed)
    detail: FaultDetail = fault.read(typed)
    if detail.origin is None:  # the process reports it, as while it opens its store again
        return f"its process cannot serve it: {shorten(detail.problem, 200)}"
    return Envelope(*detail.origin, Fault(detail.problem, permanent=fault is not BUSY))


def _is_invalid(body: bytes) -> bool:
    """True if the reply is an InvalidFault, as peers of 0.2.0 answer unknown operations."""
    typed = read_fault(open_envelope(parse_hostile(body, PEER)).content)
    return typed is not None and typed.tag == INVALID.tag


def _in_order_sent(items: tuple[Item, ...], envelope: Envelope, body: Notified) -> Envelope | None:
    """Sorts the outcomes in the order of the items.

    On the wire, the outcomes of all notifications precede those of the skips.
    """
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
