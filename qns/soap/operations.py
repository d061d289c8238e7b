"""The whole contract: both ports, the three faults, each message with its reader and writer."""

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
from qns.soap import shapes_local, shapes_peer
from qns.soap.codec import Reader, Writer, qualified, reader_of, writer_of
from qns.soap.shapes import NAMESPACE, Leaf, Operation, Shape, once, perhaps, record
from qns.soap.shapes_peer import ORIGIN, Origin


class FaultDetail(NamedTuple):
    """What a typed fault says."""

    problem: str
    place: str = ""
    remedy: str = ""
    origin: Origin | None = None
    """Only on the port Peer, if it is the peer itself that does not serve the request."""


class Message:
    """One global element of the contract: a request, a reply or a fault."""

    __slots__ = ("_write", "closing", "name", "opening", "read", "shape", "tag")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.name = shape.name
        self.tag = qualified(shape.name)
        self.read: Reader = reader_of(shape)
        self._write: Writer = writer_of(shape)
        self.opening = f'<{shape.name} xmlns="{NAMESPACE}">'
        self.closing = f"</{shape.name}>"

    def write(self, value: Any) -> str:
        parts = [self.opening]
        self._write(parts.append, value)
        parts.append(self.closing)
        return "".join(parts)


class Exchange:
    """An operation with its two messages."""

    __slots__ = ("name", "operation", "port", "reply", "request")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.port = operation.port
        self.name = operation.name
        self.request = Message(operation.request)
        self.reply = Message(operation.reply)


def _fault(name: str, documentation: str) -> Message:
    return Message(
        record(
            name,
            documentation,
            FaultDetail,
            once("problem", Leaf.PROSE, "What is wrong."),
            perhaps("place", Leaf.PROSE, "Where.", ""),
            perhaps("remedy", Leaf.PROSE, "What to do about it.", ""),
            perhaps("origin", ORIGIN, "On the port Peer: the peer that does not serve it."),
        )
    )


EXCHANGES: Final[Mapping[str, Exchange]] = {
    operation.name: Exchange(operation)
    for operation in (*shapes_peer.OPERATIONS, *shapes_local.OPERATIONS)
}
BY_TAG: Final[Mapping[str, Exchange]] = {
    exchange.request.tag: exchange for exchange in EXCHANGES.values()
}

INVALID: Final = _fault("InvalidFault", "What was sent is wrong: mend it before sending it again.")
REFUSED: Final = _fault("RefusedFault", "The peer may not serve this request.")
BUSY: Final = _fault("BusyFault", "Not now: nothing was changed, the same request succeeds later.")
FAULTS: Final[Mapping[str, Message]] = {fault.tag: fault for fault in (INVALID, REFUSED, BUSY)}

ERRORS: Final[Mapping[Message, type[QnsError]]] = {
    INVALID: ValueRefused,
    REFUSED: NotAllowed,
    BUSY: Busy,
}
"""What a caller is told by each fault."""


def fault_of(error: QnsError) -> Message:
    if isinstance(error, Busy | StoreFailed):
        return BUSY
    if isinstance(error, NotAllowed | DuplicateId | FederationError):
        return REFUSED
    return INVALID
