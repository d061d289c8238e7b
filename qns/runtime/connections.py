"""Connections: tests whether other peers can be reached, and says the cause and the remedy if not.

`qns peer check` makes this test from its own process, before or while the peer runs. For
`qns peer connections` the running peer makes it, and adds what it has learned from its calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any, Final

import aiohttp

from qns.errors import QnsError
from qns.federation.document import Federation, Organisation
from qns.peer.status import PeerStatus
from qns.runtime.addresses import checked_endpoint, health_url
from qns.runtime.causes import (
    EXPIRED,
    EXPIRED_HERE,
    NO_HTTP,
    NO_TLS,
    NO_TLS_1_3,
    NOT_YET_VALID,
    REFUSED,
    RESOLVES_NOT,
    TIMEOUT,
    TLS_BROKEN_OFF,
    TLS_REFUSED,
    UNKNOWN_CERTIFICATE,
    cause_of,
)
from qns.runtime.findings import Finding, Verdict
from qns.runtime.peer_tls import PeerTls, Pin

ANSWER_WITHIN_S: Final = 5.0
NO_PEER: Final = "it answers, but is no peer of QNS"
_CLOCK_S: Final = 2.0
"""The difference of two clocks above which there is a warning."""
_MOST_BYTES: Final = 100_000
_MOST_AT_ONCE: Final = 50
_CORRECT: Final = "correct the endpoint in the federation document"
_REMEDIES: Final = {
    RESOLVES_NOT: f"check the name server, or {_CORRECT}",
    REFUSED: f"ask its operator to start it, or {_CORRECT}",
    TIMEOUT: "check the network and its firewall, and whether its machine is overloaded",
    NO_PEER: f"another program uses the port: stop it, or {_CORRECT}",
    NO_HTTP: f"another program uses the port: stop it, or {_CORRECT}",
    UNKNOWN_CERTIFICATE: "ask its operator which certificate it uses, and let the next version of "
    f"the federation document name it; if another peer answers there, {_CORRECT}",
    EXPIRED: "ask its operator to renew it (qns certificates make)",
    NOT_YET_VALID: "check the clocks of both machines, or ask its operator for a valid one",
    **dict.fromkeys(
        (TLS_REFUSED, TLS_BROKEN_OFF),
        "see its log, which has the reason; if its document does not name the certificate of this "
        "peer, compare the versions, and the certificate with qns certificates show",
    ),
    EXPIRED_HERE: "renew it (qns certificates make), and check the clocks of both machines",
    NO_TLS: f"ask its operator to configure [tls], or {_CORRECT}",
    NO_TLS_1_3: "another program, or a proxy that ends TLS, uses the port: pass the connection on "
    f"as it is, or {_CORRECT}",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a peer to `GET /health`."""

    state: dict[str, Any]
    seconds: float
    clock_ahead_s: float

    @property
    def organisation(self) -> str:
        return str(self.state.get("organisation"))


async def check_connections(
    federation: Federation, me: str, tls: PeerTls | None = None
) -> list[Finding]:
    """Calls every other member once, over mutual TLS if this peer has it."""
    others = [each for name, each in sorted(federation.organisations.items()) if name != me]
    called = {each.endpoint: each.name for each in others if each.endpoint}
    answers = await ask_health(called, tls=tls)
    return [
        finding
        for each in others
        for finding in _of_answer(each, answers.get(each.endpoint, ""), federation)
    ]


async def check_running(status: PeerStatus, tls: PeerTls | None = None) -> list[Finding]:
    """Calls every other member once, and adds what the running peer has learned from its calls."""
    found = await check_connections(status.federation, status.organisation, tls)
    return sorted(
        [*found, *_of_experience(status)], key=lambda finding: finding.what
    )  # stable: the test of a peer comes first


async def ask_health(
    called: Mapping[str, str], within_s: float = ANSWER_WITHIN_S, tls: PeerTls | None = None
) -> Mapping[str, Answer | str]:
    """Returns endpoint -> the answer of its peer, or the cause why there is none.

    `called` maps an endpoint to its organisation, whose certificate is expected there.
    """
    room = asyncio.Semaphore(_MOST_AT_ONCE)

    async def ask(endpoint: str, name: str) -> Answer | str:
        async with room:
            try:
                checked_endpoint(endpoint, has_tls=tls is not None)
                pin = tls.pin(name) if tls is not None else None
            except QnsError as error:
                return str(error)
            return await ask_one(endpoint, within_s, pin)

    answers = await asyncio.gather(*(ask(*each) for each in called.items()))
    return dict(zip(called, answers, strict=True))


