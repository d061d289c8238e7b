"""Stub seals: certificates that documents accept, with signatures that cost nothing.

A signature is a hash of the certificate and the message. No simulated forger makes one, because
forgers only alter and repeat what they forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import inf

from qns.federation.certificate import read_certificate
from qns.federation.document import Federation, Organisation
from qns.federation.new_certificate import new_certificate
from qns.federation.seal_keys import SealKey


@dataclass(frozen=True, slots=True)
class StubSigner:
    fingerprint: bytes

    def sign(self, message: bytes) -> bytes:
        return sha256(self.fingerprint + message).digest()


def read_stub_certificate(pem: str) -> SealKey:
    """Reads a certificate whose key makes stub signatures; it is valid for ever."""
    fingerprint = bytes.fromhex(read_certificate(pem).fingerprint)
    signer = StubSigner(fingerprint)

    def verify(signature: bytes, message: bytes) -> bool:
        return signature == signer.sign(message)

    return SealKey(fingerprint, -inf, inf, verify)


def stub_signer(organisation: Organisation) -> StubSigner | None:
    """Returns the signer for the newest seal certificate; None if there is none."""
    if not organisation.seals:
        return None
    return StubSigner(read_stub_certificate(organisation.seals[-1]).fingerprint)


@cache
def stub_certificate(name: str, number: int = 1) -> str:
    """Returns a seal certificate of an organisation; that of a higher number is newer."""
    return new_certificate(name, float(number), is_tls=False).certificate


def with_stub_seals(federation: Federation) -> Federation:
    """Returns the document with a seal certificate for each organisation."""
    return replace(federation, organisations=_sealed(federation.organisations))


def _sealed(organisations: Mapping[str, Organisation]) -> dict[str, Organisation]:
    return {
        name: replace(each, seals=(stub_certificate(name),)) for name, each in organisations.items()
    }
