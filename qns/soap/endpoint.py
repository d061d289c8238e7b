"""Endpoint: HTTP bodies to inputs of a peer, and outputs of a peer to HTTP bodies. No sockets.

What is written as we write it is read as plain text, other ordinary envelopes by the codec; spyne
reads what is out of the ordinary. The latter two ask the same schema first; all give the same
objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lxml import etree

from qns.d2q.schema import Schema
from qns.edl.messages import Envelope, Fault
from qns.errors import DocumentError, NotAllowed, QnsError, StoreFailed, StoreFull, shorten
from qns.iil.requests import Answer, Publish, Request
from qns.inputs import Received
from qns.soap.codec import Element
from qns.soap.contract import read_unusual, wsdl
from qns.soap.envelope import (
    NotUnderstood,
    WrongVersion,
    message_id_of,
    open_envelope,
    write_envelope,
    write_fault,
)
from qns.soap.hardening import LOCAL, PEER, parse_hostile
from qns.soap.operations import BUSY, BY_TAG, EXCHANGES, REFUSED, Exchange, FaultDetail, fault_of
from qns.soap.plain import read_plain
from qns.soap.shapes import Port
from qns.soap.shapes_local import LocalCall
from qns.soap.shapes_peer import Origin
from qns.soap.typed_event import TypedPublish, to_event
from qns.soap.validation import validate

_REQUESTS: Final = {exchange.name: exchange.request for exchange in EXCHANGES.values()}
_HAS_ATTRIBUTES: Final = etree.XPath("boolean(descendant-or-self::*/@*)")
_CODES: Final[dict[type[QnsError], str]] = {
    NotUnderstood: "MustUnderstand",
    WrongVersion: "VersionMismatch",
}
_UNEXPECTED: Final = FaultDetail(
    "the peer could not serve this request", remedy="try again later, or ask its operator"
)


class HttpReply(NamedTuple):
    status: int
    body: bytes
    content_type: str = "text/xml; charset=utf-8"


class SoapRefusal(Exception):
    """A request that never reaches the peer, with the answer to give."""

    def __init__(self, reply: HttpReply, problem: str) -> None:
        super().__init__(problem)
        self.reply = reply
        self.problem = problem


class Call(NamedTuple):
    port: Port
    operation: str
    input: Received | Request
    """What goes into the peer."""
    message_id: str = ""
    wait_s: float = 0.0
    """Of the operation pull: how long to wait for a first delivery."""


class Endpoint:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def decode(self, port: Port, headers: Mapping[str, str], body: bytes) -> Call:
        """What a POST asks for; SoapRefusal with the fault if it cannot be told."""
        message_id = ""
        try:
            action = _check_headers(headers)
            bounds = PEER if port is Port.PEER else LOCAL
            plain = read_plain(body, bounds, _REQUESTS)
            if plain is not None:
                message_id = plain.message_id
                exchange = _exchange(plain.message.tag, port, action)
                return self._call(exchange, plain.value, message_id)
            root = parse_hostile(body, bounds)
            message_id = message_id_of(root)
            opened = open_envelope(root)
            exchange = _exchange(opened.content.tag, port, action)
            if opened.is_ordinary and not _HAS_ATTRIBUTES(opened.content):
                message = read_ordinary(opened.content, exchange)
            else:
                message = read_unusual(root, opened.content, exchange)
            return self._call(exchange, message, message_id)
        except QnsError as problem:
            code = _CODES.get(type(problem), "")
            raise SoapRefusal(_refusal(problem, message_id, code), str(problem)) from None

    def reply(self, call: Call, output: Answer | Envelope | QnsError) -> HttpReply:
        if isinstance(output, QnsError):
            return _refusal(output, call.message_id)
        if isinstance(output, Envelope) and isinstance(output.body, Fault):
            return _peer_fault(output, output.body, call.message_id)
        try:
            content = EXCHANGES[call.operation].reply.write(output)
        except QnsError as problem:  # a text that no XML can carry
            return _refusal(problem, call.message_id)
        return HttpReply(200, write_envelope(content, relates_to=call.message_id))

    def failure(self, call: Call | None) -> HttpReply:
        """For an unexpected exception: what happened is for the log, not for the caller."""
        relates_to = call.message_id if call else ""
        return HttpReply(500, write_fault(BUSY, _UNEXPECTED, relates_to=relates_to))

    def wsdl(self, base_url: str) -> bytes:
        return wsdl(base_url)

    def _call(self, exchange: Exchange, message: Any, message_id: str) -> Call:
        if isinstance(message, Envelope):
            return Call(exchange.port, exchange.name, Received(message), message_id)
        assert isinstance(message, LocalCall)
        request = message.request
        if isinstance(request, TypedPublish):
            request = Publish(to_event(request.event, self.schema))
        return Call(exchange.port, exchange.name, request, message_id, message.wait_s)


def read_ordinary(content: Element, exchange: Exchange) -> Any:
    """The request in the element of an operation, quickly; DocumentError unless it is valid."""
    validate(content)
    return exchange.request.read(content)


def _check_headers(headers: Mapping[str, str]) -> str:
    """The SOAPAction; DocumentError for what is not SOAP 1.1 in plain UTF-8."""
    told = {name.lower(): value for name, value in headers.items()}
    _check_form(told.get("content-type", ""), told.get("content-encoding", "identity"))
    return told.get("soapaction", "").strip().strip('"')


@lru_cache(maxsize=64)  # most senders say the same
def _check_form(content_type: str, encoding: str) -> None:
    kind, *parameters = (part.strip() for part in content_type.split(";"))
    if kind.lower() != "text/xml":
        raise DocumentError(
            f"the content type {shorten(kind)}", remedy="SOAP 1.1 is sent as text/xml"
        )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'").lower() not in _CHARSETS:
            raise DocumentError(f"the charset {shorten(value)}", remedy="send UTF-8")
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity"):
        raise DocumentError(f"the content encoding {shorten(encoding)}", remedy="send it plain")


_CHARSETS: Final = frozenset(("utf-8", "utf8", "us-ascii", "ascii"))


def _exchange(tag: str, port: Port, action: str) -> Exchange:
    """The operation that the element names."""
    exchange = BY_TAG.get(tag)
    if exchange is None:
        known = [each.name for each in EXCHANGES.values() if each.port is port]
        raise DocumentError(f"{shorten(tag)} is no operation", remedy=f"known: {', '.join(known)}")
    if exchange.port is not port:
        raise NotAllowed(
            f"{exchange.name} is no operation of the port {port.value}",
            remedy=f"send it to /{exchange.port.value.lower()}",
        )
    if action not in ("", exchange.name):
        raise DocumentError(
            f"the SOAPAction is {shorten(action)}, but the Body holds {exchange.name}",
            remedy=f'send SOAPAction: "{exchange.name}", or leave it empty',
        )
    return exchange


def _refusal(problem: QnsError, message_id: str, code: str = "") -> HttpReply:
    place = "" if isinstance(problem, StoreFailed | StoreFull) else problem.place  # a file of ours
    detail = FaultDetail(problem.problem, place, problem.remedy)
    body = write_fault(fault_of(problem), detail, relates_to=message_id, code=code)
    return HttpReply(500, body)


def _peer_fault(envelope: Envelope, fault: Fault, message_id: str) -> HttpReply:
    origin = Origin(envelope.sender, envelope.document, envelope.reachability)
    kind = REFUSED if fault.permanent else BUSY
    detail = FaultDetail(fault.reason, origin=origin)
    return HttpReply(500, write_fault(kind, detail, relates_to=message_id))
