"""Calls: requests in SOAP, their answers, and which of them may be repeated."""

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
    PullDeliveries,
    Renew,
    Request,
    Subscribe,
)
from qns.soap.local_client import read_local, write_local
from qns.soap.retry_after import read_retry_after
from qns.soap.shapes import CONTRACT
from qns.soap.typed_event import TypedPublish

LONGEST_WAIT_S: Final = 60.0
"""The longest time that a peer holds a pull open."""

_REPEATABLE = (
    Subscribe,
    Renew,
    ListSubscriptions,
    TypedPublish,
    PullDeliveries,
    AcknowledgeDeliveries,
)
"""The idempotent requests. Subscribe is one, because a client gives every subscription an id."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as bytes of HTTP."""

    request: Request | TypedPublish
    body: bytes
    headers: dict[str, str]
    wait_s: float = 0.0
    contract: int = CONTRACT

    @classmethod
    def of(
        cls,
        request: Request | TypedPublish,
        *,
        wait_s: float = 0.0,
        token: str = "",
        contract: int = CONTRACT,
    ) -> Call:
        body, action = write_local(request, wait_s=wait_s, token=token, contract=contract)
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        return cls(request, body, headers, wait_s, contract)

    @property
    def is_repeatable(self) -> bool:
        """True if the request is idempotent."""
        return isinstance(self.request, _REPEATABLE)

    def may_follow(self, problem: QnsError) -> bool:
        """True if the same request may be sent again after this error."""
        if isinstance(problem, PeerUnreachable):
            return self.is_repeatable or not problem.may_be_done
        return self.is_repeatable and isinstance(problem, Busy)

    def answer(
        self,
        address: Address,
        status: int,
        content_type: str,
        body: bytes,
        retry_after: str | None = None,
    ) -> Answer:
        """Returns the peer's answer, or raises the error that its fault describes."""
        if "xml" not in content_type:
            message = f"{address.base} answers {status} to a SOAP request"
            if status >= 500:  # the peer starts or stops, or a proxy answers for it
                raise address.unreachable(HTTPException(message), may_be_done=True)
            raise ValueRefused(f"{message}: it is no peer", remedy="check the address")
        try:
            return read_local(self.request, status, body)
        except Busy as problem:
            problem.retry_after_s = read_retry_after(retry_after)
            raise


def is_of_an_older_contract(problem: QnsError) -> bool:
    """True if a peer rejects the element that names the version of the contract, as 0.2.0 does."""
    return isinstance(problem, ValueRefused) and "Element 'contract'" in problem.problem


def new_id() -> str:
    """Returns a random subscription id. With an id, subscribing is idempotent."""
    return secrets.token_hex(6)


def schema_of(schema: Schema | str | None) -> Schema | None:
    """Loads a schema that is given by name or file."""
    return load_schema(schema) if isinstance(schema, str) else schema


def delivered(answer: Deliveries, schema: Schema | None) -> list[Delivered]:
    """Returns the deliveries of an answer, each with the schema to read it."""
    return [
        Delivered(each.number, each.source, each.event, each.xml, schema, each.series)
        for each in answer.deliveries
    ]
