"""Addresses: where a peer listens and where others are reached, on this computer only.

Without mutual TLS anybody on the way could read and write: until it exists, peers bind to loopback
addresses and talk to nobody else.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from qns.errors import ValueRefused, shorten

_NO_TLS_YET: Final = (
    "peers speak over loopback only until mutual TLS exists, which comes later: "
    "give an address such as 127.0.0.1"
)
_LISTEN_REMEDY: Final = 'give an address and a port, such as "127.0.0.1:8701"'


class Listen(NamedTuple):
    host: str
    port: int
    """0: any that is free."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def is_loopback(host: str) -> bool:
    """Names are not looked up: what they mean may change."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_listen(text: str) -> Listen:
    """From `127.0.0.1:8701` or `[::1]:8701`."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets that do not match, a port that is no number or too large
        host, port = None, None
    if not host or port is None or parts.netloc != text or "@" in text:
        raise ValueRefused(f"{shorten(text)} is no address to listen on", remedy=_LISTEN_REMEDY)
    if not is_loopback(host):
        raise ValueRefused(f"{shorten(text)} is not a loopback address", remedy=_NO_TLS_YET)
    return Listen(host, port)


def listen_of(endpoint: str) -> Listen:
    """Where a peer with this endpoint listens."""
    parts = urlsplit(checked_endpoint(endpoint))
    return Listen(parts.hostname or "", parts.port or 80)


def checked_endpoint(endpoint: str) -> str:
    """An endpoint of the federation document, if it can be reached without TLS."""
    parts = urlsplit(endpoint)
    if parts.scheme != "http":
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} asks for TLS, which comes later",
            remedy="give one such as http://127.0.0.1:8701/",
        )
    if not is_loopback(parts.hostname or ""):
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} is not on a loopback address", remedy=_NO_TLS_YET
        )
    return endpoint


def peer_url(endpoint: str) -> str:
    """The address of its Peer port."""
    return urljoin(endpoint, "peer")


def health_url(endpoint: str) -> str:
    return urljoin(endpoint, "health")
