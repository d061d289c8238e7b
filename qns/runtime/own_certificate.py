"""Own certificate: the key and the certificate of this peer, read again when their files change.

A new file that cannot be used leaves the former key and certificate in use.
"""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NoReturn

from qns.errors import QnsError, ValueRefused
from qns.federation.certificate import Certificate, read_certificate
from qns.runtime.logs import log_event

_MOST_BYTES: Final = 100_000
_END: Final = "-----END CERTIFICATE-----"
_MAKE: Final = "qns certificates make NAME makes both"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    certificate: Path
    """The certificate in PEM, before the certificates of its authorities, if there are any."""
    key: Path
    """The private key in PEM, without a password."""


@dataclass(slots=True, eq=False)
class OwnCertificate:
    files: TlsFiles
    certificate: Certificate
    version: int
    """Counts the changes, so that contexts with a former key are replaced."""
    problem: str = ""
    """Why the files as they are now cannot be used; empty if they are in use."""
    _content: bytes = b""
    _stamp: object = None

    @classmethod
    def read(cls, files: TlsFiles) -> OwnCertificate:
        """Reads the files; raises ValueRefused if they cannot be used."""
        stamp = _stamp(files)
        content, certificate = _read(files)
        return cls(files, certificate, 1, _content=content, _stamp=stamp)

    def refresh(self, *, always: bool = False) -> bool:
        """Reads the files if they have changed; returns True if a new certificate is in use."""
        stamp = _stamp(self.files)
        if stamp == self._stamp and not always:
            return False
        self._stamp = stamp
        try:
            content, certificate = _read(self.files)
        except QnsError as problem:
            if self.problem != str(problem):
                reason = self.problem = str(problem)
                log_event(logging.ERROR, "the former TLS certificate stays in use", reason=reason)
            return False
        self.problem = ""
        if content == self._content:
            return False
        self._content, self.certificate = content, certificate
        self.version += 1
        log_event(
            logging.INFO, "a new TLS certificate is in use", certificate=certificate.fingerprint
        )
        return True

    def load_into(self, context: ssl.SSLContext) -> None:
        """Gives the key and the certificate to a context."""
        _load(context, self._content)


def _read(files: TlsFiles) -> tuple[bytes, Certificate]:
    """Returns the content for a context, and the certificate; raises ValueRefused."""
    chain = _content(files.certificate, "certificate")
    try:
        leaf = chain.decode("ascii").partition(_END)[0] + _END
        certificate = read_certificate(leaf[max(leaf.find("-----BEGIN"), 0) :])
    except QnsError as problem:
        raise problem.at(str(files.certificate)) from None
    except UnicodeDecodeError:
        raise ValueRefused(
            "the certificate is not PEM", place=str(files.certificate), remedy=_MAKE
        ) from None
    key = _content(files.key, "key")
    content = key + b"\n" + chain
    try:
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), content)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            words = f"the key does not fit the certificate {files.certificate}"
            remedy = "put the two files that belong together"
        else:
            words = "the file has no private key in PEM that can be used"
            remedy = _MAKE
        raise ValueRefused(words, place=str(files.key), remedy=remedy) from None
    except _HasPassword:
        raise ValueRefused(
            "the key has a password", place=str(files.key), remedy="store it without one, mode 0600"
        ) from None
    return content, certificate


class _HasPassword(Exception):
    pass


def _load(context: ssl.SSLContext, content: bytes) -> None:
    """Loads a key and certificates; the library reads only files, so the content gets one."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("tls", os.MFD_CLOEXEC)
        try:
            os.write(number, content)
            context.load_cert_chain(f"/proc/self/fd/{number}", password=_no_password)
        finally:
            os.close(number)
        return
    with NamedTemporaryFile() as file:  # only this user can read it
        file.write(content)
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> NoReturn:
    raise _HasPassword


def _content(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueRefused(
            f"the {what} cannot be read: {error.strerror or error}",
            place=str(path),
            remedy=f"check the path and its permissions; {_MAKE}",
        ) from None
    if len(content) > _MOST_BYTES:
        raise ValueRefused(
            f"the {what} has more than {_MOST_BYTES:,} bytes", place=str(path), remedy=_MAKE
        )
    return content


def _stamp(files: TlsFiles) -> object:
    """Returns a value that differs when a file was changed or replaced."""
    found: list[object] = []
    for path in (files.certificate, files.key):
        with suppress(OSError):
            state = path.stat()
            found.append((path, state.st_mtime_ns, state.st_size, state.st_ino))
    return found
