"""The client side of the port Local: writes users' requests and reads the peer's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qns.d2q.schema import Schema
from qns.errors import DocumentError, QnsError, ValueRefused
from qns.iil.cursor import CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    ListSubscriptions,
    Pause,
    Publish,
    PullDeliveries,
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
from qns.soap.operations import ERRORS, FAULTS, OPERATION_CODECS, FaultDetail, OperationCodec
from qns.soap.shapes import CONTRACT
from qns.soap.shapes_local import LocalCall
from qns.soap.typed_event import TypedPublish, from_event
from qns.soap.validation import validate

_OPERATIONS: Final[dict[type, OperationCodec]] = {
    Subscribe: OPERATION_CODECS["subscribe"],
    Unsubscribe: OPERATION_CODECS["unsubscribe"],
    Renew: OPERATION_CODECS["renew"],
    Pause: OPERATION_CODECS["pause"],
    Resume: OPERATION_CODECS["resume"],
    ListSubscriptions: OPERATION_CODECS["listSubscriptions"],
    Publish: OPERATION_CODECS["publish"],
    TypedPublish: OPERATION_CODECS["publish"],
    PullDeliveries: OPERATION_CODECS["pull"],
    AcknowledgeDeliveries: OPERATION_CODECS["acknowledge"],
}


def write_local(
    request: Request | TypedPublish,
    *,
    wait_s: float = 0.0,
    token: str = "",
    schema: Schema | None = None,
    contract: int = CONTRACT,
) -> tuple[bytes, str]:
    """Returns the body of the HTTP request and its SOAPAction. Only `Publish` needs the schema."""
    codec = _codec_of(request)
    if isinstance(request, Publish):
        if schema is None:
            raise ValueRefused("the schema of an event is missing", remedy="pass `schema`")
        request = TypedPublish(request.event.source, from_event(request.event, schema))
    content = codec.request.write(LocalCall(token, request, wait_s, contract), contract)
    return write_envelope(content), f'"{codec.name}"'


def read_local(request: Request | TypedPublish, status: int, body: bytes) -> Answer:
    """Returns the answer; raises the peer's error, or DocumentError if the body is no answer."""
    reply = _codec_of(request).reply
    try:
        content = open_envelope(parse_hostile(body, OWN)).content
        if content.tag == FAULT:
            error = _read_fault(content, request)
        elif content.tag == reply.tag and status == 200:
            validate(content)
            answer: Answer = reply.read(content)
            return (
                replace(answer, id=request.id)
                if isinstance(answer, Unsubscribed) and isinstance(request, Unsubscribe)
                else answer
            )
        else:
            raise DocumentError("the answer is that of another operation")
    except QnsError as problem:
        raise DocumentError(
            f"the peer's answer (HTTP status {status}) cannot be read: {problem}",
            remedy="is there a peer at this address?",
        ) from None
    raise error


def _codec_of(request: Request | TypedPublish) -> OperationCodec:
    codec = _OPERATIONS.get(type(request))
    if codec is None:
        raise ValueRefused(
            f"{type(request).__name__} is no request of the port Local",
            remedy="only the operator of a peer can make it, in its process",
        )
    return codec


def _read_fault(element: Element, request: Request | TypedPublish) -> QnsError:
    typed = read_fault(element)
    fault = None if typed is None else FAULTS.get(typed.tag)
    if typed is None or fault is None:
        text = element.findtext("faultstring") or "no reason given"
        return DocumentError(f"the peer answered with a fault: {text[:400]}")
    validate(typed)
    detail: FaultDetail = fault.read(typed)
    if detail.dropped and isinstance(request, PullDeliveries):
        return DeliveriesDropped.of(request.id, detail.dropped, detail.series)
    if detail.delivered is not None:
        if isinstance(request, PullDeliveries):
            return CursorAhead.of(request.id, request.after, detail.delivered)
        if isinstance(request, AcknowledgeDeliveries):
            return CursorAhead.of(request.id, request.upto, detail.delivered)
    return ERRORS[fault](detail.problem, place=detail.place, remedy=detail.remedy)
