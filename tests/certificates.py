"""Certificates for tests: a few, made once, and any others on demand."""

from __future__ import annotations

from functools import cache
from time import time

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from qns.federation.new_certificate import NewCertificate, new_certificate

DAY_S = 86_400.0


@cache
def certificate(name: str, number: int = 1) -> NewCertificate:
    """Returns a key and a certificate that are the same whenever a test asks for them."""
    return new_certificate(name, time() + number)


def expired(name: str) -> NewCertificate:
    return new_certificate(name, time() - 30 * DAY_S, days=29)


def not_yet_valid(name: str) -> NewCertificate:
    return new_certificate(name, time() + 30 * DAY_S)


def authority(name: str) -> NewCertificate:
    """Returns a self-signed certificate with which its owner can issue others."""
    own = new_certificate(name, time())
    return _signed(own, own)


def issued_by(issuer: NewCertificate) -> NewCertificate:
    """Returns a certificate of a new key that the owner of another certificate has issued."""
    return _signed(new_certificate("issued", time()), issuer)


def _signed(own: NewCertificate, issuer: NewCertificate) -> NewCertificate:
    leaf, above = (
        x509.load_pem_x509_certificate(each.certificate.encode()) for each in (own, issuer)
    )
    key = load_pem_private_key(issuer.key, None)
    assert isinstance(key, Ed25519PrivateKey)
    is_authority = own is issuer
    signed = (
        x509.CertificateBuilder()
        .subject_name(leaf.subject)
        .issuer_name(above.subject)
        .public_key(leaf.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(leaf.not_valid_before_utc)
        .not_valid_after(leaf.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .sign(key, None)
    )
    return NewCertificate(own.key, signed.public_bytes(Encoding.PEM).decode())
