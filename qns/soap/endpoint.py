"""Endpoint: converts HTTP bodies to inputs of a peer, and outputs to HTTP bodies, without I/O.

There are three readers, from the fastest to the most general. `plain` reads envelopes in the exact
form that our writer produces. The codec reads other ordinary envelopes. spyne reads all others,
for example those with attributes. The last two validate with the same schema. All three give equal
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
from qns.iil.cursor import CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import Answer, Publish, Request
from qns.peer.inputs import Received
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
from qns.soap.operations import (
    BUSY,
    BY_TAG,
    OPERATION_CODECS,
    REFUSED,
    FaultDetail,
    OperationCodec,
    fault_of,
)
from qns.soap.plain import read_plain
from qns.soap.shapes import CONTRACT, Port
from qns.soap.shapes_local import LocalCall
from qns.soap.shapes_parts import Origin
from qns.soap.typed_event import TypedPublish, to_event
from qns.soap.validation import validate
from qns.soap.ws_security import SECURITY, MessageSecurity

_NO_HEADERS: Final[frozenset[str]] = frozenset()
_SECURITY_HEADER: Final = frozenset((SECURITY,))
_REQUESTS: Final = {codec.name: codec.request for codec in OPERATION_CODECS.values()}
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
    """Raised for a request that is rejected before it reaches the peer; carries the reply."""

    def __init__(self, reply: HttpReply, error: QnsError) -> None:
        super().__init__(str(error))
        self.reply = reply
        self.error = error


class Call(NamedTuple):
    port: Port
    operation: str
    input: Received | Request
    """The input for the peer."""
    message_id: str = ""
    wait_s: float = 0.0
    """How long the operation pull waits for a first delivery."""
    contract: int = CONTRACT
    """The version of the contract that the caller reads."""


class Endpoint:
    def __init__(self, schema: Schema, security: MessageSecurity | None = None) -> None:
        """With `security`, signed requests of other peers are understood, and may be required."""
        self.schema = schema
        self.security = security

    def decode(self, port: Port, headers: Mapping[str, str], body: bytes) -> Call:
        """Returns the call in a POST request; raises SoapRefusal, with a fault, for a bad one."""
        message_id = ""
        security = self.security if port is Port.PEER else None
        try:
            action = _check_headers(headers)
            bounds = PEER if port is Port.PEER else LOCAL
            plain = read_plain(body, bounds, _REQUESTS)
            if plain is not None:
                message_id = plain.message_id
                codec = _codec_of(plain.message.tag, port, action)
                return self._call(codec, plain.value, message_id, security)
            root = parse_hostile(body, bounds)
            message_id = message_id_of(root)
            opened = open_envelope(root, _NO_HEADERS if security is None else _SECURITY_HEADER)
            codec = _codec_of(opened.content.tag, port, action)
            signer = "" if security is None else security.signer_of(root)
            is_ordinary = opened.is_ordinary or bool(signer)  # the form of a signed one is checked
            if is_ordinary and not _HAS_ATTRIBUTES(opened.content):
                message = read_ordinary(opened.content, codec)
            else:
                message = read_unusual(root, opened.content, codec)
            return self._call(codec, message, message_id, security, signer)
        except QnsError as problem:
            code = _CODES.get(type(problem), "")
            raise SoapRefusal(_refusal(problem, message_id, code), problem) from None

    def reply(self, call: Call, output: Answer | Envelope | QnsError) -> HttpReply:
        if isinstance(output, QnsError):
            return _refusal(output, call.message_id, contract=call.contract)
        if isinstance(output, Envelope) and isinstance(output.body, Fault):
            return _peer_fault(output, output.body, call.message_id)
        try:
            content = OPERATION_CODECS[call.operation].reply.write(output, call.contract)
        except QnsError as problem:  # the output contains a text that XML cannot carry
            return _refusal(problem, call.message_id)
        return HttpReply(200, write_envelope(content, relates_to=call.message_id))

    def failure(self, call: Call | None) -> HttpReply:
        """Returns the reply after an unexpected exception. It has no details: these are logged."""
        relates_to = call.message_id if call else ""
        return HttpReply(500, write_fault(BUSY, _UNEXPECTED, relates_to=relates_to))

    def refusal(self, problem: QnsError) -> HttpReply:
        """Returns the reply to a request that is rejected before it is read."""
        return _refusal(problem, "")

    def busy(self, envelope: Envelope, message_id: str = "") -> HttpReply:
        """Returns the reply to a request of a peer that is refused for now, in an envelope."""
        assert isinstance(envelope.body, Fault)
        return _peer_fault(envelope, envelope.body, message_id)

    def wsdl(self, base_url: str, first: Port = Port.PEER) -> bytes:
        """Returns the WSDL; most SOAP stacks use the port that it lists first."""
        return wsdl(base_url, first)

    def _call(
        self,
        codec: OperationCodec,
        message: Any,
        message_id: str,
        security: MessageSecurity | None,
        signer: str = "",
    ) -> Call:
        if isinstance(message, Envelope):
            if security is not None:
                security.check_sender(message.sender, signer)
            return Call(codec.port, codec.name, Received(message), message_id)
        assert isinstance(message, LocalCall)
        request = message.request
        if isinstance(request, TypedPublish):
            request = Publish(to_event(request.event, self.schema))
        return Call(codec.port, codec.name, request, message_id, message.wait_s, message.contract)


def read_ordinary(content: Element, codec: OperationCodec) -> Any:
    """Reads the request in an operation's element; raises DocumentError unless it is valid."""
    validate(content)
    return codec.request.read(content)


