"""Calls: what both clients say to a peer, how answers are read, what may be repeated."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final

from qns.client.address import Address, PeerUnreachable
from qns.client.delivered import Delivered
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema
from qns.errors import Busy, QnsError, ValueRefused
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    ListSubscriptions,
    Read,
    Renew,
    Request,
    Subscribe,
)
from qns.soap.local_client import read_local, write_local
from qns.soap.typed_event import TypedPublish

LONGEST_WAIT_S: Final = 60.0
"""How long a peer holds a pull open at most."""

_REPEATABLE = (Subscribe, Renew, ListSubscriptions, TypedPublish, Read, AcknowledgeDeliveries)
"""Done twice they change no more than done once; a client gives every subscription an id."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it goes over the wire."""

    request: Request | TypedPublish
    body: bytes
    headers: dict[str, str]
    wait_s: float = 0.0

    @classmethod
    def of(cls, request: Request | TypedPublish, *, wait_s: float = 0.0, token: str = "") -> Call:
        body, action = write_local(request, wait_s=wait_s, token=token)
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        return cls(request, body, headers, wait_s)

    @property
    def is_repeatable(self) -> bool:
        return isinstance(self.request, _REPEATABLE)

    def may_follow(self, problem: QnsError) -> bool:
        """Whether the same request may be sent again after this."""
        if isinstance(problem, PeerUnreachable):
            return self.is_repeatable or not problem.may_be_done
        return self.is_repeatable and isinstance(problem, Busy)

    def answer(self, address: Address, status: int, content_type: str, body: bytes) -> Answer:
        """What the peer answered; raises what its fault tells."""
        if "xml" not in content_type:
            told = f"{address.base} answers {status} to a SOAP request"
            if status >= 500:  # it starts, or stops, or something stands before it
                raise address.unreachable(HTTPException(told), may_be_done=True)
            raise ValueRefused(f"{told}: it is no peer", remedy="check the address")
        return read_local(self.request, status, body)


def new_id() -> str:
    """For a subscription whose maker has no name for it: then subscribing may be repeated."""
    return secrets.token_hex(6)


def schema_of(schema: Schema | str | None) -> Schema | None:
    return load_schema(schema) if isinstance(schema, str) else schema


def delivered(answer: Deliveries, schema: Schema | None) -> list[Delivered]:
    return [
        Delivered(each.number, each.source, each.event, each.xml, schema)
        for each in answer.deliveries
    ]
