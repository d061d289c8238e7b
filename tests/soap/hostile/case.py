"""A hostile request, and how a peer is to answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from qns.soap.shapes import Port


class Answer(Enum):
    """Whatever the answer is, nothing in the store changes."""

    INVALID = "InvalidFault"
    REFUSED = "RefusedFault"
    BUSY = "BusyFault"
    NOT_UNDERSTOOD = "MustUnderstand"
    """Only a fault code: SOAP 1.1 allows no detail about a header."""
    NOT_TAKEN = "not taken"
    """An ordinary reply of notify, in which each outcome says no."""
    SERVED = "served"
    """Strange, but allowed, and without consequences."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    port: Port
    make: Callable[[], bytes]
    """Made when it is needed: some are long."""
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