def _check_headers(headers: Mapping[str, str]) -> str:
    """Returns the SOAPAction; raises DocumentError unless the body is SOAP 1.1 in plain UTF-8."""
    lowered = {name.lower(): value for name, value in headers.items()}
    _check_content_type(lowered.get("content-type", ""), lowered.get("content-encoding", ""))
    return lowered.get("soapaction", "").strip().strip('"')


@lru_cache(maxsize=64)  # most senders use the same headers in every request
def _check_content_type(content_type: str, encoding: str) -> None:
    kind, *parameters = (part.strip() for part in content_type.split(";"))
    if kind.lower() != "text/xml":
        raise DocumentError(
            f"the content type {shorten(kind)} is not supported", remedy="send SOAP 1.1 as text/xml"
        )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'").lower() not in _CHARSETS:
            raise DocumentError(
                f"the charset {shorten(value)} is not supported", remedy="use UTF-8"
            )
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity"):
        raise DocumentError(
            f"the content encoding {shorten(encoding)} is not supported",
            remedy="send the body without compression",
        )


_CHARSETS: Final = frozenset(("utf-8", "utf8", "us-ascii", "ascii"))


def _codec_of(tag: str, port: Port, action: str) -> OperationCodec:
    """Returns the codec of the operation that the element names; raises QnsError for a bad one."""
    codec = BY_TAG.get(tag)
    if codec is None:
        known = [each.name for each in OPERATION_CODECS.values() if each.port is port]
        raise DocumentError(
            f"{shorten(tag)} is no operation", remedy=f"use one of {', '.join(known)}"
        )
    if codec.port is not port:
        raise NotAllowed(
            f"{codec.name} is no operation of the port {port.value}",
            remedy=f"send it to /{codec.port.value.lower()}",
        )
    if action not in ("", codec.name):
        raise DocumentError(
            f"the SOAPAction is {shorten(action)}, but the Body holds {codec.name}",
            remedy=f'send SOAPAction: "{codec.name}", or leave it empty',
        )
    return codec


def _refusal(
    problem: QnsError, message_id: str, code: str = "", contract: int = CONTRACT
) -> HttpReply:
    # The place of a store's error is a file of the peer, which is not shown to callers.
    place = "" if isinstance(problem, StoreFailed | StoreFull) else problem.place
    detail = FaultDetail(problem.problem, place, problem.remedy)
    if isinstance(problem, DeliveriesDropped):
        detail = detail._replace(dropped=problem.dropped, series=problem.series)
    elif isinstance(problem, CursorAhead):
        detail = detail._replace(delivered=problem.delivered)
    body = write_fault(
        fault_of(problem), detail, relates_to=message_id, code=code, contract=contract
    )
    return HttpReply(500, body)


def _peer_fault(envelope: Envelope, fault: Fault, message_id: str) -> HttpReply:
    origin = Origin(envelope.sender, envelope.document, envelope.reachability)
    kind = REFUSED if fault.permanent else BUSY
    detail = FaultDetail(fault.reason, origin=origin)
    return HttpReply(500, write_fault(kind, detail, relates_to=message_id))
