"""Transport: brings the requests of this peer to the others, over connections that are kept.

Each request is a task of its own and the core has one under way for each other peer, so that a
dead receiver delays nobody else. Whatever goes wrong there is no answer: the core's links decide
when to try again, after pauses that double and differ from link to link.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final
from uuid import uuid4

import aiohttp

from qns.edl.layer import Send
from qns.edl.messages import Envelope, Fault
from qns.errors import QnsError
from qns.runtime.addresses import checked_endpoint, peer_url
from qns.runtime.logs import LOG, tell
from qns.runtime.traffic import SENT, Traffic
from qns.soap.hardening import PEER
from qns.soap.parts import in_parts
from qns.soap.peer_client import read_reply, write_call
from qns.soap.shapes import Port

CONNECT_WITHIN_S: Final = 5.0
ANSWER_WITHIN_S: Final = 15.0
KEPT_S: Final = 30.0
"""Less than servers keep an idle connection, so that none is closed under a request."""

_CALLED: Final = "urn:uuid:"


class Transport:
    def __init__(
        self,
        endpoint_of: Callable[[str], str],
        traffic: Traffic,
        *,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        """`endpoint_of` asks the federation document in force; empty for whom it does not name."""
        self._endpoint_of = endpoint_of
        self._traffic = traffic
        self._refused: set[str] = set()
        """Endpoints that were complained about already."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S),
            timeout=aiohttp.ClientTimeout(
                total=answer_within_s, connect=CONNECT_WITHIN_S, sock_connect=CONNECT_WITHIN_S
            ),
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )

    async def close(self) -> None:
        await self._session.close()

    async def exchange(self, send: Send) -> Envelope | None:
        """The answer to a request, or None; a large one goes in parts."""
        url = self._url(send.to)
        if url is None:
            return None
        answer: Envelope | None = None
        for envelope in in_parts(send.envelope):
            answer = await self._call(send.to, url, envelope)
            if answer is None or isinstance(answer.body, Fault):
                break
        return answer

    async def _call(self, to: str, url: str, envelope: Envelope) -> Envelope | None:
        message_id = f"{_CALLED}{uuid4()}"
        body, action = write_call(envelope, message_id)
        started = perf_counter()
        answer, outcome, size = None, "unanswered", 0
        try:
            async with self._session.post(
                url, data=body, headers=_headers(action), allow_redirects=False
            ) as response:
                content = await _content(response)
                size = len(content)
                answer = read_reply(envelope, response.status, content)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            outcome = _told(error)
        else:
            outcome = _outcome(answer)
            if answer is not None and answer.sender != to:
                self._complain(url, f"{answer.sender} answers there", to)
                answer, outcome = None, "unusable"
        operation = action.strip('"')
        self._traffic.count(Port.PEER.value, operation, SENT, outcome, size, len(body))
        if LOG.isEnabledFor(logging.DEBUG):
            tell(
                logging.DEBUG,
                "called",
                operation=operation,
                message_id=message_id,
                to=to,
                outcome=outcome,
                ms=round((perf_counter() - started) * 1000, 3),
            )
        return answer

    def _url(self, name: str) -> str | None:
        endpoint = self._endpoint_of(name)
        if not endpoint:
            return None
        try:
            return peer_url(checked_endpoint(endpoint))
        except QnsError as error:
            self._complain(endpoint, str(error), name)
            return None

    def _complain(self, endpoint: str, reason: str, name: str) -> None:
        """Once."""
        if endpoint not in self._refused:
            self._refused.add(endpoint)
            tell(logging.WARNING, "a peer is not called", to=name, reason=reason)


def _headers(action: str) -> dict[str, str]:
    return {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """The whole reply, unless it is longer than any that is sensible."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > PEER.bytes:
            raise aiohttp.ClientPayloadError(f"a reply of more than {PEER.bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _outcome(answer: Envelope | None) -> str:
    if answer is None:
        return "unusable"
    return "fault" if isinstance(answer.body, Fault) else "ok"


def _told(error: Exception) -> str:
    return "timeout" if isinstance(error, TimeoutError) else "unanswered"
