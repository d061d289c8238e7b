"""Timestamps (RFC 3161): an authority signs that something existed before a certain time.

One timestamp is for many sealed roots: they are the leaves of a Merkle tree, each with its seal,
and the authority signs the root of the tree.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qns.errors import QnsError, ValueRefused, show
from qns.federation.certificate import read_certificate

if TYPE_CHECKING:
    from rfc3161_client import TimeStampRequest

MAX_RESPONSE_BYTES: Final = 100_000
MAX_AUTHORITY_BYTES: Final = 100_000
_DOMAIN: Final = b"QNS timestamp 1\x00"
_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


class Authority(NamedTuple):
    """A timestamping authority, by the certificates to which the chain of its signer leads."""

    certificates: tuple[str, ...]
    """In PEM."""


def read_authority(data: bytes) -> Authority:
    """Reads a file with one or more certificates in PEM; raises ValueRefused."""
    blocks = _BLOCK.findall(data[: MAX_AUTHORITY_BYTES + 1].decode("utf-8", "replace"))
    if not blocks or len(data) > MAX_AUTHORITY_BYTES:
        raise ValueRefused(
            "this is no file of certificates",
            remedy="give the root certificate of the timestamping authority in PEM",
        )
    return Authority(tuple(read_certificate(each).pem for each in blocks))


def leaf_of(root: bytes, seal: bytes) -> bytes:
    """Returns the leaf of a sealed root; a root has 32 bytes, and the rest is the seal."""
    return _DOMAIN + root + seal


def require_library() -> None:
    """Raises QnsError if the library for timestamps is not installed."""
    if find_spec("rfc3161_client") is None:
        raise QnsError(
            "the library rfc3161-client is not installed",
            remedy='install it: pip install "qns[evidence]"',
        )


class Request:
    """A request for a timestamp of the root of a tree."""

    def __init__(self, root: bytes) -> None:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

        builder = TimestampRequestBuilder().data(root).hash_algorithm(HashAlgorithm.SHA256)
        self._root = root
        self._request: TimeStampRequest = builder.nonce(nonce=True).build()

    def as_bytes(self) -> bytes:
        return self._request.as_bytes()

    def check(self, response: bytes, authority: Authority) -> float:
        """Returns the time of the response to this request; raises QnsError if it is wrong."""
        return _checked_time(response, self._root, authority, self._request)


def checked_time(response: bytes, root: bytes, authority: Authority) -> float:
    """Returns the time that the authority has signed for this root; raises QnsError."""
    return _checked_time(response, root, authority, None)


def _checked_time(
    response: bytes, root: bytes, authority: Authority, request: TimeStampRequest | None
) -> float:
    from cryptography.x509 import load_pem_x509_certificate
    from rfc3161_client import VerifierBuilder, decode_timestamp_response

    builder: Any = VerifierBuilder()
    if request is not None:
        builder = VerifierBuilder.from_request(request)
    for each in authority.certificates:
        builder = builder.add_root_certificate(load_pem_x509_certificate(each.encode()))
    try:
        decoded = decode_timestamp_response(response)
        builder.build().verify_message(decoded, root)
        return decoded.tst_info.gen_time.timestamp()
    except Exception as error:  # the library has many kinds of errors, and none of them counts
        raise QnsError(
            f"the timestamp is not valid: {show(str(error) or type(error).__name__)}",
            remedy="check the certificate of the timestamping authority",
        ) from None
