"""A hostile request, with the answer that a peer must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from qns.soap.shapes import Port


class Answer(Enum):
    """The kinds of answers. With none of them does anything in the store change."""

    INVALID = "InvalidFault"
    REFUSED = "RefusedFault"
    BUSY = "BusyFault"
    NOT_UNDERSTOOD = "MustUnderstand"
    """A fault with only a code: SOAP 1.1 allows no detail about a header."""
    NOT_TAKEN = "not taken"
    """A reply of notify in which no notification is taken."""
    SERVED = "served"
    """A reply to a request that is unusual but allowed."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    port: Port
    make: Callable[[], bytes]
    """Builds the body when it is needed, because some bodies are long."""
    answer: Answer = Answer.INVALID
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        return {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'} | self.headers


def peer(
    name: str, body: bytes | Callable[[], bytes], answer: Answer = Answer.INVALID, **headers: str
) -> Case:
    return Case(name, Port.PEER, _maker(body), answer, _headers(headers))


def local(
    name: str, body: bytes | Callable[[], bytes], answer: Answer = Answer.INVALID, **headers: str
) -> Case:
    return Case(name, Port.LOCAL, _maker(body), answer, _headers(headers))


def _maker(body: bytes | Callable[[], bytes]) -> Callable[[], bytes]:
    return body if callable(body) else lambda: body


def _headers(given: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in given.items()}
