"""Transport: sends the requests of this peer to other peers over persistent connections.

Each request is sent in a task of its own, and there is one at a time for each other peer, so that a
dead receiver does not delay the others. A failure is reported as the reason in words. The links
decide when to retry: after pauses that double and differ from link to link.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Final, NamedTuple
from uuid import uuid4

import aiohttp

from qns.edl.messages import Envelope, Fault
from qns.edl.requests import Send
from qns.errors import QnsError
from qns.runtime.addresses import checked_endpoint, peer_url
from qns.runtime.causes import cause_of
from qns.runtime.logs import LOG, log_event
from qns.runtime.peer_tls import PeerTls, Pin
from qns.runtime.tls_contexts import Pinned
from qns.runtime.traffic import SENT, Traffic
from qns.soap.hardening import PEER
from qns.soap.parts import in_parts
from qns.soap.peer_client import read_reply, write_call
from qns.soap.retry_after import RETRY_AFTER, read_retry_after
from qns.soap.shapes import Port

CONNECT_WITHIN_S: Final = 5.0
ANSWER_WITHIN_S: Final = 15.0
KEPT_S: Final = 30.0
"""How long idle connections are kept: shorter than servers keep them, so that a request never meets
a connection that the server is closing."""

_MESSAGE_ID: Final = "urn:uuid:"


class _PinnedSession(NamedTuple):
    pin: Pin
    session: aiohttp.ClientSession


class Transport:
    def __init__(
        self,
        endpoint_of: Callable[[str], str],
        traffic: Traffic,
        *,
        answer_within_s: float = ANSWER_WITHIN_S,
        tls: PeerTls | None = None,
        envelope_for: Callable[[str], Callable[[str, str], bytes] | None] = lambda _: None,
    ) -> None:
        """`endpoint_of` returns the endpoint of an organisation, or "" if there is none.

        With `tls` every call is over mutual TLS, and without it none. `envelope_for` returns what
        makes the signed envelopes for an organisation, if its calls are signed.
        """
        self._envelope_for = envelope_for
        self._endpoint_of = endpoint_of
        self._tls = tls
        self._answer_within_s = answer_within_s
        self._sessions: dict[str, _PinnedSession] = {}
        """The sessions of calls over TLS, for each organisation."""
        self._traffic = traffic
        self._refused: set[str] = set()
        """Endpoints for which a warning was logged."""
        self._plain = self._new_session(True)

    def _new_session(self, pinned: Pinned | bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S, ssl=pinned),
            timeout=aiohttp.ClientTimeout(
                total=self._answer_within_s,
                connect=CONNECT_WITHIN_S,
                sock_connect=CONNECT_WITHIN_S,
            ),
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )

    async def close(self) -> None:
        for each in (self._plain, *(pinned.session for pinned in self._sessions.values())):
            await each.close()

    async def _session_for(self, to: str) -> tuple[aiohttp.ClientSession, ssl.SSLContext | bool]:
        """Returns the session of calls to an organisation; raises FederationError.

        Over TLS, a new document or a new key begins a new one: there is one call at a time to each
        organisation, so that none is under way on the former.
        """
        if self._tls is None:
            return self._plain, True
        pin = self._tls.pin(to)
        known = self._sessions.get(to)
        if known is None or known.pin is not pin:
            self._sessions[to] = _PinnedSession(pin, self._new_session(pin.pinned))
            if known is not None:
                await known.session.close()
        return self._sessions[to].session, pin.context

    async def send(self, send: Send) -> Envelope | str:
        """Sends a request, a large one in parts; returns the answer, or why there is none."""
        endpoint = self._endpoint_of(send.to)
        if not endpoint:
            return "the federation document has no endpoint for it"
        try:
            url = peer_url(checked_endpoint(endpoint, has_tls=self._tls is not None))
            session, context = await self._session_for(send.to)
        except QnsError as error:
            self._warn_once(endpoint, str(error), send.to)
            return str(error)
        answer: Envelope | str = ""
        for envelope in in_parts(send.envelope):
            answer = await self._call(send.to, url, envelope, session, context)
            if isinstance(answer, str) or isinstance(answer.body, Fault):
                break
        return answer

    async def _call(
        self,
        to: str,
        url: str,
        envelope: Envelope,
        session: aiohttp.ClientSession,
        context: ssl.SSLContext | bool,
    ) -> Envelope | str:
        message_id = f"{_MESSAGE_ID}{uuid4()}"
        body, action = write_call(envelope, message_id, self._envelope_for(to))
        started = perf_counter()
        answer: Envelope | str
        size = 0
        try:
            async with session.post(
                url, data=body, headers=_headers(action), allow_redirects=False, ssl=context
            ) as response:
                content = await _content(response)
                size = len(content)
                answer = read_reply(envelope, response.status, content, to)
                answer = _with_pause(answer, read_retry_after(response.headers.get(RETRY_AFTER)))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            outcome = "timeout" if isinstance(error, TimeoutError) else "unanswered"
            answer = cause_of(error, has_tls=self._tls is not None)
        else:
            outcome = _outcome(answer)
            if not isinstance(answer, str) and answer.sender != to:
                problem = f"the peer of {answer.sender} answers there"
                self._warn_once(url, problem, to)
                answer, outcome = problem, "unusable"
        operation = action.strip('"')
        self._traffic.count(Port.PEER.value, operation, SENT, outcome, size, len(body))
        if not isinstance(answer, str) and isinstance(answer.body, Fault):
            log_event(
                logging.WARNING if answer.body.permanent else logging.INFO,
                "another peer refused a call",
                to=to,
                operation=operation,
                reason=answer.body.reason,
                permanent=answer.body.permanent,
                message_id=message_id,
            )
        if LOG.isEnabledFor(logging.DEBUG):
            log_event(
                logging.DEBUG,
                "called",
                operation=operation,
                message_id=message_id,
                to=to,
                outcome=outcome,
                ms=round((perf_counter() - started) * 1000, 3),
            )
        return answer

    def _warn_once(self, endpoint: str, reason: str, name: str) -> None:
        if endpoint not in self._refused:
            self._refused.add(endpoint)
            log_event(logging.WARNING, "a peer is not called", to=name, reason=reason)


def _headers(action: str) -> dict[str, str]:
    return {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Reads the complete reply; raises ClientPayloadError if it is too long."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > PEER.bytes:
            raise aiohttp.ClientPayloadError(f"the reply has more than {PEER.bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _with_pause(answer: Envelope | str, pause_s: float) -> Envelope | str:
    """Returns the answer; a fault that is not for good gets the pause that HTTP asks for."""
    if isinstance(answer, str) or not isinstance(answer.body, Fault) or answer.body.permanent:
        return answer
    return answer._replace(body=replace(answer.body, retry_after_s=pause_s)) if pause_s else answer


def _outcome(answer: Envelope | str) -> str:
    if isinstance(answer, str):
        return "unusable"
    return "fault" if isinstance(answer.body, Fault) else "ok"
