"""What users' programs send to their peer, and what they make of the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qns.d2q.schema import Schema
from qns.errors import DocumentError, QnsError, ValueRefused
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    ListSubscriptions,
    Pause,
    Publish,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
    Unsubscribed,
)
from qns.soap.codec import Element
from qns.soap.envelope import FAULT, open_envelope, read_fault, write_envelope
from qns.soap.hardening import OWN, parse_hostile
from qns.soap.operations import ERRORS, EXCHANGES, FAULTS, Exchange, FaultDetail
from qns.soap.shapes_local import LocalCall
from qns.soap.typed_event import TypedPublish, from_event
from qns.soap.validation import validate

_OPERATIONS: Final[dict[type, Exchange]] = {
    Subscribe: EXCHANGES["subscribe"],
    Unsubscribe: EXCHANGES["unsubscribe"],
    Renew: EXCHANGES["renew"],
    Pause: EXCHANGES["pause"],
    Resume: EXCHANGES["resume"],
    ListSubscriptions: EXCHANGES["listSubscriptions"],
    Publish: EXCHANGES["publish"],
    TypedPublish: EXCHANGES["publish"],
    Read: EXCHANGES["pull"],
    AcknowledgeDeliveries: EXCHANGES["acknowledge"],
}


def write_local(
    request: Request | TypedPublish,
    *,
    wait_s: float = 0.0,
    token: str = "",
    schema: Schema | None = None,
) -> tuple[bytes, str]:
    """The body of the HTTP request, and its SOAPAction. Only `Publish` needs the schema."""
    exchange = _exchange(request)
    if isinstance(request, Publish):
        if schema is None:
            raise ValueRefused("an event is published without its schema", remedy="give `schema`")
        request = TypedPublish(request.event.source, from_event(request.event, schema))
    content = exchange.request.write(LocalCall(token, request, wait_s))
    return write_envelope(content), f'"{exchange.name}"'


def read_local(request: Request | TypedPublish, status: int, body: bytes) -> Answer:
    """The answer; raises the error that the peer tells, or DocumentError if it is no answer."""
    reply = _exchange(request).reply
    try:
        content = open_envelope(parse_hostile(body, OWN)).content
        if content.tag == FAULT:
            told = _read_fault(content)
        elif content.tag == reply.tag and status == 200:
            validate(content)
            answer: Answer = reply.read(content)
            return (
                replace(answer, id=request.id)
                if isinstance(answer, Unsubscribed) and isinstance(request, Unsubscribe)
                else answer
            )
        else:
            raise DocumentError("another answer than the one that was asked for")
    except QnsError as problem:
        raise DocumentError(
            f"the peer's answer (HTTP status {status}) cannot be read: {problem}",
            remedy="is there a peer at this address?",
        ) from None
    raise told


def _exchange(request: Request | TypedPublish) -> Exchange:
    exchange = _OPERATIONS.get(type(request))
    if exchange is None:
        raise ValueRefused(
            f"{type(request).__name__} is no request of the port Local",
            remedy="it is for the operator of the peer",
        )
    return exchange


def _read_fault(element: Element) -> QnsError:
    typed = read_fault(element)
    fault = None if typed is None else FAULTS.get(typed.tag)
    if typed is None or fault is None:
        text = element.findtext("faultstring") or "no reason"
        return DocumentError(f"the peer answered with a fault: {text[:400]}")
    validate(typed)
    detail: FaultDetail = fault.read(typed)
    return ERRORS[fault](detail.problem, place=detail.place, remedy=detail.remedy)
