"""Causes: why a call to another peer got no answer, in words."""

from __future__ import annotations

import errno
import socket
from typing import Final

import aiohttp

RESOLVES_NOT: Final = "the name does not resolve"
REFUSED: Final = "the connection is refused: nobody listens there"
TIMEOUT: Final = "there is no answer in time"
NO_ROUTE: Final = "there is no route to the host"
BROKEN_OFF: Final = "the connection was broken off"
NO_HTTP: Final = "the answer is not HTTP"


def cause_of(error: Exception) -> str:
    """Returns the cause of a failed call, as one of the texts above if it is a frequent one."""
    if isinstance(error, TimeoutError):
        return TIMEOUT
    if isinstance(error, aiohttp.ClientConnectorDNSError | socket.gaierror):
        return RESOLVES_NOT
    number = getattr(error, "errno", None)
    if isinstance(error, ConnectionRefusedError) or number == errno.ECONNREFUSED:
        return REFUSED
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return NO_ROUTE
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
        return BROKEN_OFF
    if isinstance(error, aiohttp.ClientResponseError):
        return NO_HTTP
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer is not complete"
    return f"the call failed: {type(error).__name__}"
