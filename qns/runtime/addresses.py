"""Addresses: checks where a peer listens and where it reaches others.

Without mutual TLS, messages could be read and forged on the network. A peer without it listens on
loopback addresses and connects to no others. A peer with it calls others only over TLS.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from qns.errors import ValueRefused, shorten

_NO_TLS: Final = (
    "without a section [tls] in its configuration a peer uses only loopback: add one, or use an "
    "address such as 127.0.0.1"
)
_LISTEN_REMEDY: Final = 'use an address and a port, such as "127.0.0.1:8701"'


_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 (the operator has chosen it)


class Listen(NamedTuple):
    host: str
    port: int
    """The port; 0 selects any free port."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    @property
    def tls_url(self) -> str:
        return self.url.replace("http:", "https:", 1)


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


def checked_listen(text: str, *, has_tls: bool = False) -> Listen:
    """Parses an address such as `127.0.0.1:8701` or `[::1]:8701`; raises ValueRefused.

    Without TLS, only loopback addresses are accepted.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:  # unbalanced brackets, or a port that is no number or too large
        host, port = None, None
    if not host or port is None or parts.netloc != text or "@" in text:
        raise ValueRefused(f"{shorten(text)} is no address to listen on", remedy=_LISTEN_REMEDY)
    if not has_tls and not is_loopback(host):
        raise ValueRefused(f"{shorten(text)} is not a loopback address", remedy=_NO_TLS)
    return Listen(host, port)


def listen_of(endpoint: str, *, has_tls: bool = False) -> Listen:
    """Returns the address on which a peer with this endpoint listens."""
    parts = urlsplit(checked_endpoint(endpoint, has_tls=has_tls))
    return Listen(parts.hostname or "", parts.port or (443 if has_tls else 80))


def serves(listen: Listen, endpoint: str, *, has_tls: bool = False) -> bool:
    """True if a peer that listens there can be called at this endpoint of the document."""
    try:
        wanted = listen_of(endpoint, has_tls=has_tls)
    except ValueRefused:  # it is a URL of the other kind, so that no one listens there
        return False
    is_any = "localhost" in (listen.host.lower(), wanted.host.lower())
    is_any = is_any or listen.host in _EVERYWHERE
    return listen.port == wanted.port and (is_any or listen.host == wanted.host)


def checked_endpoint(endpoint: str, *, has_tls: bool = False) -> str:
    """Returns the endpoint; raises ValueRefused unless a peer with or without TLS can call it."""
    parts = urlsplit(endpoint)
    if has_tls and parts.scheme != "https":
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} has no TLS",
            remedy="a peer with a section [tls] calls others only over TLS: give an https URL",
        )
    if not has_tls and parts.scheme != "http":
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} requires TLS",
            remedy="add a section [tls] to the configuration of this peer",
        )
    if not has_tls and not is_loopback(parts.hostname or ""):
        raise ValueRefused(
            f"the endpoint {shorten(endpoint)} is not on a loopback address", remedy=_NO_TLS
        )
    return endpoint


def peer_url(endpoint: str) -> str:
    """Returns the URL of the port Peer."""
    return urljoin(endpoint, "peer")


def health_url(endpoint: str) -> str:
    return urljoin(endpoint, "health")
