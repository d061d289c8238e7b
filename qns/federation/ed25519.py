"""Ed25519: signs and verifies with the library `cryptography`, and reads and writes its key files.

Nothing of the library leaves this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from qns.errors import ValueRefused
from qns.federation.roots import RootKey, Signature

_PRIVATE: Final = b"PRIVATE KEY-----"
_ENCRYPTED: Final = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private root key."""

    _key: Ed25519PrivateKey

    @classmethod
    def make(cls) -> SigningKey:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, seed: bytes) -> SigningKey:
        """Returns the key of 32 bytes, which have to be as secret as the key."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def read(cls, pem: bytes, passphrase: bytes | None = None) -> SigningKey:
        """Reads a private key in PEM; raises ValueRefused if it is not one of Ed25519."""
        if pem.lstrip().startswith(_ENCRYPTED) and passphrase is None:
            raise ValueRefused(
                "the private key is encrypted", remedy="name its passphrase file as well"
            )
        if not pem.lstrip().startswith(_ENCRYPTED):
            passphrase = None
        try:
            key = load_pem_private_key(pem, passphrase)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            words = "the passphrase does not fit, or it" if passphrase is not None else "it"
            raise ValueRefused(
                f"{words} is not a private key in PEM", remedy="qns federation key make makes one"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueRefused(
                "the private key is not one of ed25519", remedy="qns federation key make makes one"
            )
        return cls(key)

    def write(self, passphrase: bytes | None = None) -> bytes:
        """Returns the private key in PEM, encrypted if there is a passphrase."""
        encryption: KeySerializationEncryption = NoEncryption()
        if passphrase is not None:
            encryption = BestAvailableEncryption(passphrase)
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    @property
    def public(self) -> RootKey:
        return RootKey(self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> Signature:
        return Signature(self.public.fingerprint, self._key.sign(message))


def is_valid(key: RootKey, signature: Signature, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature.value, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_public_key(pem: bytes) -> RootKey:
    """Reads a public key in PEM; raises ValueRefused if it is not one of Ed25519."""
    if _PRIVATE in pem:
        raise ValueRefused(
            "a private key in the place of a public one",
            remedy="name the file that ends in .pub; the private key stays where it is",
        )
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueRefused(
            "it is not a public key in PEM", remedy="qns federation key make writes one"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueRefused(
            "the public key is not one of ed25519", remedy="qns federation key make writes one"
        )
    return RootKey(key.public_bytes_raw())


def write_public_key(key: RootKey) -> bytes:
    """Returns the public key in PEM."""
    public = Ed25519PublicKey.from_public_bytes(key.raw)
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