async def ask_one(
    endpoint: str, within_s: float = ANSWER_WITHIN_S, pin: Pin | None = None
) -> Answer | str:
    """Returns the answer of the peer at an endpoint, or the cause why there is none."""
    timeout = aiohttp.ClientTimeout(total=within_s)
    connector = aiohttp.TCPConnector(ssl=True if pin is None else pin.pinned)
    context = True if pin is None else pin.context
    started, clock = perf_counter(), time()
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
            session.get(health_url(endpoint), allow_redirects=False, ssl=context) as response,
        ):
            state = await _state(response)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return cause_of(error, has_tls=pin is not None)
    if not isinstance(state, dict) or "organisation" not in state:
        return NO_PEER
    seconds = perf_counter() - started
    reported = state.get("time")
    other_clock = reported if isinstance(reported, int | float) else clock
    return Answer(state, seconds, other_clock - (clock + seconds / 2))


async def _state(response: aiohttp.ClientResponse) -> Any:
    content = b""
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > _MOST_BYTES:
            return None
    try:
        return json.loads(content)
    except ValueError:
        return None


# --- the answer of one peer -----------------------------------------------------------------------


def _of_answer(
    other: Organisation, answer: Answer | str, federation: Federation
) -> Iterator[Finding]:
    name = other.name
    if not other.endpoint:
        yield Finding(
            Verdict.WARN,
            name,
            "the federation document has no endpoint for it",
            "add one: until then, nothing can be sent to it",
        )
    elif isinstance(answer, str):
        remedy = _REMEDIES.get(answer, f"check the network, or {_CORRECT}")
        yield Finding(Verdict.WARN, name, f"{other.endpoint}: {answer}", remedy)
    elif answer.organisation != name:
        yield Finding(
            Verdict.FAIL,
            name,
            f"{other.endpoint} is the peer of {answer.organisation}",
            _CORRECT,
        )
    else:
        speed = f"{other.endpoint} answers in {answer.seconds * 1000:.0f} ms"
        yield Finding(Verdict.OK, name, speed)
        yield from _of_clock(name, answer)
        yield from _of_document(name, answer, federation)


def _of_clock(name: str, answer: Answer) -> Iterator[Finding]:
    ahead = answer.clock_ahead_s
    if abs(ahead) > max(_CLOCK_S, answer.seconds):
        yield Finding(
            Verdict.WARN,
            name,
            f"its clock is {abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}",
            "set the clocks by NTP: organisations compare times of publication",
        )
    else:
        yield Finding(Verdict.OK, name, f"its clock differs by {abs(ahead) * 1000:.0f} ms")


def _of_document(name: str, answer: Answer, federation: Federation) -> Iterator[Finding]:
    theirs, version = answer.state.get("federation"), answer.state.get("document")
    mine = federation.version
    if isinstance(theirs, str) and theirs != federation.name:
        yield Finding(
            Verdict.FAIL,
            name,
            f"it is a peer of the federation {theirs}, not of {federation.name}",
            "give both peers the document of one federation",
        )
    elif isinstance(version, int) and version != mine:
        age = "newer" if version > mine else "older"
        yield Finding(
            Verdict.WARN,
            name,
            f"it has the {age} version {version} of the federation document; here it is {mine}",
            "the older peer fetches the newer one when they exchange messages",
        )


# --- what the running peer has learned ------------------------------------------------------------


def _of_experience(status: PeerStatus) -> Iterator[Finding]:
    me = status.organisation
    for name in sorted(status.federation.organisations):
        if name == me:
            continue
        problem = status.problem_with(name)
        if problem:
            yield Finding(
                Verdict.WARN,
                name,
                f"the last call of this peer failed: {problem}",
                "it is repeated; if it keeps failing, see the log of both peers",
            )
        if not status.is_reached_by(name):
            yield Finding(
                Verdict.WARN,
                name,
                f"it reports that it cannot reach {me}",
                f"check the endpoint of {me} in the federation document, and the network from "
                f"{name} to it; events travel through others meanwhile",
            )
