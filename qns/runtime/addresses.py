"""Addresses: checks where a peer listens and where it reaches others. Only loopback is allowed.

Without mutual TLS, messages could be read and forged on the network. Until it exists, peers listen
on loopback addresses and connect to no others.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from qns.errors import ValueRefused, shorten

_NO_TLS_YET: Final = (
    "peers use only loopback until mutual TLS is supported: use an address such as 127.0.0.1"
)
_LISTEN_REMEDY: Final = 'use an address and a port, such as "127.0.0.1:8701"'


class Listen(NamedTuple):
    host: str
    port: int
    """The port; 0 selects any free port."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def is_loopback(host: str) -> bool:
    """True for a loopback address. Host names are not resolved, because this may change."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_names(url: str) -> frozenset[str]:
    """Returns the names by which clients may address a server at this URL, in lower case."""
    host = urlsplit(url).hostname or ""
    return frozenset((host, "localhost")) if is_loopback(host) else frozenset((host,))


def checked_listen(text: str) -> Listen:
    """Parses an address such as `127.0.0.1:8701` or `[::1]:8701`; raises ValueRefused."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:  # unbalanced brackets, or a port that is no number or too large
        host, port = None, None
    if not host or port is None or parts.netloc != text or "@" in text:
        raise ValueRefused(f"{shorten(text)} is no address to listen on", remedy=_LISTEN_REMEDY)
    if not is_loopback(host):
        raise ValueRefused(f"{shorten(text)} is not a loopback address", remedy=_NO_TLS_YET)
    return Listen(host, port)


def listen_of(endpoint: str) -> Listen:
    """Returns the address on which a peer with this endpoint listens."""
    parts = urlsplit(checked_endpoint(endpoint))
    return Listen(parts.hostname or "", parts.port or 80)


def serves(listen: Listen, endpoint: str) -> bool:
    """True if a peer that listens there can be called at this endpoint of the document."""
    wanted = listen_of(endpoint)
    is_any = "localhost" in (listen.host.lower(), wanted.host.lower())
    return listen.port == wanted.port and (is_any or listen.host == wanted.host)


def checked_endpoint(endpoint: str) -> str:
    """Returns the endpoint; raises ValueRefused unless it is reachable without TLS."""
    parts = urlsplit(endpoint)
    if parts.scheme != "http":
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} requires TLS, which is not supported yet",
            remedy="use one such as http://127.0.0.1:8701/",
        )
    if not is_loopback(parts.hostname or ""):
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} is not on a loopback address", remedy=_NO_TLS_YET
        )
    return endpoint


def peer_url(endpoint: str) -> str:
    """Returns the URL of the port Peer."""
    return urljoin(endpoint, "peer")


def health_url(endpoint: str) -> str:
    return urljoin(endpoint, "health")
