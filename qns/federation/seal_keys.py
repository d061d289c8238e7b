"""Seal keys: signs with the private key of a seal certificate, and checks such signatures.

The certificate decides the algorithm: Ed25519, ECDSA with P-256 and SHA-256, or RSA-PSS with
SHA-256 and at least 3,072 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qns.errors import ValueRefused
from qns.federation.certificate import read_certificate

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

SMALLEST_RSA_BITS: Final = 3_072

Verify = Callable[[bytes, bytes], bool]
"""(signature, message) -> whether the key of a certificate has made the signature."""


class SealKey(NamedTuple):
    """What is needed of a seal certificate to check signatures."""

    fingerprint: bytes
    begins: float
    ends: float
    """The first and the last second of its validity, since 1970."""
    verify: Verify


@dataclass(frozen=True, slots=True)
class FileSigner:
    """Signs with a private key that was read from a file."""

    fingerprint: bytes
    """The SHA-256 of the certificate in DER."""
    _sign: Callable[[bytes], bytes]

    @classmethod
    def read(cls, certificate: str, key: bytes) -> FileSigner:
        """Reads a certificate and its key, both in PEM; raises ValueRefused if they do not fit."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        seal_key = read_seal_key(certificate)
        try:
            private = load_pem_private_key(key, password=None)
        except (ValueError, TypeError):
            raise ValueRefused(
                "the key of the seal is not a private key in PEM without a password",
                remedy="give the file that was made together with the certificate",
            ) from None
        sign = _sign_with(private)
        if sign is None or not seal_key.verify(sign(b"QNS"), b"QNS"):
            raise ValueRefused(
                "the key of the seal does not fit its certificate",
                remedy="give the two files that were made together",
            )
        return cls(seal_key.fingerprint, sign)

    def sign(self, message: bytes) -> bytes:
        return self._sign(message)


@lru_cache(maxsize=4_096)
def read_seal_key(pem: str) -> SealKey:
    """Reads a seal certificate in PEM; raises ValueRefused if its key cannot be used."""
    from cryptography import x509

    certificate = read_certificate(pem)
    public = x509.load_pem_x509_certificate(certificate.pem.encode()).public_key()
    verify = _verify_with(public)
    if verify is None:
        raise ValueRefused(
            f"the seal certificate {certificate.short} has a key that seals do not use",
            remedy=f"use Ed25519, ECDSA with P-256, or RSA with {SMALLEST_RSA_BITS:,} bits or more",
        )
    fingerprint = bytes.fromhex(certificate.fingerprint)
    return SealKey(fingerprint, certificate.begins, certificate.ends, verify)


def _sign_with(private: PrivateKeyTypes) -> Callable[[bytes], bytes] | None:
    """Returns the function that signs; None for a kind of key that seals do not use."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(private, ed25519.Ed25519PrivateKey):
        return private.sign
    if isinstance(private, ec.EllipticCurvePrivateKey):
        return lambda message: private.sign(message, _ecdsa())
    if isinstance(private, rsa.RSAPrivateKey):
        return lambda message: private.sign(message, *_pss())
    return None


def _verify_with(public: PublicKeyTypes) -> Verify | None:
    """Returns the function that checks signatures; None for a key that seals do not use."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(public, ed25519.Ed25519PublicKey):
        return _checked(public.verify)
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
        return _checked(public.verify, _ecdsa())
    if isinstance(public, rsa.RSAPublicKey) and public.key_size >= SMALLEST_RSA_BITS:
        return _checked(public.verify, *_pss())
    return None


def _checked(verify: Callable[..., None], *algorithm: object) -> Verify:
    from cryptography.exceptions import InvalidSignature

    def is_valid(signature: bytes, message: bytes) -> bool:
        try:
            verify(signature, message, *algorithm)
        except InvalidSignature:
            return False
        return True

    return is_valid


def _ecdsa() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    return ec.ECDSA(SHA256())


def _pss() -> tuple[Any, Any]:
    from cryptography.hazmat.primitives.asymmetric import padding
    from cryptography.hazmat.primitives.hashes import SHA256

    digest = SHA256()
    return padding.PSS(padding.MGF1(digest), digest.digest_size), digest
