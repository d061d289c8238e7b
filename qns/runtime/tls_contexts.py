"""Contexts: TLS 1.3 with exactly the certificates that the federation document names.

Each of these certificates is trusted by itself, whoever has issued it. The trust store of the
system is not used, and host names do not matter. Sessions are not resumed, so that every connection
is authenticated anew.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable

import aiohttp

from qns.federation.certificate import fingerprint_of, read_certificate
from qns.runtime.own_certificate import OwnCertificate


class UnknownCertificate(aiohttp.ClientError):
    """Raised if a server has another certificate than the federation document names."""


class Pinned(aiohttp.Fingerprint):
    """Accepts a server with one of these certificates itself, not one that these have issued."""

    def __init__(self, certificates: Iterable[str]) -> None:
        self._fingerprints = {read_certificate(pem).fingerprint for pem in certificates}
        super().__init__(bytes(32))

    def check(self, transport: asyncio.Transport) -> None:
        if fingerprint_at(transport) not in self._fingerprints:
            raise UnknownCertificate


def server_context(own: OwnCertificate, trusted: Iterable[str]) -> ssl.SSLContext:
    """Returns the context of a server that accepts only clients with these certificates."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_SERVER, own)
    trust(context, trusted)
    return context


def client_context(own: OwnCertificate, pinned: Iterable[str]) -> ssl.SSLContext:
    """Returns the context of calls to a server that has one of these certificates."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_CLIENT, own)
    trust(context, pinned)
    return context


def anonymous_context(own: OwnCertificate) -> ssl.SSLContext:
    """Returns the context of a server whose clients need no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    own.load_into(context)
    return context


def fingerprint_at(transport: asyncio.BaseTransport) -> str:
    """Returns the fingerprint of the certificate of the other side; empty if it has none."""
    tls = transport.get_extra_info("ssl_object")
    der = tls.getpeercert(binary_form=True) if tls is not None else None
    return fingerprint_of(der) if der else ""


def trust(context: ssl.SSLContext, certificates: Iterable[str]) -> None:
    """Makes a context accept the other side only if its certificate leads to one of these."""
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    together = "".join(certificates)
    if together:
        context.load_verify_locations(cadata=together)


def _tls_1_3(protocol: int, own: OwnCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.options |= ssl.OP_NO_TICKET
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0
    own.load_into(context)
    return context
