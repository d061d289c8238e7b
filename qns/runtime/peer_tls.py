"""Peer TLS: who is at the other end of a connection, by the document in force.

The certificate of a connection decides which organisation it is. That is looked up once for each
connection and each document, not for each request.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import time
from typing import Final, Protocol

from qns.errors import FederationError
from qns.federation.certificate import Certificate, read_certificate
from qns.federation.document import Federation, Organisation
from qns.runtime.key_files import KeyFiles
from qns.runtime.logs import log_event
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.tls_contexts import Pinned, client_context, fingerprint_at, server_context, trust

REFRESH_S: Final = 2.0
"""The files of the key and the certificate are looked at in this interval."""
_REJECTED: Final = "a connection of a peer was rejected"


@dataclass(slots=True, eq=False)
class Identity:
    """The other end of an authenticated connection."""

    certificate: Certificate
    organisation: str
    """The organisation whose certificate it is; empty if the document names it no more."""
    federation: Federation
    """The document by which the organisation was found."""


class Connection(Protocol):
    @property
    def identity(self) -> Identity | None: ...

    def abort(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Pin:
    """What is needed to call one organisation."""

    certificates: tuple[str, ...]
    version: int
    """The version of the own certificate."""
    context: ssl.SSLContext
    pinned: Pinned


@dataclass(slots=True, eq=False)
class PeerTls:
    own: OwnCertificate
    federation: Callable[[], Federation]
    """Returns the document in force."""
    connections: Callable[[], Iterable[Connection]] = lambda: ()
    """Returns the open connections of the port Peer."""
    _known: dict[str, str] = field(default_factory=dict)
    """Maps a fingerprint to its organisation, by the document `_document`."""
    _document: Federation | None = None
    _server: ssl.SSLContext | None = None
    _server_version: int = 0
    _pins: dict[str, Pin] = field(default_factory=dict)
    _refreshing: asyncio.Task[None] | None = None

    # --- clients of this peer ---------------------------------------------------------------------

    def server_context(self) -> ssl.SSLContext:
        """Returns the context for a new connection of another peer."""
        self.take_document()
        if self._server is None or self._server_version != self.own.version:
            trusted = (pem for each in self._members() for pem in each.tls)
            self._server = server_context(self.own, trusted)
            self._server_version = self.own.version
        return self._server

    def identify(self, transport: asyncio.BaseTransport) -> Identity | None:
        """Returns who is at the other end; None, and a line in the log, if it is no member."""
        fingerprint = fingerprint_at(transport)
        self.take_document()
        name = self._known.get(fingerprint, "")
        if not name:
            reason = f"the document names the certificate {fingerprint} for nobody"
            log_event(logging.WARNING, _REJECTED, reason=reason)
            return None
        assert self._document is not None
        found = (read_certificate(pem) for pem in self._document[name].tls)
        certificate = next(each for each in found if each.fingerprint == fingerprint)
        return Identity(certificate, name, self._document)

    def organisation(self, identity: Identity | None) -> str:
        """Returns the organisation of a connection; empty if it may not call this peer any more."""
        if identity is None or time() > identity.certificate.ends:
            return ""
        self.take_document()
        if identity.federation is not self._document:
            assert self._document is not None
            identity.organisation = self._known.get(identity.certificate.fingerprint, "")
            identity.federation = self._document
        return identity.organisation

    def take_document(self) -> None:
        """Uses the document in force; closes the connections that it does not allow any more."""
        federation = self.federation()
        if federation is self._document:
            return
        self._document, self._server = federation, None
        self._known = {
            read_certificate(pem).fingerprint: each.name
            for each in self._members()
            for pem in each.tls
        }
        for connection in list(self.connections()):
            identity = connection.identity
            if identity is not None and not self.organisation(identity):
                reason = "the federation document does not name its certificate any more"
                certificate = identity.certificate.fingerprint
                log_event(logging.WARNING, _REJECTED, reason=reason, certificate=certificate)
                connection.abort()

    # --- calls to others --------------------------------------------------------------------------

    def pin(self, name: str) -> Pin:
        """Returns what is needed to call an organisation; raises FederationError."""
        federation = self.federation()
        certificates = federation[name].tls if name in federation else ()
        if not certificates:
            raise FederationError(
                f"the federation document has no TLS certificate for {name}",
                remedy="put its certificate into the next version",
            )
        pin = self._pins.get(name)
        if pin is None or pin.certificates != certificates or pin.version != self.own.version:
            context = client_context(self.own, certificates)
            pin = Pin(certificates, self.own.version, context, Pinned(certificates))
            self._pins[name] = pin
        return pin

    # --- changes of the files ---------------------------------------------------------------------

    def start(self) -> None:
        """Begins to look at the files of the key and the certificate from time to time."""
        self._refreshing = asyncio.create_task(self._refresh(), name="tls files")

    def stop(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            self.own.refresh()
            self.take_document()

    def _members(self) -> Iterable[Organisation]:
        return self.federation().organisations.values()


def local_pin(files: KeyFiles) -> Pin:
    """Returns what is needed to call the port Local of this peer over TLS; raises ValueRefused."""
    own = OwnCertificate.read(files)
    certificates = (own.certificate.pem,)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    trust(context, certificates)
    return Pin(certificates, own.version, context, Pinned(certificates))
