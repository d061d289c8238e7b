"""Certificate: one X.509 certificate in PEM, with what the rest of QNS needs of it.

The text is kept in the form in which OpenSSL writes it, so that equal documents have equal bytes.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final

from qns.cbr.domains import STRING
from qns.errors import ValueRefused, show

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_SHOWN_DIGITS: Final = 16
_PEM_COLUMNS: Final = 64


@dataclass(frozen=True, slots=True)
class Certificate:
    pem: str
    fingerprint: str
    """The SHA-256 of the certificate, in 64 hexadecimal digits."""
    subject: str
    begins: float
    """The first second of its validity, since 1970."""
    ends: float
    """The last second of its validity, since 1970."""

    @property
    def short(self) -> str:
        """The first digits of the fingerprint, for messages."""
        return self.fingerprint[:_SHOWN_DIGITS]


@lru_cache(maxsize=4_096)
def read_certificate(text: str) -> Certificate:
    """Reads one certificate in PEM, with blanks around lines; raises ValueRefused."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    pem = checked_block(text)
    try:
        parsed = x509.load_pem_x509_certificate(pem.encode())
        parsed.public_key()
        der = parsed.public_bytes(Encoding.DER)
        subject = parsed.subject.rfc4514_string()
        begins, ends = parsed.not_valid_before_utc, parsed.not_valid_after_utc
    except Exception as problem:  # the library has many kinds of errors, and none of them counts
        raise ValueRefused(
            f"the certificate is not X.509: {show(str(problem) or type(problem).__name__)}",
            remedy="give the file that qns certificates or an authority has made",
        ) from None
    return Certificate(
        _in_pem(der),
        sha256(der).hexdigest(),
        subject,
        begins.timestamp(),
        ends.timestamp(),
    )


def fingerprint_of(der: bytes) -> str:
    """Returns the fingerprint of a certificate in DER, as TLS gives it."""
    return sha256(der).hexdigest()


def checked_block(text: str) -> str:
    """Returns one block in PEM, in lines of 64 characters; its content is not checked."""
    STRING.key(text)
    if "PRIVATE KEY-----" in text:
        raise ValueRefused(
            "a private key in the place of a certificate",
            remedy="everybody reads this document: remove the key, and use it no more",
        )
    stripped = text.strip()
    body = "".join(stripped.removeprefix(_BEGIN).removesuffix(_END).split())
    try:
        content = binascii.a2b_base64(body, strict_mode=True)
    except ValueError:
        content = b""
    if not (content and stripped.startswith(_BEGIN) and stripped.endswith(_END)):
        raise ValueRefused(
            "the certificate is not one block in PEM",
            remedy=f"give the lines from {_BEGIN} to {_END}, once, or no certificate",
        )
    return _in_pem(content)


def _in_pem(der: bytes) -> str:
    body = binascii.b2a_base64(der, newline=False).decode()
    lines = [body[at : at + _PEM_COLUMNS] for at in range(0, len(body), _PEM_COLUMNS)]
    return "\n".join([_BEGIN, *lines, _END, ""])
