"""The complete contract: the operations of both ports and the faults, with readers and writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from qns.errors import (
    Busy,
    DuplicateId,
    FederationError,
    NotAllowed,
    QnsError,
    StoreFailed,
    ValueRefused,
)
from qns.iil.deliveries_dropped import Dropped
from qns.soap import shapes_local, shapes_peer
from qns.soap.codec import Reader, Writer, qualified, reader_of, writer_of
from qns.soap.shapes import (
    CONTRACT,
    NAMESPACE,
    Leaf,
    Operation,
    Shape,
    many,
    once,
    perhaps,
    record,
)
from qns.soap.shapes_local import DROPPED
from qns.soap.shapes_parts import ORIGIN, Origin


class FaultDetail(NamedTuple):
    """The content of a typed fault."""

    problem: str
    place: str = ""
    remedy: str = ""
    origin: Origin | None = None
    """Present only on the port Peer, if the peer itself (not its process) rejects the request."""
    dropped: tuple[Dropped, ...] = ()
    series: str = ""
    """The number series of the last dropped number."""
    delivered: int | None = None
    """Present if the cursor is ahead: how many deliveries the peer has made."""


class Message:
    """One global element of the contract (a request, a reply or a fault), with its codec."""

    __slots__ = ("_write", "_write_first", "closing", "name", "opening", "read", "shape", "tag")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.name = shape.name
        self.tag = qualified(shape.name)
        self.read: Reader = reader_of(shape)
        self._write: Writer = writer_of(shape)
        self._write_first: Writer = writer_of(shape, contract=1)
        self.opening = f'<{shape.name} xmlns="{NAMESPACE}">'
        self.closing = f"</{shape.name}>"

    def write(self, value: Any, contract: int = CONTRACT) -> str:
        """Returns the element, without what is newer than the reader's version of the contract."""
        parts = [self.opening]
        write = self._write if contract >= CONTRACT else self._write_first
        write(parts.append, value)
        parts.append(self.closing)
        return "".join(parts)


class OperationCodec:
    """An operation with the readers and writers of its request and its reply."""

    __slots__ = ("name", "operation", "port", "reply", "request")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.port = operation.port
        self.name = operation.name
        self.request = Message(operation.request)
        self.reply = Message(operation.reply)


_DELIVERED: Final = (
    "In the fault of pull and acknowledge: the peer was put back to an older state and has no "
    "delivery of the number and series that the caller gives; it has had so many deliveries. "
    "Start again after 0."
)


def _fault(name: str, documentation: str) -> Message:
    return Message(
        record(
            name,
            documentation,
            FaultDetail,
            once("problem", Leaf.PROSE, "What is wrong."),
            perhaps("place", Leaf.PROSE, "Where the problem is.", ""),
            perhaps("remedy", Leaf.PROSE, "What the caller can do about it.", ""),
            perhaps("origin", ORIGIN, "On the port Peer: the peer that rejects the request."),
            many("dropped", DROPPED, "In the fault of pull: numbers that were dropped.", since=2),
            perhaps("series", Leaf.TEXT, "The series of the last dropped number.", "", since=2),
            perhaps("delivered", Leaf.NUMBER, _DELIVERED, since=2),
        )
    )


OPERATION_CODECS: Final[Mapping[str, OperationCodec]] = {
    operation.name: OperationCodec(operation)
    for operation in (*shapes_peer.OPERATIONS, *shapes_local.OPERATIONS)
}
BY_TAG: Final[Mapping[str, OperationCodec]] = {
    codec.request.tag: codec for codec in OPERATION_CODECS.values()
}

INVALID: Final = _fault(
    "InvalidFault", "The request is invalid; correct it before sending it again."
)
REFUSED: Final = _fault("RefusedFault", "The peer is not allowed to serve this request.")
BUSY: Final = _fault(
    "BusyFault", "The peer cannot serve the request now. Nothing changed; retry it later."
)
FAULTS: Final[Mapping[str, Message]] = {fault.tag: fault for fault in (INVALID, REFUSED, BUSY)}

ERRORS: Final[Mapping[Message, type[QnsError]]] = {
    INVALID: ValueRefused,
    REFUSED: NotAllowed,
    BUSY: Busy,
}
"""The error that a client raises for each fault."""


def fault_of(error: QnsError) -> Message:
    if isinstance(error, Busy | StoreFailed):
        return BUSY
    if isinstance(error, NotAllowed | DuplicateId | FederationError):
        return REFUSED
    return INVALID
