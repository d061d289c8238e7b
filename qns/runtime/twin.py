"""Twin: notices before a start that another peer of this organisation runs already.

A copy of a peer, with a copy of its store, would give different events the same numbers.
`qns peer run` and `qns peer check` therefore ask at the endpoint in the federation document.
"""

from __future__ import annotations

from typing import Final

from qns.errors import NotAllowed
from qns.runtime.configuration import Configuration
from qns.runtime.connections import Answer, ask_health
from qns.runtime.peer_tls import PeerTls

_ANSWER_WITHIN_S: Final = 2.0
"""A start waits for an answer as long as this."""


async def find_twin(configuration: Configuration, tls: PeerTls | None = None) -> NotAllowed | None:
    """Returns the error with which a start is refused; None if nobody answers as this peer."""
    me, federation = configuration.organisation, configuration.federation
    endpoint = federation[me].endpoint
    if not endpoint:
        return None
    answer = (await ask_health({endpoint: me}, _ANSWER_WITHIN_S, tls))[endpoint]
    if not isinstance(answer, Answer) or answer.organisation != me:
        return None
    if answer.state.get("federation") != federation.name:
        return None
    return NotAllowed(
        f"a peer of {me} runs already: it answers at {endpoint}",
        remedy="stop it first; a copy of a peer must never run beside it",
    )
