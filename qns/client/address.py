"""Address: the address of a peer's port for its own users."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

from qns.errors import QnsError, ValueRefused, shorten

DEFAULT_PEER: Final = "http://127.0.0.1:8701/"


class PeerUnreachable(QnsError):
    """The peer gave no answer: it does not run, is too slow, or is not a peer."""

    may_be_done = False
    """True if the peer may have received the request; then only its answer is missing."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host, port and path. Only http on loopback is accepted."""

    host: str
    port: int
    path: str

    @classmethod
    def of(cls, peer: str) -> Self:
        """Reads a peer's base address, such as http://127.0.0.1:8701/."""
        remedy = f"write it as {DEFAULT_PEER}"
        try:
            parts = urlsplit(urljoin(peer if peer.endswith("/") else f"{peer}/", "local"))
            host, port = parts.hostname, parts.port
        except ValueError:
            host = None
        if host is None or not peer.isascii() or not peer.isprintable() or " " in peer:
            raise ValueRefused(f"{shorten(peer)} is not the address of a peer", remedy=remedy)
        if parts.scheme != "http":
            raise ValueRefused(f"{shorten(peer)}: only http is supported", remedy=remedy)
        if not _is_loopback(host):
            raise ValueRefused(
                f"{shorten(host)} is not this machine",
                remedy="without mutual TLS, peers are reached on 127.0.0.1 only",
            )
        return cls(host, port or 80, parts.path)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.path}"

    @property
    def base(self) -> str:
        """The base address, as users write it."""
        return self.url.removesuffix("local")

    def unreachable(self, problem: BaseException, *, may_be_done: bool) -> PeerUnreachable:
        """Returns the error for a problem of the network."""
        reason = (isinstance(problem, OSError) and problem.strerror) or str(problem)
        if isinstance(problem, TimeoutError):
            reason = "it takes too long"
        message = f"no answer from the peer at {self.base}"
        error = PeerUnreachable(
            f"{message}: {reason}" if reason else message,
            remedy="start it with qns peer run CONFIG.toml, or give the address of another",
        )
        error.may_be_done = may_be_done
        return error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
