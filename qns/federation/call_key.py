"""Call key: the private key and the certificate with which a peer signs its calls one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qns.errors import ValueRefused
from qns.federation.certificate import read_certificate


@dataclass(frozen=True, slots=True)
class CallKey:
    fingerprint: str
    der: bytes
    """The certificate, which goes with each call."""
    private: Any
    """An RSA or ECDSA key of the library cryptography."""
    is_rsa: bool

    @classmethod
    def read(cls, certificate: str, key: bytes) -> CallKey:
        """Reads a certificate and its key, both in PEM; raises ValueRefused if they do not fit."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

        known = read_certificate(certificate)
        parsed = x509.load_pem_x509_certificate(known.pem.encode())
        try:
            private = load_pem_private_key(key, password=None)
        except (ValueError, TypeError):
            raise ValueRefused(
                "the key is not a private key in PEM without a password",
                remedy="give the file that was made together with the certificate",
            ) from None
        if private.public_key() != parsed.public_key():
            raise ValueRefused(
                "the key does not fit the certificate",
                remedy="give the two files that were made together",
            )
        if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise ValueRefused(
                "WS-Security signs with RSA or ECDSA, and the key is neither",
                remedy="qns certificates make NAME --only seal --algorithm ecdsa-p256 makes one",
            )
        der = parsed.public_bytes(Encoding.DER)
        return cls(known.fingerprint, der, private, isinstance(private, rsa.RSAPrivateKey))
