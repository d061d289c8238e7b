"""Key files: a certificate and its private key in PEM, in two files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qns.errors import QnsError, ValueRefused
from qns.federation.certificate import Certificate, read_certificate

MAKE: Final = "qns certificates make NAME makes both"
"""The remedy for files that cannot be used."""

_MOST_BYTES: Final = 100_000
_BEGIN: Final = "-----BEGIN"
_END: Final = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    certificate: Path
    """The certificate in PEM, before the certificates of its authorities, if there are any."""
    key: Path
    """The private key in PEM, without a password."""


def read_chain(files: KeyFiles) -> tuple[bytes, Certificate]:
    """Returns the content of the certificate's file, and the first certificate in it."""
    chain = read_file(files.certificate, "certificate")
    try:
        leaf = chain.decode("ascii").partition(_END)[0] + _END
        return chain, read_certificate(leaf[max(leaf.find(_BEGIN), 0) :])
    except QnsError as problem:
        raise problem.at(str(files.certificate)) from None
    except UnicodeDecodeError:
        raise ValueRefused(
            "the certificate is not PEM", place=str(files.certificate), remedy=MAKE
        ) from None


def read_file(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueRefused(
            f"the {what} cannot be read: {error.strerror or error}",
            place=str(path),
            remedy=f"check the path and its permissions; {MAKE}",
        ) from None
    if len(content) > _MOST_BYTES:
        raise ValueRefused(
            f"the {what} has more than {_MOST_BYTES:,} bytes", place=str(path), remedy=MAKE
        )
    return content


def stamp_of(files: KeyFiles) -> object:
    """Returns a value that differs when a file was changed or replaced."""
    found: list[object] = []
    for path in (files.certificate, files.key):
        with suppress(OSError):
            state = path.stat()
            found.append((path, state.st_mtime_ns, state.st_size, state.st_ino))
    return found
