"""Causes: why a call to another peer got no answer, in words."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Final

import aiohttp

from qns.runtime.tls_contexts import UnknownCertificate

RESOLVES_NOT: Final = "the name does not resolve"
REFUSED: Final = "the connection is refused: nobody listens there"
TIMEOUT: Final = "there is no answer in time"
NO_ROUTE: Final = "there is no route to the host"
BROKEN_OFF: Final = "the connection was broken off"
NO_HTTP: Final = "the answer is not HTTP"
UNKNOWN_CERTIFICATE: Final = "its certificate is not one that the federation document names for it"
EXPIRED: Final = "its certificate has expired"
NOT_YET_VALID: Final = "its certificate is not valid yet"
TLS_BROKEN_OFF: Final = (
    "it broke off the TLS connection, as it does if it does not accept the certificate of this peer"
)
TLS_REFUSED: Final = "it does not accept the certificate of this peer"
EXPIRED_HERE: Final = "it says that the certificate of this peer has expired"
NO_CERTIFICATE: Final = "no certificate was given"
NO_TLS: Final = "it does not speak TLS"
NO_TLS_1_3: Final = "it does not speak TLS 1.3"

_VERIFICATIONS: Final[Mapping[int, str]] = {9: NOT_YET_VALID, 10: EXPIRED}
"""The verification errors of OpenSSL that have words of their own."""
_REASONS: Final[Mapping[str, str]] = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": TLS_REFUSED,
    "TLSV1_ALERT_UNKNOWN_CA": TLS_REFUSED,
    "SSLV3_ALERT_BAD_CERTIFICATE": TLS_REFUSED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": TLS_REFUSED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": EXPIRED_HERE,
    "TLSV1_ALERT_ACCESS_DENIED": TLS_REFUSED,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": NO_CERTIFICATE,
    "WRONG_VERSION_NUMBER": NO_TLS,
    "HTTP_REQUEST": NO_TLS,
    "UNSUPPORTED_PROTOCOL": NO_TLS_1_3,
    "TLSV1_ALERT_PROTOCOL_VERSION": NO_TLS_1_3,
    "UNEXPECTED_EOF_WHILE_READING": TLS_BROKEN_OFF,
}


def cause_of(error: Exception, *, has_tls: bool = False) -> str:
    """Returns the cause of a failed call, as one of the texts above if it is a frequent one."""
    if isinstance(error, TimeoutError):
        return TIMEOUT
    tls = UNKNOWN_CERTIFICATE if isinstance(error, UnknownCertificate) else tls_cause(error)
    if tls:
        return tls
    if isinstance(error, aiohttp.ClientConnectorDNSError | socket.gaierror):
        return RESOLVES_NOT
    number = getattr(error, "errno", None)
    if isinstance(error, ConnectionRefusedError) or number == errno.ECONNREFUSED:
        return REFUSED
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return NO_ROUTE
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
        return TLS_BROKEN_OFF if has_tls else BROKEN_OFF
    if isinstance(error, aiohttp.ClientResponseError):
        return NO_HTTP
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer is not complete"
    return f"the call failed: {type(error).__name__}"


def tls_cause(error: BaseException) -> str:
    """Returns what was wrong with TLS, in words; empty if that was not the cause."""
    for each in _chain(error):
        if not isinstance(each, ssl.SSLError):
            continue
        # Errors of aiohttp are of the same classes, without what OpenSSL says.
        code, reason = getattr(each, "verify_code", None), getattr(each, "reason", None)
        if code is not None:
            return _VERIFICATIONS.get(code, UNKNOWN_CERTIFICATE)
        if reason:
            return _REASONS.get(reason, f"TLS failed: {reason}")
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error and those from which it comes."""
    while error is not None:
        yield error
        for name in ("os_error", "certificate_error"):
            inner = getattr(error, name, None)
            if isinstance(inner, BaseException):
                yield inner
        error = error.__cause__ or error.__context__
