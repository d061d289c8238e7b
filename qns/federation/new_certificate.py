"""New certificates: makes keys and self-signed certificates of organisations.

Peers trust exactly the certificates that the federation document names, so that no authority is
needed. A certificate that an authority has issued works as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from qns.errors import NameNotKnown, ValueRefused, shorten

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    _Key = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey

ALGORITHMS: Final = ("ed25519", "ecdsa-p256", "rsa-3072")
DEFAULT_DAYS: Final = 365
MOST_DAYS: Final = 3_650
_EARLY: Final = timedelta(minutes=5)
"""The validity begins earlier, so that a peer whose clock is behind accepts the certificate."""
_LONGEST_NAME: Final = 64
"""The most characters of a common name in X.509."""


@dataclass(frozen=True, slots=True)
class NewCertificate:
    key: bytes
    """The private key in PEM (PKCS #8, without a password)."""
    certificate: str
    """The certificate in PEM."""


def new_certificate(
    organisation: str,
    now: float,
    *,
    days: float = DEFAULT_DAYS,
    algorithm: str = ALGORITHMS[0],
    is_tls: bool = True,
) -> NewCertificate:
    """Makes a key and a self-signed certificate, for TLS or for a seal, that is valid from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    if days > MOST_DAYS:
        raise ValueRefused(f"{days:,} days", remedy=f"at most {MOST_DAYS:,}")
    key = _new_key(algorithm)
    common = organisation[:_LONGEST_NAME]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    begins = datetime.fromtimestamp(now, UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=not is_tls,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _EARLY)
        .not_valid_after(begins + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if is_tls:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    signed = builder.sign(key, None if algorithm == "ed25519" else hashes.SHA256())
    return NewCertificate(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        signed.public_bytes(serialization.Encoding.PEM).decode(),
    )


def _new_key(algorithm: str) -> _Key:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    makers: dict[str, Callable[[], _Key]] = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa-3072": lambda: rsa.generate_private_key(65_537, 3_072),
    }
    if algorithm not in makers:
        raise NameNotKnown("algorithm", shorten(algorithm), ALGORITHMS)
    return makers[algorithm]()
